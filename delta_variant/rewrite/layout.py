"""How the files of a table are grouped to be written anew, and how each group is shredded then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_variant import data_file, expression, schema
from delta_variant.data_file import WriteOptions
from delta_variant.data_types import fields_of
from delta_variant.expression import Expression
from delta_variant.shredding import ShreddingSchema
from delta_variant.snapshot import Snapshot
from delta_variant.store import open_store
from delta_variant.table_files import (
    Faults,
    OpenFile,
    RowTracking,
    Scope,
    Table,
    Target,
    beside,
    count_rows,
    files_of,
    with_one_shredding,
    write_files,
)

__all__ = ["FileGroup", "LeafPath", "chosen_files", "group_files", "rows_of"]

Row: TypeAlias = Mapping[str, Any]

SAMPLE_BYTES = 16 << 20


@dataclass(frozen=True, order=True)
class LeafPath:
    """A path of a Variant column that has a `typed_value`; None stands for the elements of lists."""

    column: str
    path: tuple[str | None, ...]
    type: str


@dataclass(frozen=True)
class FileGroup:
    """Files of one partition that are written anew together.

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


def group_files(
    snapshot: Snapshot, files: pa.Table, options: WriteOptions, *, everything: bool, reshred: bool
) -> list[FileGroup]:
    """Return which files are written anew.

    Those are files that are smaller than they should be and have others of their partition beside them, and
    files with deleted rows; with `everything` all, a group for each partition; with `reshred` also those that
    would be shredded otherwise.
    """
    layout = _Layout(snapshot, options)
    rows = [dict(row) for row in files.to_pylist()]
    for row in rows:
        row["partition"] = tuple(sorted(dict(row["partition_values"] or ()).items(), key=str))
    rows.sort(key=lambda row: (str(row["partition"]), row["path"]))
    groups = []
    for _, members in groupby(rows, key=lambda row: row["partition"]):
        for some in [list(members)] if everything else _bins(list(members), options.target_file_size):
            is_due = everything or len(some) > 1 or some[0]["deletion_vector"] is not None
            group = layout.group(some) if is_due or reshred else None
            if group is not None and (is_due or group.gained or group.dropped):
                groups.append(group)
    return groups


def _bins(rows: Sequence[Row], target: int) -> Iterator[list[Row]]:
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


@dataclass(frozen=True)
class _Layout:
    snapshot: Snapshot
    options: WriteOptions

    def group(self, rows: Sequence[Row]) -> FileGroup:
        chosen = chosen_files(self.snapshot, [row["path"] for row in rows])
        target = Target.of(self.snapshot)
        opened = _opened(self.snapshot, chosen)
        before = {leaf for file in opened for leaf in self._leaves(data_file.shredding_of(file.native))}
        sample = [batch for file in opened for batch in _first_rows(file, SAMPLE_BYTES // len(opened))]
        options = self.options
        if options.shredding == "infer" and sample:
            options = with_one_shredding(options, sample, target)
        after = set(self._leaves(options.shredding if isinstance(options.shredding, Mapping) else {}))
        count = count_rows(self.snapshot, chosen)
        return FileGroup(
            tuple(str(row["path"]) for row in rows),
            dict(rows[0]["partition"]),
            count,
            sum(row["size"] for row in rows),
            _estimate(sample, target, options, count),
            tuple(sorted(after - before, key=str)),
            tuple(sorted(before - after, key=str)),
            options,
        )

    def _leaves(self, schemas: Mapping[tuple[str, ...], ShreddingSchema]) -> Iterator[LeafPath]:
        names = self._logical_names()
        for column, each in schemas.items():
            for path, leaf in _leaf_types((), each.field.type):
                yield LeafPath(names.get(column, ".".join(column)), path, str(leaf))

    def _logical_names(self) -> dict[tuple[str, ...], str]:
        physical = schema.physical_schema(self.snapshot.schema, Target.of(self.snapshot).mapping_mode)
        logical = fields_of(self.snapshot.schema)
        return {
            path: ".".join(name) for (path, _), (name, _) in zip(fields_of(physical), logical, strict=True)
        }


def _leaf_types(path: tuple[str | None, ...], form: Any) -> Iterator[tuple[tuple[str | None, ...], Any]]:
    if pa.types.is_struct(form):
        for part in form:
            yield from _leaf_types((*path, part.name), part.type)
    elif pa.types.is_list(form):
        yield from _leaf_types((*path, None), form.value_type)
    elif not pa.types.is_null(form):
        yield path, form


def chosen_files(snapshot: Snapshot, paths: Sequence[str]) -> pa.Table:
    """Return the files of these paths, rows of `Snapshot.files`."""
    wanted: Any = pc.is_in(snapshot.files["path"], value_set=pa.array(list(paths), pa.string()))
    return snapshot.files.filter(wanted)


def _opened(snapshot: Snapshot, files: pa.Table) -> list[OpenFile]:
    table = Table.of(snapshot)
    return [table.open(file) for file in files_of(files)]


def rows_of(
    snapshot: Snapshot, paths: Sequence[str], keys: Sequence[Expression] = ()
) -> Iterator[tuple[pa.RecordBatch, list[Any]]]:
    """Yield the rows of files as batches of columns, and the values of keys beside them.

    The columns are those of the table, and those that keep the ids of rows where it tracks them.
    """
    chosen = chosen_files(snapshot, paths)
    columns = Scope.of(snapshot.schema).whole_columns()
    inputs = expression.inputs([*columns.values(), *keys])
    table, tracking = Table.of(snapshot), RowTracking.of(snapshot)
    for file in files_of(chosen):
        for batch, moving in table.open(file).read_moving(inputs, tracking):
            arrays = [expression.evaluate(each, batch) for each in columns.values()]
            values = [expression.evaluate(each, batch) for each in keys]
            yield beside(pa.record_batch(arrays, names=list(columns)), moving), values


def _first_rows(file: OpenFile, size: int) -> Iterator[pa.RecordBatch]:
    columns = Scope.of(file.table.snapshot.schema).whole_columns()
    for batch in file.read(expression.inputs(columns.values()), None, "error"):
        arrays = [expression.evaluate(each, batch) for each in columns.values()]
        yield pa.record_batch(arrays, names=list(columns))
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
