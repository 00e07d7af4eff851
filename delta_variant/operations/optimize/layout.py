"""Groups of files that an optimization rewrites together, and the shredding schema of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from math import ceil
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array, row_numbers
from ..._packing import pack_by_size
from ...data_file.options import WriteOptions
from ...data_file.reader import RowRange
from ...data_file.shredding import PerSchema, shred_column, shredding_of
from ...data_file.writer import MIN_SEPARATED_BYTES
from ...expressions.evaluate import evaluate
from ...expressions.tree import Expression
from ...expressions.tree import inputs as expression_inputs
from ...expressions.types import type_name
from ...log.deletion_vectors import count_deleted_rows
from ...log.snapshot import TableVersion
from ...protocol.actions import is_residual
from ...protocol.schema.column_mapping import physical_name, stored_paths
from ...protocol.table_configuration import TableConfiguration
from ...protocol.types import VARIANT
from ...read.file_reader import FileEntry, FileReader, Stored, TableReader, files_of
from ...read.log_statistics import recorded_rows
from ...read.row_tracking import RowTracking, append_row_ids
from ...read.scope import Scope
from ...storage.store import open_store
from ...variant.shredding import ShreddingSchema
from ...write.partitions import infer_shared_shredding
from ...write.router import write_files
from ...write.stored_rows import StoredRows, copyable_row_groups, read_or_copy

Row: TypeAlias = Mapping[str, Any]
Shreddings: TypeAlias = Mapping[tuple[str, ...], ShreddingSchema]

RowBatches: TypeAlias = Iterator[tuple[pa.RecordBatch, list[Any]]]
"""Batches of rows of a table, each with the values of the sort keys."""

MOST_DELETED = 0.05
"""The share of its rows up to which a file keeps deleted rows, as in Delta on Spark. A scan decodes
deleted rows, too."""

SAMPLE_ROWS = 16 << 10
SAMPLE_BYTES = 4 << 20
RESHRED_SAMPLE_BYTES = 32 << 20
"""Values that recur after many rows make columns pay, which a small sample does not show."""

MAX_SAMPLED_FILES = 256
"""To open a file costs more than to read its share of a sample."""


@dataclass(frozen=True, order=True)
class LeafPath:
    """A path of a Variant column that has a `typed_value`. None in the path is an element of a list.

    `type` is the SQL name of the type, such as `decimal(18,2)`.
    """

    column: str
    path: tuple[str | None, ...]
    type: str


@dataclass(frozen=True)
class Bin:
    """Files of one partition, rows of `Snapshot.files`, that can form one group.

    `is_due` means that they are rewritten in any case, and not only if the inferred shredding schema has
    changed. `reshred` means that the schema of the new files is inferred again. `is_residual` means that
    they have the residual rows of other files, and stay separate.
    """

    files: pa.Table
    is_due: bool
    reshred: bool
    is_residual: bool = False


@dataclass(frozen=True)
class FileGroup:
    """Files of one partition that are rewritten together.

    Attributes:
        paths: The decoded paths of the files.
        partition_values: The partition values, by physical name.
        rows: The number of rows that are not deleted.
        bytes: The size of the files, in bytes.
        bytes_estimated: The estimated size of the new files, in bytes, from a written sample.
        gained: The shredded paths that only the new files have.
        dropped: The shredded paths that only the old files have.
        options: The options of the new files.
        is_inferred: Whether the shredding schema of the options was inferred, and is not that of the files.
        files: The files as rows of `Snapshot.files`.
    """

    paths: tuple[str, ...]
    partition_values: Mapping[str, str | None]
    rows: int
    bytes: int
    bytes_estimated: int
    gained: tuple[LeafPath, ...]
    dropped: tuple[LeafPath, ...]
    options: WriteOptions
    is_inferred: bool
    files: pa.Table = field(repr=False, compare=False)

    @property
    def rows_purged(self) -> int:
        """Return the number of deleted rows of the files, which the new files do not have."""
        return count_deleted_rows(self.files)

    @property
    def files_estimated(self) -> int:
        """Return the estimated number of new files."""
        return max(1, -(-self.bytes_estimated // self.options.files.target_file_size))

    def written_with(self, version: TableVersion, options: Iterable[WriteOptions]) -> FileGroup:
        """Return the group with the paths that new files with these options gained and dropped."""
        planned = _leaves_of(version, self.options)
        before = (planned - set(self.gained)) | set(self.dropped)
        after = {leaf for each in options for leaf in _leaves_of(version, each)}
        return replace(self, gained=_sorted(after - before), dropped=_sorted(before - after))


def plan_bins(
    files: pa.Table, target_file_size: int, *, everything: bool, reshred: bool, purge: bool
) -> list[Bin]:
    """Return the files that an optimization can rewrite, in bins that each become one group.

    These are small files that share a partition with other small files, and files with many deleted rows.
    With `everything` these are all files. With `reshred` these are also the files
    whose shredding schema can have changed. With `purge` these are also all files with a deletion vector.

    Residual files are in bins of their own, before the other bins of their partition, unless all rows are
    written again.
    """
    chosen = files.select(["path", "size", "partition_values", "tags"])
    purged = pc.is_valid(files["deletion_vector"]) if purge else have_many_deleted_rows(files)
    columns = chosen.append_column("is_purged", purged).to_pylist()
    rows: list[Row] = [
        {**row, "number": number, "partition": _partition(row)} for number, row in enumerate(columns)
    ]
    rows.sort(key=lambda row: (str(row["partition"]), row["path"]))
    bins = []
    for _, members in groupby(rows, key=lambda row: row["partition"]):
        for some, are_residual, is_due in _bins_of(list(members), target_file_size, everything=everything):
            if is_due or (reshred and not are_residual):
                bins.append(Bin(files.take([row["number"] for row in some]), is_due, reshred, are_residual))
    return bins


def have_many_deleted_rows(files: pa.Table) -> Array:
    """Return whether each file, a row of `Snapshot.files`, has more deleted rows than a file may keep.

    This is assumed of a file with a deletion vector if the log does not say how many rows it has.
    """
    marked: Array = pc.is_valid(files["deletion_vector"].combine_chunks())
    some = files.filter(marked)
    deleted = pc.struct_field(some["deletion_vector"], "cardinality").combine_chunks()
    most: Any = pc.multiply(recorded_rows(some).cast(pa.float64()), MOST_DELETED)
    are_many: Any = pc.fill_null(pc.greater(deleted, most), True)
    return pc.replace_with_mask(marked, marked, are_many)


def _bins_of(
    rows: Sequence[Row], target: int, *, everything: bool
) -> Iterator[tuple[Sequence[Row], bool, bool]]:
    """Yield files of one partition, whether they are residual files, and whether they are due in any case."""
    if everything:
        yield from ((some, False, True) for some in _pack(rows, target))
        return
    residual = _pack([row for row in rows if is_residual(row["tags"])], target)
    others = list(_pack([row for row in rows if not is_residual(row["tags"])], target))
    # Rewriting the other files separates residual rows: put them into the existing residual file.
    joins = any(map(_is_due, others))
    for some in residual:
        yield some, True, _is_due(some) or (joins and not is_large(some[0]["size"], target))
    yield from ((some, False, _is_due(some)) for some in others)


def _is_due(rows: Sequence[Row]) -> bool:
    return len(rows) > 1 or bool(rows[0]["is_purged"])


def is_large(size: int, target: int) -> bool:
    """Return whether a file is so large that it is not combined with others."""
    return size >= large_size(target)


def large_size(target: int) -> int:
    """Return the size from which a file is not combined with others."""
    return target * 3 // 4


def _partition(row: Row) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(dict(row["partition_values"] or ()).items(), key=str))


def _pack(rows: Sequence[Row], target: int) -> Iterator[list[Row]]:
    """Yield files that fit into one file together; a file that is large enough stays alone."""
    large = [row for row in rows if is_large(row["size"], target)]
    small = [row for row in rows if not is_large(row["size"], target)]
    yield from ([row] for row in large)
    yield from pack_by_size(small, lambda row: int(row["size"]), target)


def plan_group(
    version: TableVersion, chosen: Bin, options: WriteOptions, *, estimates: bool
) -> FileGroup | None:
    """Return how the files of a bin are rewritten, None if they stay.

    `estimates` requires the size of the new files, for which a sample is written.

    Residual files are not in the sample that a schema is inferred from. The schemas of sorted files are
    inferred again when they are written, from their rows.
    """
    schemas, rows, is_separated = _inspect_files(version, chosen.files)
    bytes_before = sum(int(size or 0) for size in chosen.files["size"].to_pylist())
    bytes_after = bytes_before * rows // max(rows + count_deleted_rows(chosen.files), 1)
    is_inferred = False
    if chosen.is_residual:
        return _group(chosen, rows, bytes_after, replace(options, is_residual=True), is_inferred)
    types = [each.field.type for each in schemas[0].values()] if len(schemas) == 1 else []
    if options.shredding == "infer" and not chosen.reshred and not all(map(pa.types.is_null, types)):
        options = replace(options, shredding=schemas[0])
    elif estimates or options.shredding == "infer":
        size = RESHRED_SAMPLE_BYTES if chosen.reshred else SAMPLE_BYTES
        sample, state = _sample(version, _typical_files(chosen.files), size), version.configuration
        possible = [options]
        if options.shredding == "infer" and sample:
            share = min(1.0, options.files.target_file_size / max(bytes_before, 1))
            # The columns of a write save time, too. Those for any number of rows may save more bytes.
            sizes = [ceil(rows * share), *([None] if chosen.reshred else ())]
            possible = [infer_shared_shredding(options, sample, state, size) for size in sizes]
            is_inferred = True
        if estimates or len(possible) > 1:
            estimated = [_estimate_bytes(sample, state, each, rows) for each in possible]
            bytes_after = min(estimated)
            options = possible[estimated.index(bytes_after)]
        else:
            [options] = possible
    before = {leaf for each in schemas for leaf in _leaves(version, each)}
    after = _leaves_of(version, options)
    is_mixed = options.separates and not is_separated and bytes_before >= MIN_SEPARATED_BYTES
    if not chosen.is_due and before == after and not is_mixed:
        return None
    return _group(chosen, rows, bytes_after, options, is_inferred, after - before, before - after)


def _group(
    chosen: Bin,
    rows: int,
    bytes_estimated: int,
    options: WriteOptions,
    is_inferred: bool,
    gained: Iterable[LeafPath] = (),
    dropped: Iterable[LeafPath] = (),
) -> FileGroup:
    return FileGroup(
        tuple(str(path) for path in chosen.files["path"].to_pylist()),
        dict(chosen.files["partition_values"][0].as_py() or ()),
        rows,
        sum(int(size or 0) for size in chosen.files["size"].to_pylist()),
        bytes_estimated,
        _sorted(gained),
        _sorted(dropped),
        options,
        is_inferred,
        chosen.files,
    )


def _sorted(leaves: Iterable[LeafPath]) -> tuple[LeafPath, ...]:
    return tuple(sorted(leaves, key=str))


def _typical_files(files: pa.Table) -> pa.Table:
    """Return the files that are not residual, and all of them if there are no others."""
    typical = [not is_residual(tags) for tags in files["tags"].to_pylist()]
    return files.filter(pa.array(typical)) if any(typical) else files


def _inspect_files(version: TableVersion, files: pa.Table) -> tuple[list[Shreddings], int, bool]:
    """Return the distinct shredding schemas of files, and the number of rows that are not deleted.

    Also return whether residual rows are separated from all files.
    """
    schemas: list[Shreddings] = []
    rows = 0
    is_separated = True
    shreddings = PerSchema[Shreddings]()
    for file in TableReader.of(version).open_all(files_of(files)):
        found = shreddings.of(file.native, partial(shredding_of, file.native))
        if found not in schemas:
            schemas.append(found)
        rows += int(file.native.num_rows) - int((file.file.deletion_vector or {}).get("cardinality", 0))
        is_separated = is_separated and file.native.is_separated
    return schemas, rows, is_separated


def _sample(version: TableVersion, files: pa.Table, size: int) -> list[pa.RecordBatch]:
    """Return the first rows of files, or of some at equal distances, with about `size` bytes in all."""
    numbers = range(0, files.num_rows, ceil(files.num_rows / MAX_SAMPLED_FILES) or 1)
    chosen = files.take(pa.array(numbers, pa.int64()))
    opened = TableReader.of(version).open_all(files_of(chosen))
    return [batch for file in opened for batch in _first_rows(file, chosen.num_rows, size)]


def _leaves_of(version: TableVersion, options: WriteOptions) -> set[LeafPath]:
    return set(_leaves(version, options.shredding if isinstance(options.shredding, Mapping) else {}))


def _leaves(version: TableVersion, schemas: Shreddings) -> Iterator[LeafPath]:
    paths = stored_paths(version.schema, version.configuration.mapping_mode)
    names = {path: ".".join(name) for name, path in paths.items()}
    for column, each in schemas.items():
        for path, leaf in leaf_types(each.field.type):
            yield LeafPath(names.get(column, ".".join(column)), path, type_name(leaf))


def leaf_types(form: Any, path: tuple[str | None, ...] = ()) -> Iterator[tuple[tuple[str | None, ...], Any]]:
    """Yield the paths of the typed columns of a shredding schema, with their types; None is an element."""
    if pa.types.is_struct(form):
        for part in form:
            yield from leaf_types(part.type, (*path, part.name))
    elif pa.types.is_list(form):
        yield from leaf_types(form.value_type, (*path, None))
    elif not pa.types.is_null(form):
        yield path, form


def read_rows(
    version: TableVersion,
    files: Iterable[FileEntry],
    keys: Sequence[Expression] = (),
    options: WriteOptions | None = None,
) -> RowBatches:
    """Yield the rows of files in batches, with the values of the sort keys.

    The columns are those of the table, and the materialized row ids of a table with row tracking. With a
    shredding schema in `options`, Variants are returned shredded, and copied from files with the same schema.
    """
    read = _row_reader(version, keys, options)
    return chain.from_iterable(read(file, None) for file in TableReader.of(version).open_all(files))


def read_keys(
    version: TableVersion, files: Iterable[FileEntry], keys: Sequence[Expression]
) -> Iterator[list[Array]]:
    """Yield the values of sort keys for the rows of files that are not deleted, in batches."""
    inputs = expression_inputs(keys)
    for file in TableReader.of(version).open_all(files):
        for batch in file.read(inputs, None, "error"):
            yield [evaluate(key, batch) for key in keys]


def read_or_copy_files(
    version: TableVersion, files: Iterable[FileEntry], options: WriteOptions
) -> Iterator[Iterator[pa.RecordBatch | StoredRows]]:
    """Yield the rows of each file: row groups that the kernel can move, other rows like `read_rows`.

    The files are of one partition, and can be read at the same time.
    """
    read = _row_reader(version, (), options)
    tracking = RowTracking.of(version.configuration)
    has_shredding, samples = _shredding_check(version, options), PerSchema[pa.RecordBatch]()

    def rows(open_file: Callable[[], FileReader]) -> Iterator[pa.RecordBatch | StoredRows]:
        file = open_file()

        def batches(ranges: Sequence[RowRange] | None) -> Iterator[pa.RecordBatch]:
            return (batch for batch, _ in read(file, ranges))

        copied: Sequence[int] = ()
        if has_shredding(file) and not options.is_residual:
            copied = copyable_row_groups(file, tracking, with_small=True)
        # The pages of other writers become those of this one.
        as_pages = file.native.is_own and file.native.has_compression(options.files.codec)
        yield from read_or_copy(file, batches, copied, samples, as_pages=as_pages)

    return map(rows, TableReader.of(version).open_each(files))


def _shredding_check(version: TableVersion, options: WriteOptions) -> Callable[[FileReader], bool]:
    """Return a function that returns whether a file stores all top-level Variants with the shredding."""
    shreddings = _shreddings(version, options)
    known = PerSchema[bool]()

    def check(file: FileReader) -> bool:
        return file.shredded(shreddings, options.shredding) == shreddings.keys()

    return lambda file: known.of(file.native, partial(check, file))


def _row_reader(
    version: TableVersion, keys: Sequence[Expression], options: WriteOptions | None
) -> Callable[[FileReader, Sequence[RowRange] | None], RowBatches]:
    """Return a function that yields rows of a file in ranges, or all of its rows, like `read_rows`."""
    columns = Scope.of(version.configuration).whole_columns()
    inputs = expression_inputs([*columns.values(), *keys])
    tracking = RowTracking.of(version.configuration)
    options = options or WriteOptions(shredding=None)
    shreddings = _shreddings(version, options)

    def rows(file: FileReader, ranges: Sequence[RowRange] | None) -> RowBatches:
        copied = file.shredded(shreddings, options.shredding)
        stored: dict[str, Stored] = dict.fromkeys(copied, "stored")
        for batch, moving in file.read_with_row_ids(inputs, tracking, stored, ranges):
            arrays = {name: evaluate(each, batch) for name, each in columns.items()}
            for name in shreddings.keys() - copied:
                arrays[name] = shred_column(arrays[name], shreddings[name], options.files.numeric)
            values = [evaluate(each, batch) for each in keys]
            yield append_row_ids(pa.record_batch(arrays), moving), values

    return rows


def _shreddings(version: TableVersion, options: WriteOptions) -> dict[str, ShreddingSchema]:
    """Return the shredding schema of each shredded top-level Variant column."""
    if not isinstance(options.shredding, Mapping):
        return {}
    mode = version.configuration.mapping_mode
    found = {
        field.name: options.shredding.get((physical_name(field, mode),))
        for field in version.schema.fields
        if field.type == VARIANT
    }
    return {
        name: each
        for name, each in found.items()
        if each is not None and not pa.types.is_null(each.field.type)
    }


def _first_rows(file: FileReader, files: int, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the share of one file in a sample of several files."""
    rows, size = max(1, SAMPLE_ROWS // files), size // files
    for batch in file.read_whole([(0, rows)]):
        rows = min(batch.num_rows, max(1, size * batch.num_rows // max(batch.nbytes, 1)))
        first = batch.slice(0, rows)
        # A slice would keep all rows of the batch in memory, for each file.
        yield first if rows == batch.num_rows else first.take(row_numbers(rows))
        size -= batch.nbytes
        if size <= 0:
            return


def _estimate_bytes(
    sample: Sequence[pa.RecordBatch], target: TableConfiguration, options: WriteOptions, rows: int
) -> int:
    """Return the estimated size of the rows in bytes, from a sample that is written to a temporary folder."""
    sampled = sum(batch.num_rows for batch in sample)
    if not sampled:
        return 0
    with TemporaryDirectory() as folder:
        whole = replace(options, files=replace(options.files, target_file_size=1 << 62))
        written = write_files(open_store(folder), sample, target, whole)
    return written.bytes * rows // sampled
