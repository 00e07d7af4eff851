"""The tasks of a merge.

The rows of the source are stored in chunks. The keys of the table, each with the position of its row, and the
rows of the source are split by the hash of their keys, and the rows of each bucket are joined. The result is
split again: changed rows by the files that have them, which other tasks rewrite, and inserted rows. Between
tasks rows are streams of Arrow IPC, so that Spark moves few large rows and types remain as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, chain
from typing import Any, ClassVar, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, positions_by_number
from .._packing import pack_until
from ..data_file.options import WriteOptions
from ..execution import NameFile
from ..expressions.tree import input_column
from ..input.invalid_json import parse_json_columns
from ..log.snapshot import TableVersion
from ..operations.merge.execute import (
    MergedPart,
    MergeRows,
    column_roles,
    inputs_changed,
    inputs_tested,
    insert_rows,
)
from ..operations.merge.joining import Join, JoinPredicate, KeyValues, side_inputs
from ..operations.merge.plan import Clause, Decision, FileDecision, equal_to
from ..protocol.schema.arrow import to_arrow
from ..protocol.schema.conforming import conform
from ..protocol.types import VARIANT, StructType
from ..read.file_reader import POSITION, FileEntry, TableReader
from ..read.plan import plan_rows
from ..read.predicate import PruningPredicate
from ..storage.store import Store
from ..variant.moments import apply_function
from ..variant.values import plain_variants
from ..write.copy_on_write import rewrite_files
from ..write.rewrite import ChangedBatch, RewrittenPart, RowChange
from ..write.row_rules import RowRules
from .tasks import TaskTable, from_ipc, pack, to_ipc, unpack_batches

SOURCE = "chunk binary, message binary"
"""The schema of the stored source: a pickled Chunk and its rows."""

PART = "part int, side int, message binary"
"""The schema of rows for a part, which is a partition of Spark. Those with the lower side come first."""
_PART_FIELDS: dict[str, Any] = {"part": pa.int32(), "side": pa.int32(), "message": pa.binary()}
PART_SCHEMA = pa.schema(_PART_FIELDS)

CHUNK_BYTES = 8 << 20
TARGET_ROWS = 1 << 20
TARGET_BYTES = 64 << 20
"""How many rows of the table, and of which size, a task collects before it splits them by their keys."""

JOIN_ROWS = 1 << 18
JOIN_BYTES = 64 << 20
"""How many rows of the table, and of which size, are joined at a time."""

Batches: TypeAlias = Iterator[pa.RecordBatch]
Origin = TypeVar("Origin")


def buckets_of(keys: Sequence[Array], buckets: int) -> Array:
    """Return the number of a bucket for each row: rows with equal keys, of equal types, have one bucket."""
    # The kernel hashes no decimals of 256 bits.
    hashed = [key.cast(pa.string()) if pa.types.is_decimal256(key.type) else key for key in keys]
    hashes = apply_function("xxhash64", hashed, len(keys[0]))
    positive = pc.bit_wise_and(hashes, pa.scalar((1 << 62) - 1, pa.int64()))
    return pc.subtract(positive, pc.multiply(pc.divide(positive, buckets), buckets))


def split_rows(rows: pa.Table, numbers: Array) -> Iterator[tuple[int, pa.Table]]:
    for number, positions in positions_by_number(numbers):
        yield number, rows.take(positions)


@dataclass(frozen=True)
class Chunk:
    """Some rows of the source: how many, their size, and the values of their keys."""

    rows: int
    bytes: int
    keys: tuple[KeyValues, ...]


@dataclass(frozen=True)
class Sizes:
    """How many parts the tasks of a merge have.

    Attributes:
        buckets: The parts of the join.
        bins: The groups of files that are rewritten; their parts have the numbers from 0.
        inserts: The parts of inserted rows; they have the numbers after those of the bins.
    """

    buckets: int
    bins: int
    inserts: int


@dataclass(frozen=True)
class MergeTable:
    """A merge as it is sent to tasks; `columns` are those of the source."""

    table: TaskTable
    columns: StructType
    join: JoinPredicate
    clauses: Sequence[Clause]
    options: WriteOptions

    def rows(self, version: TableVersion, source: pa.RecordBatch) -> MergeRows:
        rules = RowRules.of(version.configuration)
        return MergeRows(version, Join(source, self.join), self.clauses, rules)

    def source_values(self, source: pa.RecordBatch) -> pa.Table:
        """Return the columns of source rows that updates read."""
        values = [value for each in self.clauses if each.action == "update" for value in each.values]
        inputs = side_inputs(values, "source")
        names = sorted(set(map(input_column, inputs)))
        # A table without columns would have no rows.
        arrays: list[Any] = [pa.nulls(source.num_rows), *(source.column(name) for name in names)]
        return pa.table(arrays, names=["\0", *names])


def _row(part: int, side: int, value: object) -> pa.RecordBatch:
    row = {"part": part, "side": side, "message": pack(value)}
    return pa.RecordBatch.from_pylist([row], PART_SCHEMA)


def whole_batch(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.RecordBatch:
    """Return tables as one batch; raises ValueError for a column of more than 2 GiB."""
    whole = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks().to_batches()
    if len(whole) > 1:
        raise ValueError(
            "the source rows of a task have a column larger than 2 GiB: merge the source in parts, or raise "
            "spark.default.parallelism"
        )
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=schema)


# Source.


@dataclass(frozen=True)
class SourceTask:
    """Stores the rows of the source in chunks, with the types of Delta and Variants instead of JSON text."""

    step: ClassVar[str] = "store the rows of the source"
    columns: StructType
    join: JoinPredicate

    def __call__(self, batches: Batches) -> Batches:
        rows = (_source_rows(batch, self.columns) for batch in batches)
        return map(self._chunk, pack_until(rows, lambda batch: batch.nbytes, CHUNK_BYTES))

    def _chunk(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        rows = pa.Table.from_batches(batches)
        whole = whole_batch([rows], rows.schema)
        keys = tuple(KeyValues.of(each) for each in self.join.source_keys(whole))
        values = [pack(Chunk(rows.num_rows, rows.nbytes, keys)), pack(to_ipc(rows))]
        arrays = [pa.array([value], pa.binary()) for value in values]
        return pa.record_batch(arrays, names=["chunk", "message"])


def _source_rows(batch: pa.RecordBatch, columns: StructType) -> pa.RecordBatch:
    """Return rows of the source with the Arrow types of its columns; raises InvalidJsonError."""
    rows = parse_json_columns(conform(batch, columns), columns)
    arrays = [
        plain_variants(array) if field.type == VARIANT else array
        for array, field in zip(rows.columns, columns.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=to_arrow(columns))


@dataclass(frozen=True)
class BucketTask:
    """Splits the rows of the source by the hash of their keys."""

    join: JoinPredicate
    buckets: int

    def __call__(self, batches: Batches) -> Batches:
        for stream in unpack_batches(batches):
            rows = from_ipc(stream)
            numbers = buckets_of(self.join.source_keys(whole_batch([rows], rows.schema)), self.buckets)
            for bucket, part in split_rows(rows, numbers):
                yield _row(bucket, 0, to_ipc(part))


# Table.


@dataclass(frozen=True)
class TargetRows:
    """Inputs of rows of the table. Column 0 is the number of the file within its bin."""

    bin: int
    files: Mapping[int, FileEntry]
    rows: bytes


@dataclass(frozen=True)
class TargetTask:
    """Reads what decides which rows of the table change, and splits the rows by the hash of their keys."""

    merge: MergeTable
    pruning_predicate: PruningPredicate
    reads_all_rows: bool
    buckets: int

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows of each bucket, for each bin of files."""
        snapshot = self.merge.table.open()
        for number, files in unpack_batches(batches):
            batches_of_bin = ((None, batch) for batch in self._rows(snapshot, files))
            for group in _groups(batches_of_bin, TARGET_ROWS, TARGET_BYTES):
                yield from self._split(number, files, [batch for _, batch in group])

    def _rows(self, version: TableVersion, files: Sequence[FileEntry]) -> Batches:
        tested = [*inputs_tested(self.merge.join.operands, self.merge.clauses), POSITION]
        for number, opened in enumerate(TableReader.of(version).open_all(files)):
            rows = plan_rows(opened, self.pruning_predicate).rows
            for batch in opened.read(tested, rows, "error") if rows != [] else ():
                file: Any = pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows)
                yield pa.record_batch([file, *batch.columns], names=["\0file", *batch.schema.names])

    def _split(self, number: int, files: Sequence[FileEntry], batches: Sequence[pa.RecordBatch]) -> Batches:
        rows = pa.Table.from_batches(batches).combine_chunks()
        keys = [self.merge.join.target_keys(batch) for batch in rows.to_batches()]
        whole: list[Array] = [pa.concat_arrays(list(parts)) for parts in zip(*keys, strict=True)]
        if not self.reads_all_rows:
            may_match = self._may_match(whole)
            rows, whole = rows.filter(may_match), [each.filter(may_match) for each in whole]
        for bucket, part in split_rows(rows, buckets_of(whole, self.buckets)):
            used = {each: files[each] for each in _distinct(part["\0file"])}
            yield _row(bucket, 1, TargetRows(number, used, to_ipc(part)))

    def _may_match(self, keys: Sequence[Array]) -> Array:
        """Return a mask of the rows without a null that is equal to nothing."""
        compared = zip(keys, self.merge.join.keys, strict=True)
        masks = [values.is_valid() for values, key in compared if not key.is_null_safe]
        return reduce(pc.and_, masks, pa.repeat(pa.scalar(True), len(keys[0])))


