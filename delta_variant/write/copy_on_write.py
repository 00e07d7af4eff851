"""Change rows: rewrite the files that contain them, or mark them by deletion vectors, and no other files.

Where a table enables deletion vectors, most files stay as they are, and updated rows go to new files.
A rewritten file keeps the shredding of the original, and its residual rows stay in other files. Large row
groups without changed rows are copied as they are encoded. In other row groups, Variant columns that the
change does not read are copied in shredded form. In other columns numbers are shredded only by their own type
if the file has numbers of another type, so that an unchanged Variant keeps its bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from operator import methodcaller
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._options import Numeric
from .._progress import advance, begin
from .._threads import Threads
from ..data_file.options import WriteOptions
from ..data_file.reader import RowRange, filter_rows
from ..data_file.shredding import numbers_are_typed, shredding_of
from ..errors import CastError, VariantPathError
from ..execution import NameFile, new_name
from ..expressions.evaluate import evaluate, filter_mask
from ..expressions.tree import Expression, input_column, input_name, output_type
from ..expressions.tree import inputs as expression_inputs
from ..log.snapshot import Snapshot, TableVersion
from ..protocol.table_configuration import TableConfiguration
from ..read.file_reader import POSITION, FileEntry, FileReader, TableReader, files_of
from ..read.log_statistics import is_of_partitions, partition_matches
from ..read.plan import FilePlan, plan_files, plan_rows
from ..read.predicate import PruningPredicate, leading_conditions
from ..read.row_tracking import RowTracking, with_row_ids
from ..read.rows import count_rows
from ..read.scope import Scope
from ..storage.store import discard
from ..variant.values import VARIANT_TYPE
from .change_files import ChangeWriter, write_whole_files
from .deletion_vectors import VectorWriter, prefers_vector
from .partitions import NO_FILES, WrittenFiles
from .preparation import restrict_to_table
from .rewrite import (
    ChangedBatch,
    RewrittenFiles,
    RewrittenPart,
    RowChange,
    combine_parts,
)
from .router import ResidualFiles, Router, write_files
from .stored_rows import copyable_row_groups, read_or_copy

__all__ = [
    "delete_rows",
    "removal",
    "remove_files",
    "rewrite_files",
    "rewrite_rows",
]


FILES_AT_ONCE = 2
"""How many files are rewritten concurrently; each uses more than one thread."""


def delete_rows(
    snapshot: Snapshot,
    predicate: Expression | None,
    after: TableConfiguration,
    options: WriteOptions,
) -> RewrittenFiles:
    """Delete the rows for which a bound predicate is true; None deletes all rows.

    A predicate over partition columns only removes whole files without reading them.
    """
    if predicate is None or is_of_partitions(snapshot.configuration, predicate):
        return remove_files(snapshot, predicate)
    plan = plan_files(snapshot, predicate)
    return rewrite_rows(snapshot, plan, removal(snapshot.configuration, predicate), after, options)


def remove_files(snapshot: Snapshot, predicate: Expression | None) -> RewrittenFiles:
    """Remove whole files: those of the partitions for which a predicate is true, or all."""
    removed = snapshot.files
    if predicate is not None:
        removed = removed.filter(partition_matches(snapshot.configuration, removed, predicate))
    plan = plan_files(snapshot, predicate)
    return RewrittenFiles(plan, removed, NO_FILES, count_rows(snapshot, removed), 0)


def removal(table: TableConfiguration, predicate: Expression) -> RowChange:
    """Return the change that deletes the rows for which a bound predicate is true."""
    scope = Scope.of(table)
    columns = scope.whole_columns()

    def changes(batch: pa.RecordBatch) -> Array:
        return filter_mask(predicate, batch)

    def apply(batch: pa.RecordBatch) -> Iterator[ChangedBatch]:
        remaining: Array = pc.invert(changes(batch))
        updated: Array = pa.repeat(pa.scalar(False), batch.num_rows)
        yield ChangedBatch(_rows(columns, filter_rows(batch, remaining)), remaining, updated)

    inputs = expression_inputs([*columns.values(), predicate])
    copied = scope.variants_unread_by([predicate])
    tested, conditions = expression_inputs([predicate]), leading_conditions(predicate)
    return RowChange(tested, conditions, changes, inputs, apply, copied, removes=True)


def rewrite_rows(
    snapshot: Snapshot,
    plan: FilePlan,
    change: RowChange,
    after: TableConfiguration,
    options: WriteOptions,
) -> RewrittenFiles:
    """Rewrite the files of a plan that contain changed rows; after an error, remove all new files."""
    begin("rewriting", files=plan.files.num_rows)
    files = files_of(plan.files)
    part = rewrite_files(snapshot, files, plan.pruning_predicate, lambda _: change, after, options)
    if not part.changes or not part.emptied:
        return combine_parts(plan, [part])
    try:
        changes = write_whole_files(snapshot, after, part.emptied, "delete")
    except BaseException:
        discard(snapshot.store, part.paths())
        raise
    return combine_parts(plan, [part], changes=[changes])


def rewrite_files(
    table: TableVersion,
    files: Iterable[FileEntry],
    pruning_predicate: PruningPredicate,
    change_of: Callable[[FileEntry], RowChange],
    after: TableConfiguration,
    options: WriteOptions,
    name: NameFile = new_name,
) -> RewrittenPart:
    """Rewrite those of some files that contain changed rows; after an error, remove all new files.

    `change_of` returns the change of the rows of a file. If this part or another one has change data files,
    the rows of emptied files are written to change data files, too.
    """
    unread: list[RewrittenPart] = []
    begun: list[Future[RewrittenPart]] = []
    new, vectors = _NewFileWriters(table, after, options, name), VectorWriter(table.store)
    try:
        with Threads(FILES_AT_ONCE) as threads:
            for opened in TableReader.of(table).open_all(files):
                advance(files=1)
                change = change_of(opened.file)
                rows = _find_changes(opened, pruning_predicate, change)
                path, count = pa.array([opened.file.path]), len(rows)
                if count and change.removes and count == opened.num_rows:
                    unread.append(RewrittenPart(path, (opened.file,), NO_FILES, NO_FILES, count, 0))
                elif count and prefers_vector(opened, count, removes=change.removes):
                    if not change.removes:
                        new.move(opened, rows, change)
                    marked = (vectors.mark(opened, rows),)
                    unread.append(RewrittenPart(path, (), NO_FILES, NO_FILES, count, 0, marked))
                elif count:
                    if len(begun) >= FILES_AT_ONCE:
                        begun[-FILES_AT_ONCE].result()
                    begun.append(threads.submit(_rewrite, opened, rows, change, new))
        part = RewrittenPart.join([*unread, *(each.result() for each in begun)])
        return replace(RewrittenPart.join([part, new.close()]), vector_files=vectors.close())
    except BaseException:
        # A failed rewrite of a file has removed its own files, and a cancelled one has none.
        for each in begun:
            if not each.cancelled() and each.exception() is None:
                discard(table.store, each.result().paths())
        new.discard()
        vectors.discard()
        raise


class _NewFileWriters:
    """Writers of the files that replace others.

    They share the residual files, so that the residual rows of a partition are in few files. The updated rows
    of marked files are in few files, too.
    """

    def __init__(
        self, table: TableVersion, after: TableConfiguration, options: WriteOptions, name: NameFile
    ) -> None:
        self.after = after
        self.options = options
        self.name = name
        self.stored = with_row_ids(after)
        """The table with the columns that files of moved rows have."""
        self.store = table.store
        self._residual: dict[Numeric, ResidualFiles] = {}
        self._lock = Lock()
        self._moved: dict[tuple[Numeric, bool], Router] = {}
        self._moved_changes = self.changes()

    def options_for(self, file: FileReader) -> WriteOptions:
        """Return options for rows of a file, which keep its shredding and the types of its numbers."""
        numeric: Numeric = "value" if numbers_are_typed(file.native) else "strict"
        same = replace(
            self.options,
            shredding=shredding_of(file.native),
            files=replace(self.options.files, numeric=numeric),
            is_residual=file.file.is_residual,
        )
        return restrict_to_table(same, self.after)

    def residual(self, options: WriteOptions) -> ResidualFiles | None:
        """Return the residual files for a file with these options, None if it separates no rows."""
        if not options.separates:
            return None
        numeric = options.files.numeric
        with self._lock:
            if numeric not in self._residual:
                self._residual[numeric] = ResidualFiles(self.store, self.stored, options, self.name)
            return self._residual[numeric]

    def changes(self) -> ChangeWriter | None:
        """Return a writer of change data files, None if the table has no change data feed."""
        if not self.after.enables("changeDataFeed"):
            return None
        return ChangeWriter(self.store, self.after, self.name)

    def move(self, file: FileReader, rows: Array, change: RowChange) -> None:
        """Write those of some rows of a file that remain after a change.

        `rows` are their numbers in ascending order. New files are shredded like the first of such files.
        """
        options = self.options_for(file)
        key = options.files.numeric, options.is_residual
        if key not in self._moved:
            residual = self.residual(options)
            self._moved[key] = Router(self.store, self.stored, options, name=self.name, residual=residual)
        unread = change.replaced if self._moved_changes is None else frozenset()
        # Files can be shredded differently, so that Variants are copied as they are without shredding.
        changed = _changed(file, change, frozenset(), _ranges(rows), self._moved_changes, unread)
        count = 0
        for after, moving in changed:
            self._moved[key].add(after.with_row_ids(moving).filter(after.updated.filter(after.remaining)))
            count += after.updated.true_count + after.remaining.false_count
        # Otherwise rows would be marked whose new values are nowhere.
        assert count == len(rows), f"{file.file.path}: {count} of {len(rows)} rows changed"

    def close(self) -> RewrittenPart:
        """Finish the files that several replaced files share, and return them."""
        files = [router.close() for router in self._moved.values()]
        files += [residual.close() for residual in self._residual.values()]
        changes = NO_FILES if self._moved_changes is None else self._moved_changes.close()
        none = pa.array([], pa.string())
        return RewrittenPart(none, (), WrittenFiles.join(files), changes, 0, 0)

    def discard(self) -> None:
        """Remove these files."""
        for each in (*self._moved.values(), *self._residual.values(), self._moved_changes):
            if each is not None:
                each.discard()


def _find_changes(file: FileReader, pruning_predicate: PruningPredicate, change: RowChange) -> Array:
    """Return the numbers of the changed rows in a file, counting deleted ones, in ascending order."""
    numbers: list[Array] = [pa.array([], pa.int64())]
    rows = plan_rows(file, pruning_predicate).rows
    if rows != []:
        inputs, before = list(dict.fromkeys([*change.tested, POSITION])), 0
        for seen, batch in file.read_matching(inputs, change.conditions, rows, "error"):
            advance(rows=seen - before)
            before = seen
            numbers.append(batch.column(POSITION.name).filter(change.changes(batch)))
    return pa.concat_arrays(numbers)


MAX_GAP = 8
"""The number of unchanged rows between changed ones that are read with them, for fewer ranges of rows."""


def _ranges(rows: Array) -> list[RowRange]:
    """Return few ranges that have some rows of a file, given their numbers in ascending order."""
    is_last: Array = pc.greater(pc.subtract(rows[1:], rows[:-1]), pa.scalar(MAX_GAP))
    firsts = [rows[0].as_py(), *rows[1:].filter(is_last).to_pylist()]
    lasts = [*rows[:-1].filter(is_last).to_pylist(), rows[-1].as_py()]
    return [(first, last + 1) for first, last in zip(firsts, lasts, strict=True)]


def _rewrite(file: FileReader, rows: Array, change: RowChange, new: _NewFileWriters) -> RewrittenPart:
    """Rewrite a file with changed rows. Row groups without any are copied where possible.

    The residual rows of a file that has none before go to the residual files that all files share.
    """
    tracking = RowTracking.of(file.table.version.configuration)
    options, writer = new.options_for(file), new.changes()
    if not file.native.is_separated:
        # Files that have residual rows keep them: otherwise each of them would become two files.
        options = replace(options, files=replace(options.files, residual_rows="inline"))
    # Change data files do not have the shredding of the file.
    shredded = file.shredded(change.copied if writer is None else frozenset(), options.shredding)

    def changed(ranges: Sequence[RowRange] | None) -> Iterator[pa.RecordBatch]:
        for after, moving in _changed(file, change, shredded, ranges, writer):
            yield after.with_row_ids(moving)

    copied_groups = frozenset(copyable_row_groups(file, tracking)).difference(_groups_of(file, rows))
    files = NO_FILES
    try:
        files = write_files(
            new.store,
            read_or_copy(file, changed, copied_groups),
            new.stored,
            options,
            name=new.name,
            residual=new.residual(options),
        )
        changes = NO_FILES if writer is None else writer.close()
        path = pa.array([file.file.path])
        return RewrittenPart(path, (), files, changes, len(rows), file.num_rows - len(rows))
    except BaseException:
        discard(new.store, files.paths())
        if writer is not None:
            writer.discard()
        raise


def _groups_of(file: FileReader, rows: Array) -> set[int]:
    """Return the row groups that have some rows, given their numbers in ascending order."""
    position = methodcaller("as_py")
    return {
        number
        for number, (start, end) in enumerate(file.row_groups)
        if bisect_left(rows, start, key=position) < bisect_left(rows, end, key=position)
    }


def _changed(
    file: FileReader,
    change: RowChange,
    shredded: Collection[str],
    ranges: Sequence[RowRange] | None,
    writer: ChangeWriter | None,
    unread: frozenset[str] = frozenset(),
) -> Iterator[tuple[ChangedBatch, pa.RecordBatch | None]]:
    """Yield rows of a file after a change, with the row ids that they had, and write their changes.

    The columns in `unread` are null before the change.
    """
    table = file.table.version.configuration
    tracking = RowTracking.of(table)
    absent = [each for each in change.inputs if input_column(each) in unread]
    inputs = [each for each in change.inputs if each not in absent]
    for read, moving in file.read_with_row_ids(inputs, tracking, shredded, ranges):
        batch, first = read, 0
        for each in absent:
            absent_type: Any = output_type(each) or VARIANT_TYPE
            batch = batch.append_column(input_name(each), pa.nulls(read.num_rows, absent_type))
        with _error_without_row(file.file.path):
            for after in change.apply(batch):
                length = len(after.remaining)
                if writer is not None:
                    _add_changes(writer, table, batch.slice(first, length), after)
                yield after, None if moving is None else moving.slice(first, length)
                first += length


@contextmanager
def _error_without_row(path: str) -> Iterator[None]:
    """Add the file to errors, and remove the row, which counts the changed rows of a batch only."""
    try:
        yield
    except (CastError, VariantPathError) as error:
        error.row = None
        error.at(file=path)
        raise


def _add_changes(
    writer: ChangeWriter, table: TableConfiguration, batch: pa.RecordBatch, after: ChangedBatch
) -> None:
    columns = Scope.of(table).whole_columns()
    deleted: Array = pc.invert(after.remaining)
    writer.add(_rows(columns, batch.filter(deleted)), "delete")
    writer.add(_rows(columns, batch.filter(after.updated)), "update_preimage")
    writer.add(after.rows.filter(after.updated.filter(after.remaining)), "update_postimage")


def _rows(columns: Mapping[str, Expression], batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [evaluate(column, batch) for column in columns.values()]
    return pa.record_batch(arrays, names=list(columns))
