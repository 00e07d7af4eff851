"""Copy-on-write: a file some of whose rows change is written anew, and no other file is touched.

What stays is shredded as it was: Variant columns that are only handed on are not even put together. In the
others numbers are shredded only by their own type where the file has some that are of another, so that a
Variant that is not changed reads as the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._options import Numeric
from ..data_file.layout import numbers_are_typed, shredding_of
from ..data_file.options import WriteOptions
from ..data_file.reader import filter_rows, open_file
from ..errors import CastError, VariantPathError
from ..expressions.evaluate import evaluate, filter_mask
from ..expressions.tree import Column, Expression, Input
from ..expressions.tree import inputs as expression_inputs
from ..log.snapshot import Snapshot
from ..protocol.statistics import counts_of, texts_at
from ..scan.plan import FilePlan, plan_files, plan_rows
from ..scan.reader import DataFile, OpenFile, Table, files_of
from ..scan.row_tracking import RowTracking, beside, updated
from ..scan.scope import Scope
from ..scan.statistics import partition_matches
from .change_data import ChangeWriter, keeps_changes, write_whole_files
from .invalid_json import Faults
from .partitioned import PartitionFile, discard, write_files
from .target import Target, allowed, tracked

__all__ = [
    "Changed",
    "Rewritten",
    "RowChange",
    "count_rows",
    "delete_rows",
    "is_of_partitions",
    "rewrite_rows",
    "with_inserted",
]

# The stubs of pyarrow do not narrow arrays by their types.
Array: TypeAlias = Any

FILES_AT_ONCE = 2
"""How many files are written anew at a time: more than one thread is busy with each."""


@dataclass(frozen=True)
class Changed:
    """A batch after a change: its rows with the table's columns, those included that are as they were.

    `kept` marks the rows of the batch that these are, in their order, and `updated` those of them that are no
    longer as they were.
    """

    rows: pa.RecordBatch
    kept: Array
    updated: Array

    def with_kept(self, moving: pa.RecordBatch | None) -> pa.RecordBatch:
        """Return the rows with what those of the batch keep in other files."""
        if moving is None:
            return self.rows
        return beside(self.rows, updated(moving, self.updated).filter(self.kept))


@dataclass(frozen=True)
class RowChange:
    """A change of some rows of a table.

    `tested` is what `changes` reads to say which rows of a batch change; `inputs` is what `apply` reads, the
    table's columns among it. `copied` names Variant columns that it only hands on, and may get as the file
    stores them. `removes` says that rows which change are gone.
    """

    tested: Sequence[Input]
    changes: Callable[[pa.RecordBatch], Array]
    inputs: Sequence[Input]
    apply: Callable[[pa.RecordBatch], Changed]
    copied: frozenset[str]
    removes: bool = False


@dataclass(frozen=True)
class Rewritten:
    """What a rewrite came to: the files that are gone, rows of `Snapshot.files`, and those in their place.

    `changed` and `copied` count rows of the files that are gone. `plan` is what was relied on. `changes` are
    change data files, which hold all changes or are none.
    """

    plan: FilePlan
    removed: pa.Table
    files: tuple[PartitionFile, ...]
    changed: int
    copied: int
    changes: tuple[PartitionFile, ...] = ()

    @property
    def paths(self) -> list[str]:
        """Return the paths of all files that were written."""
        return [file.written.path for file in (*self.files, *self.changes)]


def with_inserted(
    snapshot: Snapshot, target: Target, rewritten: Rewritten, inserted: Sequence[PartitionFile]
) -> Rewritten:
    """Return a rewrite with files of new rows; when that fails, no file of both is left behind."""
    whole = replace(rewritten, files=(*rewritten.files, *inserted))
    if not rewritten.changes:
        return whole
    written = replace(snapshot, metadata=target.metadata, schema=target.columns)
    files = [DataFile(file.written.path, file.partition_values) for file in inserted]
    try:
        changes = write_whole_files(written, target, files, "insert")
    except BaseException:
        discard(snapshot.store, whole.paths)
        raise
    return replace(whole, changes=(*rewritten.changes, *changes))


def delete_rows(
    snapshot: Snapshot,
    predicate: Expression | None,
    target: Target,
    options: WriteOptions,
) -> Rewritten:
    """Take away the rows for which a bound predicate is true; None stands for all.

    A predicate over partition columns alone takes whole files, and reads none.
    """
    plan = plan_files(snapshot, predicate)
    if is_of_partitions(snapshot, predicate):
        removed = snapshot.files
        if predicate is not None:
            matching: Array = partition_matches(snapshot, predicate)
            removed = removed.filter(matching)
        return Rewritten(plan, removed, (), count_rows(snapshot, removed), 0)
    assert predicate is not None
    return rewrite_rows(snapshot, plan, _removal(snapshot, predicate), target, options)


def is_of_partitions(snapshot: Snapshot, predicate: Expression | None) -> bool:
    """Say whether a predicate is true of all rows of a file or of none."""
    read = [] if predicate is None else expression_inputs([predicate])
    return all(isinstance(each, Column) and each.name in snapshot.partition_columns for each in read)


def _removal(snapshot: Snapshot, predicate: Expression) -> RowChange:
    scope = Scope.of(snapshot.schema, snapshot.timezone)
    columns = scope.whole_columns()

    def changes(batch: pa.RecordBatch) -> Array:
        return filter_mask(predicate, batch)

    def apply(batch: pa.RecordBatch) -> Changed:
        staying: Array = pc.invert(changes(batch))
        none: Array = pa.repeat(pa.scalar(False), batch.num_rows)
        return Changed(_rows(columns, filter_rows(batch, staying)), staying, none)

    inputs = expression_inputs([*columns.values(), predicate])
    copied = scope.variants_unread_by([predicate])
    return RowChange(expression_inputs([predicate]), changes, inputs, apply, copied, removes=True)


def rewrite_rows(
    snapshot: Snapshot,
    plan: FilePlan,
    change: RowChange,
    target: Target,
    options: WriteOptions,
) -> Rewritten:
    """Write the files of a plan anew that have rows which change; when one fails, none is left behind."""
    removed: list[bool] = []
    begun: list[Future[_NewFiles]] = []
    whole: list[DataFile] = []
    changes: list[PartitionFile] = []
    changed = changed_whole = 0
    try:
        with ThreadPoolExecutor(FILES_AT_ONCE) as threads:
            for opened in Table.of(snapshot).open_all(files_of(plan.files)):
                count, rows = _count_changes(opened, plan, change)
                removed.append(count > 0)
                changed += count
                if count and change.removes and count == rows:
                    changed_whole += count
                    whole.append(opened.file)
                elif count:
                    if len(begun) >= FILES_AT_ONCE:
                        begun[-FILES_AT_ONCE].result()
                    begun.append(threads.submit(_rewrite, opened, change, target, options))
        done = [each.result() for each in begun]
        changes += [file for each in done for file in each.changes]
        if changes:
            changes += write_whole_files(snapshot, target, whole, "delete")
    except BaseException:
        _discard(snapshot, begun)
        raise
    gone = plan.files.filter(pa.array(removed, pa.bool_()))
    files = tuple(file for each in done for file in each.files)
    copied = sum(each.rows_read for each in done) - (changed - changed_whole)
    return Rewritten(plan, gone, files, changed, copied, tuple(changes))


@dataclass(frozen=True)
class _NewFiles:
    """What takes the place of one file, its change data files, and how many rows that one has."""

    files: list[PartitionFile]
    changes: list[PartitionFile]
    rows_read: int


def _discard(snapshot: Snapshot, begun: Sequence[Future[_NewFiles]]) -> None:
    """Remove the files of rewrites that came to an end; one that failed left none behind."""
    for each in begun:
        if each.exception() is None:
            new = each.result()
            discard(snapshot.store, [file.written.path for file in (*new.files, *new.changes)])


def _count_changes(file: OpenFile, plan: FilePlan, change: RowChange) -> tuple[int, int | None]:
    """Return how many rows of a file change, and how many it has where all of them were looked at."""
    rows = plan_rows(file, plan.condition).rows
    changed = seen = 0
    if rows != []:
        for batch in file.read(change.tested, rows, "error"):
            changed += change.changes(batch).true_count
            seen += batch.num_rows
    return changed, seen if rows is None else None


def _rewrite(file: OpenFile, change: RowChange, target: Target, options: WriteOptions) -> _NewFiles:
    snapshot = file.table.snapshot
    tracking = RowTracking.of(snapshot)
    writer = ChangeWriter(snapshot, target) if keeps_changes(target) else None
    rows = 0
    numeric: Numeric = "value" if numbers_are_typed(file.native) else "strict"
    same = replace(options, shredding=shredding_of(file.native), numeric=numeric)
    limited = allowed(same, target, snapshot.uri)
    # Change data files are not shredded as the file is.
    copied = change.copied if writer is None else frozenset()
    shredded = file.shredded(copied, limited.shredding)

    def changed() -> Iterator[tuple[pa.RecordBatch, None]]:
        nonlocal rows
        for batch, moving in file.read_moving(change.inputs, tracking, shredded):
            rows += batch.num_rows
            after = _applied(change, batch, file.file.path)
            if writer is not None:
                _add_changes(writer, snapshot, batch, after)
            yield after.with_kept(moving), None

    files: list[PartitionFile] = []
    try:
        files = write_files(snapshot.store, changed(), tracked(target, tracking), limited, Faults("error"))
        return _NewFiles(files, [] if writer is None else writer.close(), rows)
    except BaseException:
        discard(snapshot.store, [each.written.path for each in files])
        if writer is not None:
            writer.discard()
        raise


def _applied(change: RowChange, batch: pa.RecordBatch, path: str) -> Changed:
    try:
        return change.apply(batch)
    except (CastError, VariantPathError) as error:
        # The row is counted among the changed rows only, so a user could not find it in the file.
        error.row = None
        error.at(file=path)
        raise


def _add_changes(writer: ChangeWriter, snapshot: Snapshot, batch: pa.RecordBatch, after: Changed) -> None:
    columns = Scope.of(snapshot.schema, snapshot.timezone).whole_columns()
    gone: Array = pc.invert(after.kept)
    writer.add(_rows(columns, batch.filter(gone)), "delete")
    writer.add(_rows(columns, batch.filter(after.updated)), "update_preimage")
    writer.add(after.rows.filter(after.updated.filter(after.kept)), "update_postimage")


def _rows(columns: Mapping[str, Expression], batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [evaluate(column, batch) for column in columns.values()]
    return pa.record_batch(arrays, names=list(columns))


def count_rows(snapshot: Snapshot, files: pa.Table) -> int:
    """Return how many rows files have: by their statistics, or where these do not say by their footers."""
    (numbers,) = texts_at(files["stats"], [(("numRecords",), "number")])
    counts = counts_of(numbers).to_pylist()
    return sum(_live_rows(snapshot, *each) for each in zip(files_of(files), counts, strict=True))


def _live_rows(snapshot: Snapshot, file: DataFile, count: int | None) -> int:
    if count is None:
        count = open_file(snapshot.store, file.path).num_rows
    vector = file.deletion_vector
    return count - (vector["cardinality"] if vector else 0)