def _distinct(numbers: Any) -> list[int]:
    values: list[int] = pc.unique(numbers).to_pylist()
    return values


# Join.


@dataclass(frozen=True)
class MatchedRows:
    """Changed rows of some files of a bin, with the columns CHANGED, and the source rows that match them.

    A source row that matches many rows is there once.
    """

    bin: int
    files: Mapping[int, FileEntry]
    rows: bytes
    source: bytes


CHANGED = ("file", "position", "clause", "source")
"""Number of the file, position in it, number of the clause and of the source row."""


@dataclass(frozen=True)
class InsertedRows:
    """New rows, with columns of the table."""

    rows: bytes


@dataclass(frozen=True)
class JoinTask:
    """Joins the rows of a bucket and decides which clause applies to each."""

    merge: MergeTable
    sizes: Sizes

    def __call__(self, batches: Batches) -> Batches:
        """Yield the changed rows of each bin, and the inserted rows."""
        parts = _parts(batches)
        first = next(parts, None)
        if first is None:
            return
        bucket, value = first
        values = chain([value], (value for _, value in parts))
        source: list[pa.Table] = []
        for value in values:
            if isinstance(value, TargetRows):
                values = chain([value], values)
                break
            source.append(from_ipc(value))
        whole = whole_batch(source, to_arrow(self.merge.columns))
        merging = self.merge.rows(self.merge.table.open(), whole)
        matched: list[Array] = []
        targets = (
            (value, batch) for value in values for batch in from_ipc(value.rows).combine_chunks().to_batches()
        )
        # Each join has a cost for all source rows.
        for group in _groups(targets, JOIN_ROWS, JOIN_BYTES):
            rows = pa.Table.from_batches([batch for _, batch in group])
            decision, found = merging.decide(whole_batch([rows], rows.schema))
            matched.append(found)
            yield from self._changed(group, decision, merging.join.source)
        for new in merging.inserted(matched):
            if new.num_rows:
                number = self.sizes.bins + bucket % self.sizes.inserts
                yield _row(number, 0, InsertedRows(to_ipc(pa.Table.from_batches([new]))))

    def _changed(
        self, group: Sequence[tuple[TargetRows, pa.RecordBatch]], decision: Decision, source: pa.RecordBatch
    ) -> Batches:
        first = 0
        for target, batch in group:
            clause, found = (each.slice(first, batch.num_rows) for each in (decision.clause, decision.source))
            first += batch.num_rows
            part = Decision(clause, found)
            if part.changes.true_count:
                yield _row(target.bin, 0, self._matched(target, batch, part, source))

    def _matched(
        self, target: TargetRows, batch: pa.RecordBatch, decision: Decision, source: pa.RecordBatch
    ) -> MatchedRows:
        mask = decision.changes
        matching = pc.unique(decision.source.filter(mask))
        numbers = pc.index_in(decision.source, value_set=matching)
        arrays = [batch.column(0), batch.column(POSITION.name), decision.clause, numbers]
        rows = pa.table([each.filter(mask) for each in arrays], names=list(CHANGED))
        values = self.merge.source_values(source).take(matching)
        used = {each: target.files[each] for each in _distinct(rows["file"])}
        return MatchedRows(target.bin, used, to_ipc(rows), to_ipc(values))


