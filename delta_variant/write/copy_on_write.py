"""Change rows: rewrite the files that contain them, or mark them by deletion vectors, and no other files.

Where a table enables deletion vectors, most files stay as they are, and updated rows go to new files.
A rewritten file keeps the shredding of the original, and its residual rows stay in other files. Small files
share new files. Large row groups without changed rows are copied as they are encoded, as are the columns of
others that keep their values. In other columns, few changed rows are read on their own and replaced in
their place, and other rows do not pass through the change. Variant columns that the change does not read are
copied in shredded form. In other columns numbers are shredded only by their own type if the file has numbers
of another type, so that an unchanged Variant keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._progress import advance, begin
from .._threads import Threads
from ..data_file.options import WriteOptions
from ..data_file.reader import filter_rows
from ..execution import NameFile, new_name
from ..expressions.evaluate import filter_mask
from ..expressions.tree import Expression
from ..expressions.tree import inputs as expression_inputs
from ..log.snapshot import Snapshot, TableVersion
from ..protocol.table_configuration import TableConfiguration
from ..read.file_reader import FileEntry, FileReader, TableReader, evaluate_columns, files_of
from ..read.log_statistics import is_of_partitions, partition_matches
from ..read.plan import plan_files
from ..read.predicate import PruningPredicate, leading_conditions
from ..read.rows import count_rows
from ..read.scope import Scope
from ..storage.store import discard
from .assignment import ColumnRoles
from .change_files import write_whole_files
from .changed_rows import find_changes
from .deletion_vectors import VectorWriter, prefers_vector
from .malformed import locate_malformed
from .new_files import NewFileWriters
from .partitions import NO_FILES, WrittenFiles
from .rewrite import (
    ChangedBatch,
    RewrittenFiles,
    RewrittenPart,
    RowChange,
    combine_parts,
)
from .router import write_files

FILES_AT_ONCE = 2
"""How many files are rewritten concurrently; each uses more than one thread."""
MAX_BEGUN = 2 * FILES_AT_ONCE
"""Others wait with their changed rows known, because a small file is rewritten sooner than the one before."""


def overwrite_rows(
    snapshot: Snapshot,
    predicate: Expression | None,
    after: TableConfiguration,
    options: WriteOptions,
    inserted: WrittenFiles,
) -> RewrittenFiles:
    """Replace the rows for which a bound predicate is true, None for all rows, by those of new files.

    A predicate over partition columns only removes whole files without reading them. After an error, all
    files written here are removed, and not those of the new rows.
    """
    if predicate is None or is_of_partitions(snapshot.configuration, predicate):
        return replace(remove_files(snapshot, predicate), files=inserted)
    plan = plan_files(snapshot, predicate)
    begin("rewriting", files=plan.files.num_rows)
    change, files = removal(snapshot.configuration, predicate), files_of(plan.files)
    part = rewrite_files(snapshot, files, plan.pruning_predicate, lambda _: change, after, options)
    changes: list[WrittenFiles] = []
    try:
        if part.changes:
            written = TableVersion(snapshot.store, snapshot.version, after)
            changes.append(write_whole_files(snapshot, after, part.emptied, "delete"))
            changes.append(write_whole_files(written, after, inserted.entries(), "insert"))
    except BaseException:
        discard(snapshot.store, chain(part.paths(), *(each.paths() for each in changes)))
        raise
    return combine_parts(plan, [part], [inserted], changes)


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
        yield ChangedBatch(evaluate_columns(columns, filter_rows(batch, remaining)), remaining, updated)

    inputs = expression_inputs([*columns.values(), predicate])
    roles = ColumnRoles(scope.variants_unread_by([predicate]))
    tested, conditions = expression_inputs([predicate]), leading_conditions(predicate)
    return RowChange(tested, conditions, changes, inputs, apply, roles, removes=True)


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
    changed: list[FileEntry] = []
    new, vectors = NewFileWriters(table, after, options, name), VectorWriter(table.store)
    try:
        with locate_malformed(table, changed), Threads(FILES_AT_ONCE) as threads:
            for opened in TableReader.of(table).open_all(files):
                advance(files=1)
                change = change_of(opened.file)
                rows = find_changes(opened, pruning_predicate, change)
                path, count = pa.array([opened.file.path]), len(rows)
                changed += [opened.file] if count else []
                if count and change.removes and count == opened.num_rows:
                    unread.append(RewrittenPart(path, (opened.file,), NO_FILES, NO_FILES, count, 0))
                elif count and prefers_vector(opened, count, removes=change.removes):
                    if not change.removes:
                        new.move(opened, rows, change, threads)
                    marked = (vectors.mark(opened, rows),)
                    unread.append(RewrittenPart(path, (), NO_FILES, NO_FILES, count, 0, marked))
                elif count and new.join(opened, rows, change):
                    copied = opened.num_rows - count
                    unread.append(RewrittenPart(path, (), NO_FILES, NO_FILES, count, copied))
                elif count:
                    if len(begun) >= MAX_BEGUN:
                        begun[-MAX_BEGUN].result()
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


def _rewrite(file: FileReader, rows: Array, change: RowChange, new: NewFileWriters) -> RewrittenPart:
    """Rewrite a file with changed rows. Row groups without any are copied where possible.

    The residual rows of a file that has none before go to the residual files that all files share.
    """
    options, writer = new.options_for_all(file), new.changes()
    files = NO_FILES
    try:
        files = write_files(
            new.store,
            new.read_remaining(file, rows, change, new.shredded(file, rows, change, options), writer),
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
