"""Read checkpoints: classic, multi-part, and V2 in JSON or Parquet (PROTOCOL.md, "Checkpoints").

Small files are in memory. The files of a large checkpoint are read when their rows are used, one row group
and only some columns at a time. Rows are decoded in batches of 50,000, so that rows that a caller drops are
never all in memory. The native library reads footers and rows: pyarrow ends the process on some damaged
footers, and its `ParquetFile` always allocates from the default memory pool, which is slow on a machine with
fragmented memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ... import _native
from ..._packing import pack_until
from ..._threads import Threads
from ...errors import DeltaVariantError, MalformedLogError
from ...protocol.actions import (
    Action,
    AddFile,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    Txn,
    decode_commit,
    decode_path,
)
from ...storage.store import Store, get_ranges, local_path, read, read_end
from ..file_set import FileList, FileSet, Piece, Summary
from ..file_tables import (
    BATCH_ROWS,
    FILES_SCHEMA,
    TOMBSTONES_SCHEMA,
    decode_paths,
    files_table,
    shared_nulls,
    tombstones_table,
)
from ..listing import LOG, CheckpointFiles, checkpoint_name, list_log
from ..replay import Checkpoint
from ..snapshot import Snapshot
from .parsed_statistics import to_text
from .summaries import summary_of


def _names_in_log(schema: pa.Schema, action: type[AddFile | RemoveFile]) -> dict[str, str]:
    """Return the columns of a schema, in their order, by the names of their fields in an action."""
    names = dict(zip(action.__struct_fields__, action.__struct_encode_fields__, strict=True))
    return {names[each]: each for each in schema.names if each in names}


ADD_FIELDS = _names_in_log(FILES_SCHEMA, AddFile)
REMOVE_FIELDS = _names_in_log(TOMBSTONES_SCHEMA, RemoveFile)
DELETION_VECTOR_FIELDS = dict(
    zip(DeletionVector.__struct_encode_fields__, DeletionVector.__struct_fields__, strict=True)
)
STATS_PARSED = "stats_parsed"
SIDECARS = f"{LOG}/_sidecars"

_TABLE_ACTIONS: dict[str, type[Protocol | Metadata | Txn | DomainMetadata | Sidecar]] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
    "sidecar": Sidecar,
}
_PIECE_ROWS = 100_000
"""The rows that one thread reads at least, if a file has them."""

_READ_AT_ONCE_BYTES = 16 << 20
STREAMED_BYTES = 32 << 20
"""The size from which the files of a checkpoint are not loaded before they are used."""

# Our own errors, and those that pyarrow and msgspec raise for damaged files.
_UNREADABLE = (
    DeltaVariantError,
    pa.ArrowException,
    msgspec.MsgspecError,
    OSError,
    ValueError,
    LookupError,
    OverflowError,
)


def read_checkpoint(
    store: Store, files: CheckpointFiles, recover: Callable[[], pa.Table] = FILES_SCHEMA.empty_table
) -> Checkpoint:
    """Return the content of a checkpoint; the batches of its files are read lazily.

    The files of a large checkpoint are a FileList. `recover` returns them from other files of the log.
    Raises MalformedLogError, possibly during the iteration, for a file that is missing or malformed.
    """
    manifest = _read_files(store, files.paths)
    actions = [action for part in manifest for action in part.actions]
    sidecars = [action for action in actions if isinstance(action, Sidecar)]
    actions = [action for action in actions if not isinstance(action, Sidecar)]
    if {Protocol, Metadata} - {type(action) for action in actions}:
        raise MalformedLogError("the checkpoint lacks protocol or metaData", version=files.version).at(
            file=f"{store.uri}/{files.paths[0]}"
        )
    with _checkpoint_errors(f"{store.uri}/{files.paths[0]}"):
        paths = _paths_of(sidecars)
    if sum(each.size for each in manifest) + sum(each.size_in_bytes for each in sidecars) < STREAMED_BYTES:
        parts = [*manifest, *_read_files(store, paths)]
        return Checkpoint(
            actions,
            chain.from_iterable(part.files(FILES_SCHEMA.names) for part in parts),
            chain.from_iterable(part.tombstones() for part in parts),
        )
    later = [SidecarPart(store, path, each) for path, each in zip(paths, sidecars, strict=True)]
    return Checkpoint(
        actions,
        FileSet(FileList([*manifest, *later], recover)),
        chain.from_iterable(part.tombstones() for part in (*manifest, *later)),
    )


def sidecars_of(store: Store, files: CheckpointFiles) -> list[str]:
    """Return the paths of the sidecars of a checkpoint; raises MalformedLogError if it cannot be read."""
    actions = [action for part in _read_files(store, files.paths) for action in part.actions]
    with _checkpoint_errors(f"{store.uri}/{files.paths[0]}"):
        return _paths_of(action for action in actions if isinstance(action, Sidecar))


def duplicate_statistics(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield path, `stats` and `stats_parsed` as text of the files for which the newest checkpoint has both.

    Raises MalformedLogError for a checkpoint that cannot be read.
    """
    store = snapshot.store
    checkpoints = list_log(store, None).checkpoints
    newest = next((files.paths for files in checkpoints if files.version <= snapshot.version), ())
    actions = [action for part in _read_files(store, newest) for action in part.actions]
    sidecars = _paths_of(action for action in actions if isinstance(action, Sidecar))
    for path in (*newest, *sidecars):
        if path.endswith(".parquet"):
            with _checkpoint_errors(f"{store.uri}/{path}"):
                yield from _read_duplicate_statistics(_open(store, path))