def _groups(
    origins: Iterable[tuple[Origin, pa.RecordBatch]], max_rows: int, max_bytes: int
) -> Iterator[list[tuple[Origin, pa.RecordBatch]]]:
    """Yield batches, each with its origin, in groups of one schema, each up to a limit of rows or bytes."""
    group: list[tuple[Origin, pa.RecordBatch]] = []
    rows = size = 0
    for origin, batch in origins:
        is_full = rows >= max_rows or size >= max_bytes
        if group and (is_full or batch.schema != group[0][1].schema):
            yield group
            group, rows, size = [], 0, 0
        group.append((origin, batch))
        rows += batch.num_rows
        size += batch.nbytes
    if group:
        yield group


def _parts(batches: Batches) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        yield from zip(batch.column("part").to_pylist(), unpack_batches(iter([batch])), strict=True)


# Application.


@dataclass(frozen=True)
class ApplyTask:
    """Rewrites the files of a bin, and writes inserted rows."""

    step: ClassVar[str] = "join with the table and write files"
    merge: MergeTable

    def run(self, store: Store, name: NameFile, batches: Batches) -> Iterator[MergedPart]:
        """Yield the files that were replaced and written, nothing without rows."""
        values = [value for _, value in _parts(batches)]
        matched = [value for value in values if isinstance(value, MatchedRows)]
        inserted = [value for value in values if isinstance(value, InsertedRows)]
        if not values:
            return
        table = self.merge.table
        snapshot = TableVersion(store, table.version, table.configuration)
        changes = list(_changes_of(matched))
        part = self._rewrite(snapshot, changes, name)
        new = (batch for each in inserted for batch in from_ipc(each.rows).to_batches())
        files = insert_rows(snapshot, new, self.merge.options, name)
        counts: Counter[str] = Counter()
        for number, clause in enumerate(self.merge.clauses):
            counts[clause.action] += sum(
                equal_to(each.decision.clause, number).true_count for each in changes
            )
        yield MergedPart(part, files, dict(counts)).compress()

    def _rewrite(
        self, version: TableVersion, changes: Sequence[_FileChanges], name: NameFile
    ) -> RewrittenPart:
        by_path = {each.file.path: each for each in changes}
        clauses, rules = self.merge.clauses, RowRules.of(version.configuration)
        inputs, roles = inputs_changed(version, [POSITION]), column_roles(version, clauses, rules)

        def change(file: FileEntry) -> RowChange:
            found = by_path[file.path]
            merging = MergeRows(version, Join(found.source, self.merge.join), clauses, rules)

            def apply(batch: pa.RecordBatch) -> Iterator[ChangedBatch]:
                return merging.apply(batch, found.decision.of(batch.column(POSITION.name)))

            return RowChange((), (), found.decision.positions, inputs, apply, roles)

        files = [each.file for each in changes]
        return rewrite_files(version, files, None, change, version.configuration, self.merge.options, name)


