"""How the files of a table are grouped to be written anew, and how each group is shredded then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa

from delta_variant import data_file, expression, schema
from delta_variant.data_file import WriteOptions
from delta_variant.data_types import fields_of
from delta_variant.expression import Expression
from delta_variant.shredding import ShreddingSchema
from delta_variant.snapshot import Snapshot
from delta_variant.store import open_store
from delta_variant.table_files import (
    DataFile,
    Faults,
    OpenFile,
    RowTracking,
    Scope,
    Table,
    Target,
    beside,
    files_of,
    with_one_shredding,
    write_files,
)

__all__ = ["Bin", "FileGroup", "LeafPath", "bins_of", "group_of", "rows_of"]

Row: TypeAlias = Mapping[str, Any]

SAMPLE_BYTES = 16 << 20


@dataclass(frozen=True, order=True)
class LeafPath:
    """A path of a Variant column that has a `typed_value`; None stands for the elements of lists."""

    column: str
    path: tuple[str | None, ...]
    type: str


@dataclass(frozen=True)
class Bin:
    """Files of one partition, rows of `Snapshot.files`, that make one group if they are written anew.

    `is_due` says that they are whatever their paths have become.
    """

    files: pa.Table
    is_due: bool


@dataclass(frozen=True)
class FileGroup:
    """Files of one partition that are written anew together, rows of `Snapshot.files`.

    `gained` and `dropped` are the shredded paths that the new files have and the old did not, and the other
    way round; `bytes_estimated` is about what they will take, by a sample that was written.
    """

    paths: tuple[str, ...]
    partition_values: Mapping[str, str | None]
    rows: int
    bytes: int
    bytes_estimated: int
    gained: tuple[LeafPath, ...]
    dropped: tuple[LeafPath, ...]
    options: WriteOptions
    files: pa.Table = field(repr=False, compare=False)

    @property
    def files_estimated(self) -> int:
        """Return how many files there are to be."""
        return max(1, -(-self.bytes_estimated // self.options.target_file_size))


def bins_of(files: pa.Table, target_file_size: int, *, everything: bool, reshred: bool) -> list[Bin]:
    """Return the files that may be written anew.

    Those are files that are smaller than they should be and have others of their partition beside them, and
    files with deleted rows; with `everything` all, a bin for each partition; with `reshred` also those that
    may have to be shredded otherwise.
    """
    columns = files.select(["path", "size", "partition_values", "deletion_vector"]).to_pylist()
    rows: list[Row] = [
        {**row, "number": number, "partition": _key(row)} for number, row in enumerate(columns)
    ]
    rows.sort(key=lambda row: (str(row["partition"]), row["path"]))
    bins = []
    for _, members in groupby(rows, key=lambda row: row["partition"]):
        for some in [list(members)] if everything else _together(list(members), target_file_size):
            is_due = everything or len(some) > 1 or some[0]["deletion_vector"] is not None
            if is_due or reshred:
                bins.append(Bin(files.take([row["number"] for row in some]), is_due))
    return bins


def _key(row: Row) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(dict(row["partition_values"] or ()).items(), key=str))


def _together(rows: Sequence[Row], target: int) -> Iterator[list[Row]]:
    """Yield files that fit into one together, in their order; one that is large enough stays alone."""
    gathered: list[Row] = []
    size = 0
    for row in rows:
        if row["size"] >= target * 3 // 4:
            yield [row]
            continue
        if size + row["size"] > target and gathered:
            yield gathered
            gathered, size = [], 0
        gathered.append(row)
        size += row["size"]
    if gathered:
        yield gathered


def group_of(snapshot: Snapshot, chosen: Bin, options: WriteOptions) -> FileGroup | None:
    """Return how files are written anew, None where they stay; `snapshot.files` is not looked at."""
    target = Target.of(snapshot)
    before, sample, rows = _looked_at(snapshot, chosen.files)
    if options.shredding == "infer" and sample:
        options = with_one_shredding(options, sample, target)
    after = set(_leaves(snapshot, options.shredding if isinstance(options.shredding, Mapping) else {}))
    if not chosen.is_due and before == after:
        return None
    return FileGroup(
        tuple(str(path) for path in chosen.files["path"].to_pylist()),
        dict(chosen.files["partition_values"][0].as_py() or ()),
        rows,
        sum(int(size or 0) for size in chosen.files["size"].to_pylist()),
        _estimate(sample, target, options, rows),
        tuple(sorted(after - before, key=str)),
        tuple(sorted(before - after, key=str)),
        options,
        chosen.files,
    )


def _looked_at(snapshot: Snapshot, files: pa.Table) -> tuple[set[LeafPath], list[pa.RecordBatch], int]:
    """Return the shredded paths that files have, the first rows of all of them, and how many there are."""
    table = Table.of(snapshot)
    leaves: set[LeafPath] = set()
    sample: list[pa.RecordBatch] = []
    rows = 0
    for file in table.open_all(files_of(files)):
        leaves.update(_leaves(snapshot, data_file.shredding_of(file.native)))
        sample += _first_rows(file, SAMPLE_BYTES // files.num_rows)
        rows += int(file.native.num_rows) - int((file.file.deletion_vector or {}).get("cardinality", 0))
    return leaves, sample, rows


def _leaves(snapshot: Snapshot, schemas: Mapping[tuple[str, ...], ShreddingSchema]) -> Iterator[LeafPath]:
    names = _logical_names(snapshot)
    for column, each in schemas.items():
        for path, leaf in _leaf_types((), each.field.type):
            yield LeafPath(names.get(column, ".".join(column)), path, str(leaf))


def _logical_names(snapshot: Snapshot) -> dict[tuple[str, ...], str]:
    physical = fields_of(schema.physical_schema(snapshot.schema, Target.of(snapshot).mapping_mode))
    logical = fields_of(snapshot.schema)
    return {path: ".".join(name) for (path, _), (name, _) in zip(physical, logical, strict=True)}


def _leaf_types(path: tuple[str | None, ...], form: Any) -> Iterator[tuple[tuple[str | None, ...], Any]]:
    if pa.types.is_struct(form):
        for part in form:
            yield from _leaf_types((*path, part.name), part.type)
    elif pa.types.is_list(form):
        yield from _leaf_types((*path, None), form.value_type)
    elif not pa.types.is_null(form):
        yield path, form


def rows_of(
    snapshot: Snapshot, files: Iterable[DataFile], keys: Sequence[Expression] = ()
) -> Iterator[tuple[pa.RecordBatch, list[Any]]]:
    """Yield the rows of files as batches of columns, and the values of keys beside them.

    The columns are those of the table, and those that keep the ids of rows where it tracks them.
    """
    columns = Scope.of(snapshot.schema).whole_columns()
    inputs = expression.inputs([*columns.values(), *keys])
    table, tracking = Table.of(snapshot), RowTracking.of(snapshot)
    for file in table.open_all(files):
        for batch, moving in file.read_moving(inputs, tracking):
            arrays = [expression.evaluate(each, batch) for each in columns.values()]
            values = [expression.evaluate(each, batch) for each in keys]
            yield beside(pa.record_batch(arrays, names=list(columns)), moving), values


def _first_rows(file: OpenFile, size: int) -> Iterator[pa.RecordBatch]:
    columns = Scope.of(file.table.snapshot.schema).whole_columns()
    for batch in file.read(expression.inputs(columns.values()), None, "error"):
        arrays = [expression.evaluate(each, batch) for each in columns.values()]
        rows = min(batch.num_rows, max(1, size * batch.num_rows // max(batch.nbytes, 1)))
        first = pa.record_batch(arrays, names=list(columns)).slice(0, rows)
        # A slice would hold on to all rows, of every file.
        yield first if rows == batch.num_rows else first.take(pa.array(range(rows)))
        size -= batch.nbytes
        if size <= 0:
            return


def _estimate(sample: Sequence[pa.RecordBatch], target: Target, options: WriteOptions, rows: int) -> int:
    """Return about how many bytes rows take, of which some are written to see it."""
    seen = sum(batch.num_rows for batch in sample)
    if not seen:
        return 0
    with TemporaryDirectory() as folder:
        batches = ((batch, None) for batch in sample)
        whole = replace(options, target_file_size=1 << 62)
        written = write_files(open_store(folder), batches, target, whole, Faults("error"))
    return sum(file.written.bytes for file in written) * rows // seen