def _read_duplicate_statistics(file: CheckpointFile) -> Iterator[tuple[str, str, str]]:
    fields = ("path", "stats", STATS_PARSED)
    for adds in _raw_adds(file, fields, file.add_groups):
        if set(fields) <= set(adds.type.names):
            paths, texts, parsed = (pc.struct_field(adds, name) for name in fields)
            rows = zip(paths.to_pylist(), texts.to_pylist(), to_text(parsed).to_pylist(), strict=True)
            yield from ((decode_path(path), *both) for path, *both in rows if None not in both)


def _paths_of(sidecars: Iterable[Sidecar]) -> list[str]:
    return [f"{SIDECARS}/{decode_path(sidecar.path)}" for sidecar in sidecars]


def _read_files(store: Store, paths: Iterable[str]) -> list[_JsonFile | CheckpointFile]:
    with Threads(8) as threads:
        return list(threads.map(lambda path: _read_file(store, path), paths))


def _read_file(store: Store, path: str) -> _JsonFile | CheckpointFile:
    with _checkpoint_errors(f"{store.uri}/{path}"):
        if path.endswith(".json"):
            data = read(store, path)
            return _JsonFile(decode_commit(data, f"{store.uri}/{path}"), len(data))
        return _open(store, path)


@contextmanager
def _checkpoint_errors(name: str) -> Iterator[None]:
    """Raise errors about the file `name` of a checkpoint as MalformedLogError."""
    try:
        yield
    except _UNREADABLE as error:
        reason, line = (error.message, error.line) if isinstance(error, DeltaVariantError) else (error, None)
        found = checkpoint_name(name.rpartition("/")[2])
        version = None if found is None else found.version
        raise MalformedLogError(f"cannot read the checkpoint: {reason}", version=version).at(
            file=name, line=line
        ) from error


