"""A Delta table of the files of a view, for readers that know no Variants, and its refresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import total
from .._checks import check_option
from .._progress import advance, begin
from .._threads import Threads
from ..data_file.reader import NativeFile, open_file
from ..errors import CommitConflictError, SchemaError, TableExistsError
from ..execution import new_name
from ..log import transaction
from ..log.commit_context import CommitContext, CommitOptions, CommitResult, commit_context, now, without_txn
from ..log.conflicts import Reads
from ..log.file_tables import FILES_SCHEMA, key_texts
from ..log.snapshot import Snapshot
from ..protocol import features, properties
from ..protocol.actions import AddFile, Format, Metadata, encode_path
from ..protocol.schema.arrow import from_arrow, to_arrow
from ..protocol.schema.json_text import to_json
from ..protocol.schema.rules import check_new, check_partition_columns
from ..protocol.statistics import FileStatistics, from_report
from ..protocol.table_configuration import TableConfiguration
from ..read.file_reader import FileEntry, files_of
from ..read.rows import load_readable
from ..storage.store import (
    Store,
    TableLocation,
    absolute_path,
    copy,
    discard,
    open_latest,
    open_store,
    removing_new_folders,
    storage_options_of,
)
from ..write.commit import NOT_COMMITTED
from ..write.preparation import load_existing
from .files import View, ViewFile
from .shape import Shape, check_strict, plain_columns

NO_FILES = pa.Table.from_batches([], FILES_SCHEMA)

FILES_AT_ONCE = 8
"""The files that are copied at once; each that is not on a local disk needs up to 48 MiB."""

MIN_SHARE = 0.25
MIN_BYTES = 64 << 10
"""A data file of at least `MIN_BYTES` is copied whole if the columns of the view have this share of its
bytes. Otherwise only these columns are copied."""

ATTEMPTS = 5
"""How often an export begins again because another one was committed first."""

PATH_TAG = "deltaVariant.source"
VECTOR_TAG = "deltaVariant.sourceDeletionVector"
"""The tags of a file with the path of the data file that it has the rows of, and its deletion vector."""


class _Origin(msgspec.Struct, frozen=True, rename="camel"):
    """The value of `deltaVariant.export`: the exported table and its columns, which are SQL expressions.

    `is_flat` says that the caller passed the columns, so that each path is a top-level column.
    """

    table: str
    id: str
    columns: dict[str, str] | list[str]
    is_flat: bool = False


@dataclass(frozen=True, repr=False)
class ExportResult(CommitResult):
    """The result of an export.

    Attributes:
        version: The committed version, None if the target has the files of the source already.
        metrics: The metrics of the commit, empty without a commit.
        exported: The version of the source.
        files_added: The number of added files.
        files_rewritten: How many of them have rows that were decoded and written again.
        files_removed: The number of removed files.
        bytes_added: The size of the added files, in bytes.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> result = dv.export("clicks", "plain_clicks")
        >>> result.version, result.exported, result.files_added, result.files_rewritten
        (0, 0, 1, 0)
    """

    exported: int
    files_added: int
    files_rewritten: int
    files_removed: int
    bytes_added: int


def export(
    table: TableLocation | Snapshot,
    target: TableLocation,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    strict: bool = True,
    full_refresh: bool = False,
    commit: CommitOptions | None = None,
) -> ExportResult:
    """Create or refresh an ordinary Delta table with the columns and the typed paths of a table.

    Readers that know no Variants open the target, because it has neither Variants nor their features. Its
    data files are those of the table with other footers, as in `to_duckdb`: bytes are copied, not decoded,
    and on a local disk whose file system can do so, such as XFS, blocks are shared. A Variant is a struct of
    its paths below `typed_value`; partition columns and statistics stay.

    `columns` become top-level columns of the target, Variant paths included. Engines read such a column
    faster than a field of a struct. The encoded values are copied to new files; only definition levels are
    encoded again. Without `columns`, files are copied in this way if more than three quarters of their bytes
    belong to other columns.

    The rows of other files are written again as plain columns: of those with a deletion vector, with values
    of other types than that of their path, with another shredding, and with expressions as columns.

    Called again, it brings the target to the current version of the table by one commit: files are removed
    and added, and only new files are read. The columns stay those of the first export, until `columns` has
    others or `full_refresh` is set. The target is read-only for this library, until its table property
    `deltaVariant.export` is unset.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`: the source.
        target: The path or the URI of the target, or its handle. A path uses the storage options of `table`.
        columns: SQL expressions, as in `read_table`. None, the default, is the columns of the last export; or
            while the target has no files, each column that has no Variant and each shredded path, as in
            `to_duckdb`. Others replace all files of the target. `shredded_columns` has a column for each
            shredded path.
        strict: Whether a value that cannot be cast to the type of its path is an error, True by default, or
            NULL. It applies to the paths of the first export, without `columns`.
        full_refresh: Export all files again, with the shredded paths of now unless `columns` are given. False
            by default.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        An `ExportResult` with the version of the target, and the number of its new files.

    Raises:
        TableNotFoundError: There is no table at the source.
        TableExistsError: The target is a table that was not exported from the source.
        ExpressionError: An expression cannot be parsed or bound to the table, or is a whole Variant.
        SchemaError: Two columns or fields differ only by case, which Delta does not allow, or there is no
            column.
        CastError: A value cannot be cast to the type of its column.
        UnsupportedFeatureError: This version cannot read the table, or cannot commit to the target.
        DataFileError: A file is damaged, or its rows cannot be written to the temporary folder.
        StoreError: A file cannot be read or written.
        CommitConflictError: Other writers committed to the target during each of several attempts.
        ValueError: `commit` has a `txn`.

    Example:
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from deltalake import DeltaTable
        >>> schema = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})
        >>> rows = [{"id": 1, "event": {"user": {"id": 7}}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"], shredding=schema)
        >>> _ = dv.export("clicks", "plain_clicks")
        >>> DeltaTable("plain_clicks").to_pyarrow_table().to_pylist()
        [{'id': 1, 'event': {'typed_value': {'user': {'id': 7}}}}]
        >>> _ = dv.export("clicks", "plain_clicks", columns={"user": "event:user.id::bigint"})
        >>> DeltaTable("plain_clicks").to_pyarrow_table().to_pylist()
        [{'user': 7}]
    """
    check_strict(strict, columns)
    check_option("full_refresh", full_refresh, (True, False))
    commit = without_txn(commit, "export")
    options = None if isinstance(table, Snapshot) else storage_options_of(table)
    store = open_store(target, options) if isinstance(target, str | PathLike) else open_latest(target)
    attempt = 1
    while True:
        plan = _plan(load_readable(table, None), store, columns, strict, full_refresh)
        try:
            return _run(plan, commit)
        except (CommitConflictError, TableExistsError):
            if attempt == ATTEMPTS:
                raise
            attempt += 1


@dataclass(frozen=True)
class _Plan:
    """The files of the source to export, and those of the target to remove.

    `present` is the target, None if it does not exist, and `after` the target after the commit.
    """

    source: Snapshot
    view: View
    store: Store
    present: Snapshot | None
    after: TableConfiguration
    added: pa.Table
    removed: pa.Table

    @property
    def has_changes(self) -> bool:
        """Return whether there is anything to commit."""
        is_same = self.present is not None and self.after == self.present.configuration
        return not is_same or self.added.num_rows > 0 or self.removed.num_rows > 0


def _plan(
    source: Snapshot,
    store: Store,
    columns: Mapping[str, str] | Sequence[str] | None,
    strict: bool,
    full_refresh: bool,
) -> _Plan:
    present = load_existing(store, "append")
    known = None if present is None else _known_origin(present, source)
    if full_refresh:
        known = None
    is_flat = columns is not None
    if columns is None and known is not None:
        columns, is_flat = known.columns, known.is_flat
    elif columns is None:
        columns = plain_columns(source, strict=strict)
    if not columns:
        raise SchemaError(
            f"cannot export {source.uri} because its columns have Variants without shredded paths: pass "
            "columns, such as event:user.id::bigint",
            table=source.uri,
        )
    view = View(source, Shape.of(source, columns, strict=True, is_flat=is_flat))
    texts = dict(columns) if isinstance(columns, Mapping) else list(columns)
    origin = _Origin(source.uri, source.metadata.id, texts, is_flat)
    if present is None or known != origin or _differs(present, view):
        after = _configure(view, store, present, origin)
        removed = NO_FILES if present is None else present.files
        return _Plan(source, view, store, present, after, source.files, removed)
    wanted, found = _keys_of_source(source.files), _keys_of_target(present.files)
    added = source.files.filter(pc.invert(pc.is_in(wanted, value_set=found)))
    removed = present.files.filter(pc.invert(pc.is_in(found, value_set=wanted)))
    return _Plan(source, view, store, present, present.configuration, added, removed)


def _known_origin(target: Snapshot, source: Snapshot) -> _Origin | None:
    """Return the origin of a target, None if its columns are the shredded paths of a table without files.

    Raises TableExistsError for a target of another source, and the errors of `check_may_commit`.
    """
    target.configuration.check_may_commit()
    text = target.configuration.get(properties.EXPORT)
    origin = None if text is None else msgspec.json.decode(text, type=_Origin)
    if origin is None or origin.id != source.metadata.id:
        found = "is not an export" if origin is None else f"was exported from another one, {origin.table}"
        raise TableExistsError(
            f"cannot export {source.uri} to {target.uri} because the table there {found}: pass another path",
            table=target.uri,
        )
    if not target.num_files and not origin.is_flat:
        return None
    return msgspec.structs.replace(origin, table=source.uri)


def _differs(target: Snapshot, view: View) -> bool:
    """Return whether a view has other columns than a target."""
    columns = to_arrow(from_arrow(view.shape.table_schema))
    return columns != target.arrow_schema or tuple(view.shape.partitions) != target.partition_columns


def _configure(view: View, store: Store, present: Snapshot | None, origin: _Origin) -> TableConfiguration:
    """Return the table of a view, which keeps the id, the properties and the features of the present one.

    Spark creates no table whose names have certain characters without column mapping, but reads it. deltalake
    and Polars read no table with column mapping.
    """
    check_new(from_arrow(view.schema), mode="name")
    columns = from_arrow(view.shape.table_schema)
    check_new(columns, mode="name")
    before = {} if present is None else present.properties
    configuration = {**before, properties.EXPORT.name: msgspec.json.encode(origin).decode()}
    changed: dict[str, Any] = {
        "schema_string": to_json(columns),
        "partition_columns": check_partition_columns(columns, tuple(view.shape.partitions)),
        "configuration": configuration,
    }
    protocol = features.new_table_protocol(columns, configuration)
    if present is None:
        metadata = Metadata(id=str(uuid4()), format=Format(), created_time=now(), **changed)
    else:
        metadata = msgspec.structs.replace(present.metadata, **changed)
        protocol = features.with_features_of(present.protocol, protocol)
    table = TableConfiguration(store.uri, protocol, metadata, columns)
    table.check_may_read()
    return table


def _keys_of_source(files: pa.Table) -> Any:
    """Return the keys of logical files of the source."""
    return pa.chunked_array(map(key_texts, files.to_batches()), pa.string())


def _keys_of_target(files: pa.Table) -> Any:
    """Return the keys of the logical files whose rows files of the target have, null for those of others."""
    path, vector = (pc.map_lookup(files["tags"], tag, "first") for tag in (PATH_TAG, VECTOR_TAG))
    keys = pc.binary_join_element_wise(path, pc.coalesce(vector, ""), "\0")
    # Another writer has deleted rows.
    return pc.if_else(pc.is_null(files["deletion_vector"]), keys, None)


def _run(plan: _Plan, commit: CommitOptions) -> ExportResult:
    """Write the files and commit them; raises CommitConflictError or TableExistsError if a race is lost."""
    version, removed = plan.source.version, plan.removed.num_rows
    if not plan.has_changes:
        return ExportResult(None, version, 0, 0, 0, 0)
    entries = list(files_of(plan.added))
    paths = [f"{plan.view.folder(each)}{new_name(number)}.parquet" for number, each in enumerate(entries)]
    with removing_new_folders(plan.store):
        try:
            files = _write(plan, entries, paths)
        except BaseException:
            discard(plan.store, paths)
            raise
        adds, rewritten = [each.add for each in files], sum(each.is_rewritten for each in files)
        size = sum(add.size for add in adds)
        context = _context(plan, {"numAddedFiles": len(adds), "numAddedBytes": size}, commit)
        try:
            committed = _commit(plan, adds, context)
        except NOT_COMMITTED:
            discard(plan.store, paths)
            raise
    return ExportResult(committed, version, len(adds), rewritten, removed, size, metrics=context.metrics)


class _Written(NamedTuple):
    add: AddFile
    is_rewritten: bool


def _write(plan: _Plan, entries: Sequence[FileEntry], paths: Sequence[str]) -> list[_Written]:
    view, store, keys = plan.view, plan.store, _keys_of_source(plan.added).to_pylist()
    indexed = {tuple(field.name for field in chain) for chain in plan.after.stats_columns}
    leaves = [leaf for leaf in _leaves_of(view.shape.file_schema) if leaf.path in indexed]
    writing = Lock()
    begin("exporting", files=len(entries), bytes_=total(plan.added["size"]))

    def write(entry: FileEntry, path: str, key: str) -> _Written:
        reader = view.reader.open(entry)
        shown = view.shown(reader)
        if isinstance(shown, ViewFile) and not _is_mostly_unused(shown):
            file = shown
        else:
            # A row group or the rows of a file need up to a few hundred MB.
            with writing:
                file = view.written(reader, Path(folder))
        copy(file.store, file.path, store, path, end=file.data_end, tail=file.footer)
        if file is not shown:
            Path(folder, file.path).unlink()
        source, _, vector = key.partition("\0")
        add = AddFile(
            path=encode_path(path),
            partition_values={
                name: entry.partition_values.get(stored) for name, stored in view.shape.partitions.items()
            },
            size=file.size,
            modification_time=now(),
            data_change=True,
            stats=_footer_statistics(open_file(store, path), leaves).to_json(),
            tags={PATH_TAG: source, **({VECTOR_TAG: vector} if vector else {})},
        )
        return _Written(add, file.rewritten is not None)

    files = []
    with TemporaryDirectory() as folder, Threads(FILES_AT_ONCE) as threads:
        for entry, file in zip(entries, threads.map(write, entries, paths, keys), strict=True):
            files.append(file)
            advance(files=1, bytes_=entry.size or 0)
    return files


def _is_mostly_unused(file: ViewFile) -> bool:
    """Return whether the columns of a view have a small part of a data file, so that a copy is too large."""
    if file.data_end < MIN_BYTES:
        return False
    # Imported here, because it takes long, and few programs export.
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(pa.BufferReader(file.footer))
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = (group.column(number) for group in groups for number in range(group.num_columns))
    return sum(chunk.total_compressed_size for chunk in chunks) < MIN_SHARE * file.data_end


def _context(plan: _Plan, metrics: Mapping[str, int], commit: CommitOptions) -> CommitContext:
    """Return the context of the commit, whose transaction conflicts with that of a concurrent export."""
    source = plan.source
    parameters = {
        "source": f"delta.`{absolute_path(source.store, '').rstrip('/')}`",
        "sourceVersion": source.version,
    }
    removed = {"numRemovedFiles": plan.removed.num_rows, "numRemovedBytes": total(plan.removed["size"])}
    commit = replace(commit, txn=(properties.EXPORT.name, source.version))
    return commit_context("EXPORT", parameters, {**metrics, **removed}, commit)


def _commit(plan: _Plan, adds: Sequence[AddFile], context: CommitContext) -> int:
    if plan.present is None:
        return transaction.create_table(plan.store, plan.after, adds, context=context)
    reads = Reads(plan.removed, lambda _: False)
    return transaction.replace_files(
        plan.present, plan.removed, adds, context=context, reads=reads, after=plan.after
    )


class _Leaf(NamedTuple):
    """A leaf column of a file: its position, its path, which is empty in lists and maps, and its type."""

    position: int
    path: tuple[str, ...]
    type: Any


def _leaves_of(schema: pa.Schema) -> list[_Leaf]:
    leaves = (leaf for field in schema for leaf in _walk(field, ()))
    return [_Leaf(position, *leaf) for position, leaf in enumerate(leaves)]


def _walk(field: pa.Field[Any], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    path, arrow_type = (*parents, field.name), field.type
    if not pa.types.is_nested(arrow_type):
        yield path, arrow_type
    for number in range(arrow_type.num_fields):
        for found, leaf in _walk(arrow_type.field(number), path):
            yield (found if pa.types.is_struct(arrow_type) else ()), leaf


class _Report(NamedTuple):
    """The statistics of a leaf, as the kernel reports them."""

    path: tuple[str, ...]
    nulls: int
    min: pa.Array[Any] | None
    max: pa.Array[Any] | None


def _footer_statistics(file: NativeFile, leaves: Sequence[_Leaf]) -> FileStatistics:
    """Return the statistics of some leaves, without those that the footer lacks.

    The footer of a view has no bounds of floats that a NaN exceeds. Delta has none of booleans and bytes.
    """
    _, bounds = file.units([(list(leaf.path), None, leaf.type) for leaf in leaves])
    found = []
    for leaf, (least, greatest, all_null, _) in zip(leaves, bounds, strict=True):
        nulls = [count for count, _ in file.null_counts(leaf.position) if count is not None]
        if len(nulls) < len(file.row_groups):
            continue
        ends = (_extreme(least, all_null, pc.min), _extreme(greatest, all_null, pc.max))
        found.append(_Report(leaf.path, sum(nulls), *(ends if _has_bounds(leaf.type) else (None, None))))
    return from_report(file.num_rows, [found], [""], None)


def _has_bounds(arrow_type: Any) -> bool:
    return not (pa.types.is_boolean(arrow_type) or pa.types.is_binary(arrow_type))


def _extreme(bounds: Any, all_null: Any, pick: Callable[[Any], Any]) -> Any:
    """Return the least or the greatest bound of row groups, None if that of one with values is unknown."""
    if len(bounds) == 1:
        # Calls of Arrow take longer than all else for a small file.
        return None if bounds.null_count else bounds
    known = bounds.filter(pc.invert(all_null))
    return None if not len(known) or known.null_count else pa.repeat(pick(known), 1)
