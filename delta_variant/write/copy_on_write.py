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

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import chain, count
from threading import Lock
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._options import Numeric
from .._progress import advance, begin
from .._threads import Threads
from ..data_file.options import WriteOptions
from ..data_file.reader import filter_rows
from ..data_file.shredding import PerSchema, numeric_of, shredding_of
from ..execution import NameFile, new_name
from ..expressions.evaluate import filter_mask
from ..expressions.tree import Expression
from ..expressions.tree import inputs as expression_inputs
from ..log.snapshot import Snapshot, TableVersion
from ..protocol import properties
from ..protocol.table_configuration import TableConfiguration
from ..read.file_reader import FileEntry, FileReader, TableReader, evaluate_columns, files_of
from ..read.log_statistics import is_of_partitions, partition_matches
from ..read.plan import plan_files
from ..read.predicate import PruningPredicate, leading_conditions
from ..read.row_tracking import with_row_ids
from ..read.rows import count_rows
from ..read.scope import Scope
from ..storage.store import discard
from .assignment import ColumnRoles
from .changed_rows import MOST_REPLACED, find_changes, read_remaining_rows, read_updated_rows
from .deletion_vectors import VectorWriter, prefers_vector
from .partitions import NO_FILES, WrittenFiles
from .preparation import restrict_to_table
from .rewrite import (
    ChangedBatch,
    ChangeWriter,
    RewrittenFiles,
    RewrittenPart,
    RowChange,
    combine_parts,
    locate_malformed,
    write_whole_files,
)
from .router import ResidualFiles, Router, write_files
from .stored_rows import StoredRows

MAX_SMALL_SHARE = 0.01
"""The share of the target file size below which a file is small: to write a file of its own takes longer than
to write its rows."""

MAX_SHARED = 4
"""For how many kinds of small files new files are open at most."""

MAX_SAMPLES = 4
"""For how many partitions files are open at most of which others share the sample."""

FILES_AHEAD = 2
"""The rows of how many files are read while those of another one are written."""

Kind: TypeAlias = tuple[int, Numeric, bool, bool]
"""What files have in common whose rows share a new file: the number of their schema, how their numbers are
shredded, and whether they have or separate residual rows."""