@dataclass(frozen=True)
class _JsonFile:
    """A decoded JSON file of a checkpoint."""

    contents: Sequence[Action]
    size: int
    summary: None = None

    @property
    def actions(self) -> list[Action]:
        """Return the actions that are not files."""
        return [action for action in self.contents if not isinstance(action, (AddFile, RemoveFile))]

    def pieces(self) -> list[Piece]:
        return [self]

    def files(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield the files with all columns."""
        yield from files_table([each for each in self.contents if isinstance(each, AddFile)]).to_batches()

    def tombstones(self) -> Iterator[pa.RecordBatch]:
        removes = [each for each in self.contents if isinstance(each, RemoveFile)]
        yield from tombstones_table(removes).to_batches()


@dataclass(frozen=True)
class CheckpointFile:
    """An open Parquet file of a checkpoint: `columns` are the paths of its leaf columns, in order."""

    name: str
    size: int
    columns: list[str]
    data: _native.DataFile
    summary: None = None

    @cached_property
    def actions(self) -> list[Action]:
        """Return the actions that are not files."""
        with _checkpoint_errors(self.name):
            return [action for kind in _TABLE_ACTIONS for action in _read_actions(self, kind)]

    @cached_property
    def add_groups(self) -> list[int]:
        return _groups_of(self, "add")

    def pieces(self) -> list[Piece]:
        num_rows = [rows for rows, _ in self.data.row_groups]
        runs = pack_until(self.add_groups, num_rows.__getitem__, _PIECE_ROWS)
        return [_RowGroups(self, groups) for groups in runs]

    def files(
        self, columns: Collection[str], groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the files of some row groups, None for all, with some columns."""
        return _read_adds(self, columns, self.add_groups if groups is None else groups)

    def tombstones(self) -> Iterator[pa.RecordBatch]:
        return _read_removes(self)


@dataclass(frozen=True)
class _RowGroups:
    """Row groups of a file of a checkpoint."""

    file: CheckpointFile
    groups: Sequence[int]

    def files(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        return self.file.files(columns, self.groups)


@dataclass(frozen=True)
class SidecarPart:
    """A sidecar, which is opened when its files are read."""

    store: Store
    path: str
    action: Sidecar

    @property
    def summary(self) -> Summary | None:
        return summary_of(self.action)

    def pieces(self) -> list[Piece]:
        return [self]

    def files(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        yield from self.open().files(columns)

    def tombstones(self) -> Iterator[pa.RecordBatch]:
        yield from self.open().tombstones()

    def open(self) -> CheckpointFile:
        """Open the file; raises MalformedLogError."""
        with _checkpoint_errors(f"{self.store.uri}/{self.path}"):
            return _open(self.store, self.path)


class _Ranges:
    """A large file in a store, as the kernel reads it: its size, and byte ranges."""

    def __init__(self, store: Store, path: str, size: int) -> None:
        self._store = store
        self._path = path
        self._size = size

    def size(self) -> int:
        return self._size

    def read(self, starts: list[int], ends: list[int]) -> list[bytes]:
        return get_ranges(self._store, self._path, list(zip(starts, ends, strict=True)))


def _open(store: Store, path: str) -> CheckpointFile:
    name = f"{store.uri}/{path}"
    # One request reads a small file.
    size, end = read_end(store, path, _READ_AT_ONCE_BYTES)
    local = None if size <= len(end) else local_path(store, path)
    source = end if size <= len(end) else local or _Ranges(store, path, size)
    data = _native.DataFile(source, name)
    return CheckpointFile(name, size, data.leaf_paths, data)


def _read_actions(file: CheckpointFile, kind: str) -> Iterator[Action]:
    for column in _read_column(file, kind, [kind], _groups_of(file, kind)):
        rows: Any = column
        for row in rows.to_pylist(maps_as_pydicts="lossy"):
            yield msgspec.convert(_without_nulls(row), _TABLE_ACTIONS[kind])


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _read_adds(
    file: CheckpointFile, columns: Collection[str], groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    names = [name for name, ours in ADD_FIELDS.items() if ours in columns or ours == "path"]
    parsed = [STATS_PARSED] if "stats" in columns and _lacks_text(file) else []
    with _checkpoint_errors(file.name):
        for adds in _raw_adds(file, [*names, *parsed], groups):
            found = _columns(adds, ADD_FIELDS)
            if STATS_PARSED in adds.type.names:
                found["stats"] = _with_parsed(found.get("stats"), pc.struct_field(adds, STATS_PARSED))
            yield _batch(found, len(adds), FILES_SCHEMA)


def _raw_adds(file: CheckpointFile, fields: Iterable[str], groups: Sequence[int]) -> Iterator[Any]:
    return _read_column(file, "add", [f"add.{field}" for field in fields], groups)


def _read_removes(file: CheckpointFile) -> Iterator[pa.RecordBatch]:
    paths = [f"remove.{field}" for field in REMOVE_FIELDS]
    with _checkpoint_errors(file.name):
        for removes in _read_column(file, "remove", paths, _groups_of(file, "remove")):
            yield _batch(_columns(removes, REMOVE_FIELDS), len(removes), TOMBSTONES_SCHEMA)


def _read_column(
    file: CheckpointFile, name: str, paths: Iterable[str], groups: Sequence[int]
) -> Iterator[pa.StructArray]:
    """Yield the rows of one kind of action with the columns at `paths`, in batches."""
    leaves = sorted({leaf for path in paths for leaf in _leaves(file, path)})
    if not groups or not leaves:
        return
    for batch in file.data.read_leaves(leaves, list(groups), BATCH_ROWS):
        is_action: Any = batch.column(name).is_valid()
        if is_action.true_count:
            actions = batch if is_action.true_count == len(batch) else _native.filter_rows(batch, is_action)
            yield cast(pa.StructArray, actions.column(name))


def _groups_of(file: CheckpointFile, name: str) -> list[int]:
    """Return the row groups in which a column may have values, by the statistics of its leaves."""
    counts = [file.data.null_counts(leaf) for leaf in _leaves(file, name)]
    groups = range(len(file.data.row_groups))
    return [group for group in groups if any(leaf[group][0] != leaf[group][1] for leaf in counts)]


def _leaves(file: CheckpointFile, name: str) -> list[int]:
    return [number for number, path in enumerate(file.columns) if path == name or path.startswith(f"{name}.")]


def _lacks_text(file: CheckpointFile) -> bool:
    """Return whether some file may have statistics in `stats_parsed` only."""
    if not _leaves(file, f"add.{STATS_PARSED}"):
        return False
    without_text = _null_count(file, "add.stats")
    return without_text is None or without_text != _null_count(file, "add.path")


def _null_count(file: CheckpointFile, leaf_path: str) -> int | None:
    """Return the null count of a leaf, None if statistics lack it or there is no such leaf."""
    counts = [nulls for leaf in _leaves(file, leaf_path) for nulls, _ in file.data.null_counts(leaf)]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _with_parsed(text: Any, parsed: Any) -> Any:
    """Return the statistics as text, converted from `stats_parsed` where the text is missing."""
    if text is None:
        return to_text(parsed)
    lacking = pc.and_(text.is_null(), parsed.is_valid())
    return pc.replace_with_mask(text, lacking, to_text(parsed.filter(lacking)))


def _columns(rows: pa.StructArray, names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: pc.struct_field(rows, name) for name in rows.type.names if name in names}


def _batch(columns: dict[str, Any], length: int, schema: pa.Schema) -> pa.RecordBatch:
    if columns["path"].null_count:
        raise MalformedLogError("a file action lacks its path")
    columns["path"], columns["encoded_path"] = decode_paths(columns["path"].cast(pa.string()))
    if "deletion_vector" in columns:
        vectors = columns["deletion_vector"]
        columns["deletion_vector"] = pa.StructArray.from_arrays(
            [
                _cast(_columns(vectors, DELETION_VECTOR_FIELDS).get(field.name), field, length)
                for field in schema.field("deletion_vector").type
            ],
            fields=list(schema.field("deletion_vector").type),
            mask=vectors.is_null(),
        )
    arrays = [_cast(columns.get(field.name), field, length) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def _cast(array: pa.Array[Any] | None, field: pa.Field[Any], length: int) -> pa.Array[Any]:
    return shared_nulls(field.type, length) if array is None else array.cast(field.type)