@dataclass(frozen=True)
class _FileChanges:
    """The decision for the changed rows of a file, and the source rows that match them."""

    file: FileEntry
    decision: FileDecision
    source: pa.RecordBatch


def _changes_of(matched: Sequence[MatchedRows]) -> Iterator[_FileChanges]:
    for number in {each.bin for each in matched}:
        parts = [each for each in matched if each.bin == number]
        files = {file: entry for each in parts for file, entry in each.files.items()}
        sources = [from_ipc(each.source) for each in parts]
        firsts = accumulate((each.num_rows for each in sources), initial=0)
        rows = pa.concat_tables(
            [_shift(from_ipc(each.rows), first) for each, first in zip(parts, firsts, strict=False)]
        )
        source = pa.concat_tables(sources)
        for file, part in split_rows(rows, rows["file"].combine_chunks()):
            positions, clauses, numbers = (
                each.combine_chunks() for each in part.sort_by("position").columns[1:]
            )
            matching = pc.unique(numbers)
            picked = whole_batch([source.take(matching)], source.schema)
            found = pc.index_in(numbers, value_set=matching).cast(pa.int64())
            yield _FileChanges(files[file], FileDecision(positions, clauses, found), picked)


def _shift(rows: pa.Table, first: int) -> pa.Table:
    """Return changed rows with the numbers of their source rows among those of all parts."""
    shifted = pc.add(rows["source"].cast(pa.int64()), first)
    return rows.set_column(CHANGED.index("source"), "source", shifted)