class NewFileWriters:
    """Writers of the files that replace others.

    They share the residual files, so that the residual rows of a partition are in few files. The rows of
    small files, and the updated rows of marked files, are in few files, too.
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
        self._samples: dict[object, PerSchema[pa.RecordBatch]] = {}
        self._lock = Lock()
        self._moved: dict[tuple[Numeric, bool], Router] = {}
        self._reading: deque[tuple[Router, Iterator[pa.RecordBatch], Future[pa.RecordBatch | None]]] = deque()
        self._joined: dict[Kind, tuple[Router, frozenset[str]]] = {}
        self._schemas, self._numbers = PerSchema[int](), count()
        self._changes = self.changes()

    def options_for(self, file: FileReader) -> WriteOptions:
        """Return options for rows of a file, which keep its shredding and the types of its numbers."""
        files = replace(self.options.files, numeric=numeric_of(file.native))
        shredding, is_residual = shredding_of(file.native), file.file.is_residual
        same = replace(self.options, shredding=shredding, files=files, is_residual=is_residual)
        return restrict_to_table(same, self.after)

    def options_for_all(self, file: FileReader) -> WriteOptions:
        """Return options for all rows of a file.

        A file that has residual rows keeps them: otherwise it would become two files.
        """
        options = self.options_for(file)
        if file.native.is_separated:
            return options
        return replace(options, files=replace(options.files, residual_rows="inline"))

    def residual(self, options: WriteOptions) -> ResidualFiles | None:
        """Return the residual files for a file with these options, None if it separates no rows."""
        if not options.separates:
            return None
        numeric = options.files.numeric
        with self._lock:
            if numeric not in self._residual:
                self._residual[numeric] = ResidualFiles(self.store, self.stored, options, self.name)
            return self._residual[numeric]

    def read_remaining(
        self,
        file: FileReader,
        rows: Array,
        change: RowChange,
        shredded: frozenset[str],
        writer: ChangeWriter | None,
    ) -> Iterator[pa.RecordBatch | StoredRows]:
        """Yield the remaining rows of a file for a new one, like `read_remaining_rows`.

        Pages are not copied if new files have a compression that the file lacks.
        """
        wanted = self.options.files.compression or self.after.get(properties.COMPRESSION_CODEC)
        as_pages = wanted is None or file.native.has_compression(wanted)
        alike = tuple(sorted(file.file.partition_values.items())), shredded
        with self._lock:
            if alike not in self._samples and len(self._samples) == MAX_SAMPLES:
                self._samples.clear()
            samples = self._samples.setdefault(alike, PerSchema())
        return read_remaining_rows(file, rows, change, shredded, writer, samples=samples, as_pages=as_pages)

    def _new_router(self, options: WriteOptions) -> Router:
        return Router(self.store, self.stored, options, name=self.name, residual=self.residual(options))

    def changes(self) -> ChangeWriter | None:
        """Return a writer of change data files, None if the table has no change data feed."""
        if not self.after.enables("changeDataFeed"):
            return None
        return ChangeWriter(self.store, self.after, self.name)

    def shredded(
        self, file: FileReader, rows: Array, change: RowChange, options: WriteOptions
    ) -> frozenset[str]:
        """Return the Variant columns of a file that a new file with these options takes in shredded form.

        These are the columns that pass through a change of some rows, and others if the rows are few.
        """
        # Change data files do not have the shredding of the file.
        if self._changes is not None:
            return frozenset()
        is_few = len(rows) <= MOST_REPLACED * file.native.num_rows
        others = change.columns.assigned if is_few else frozenset()
        return file.shredded(change.columns.copied | others, options.shredding)

    def join(self, file: FileReader, rows: Array, change: RowChange) -> bool:
        """Write the rows of a small file after a change to a new file that it shares with others.

        `rows` are the numbers of the changed rows in ascending order. Return False if the file is not small,
        or if more kinds of small files share new ones than can be open.
        """
        if (file.file.size or 0) >= MAX_SMALL_SHARE * self.options.files.target_file_size:
            return False
        number = self._schemas.of(file.native, partial(next, self._numbers))
        kind = number, numeric_of(file.native), file.file.is_residual, file.native.is_separated
        if kind not in self._joined:
            if len(self._joined) == MAX_SHARED:
                return False
            options = self.options_for_all(file)
            self._joined[kind] = self._new_router(options), self.shredded(file, rows, change, options)
        router, shredded = self._joined[kind]
        router.add_all(self.read_remaining(file, rows, change, shredded, self._changes))
        return True

    def move(self, file: FileReader, rows: Array, change: RowChange, threads: Threads) -> None:
        """Write those of some rows of a file that remain after a change.

        `rows` are their numbers in ascending order. New files are shredded like the first of such files. Of
        few rows, the first are read by a thread, while rows of other files are read or written.
        """
        key = numeric_of(file.native), file.file.is_residual
        if key not in self._moved:
            self._moved[key] = self._new_router(self.options_for(file))
        router, updated = self._moved[key], read_updated_rows(file, rows, change, self._changes)
        found = (new for *_, new in updated)
        # One file at a time writes change data.
        if self._changes is None and len(rows) <= MOST_REPLACED * file.native.num_rows:
            self._reading.append((router, found, threads.submit(next, found, None)))
            self._write_moved(FILES_AHEAD)
            return
        self._write_moved()
        for batch in found:
            router.add(batch)

    def _write_moved(self, ahead: int = 0) -> None:
        """Write the rows that were read first, until those of at most `ahead` files are left."""
        while len(self._reading) > ahead:
            router, rest, first = self._reading.popleft()
            for batch in chain([] if (begun := first.result()) is None else [begun], rest):
                router.add(batch)

    def _routers(self) -> Iterator[Router]:
        return chain(self._moved.values(), (router for router, _ in self._joined.values()))

    def close(self) -> RewrittenPart:
        """Finish the files that several replaced files share, and return them."""
        self._write_moved()
        files = [router.close() for router in self._routers()]
        files += [residual.close() for residual in self._residual.values()]
        changes = NO_FILES if self._changes is None else self._changes.close()
        none = pa.array([], pa.string())
        return RewrittenPart(none, (), WrittenFiles.join(files), changes, 0, 0)

    def discard(self) -> None:
        for each in (*self._routers(), *self._residual.values(), self._changes):
            if each is not None:
                each.discard()


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
