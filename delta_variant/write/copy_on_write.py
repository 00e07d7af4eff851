"""Copy-on-write: rewrite the files that contain changed rows, and no other files.

Where a table enables deletion vectors, deleted rows are marked by these, and most files stay as they are.
A rewritten file keeps the shredding of the original, and its residual rows stay in other files. Large row
groups without changed rows are copied as they are encoded. In other row groups, Variant columns that the
change does not read are copied in shredded form. In other columns numbers are shredded only by their own type
if the file has numbers of another type, so that an unchanged Variant keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock

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
from ..expressions.tree import Expression
from ..expressions.tree import inputs as expression_inputs
from ..log.snapshot import Snapshot, TableVersion
from ..protocol.table_configuration import TableConfiguration
from ..read.file_reader import POSITION, FileEntry, FileReader, TableReader, files_of
from ..read.log_statistics import is_of_partitions, partition_matches
from ..read.plan import FilePlan, plan_files, plan_rows
from ..read.predicate import PruningPredicate
from ..read.row_tracking import RowTracking, with_row_ids
from ..read.rows import count_rows
from ..read.scope import Scope
from ..storage.store import discard
from .deletion_vectors import VectorWriter, marks_rows, prefers_vector
from .partitions import NO_FILES, WrittenFiles
from .preparation import restrict_to_table
from .rewrite import (
    ChangedBatch,
    ChangeWriter,
    RewrittenFiles,
    RewrittenPart,
    RowChange,
    combine_parts,
    write_whole_files,
)
from .router import ResidualFiles, write_files
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
    return RowChange(expression_inputs([predicate]), changes, inputs, apply, copied, removes=True)


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
                changed = _find_changes(opened, pruning_predicate, change)
                path, count = pa.array([opened.file.path]), changed.count
                if count and change.removes and count == changed.rows:
                    unread.append(RewrittenPart(path, (opened.file,), NO_FILES, NO_FILES, count, 0))
                elif count and changed.numbers is not None and prefers_vector(opened, count):
                    marked = (vectors.mark(opened, changed.numbers),)
                    unread.append(RewrittenPart(path, (), NO_FILES, NO_FILES, count, 0, marked))
                elif count:
                    if len(begun) >= FILES_AT_ONCE:
                        begun[-FILES_AT_ONCE].result()
                    begun.append(threads.submit(_rewrite, opened, changed, change, new))
        part = RewrittenPart.join([*unread, *(each.result() for each in begun)])
        part = replace(part, files=WrittenFiles.join([part.files, *new.close_residual()]))
        return replace(part, vector_files=vectors.close())
    except BaseException:
        # A failed rewrite of a file has removed its own files, and a cancelled one has none.
        for each in begun:
            if not each.cancelled() and each.exception() is None:
                discard(table.store, each.result().paths())
        new.discard_residual()
        vectors.discard()
        raise


class _NewFileWriters:
    """Writers of the files that replace others.

    They share the residual files, so that the residual rows of a partition are in few files.
    """

    def __init__(
        self, table: TableVersion, after: TableConfiguration, options: WriteOptions, name: NameFile
    ) -> None:
        self.after = after
        self.options = options
        self.name = name
        self.stored = with_row_ids(after)
        """The table with the columns that files of moved rows have."""
        self._store = table.store
        self._residual: dict[Numeric, ResidualFiles] = {}
        self._lock = Lock()

    def residual(self, options: WriteOptions) -> ResidualFiles | None:
        """Return the residual files for a file with these options, None if it separates no rows."""
        if not options.separates:
            return None
        numeric = options.files.numeric
        with self._lock:
            if numeric not in self._residual:
                self._residual[numeric] = ResidualFiles(self._store, self.stored, options, self.name)
            return self._residual[numeric]

    def changes(self) -> ChangeWriter | None:
        """Return a writer of change data files, None if the table has no change data feed."""
        if not self.after.enables("changeDataFeed"):
            return None
        return ChangeWriter(self._store, self.after, self.name)

    def close_residual(self) -> list[WrittenFiles]:
        return [files.close() for files in self._residual.values()]

    def discard_residual(self) -> None:
        for files in self._residual.values():
            files.discard()


@dataclass(frozen=True)
class _Changes:
    """The changed rows of a file.

    Attributes:
        count: How many there are.
        rows: The number of rows of the file, None if some of them are pruned.
        row_groups: The row groups that have changed rows, if the file has no deleted rows.
        numbers: The numbers of the rows in the file, counting deleted ones, if a vector can mark them.
    """

    count: int
    rows: int | None
    row_groups: frozenset[int]
    numbers: Array | None


def _find_changes(file: FileReader, pruning_predicate: PruningPredicate, change: RowChange) -> _Changes:
    rows = plan_rows(file, pruning_predicate).rows
    parts = list(_parts_of_row_groups(file.row_groups, rows))
    touched: set[int] = set()
    numbers: list[Array] = [pa.array([], pa.int64())]
    changed = seen = 0
    is_marking = change.removes and marks_rows(file.table.version.configuration)
    inputs = [*change.tested, POSITION] if is_marking else change.tested
    for batch in () if rows == [] else file.read(inputs, rows, "error"):
        advance(rows=batch.num_rows)
        mask = change.changes(batch)
        changed += mask.true_count
        if is_marking:
            numbers.append(batch.column(POSITION.name).filter(mask))
        touched |= {
            group
            for group, start, end in parts
            if start < seen + batch.num_rows
            and seen < end
            and mask.slice(max(start - seen, 0), end - max(start, seen)).true_count
        }
        seen += batch.num_rows
    marked = pa.concat_arrays(numbers) if is_marking else None
    return _Changes(changed, seen if rows is None else None, frozenset(touched), marked)


def _parts_of_row_groups(
    row_groups: Sequence[RowRange], rows: Sequence[RowRange] | None
) -> Iterator[tuple[int, int, int]]:
    """Yield row groups and ranges of their rows, numbered within `rows` of the file, or all rows."""
    first = 0
    for start, end in [(0, row_groups[-1][1])] if rows is None and row_groups else rows or ():
        for number, (group_start, group_end) in enumerate(row_groups):
            low, high = max(start, group_start), min(end, group_end)
            if low < high:
                yield number, first + low - start, first + high - start
        first += end - start


def _rewrite(file: FileReader, found: _Changes, change: RowChange, new: _NewFileWriters) -> RewrittenPart:
    """Rewrite a file with changed rows. Row groups without any are copied where possible.

    The residual rows of a file that has none before go to the residual files that all files share.
    """
    table, options = file.table.version, new.options
    tracking = RowTracking.of(table.configuration)
    writer = new.changes()
    numeric: Numeric = "value" if numbers_are_typed(file.native) else "strict"
    # Files that have residual rows keep them: otherwise each of them would become two files.
    layout = options.files.residual_rows if file.native.is_separated else "inline"
    same = replace(
        options,
        shredding=shredding_of(file.native),
        files=replace(options.files, numeric=numeric, residual_rows=layout),
        is_residual=file.file.is_residual,
    )
    limited = restrict_to_table(same, new.after)
    # Change data files do not have the shredding of the file.
    copied = change.copied if writer is None else frozenset()
    shredded = file.shredded(copied, limited.shredding)

    def changed(rows: Sequence[RowRange] | None) -> Iterator[pa.RecordBatch]:
        for batch, moving in file.read_with_row_ids(change.inputs, tracking, shredded, rows):
            first = 0
            with _error_without_row(file.file.path):
                for after in change.apply(batch):
                    length = len(after.remaining)
                    if writer is not None:
                        _add_changes(writer, table.configuration, batch.slice(first, length), after)
                    yield after.with_row_ids(None if moving is None else moving.slice(first, length))
                    first += length

    copied_groups = frozenset(copyable_row_groups(file, tracking)) - found.row_groups
    files = NO_FILES
    try:
        files = write_files(
            table.store,
            read_or_copy(file, changed, copied_groups),
            new.stored,
            limited,
            name=new.name,
            residual=new.residual(limited),
        )
        vector = file.file.deletion_vector
        rows = file.native.num_rows - (vector["cardinality"] if vector else 0)
        changes = NO_FILES if writer is None else writer.close()
        path = pa.array([file.file.path])
        return RewrittenPart(path, (), files, changes, found.count, rows - found.count)
    except BaseException:
        discard(table.store, files.paths())
        if writer is not None:
            writer.discard()
        raise


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
