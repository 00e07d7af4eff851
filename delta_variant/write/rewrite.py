"""A rewrite: the change of rows, the files that it replaces and writes, its commit and its result.

If a commit has change data files, readers take its changes from these files only, else from the files that it
adds and removes (PROTOCOL.md, "Change Data Files"). So a commit that only adds and removes whole files has
none, and any other commit has all of its changes in them. Variants in them are not shredded, because readers
of changes read whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._compressed import CompressedSequence, join
from ..data_file.options import FileOptions, WriteOptions
from ..data_file.writer import WrittenFile
from ..errors import CommitConflictError, MalformedVariantError, StoreError, error_location
from ..execution import NameFile, new_name
from ..expressions.evaluate import evaluate
from ..expressions.tree import Expression, Input, inputs
from ..log import transaction
from ..log.commit_context import (
    CommitContext,
    CommitOptions,
    CommitResult,
    commit_context,
    is_repeated,
    transaction_of,
)
from ..log.conflicts import Reads
from ..log.snapshot import Snapshot, TableVersion
from ..protocol.actions import AddFile
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import PrimitiveType, StructField, has_variant
from ..read.file_reader import POSITION, FileEntry, FileReader, TableReader
from ..read.plan import FilePlan
from ..read.predicate import RowCondition
from ..read.row_tracking import append_row_ids, clear_commit_versions
from ..read.scope import Scope
from ..storage.store import Store, discard
from .assignment import ColumnRoles
from .concurrency import ConcurrentMoves, ConcurrentRows, ConcurrentVectors, MovedRows
from .deletion_vectors import MarkedFile, marked_adds, vector_metrics
from .partitions import NO_FILES, WrittenFiles, check_variants
from .router import Router

ChangeType: TypeAlias = Literal["insert", "update_preimage", "update_postimage", "delete"]

CHANGE_TYPE = StructField("_change_type", PrimitiveType("string"))
CHANGE_DATA = "_change_data"


@dataclass(frozen=True)
class ChangedBatch:
    """A batch after a change: all remaining rows, changed or not, in the columns of the table.

    Attributes:
        rows: The remaining rows, in the order of the batch.
        remaining: For each row of the batch, whether it remains.
        updated: For each row of the batch, whether it remains with other values.
    """

    rows: pa.RecordBatch
    remaining: Array
    updated: Array

    @property
    def changed(self) -> Array:
        return pc.or_(self.updated, pc.invert(self.remaining))

    def with_row_ids(self, moving: pa.RecordBatch | None) -> pa.RecordBatch:
        """Return the rows with their row ids and commit versions if rows are tracked."""
        if moving is None:
            return self.rows
        return append_row_ids(self.rows, clear_commit_versions(moving, self.updated).filter(self.remaining))


@dataclass(frozen=True)
class RowChange:
    """A change of some rows of a table.

    Attributes:
        tested: The inputs of `changes`.
        conditions: Conditions that all changed rows meet, by which other rows can be skipped.
        changes: Returns a mask of the rows of a batch that change, or has the numbers of the rows of the file
            that change, in ascending order.
        inputs: The inputs of `apply`, all columns of the table included.
        apply: Applies the change to a batch, and yields its parts in order.
        columns: What `apply` does with the columns of the table.
        removes: Whether the change removes the rows.
    """

    tested: Sequence[Input]
    conditions: Sequence[RowCondition]
    changes: Callable[[pa.RecordBatch], Array] | Array
    inputs: Sequence[Input]
    apply: Callable[[pa.RecordBatch], Iterable[ChangedBatch]]
    columns: ColumnRoles
    removes: bool = False


@dataclass(frozen=True)
class RewrittenFiles:
    """The result of a rewrite.

    Attributes:
        plan: The files that the rewrite depends on.
        removed: The files that are replaced, as rows of `Snapshot.files`.
        files: The files that replace them.
        changed: The number of changed rows in the removed files.
        copied: The number of other rows in the removed files.
        changes: The change data files, which have all changes if there are any.
        marked: Those of the removed files that the commit adds again, with other deletion vectors.
        vector_files: The paths of the files with these vectors.
        moved: Which of the files have the rows of removed files in the same order.
    """

    plan: FilePlan
    removed: pa.Table
    files: WrittenFiles
    changed: int
    copied: int
    changes: WrittenFiles = NO_FILES
    marked: Sequence[AddFile] = ()
    vector_files: Sequence[str] = ()
    moved: Sequence[MovedRows] = ()

    @property
    def files_removed(self) -> int:
        """Return the number of files that are not part of the table any more."""
        return self.removed.num_rows - len(self.marked)

    def paths(self) -> Iterator[str]:
        return chain(self.files.paths(), self.changes.paths(), self.vector_files)


@dataclass(frozen=True)
class RewrittenPart:
    """The result of a rewrite of some of the files of a plan, with attributes as `RewrittenFiles` has them.

    `replaced` has the paths of the files that are replaced. All rows of those in `emptied` are deleted: they
    are not read completely, so `changes` does not have their rows.
    """

    replaced: Array
    emptied: Sequence[FileEntry]
    files: WrittenFiles
    changes: WrittenFiles
    changed: int
    copied: int
    marked: Sequence[MarkedFile] = ()
    vector_files: Sequence[str] = ()

    @classmethod
    def join(cls, parts: Iterable[RewrittenPart]) -> RewrittenPart:
        """Return one part, with compressed files if those of a part are."""
        parts = list(parts)
        return cls(
            pa.concat_arrays([pa.array([], pa.string()), *(part.replaced for part in parts)]),
            join(part.emptied for part in parts),
            WrittenFiles.join(part.files for part in parts),
            WrittenFiles.join(part.changes for part in parts),
            sum(part.changed for part in parts),
            sum(part.copied for part in parts),
            join(part.marked for part in parts),
            join(part.vector_files for part in parts),
        )

    def compress(self) -> RewrittenPart:
        """Return the same part with its files compressed."""
        return replace(
            self,
            emptied=CompressedSequence.of(self.emptied),
            marked=CompressedSequence.of(self.marked),
            files=self.files.compress(),
            changes=self.changes.compress(),
        )

    def paths(self) -> Iterator[str]:
        return chain(self.files.paths(), self.changes.paths(), self.vector_files)


def combine_parts(
    plan: FilePlan,
    parts: Sequence[RewrittenPart],
    inserted: Iterable[WrittenFiles] = (),
    changes: Iterable[WrittenFiles] = (),
) -> RewrittenFiles:
    """Return the result of a rewrite in parts, with files of new rows and further change data files."""
    whole = RewrittenPart.join(parts)
    removed = plan.files
    if len(whole.replaced) < removed.num_rows:
        removed = removed.filter(pc.is_in(removed["path"], value_set=whole.replaced))
    return RewrittenFiles(
        plan,
        removed,
        WrittenFiles.join([whole.files, *inserted]),
        whole.changed,
        whole.copied,
        WrittenFiles.join([whole.changes, *changes]),
        tuple(marked_adds(removed, whole.marked)),
        whole.vector_files,
    )


@dataclass(frozen=True, repr=False)
class RewriteResult(CommitResult):
    """The result of a delete, an update or a merge.

    Attributes:
        version: The committed version, None if nothing changed and nothing was committed.
        metrics: The metrics of the commit, empty without a commit.
        rows_deleted: The number of deleted rows.
        rows_updated: The number of updated rows.
        rows_inserted: The number of inserted rows.
        rows_copied: The number of unchanged rows copied to new files.
        files_removed: The number of files removed from the table.
        files: The new files; those of an operation on Spark are decoded when they are used.
        repeated: Whether nothing was committed because the table already has the `txn` of the operation.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
        >>> result = dv.delete("clicks", "id = 1")
        >>> result.version, result.rows_deleted, result.rows_copied
        (1, 1, 1)
    """

    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    files_removed: int = 0
    files: Sequence[WrittenFile] = ()
    repeated: bool = False


def skip_repeated(snapshot: Snapshot, commit: CommitOptions) -> RewriteResult | None:
    """Return the result of an operation whose `txn` the table already has, None if it must proceed."""
    if is_repeated(snapshot, transaction_of(commit)):
        return RewriteResult(None, repeated=True)
    return None


def commit_rewrite(
    snapshot: Snapshot,
    rewritten: RewrittenFiles,
    *,
    predicate: Expression | None,
    changes_selected: bool = False,
    data_change: bool = True,
    after: TableConfiguration | None = None,
    operation: str,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, int],
    commit: CommitOptions,
) -> CommitResult:
    """Commit a rewrite, unless there is nothing to commit, and return its version and metrics.

    `predicate` selects the rows that the rewrite read, None for all rows. `changes_selected` states that it
    changes each of them, as an update does. `after` is the table after the commit, None if it stays as it is.
    If a concurrent commit conflicts, remove the new files and raise CommitConflictError.
    """
    same = after is None or after.metadata == snapshot.metadata
    if same and not rewritten.files and not rewritten.removed.num_rows:
        return CommitResult(None)
    context = commit_context(
        operation,
        parameters,
        {
            "numRemovedFiles": rewritten.files_removed,
            "numAddedFiles": len(rewritten.files),
            "numAddedBytes": rewritten.files.bytes,
            "numAddedChangeFiles": len(rewritten.changes),
            **vector_metrics(rewritten.removed, rewritten.marked, operation),
            **metrics,
        },
        commit,
    )
    return commit_replacement(
        snapshot,
        rewritten,
        predicate,
        context,
        changes_selected=changes_selected,
        data_change=data_change,
        after=after,
    )


def commit_replacement(
    snapshot: Snapshot,
    rewritten: RewrittenFiles,
    predicate: Expression | None,
    context: CommitContext,
    *,
    changes_selected: bool = False,
    data_change: bool = True,
    after: TableConfiguration | None = None,
) -> CommitResult:
    """Commit a rewrite as `commit_rewrite` does."""
    store = snapshot.store
    # The predicate of a merge may read columns that the merge adds.
    state = replace(after or snapshot.configuration, timezone=snapshot.configuration.timezone)
    table = TableVersion(store, snapshot.version, state)
    rows: ConcurrentVectors = ConcurrentRows(
        table, predicate, rewritten.marked, context.operation, changes_selected=changes_selected
    )
    if rewritten.moved:
        rows = ConcurrentMoves(snapshot, rewritten.removed, rewritten.files.adds, rewritten.moved)
    removed, adds, rebased = rows.divide(rewritten.removed, rewritten.files.adds)
    try:
        version = transaction.replace_files(
            snapshot,
            removed,
            adds,
            rebased=rebased,
            changes=rewritten.changes.change_actions(),
            context=context,
            reads=Reads(rewritten.plan.files, rows.may_match, rows),
            data_change=data_change,
            after=after,
        )
    except (CommitConflictError, StoreError):
        discard(store, chain(rewritten.paths(), rows.paths()))
        raise
    discard(store, rows.find_unused(rewritten.vector_files))
    return CommitResult(version, metrics={**context.metrics, **rows.metrics})


@contextmanager
def locate_malformed(version: TableVersion, files: Iterable[FileEntry]) -> Iterator[None]:
    """Raise the error of a malformed Variant in the rows of some files with its file, row and column.

    A writer knows the row of a batch at most, so the files are read again up to the first such Variant.
    """
    try:
        yield
    except MalformedVariantError as error:
        if error.file is None:
            for file in TableReader.of(version).open_all(files):
                _check(file)
        raise


def _check(file: FileReader) -> None:
    table = file.table.version.configuration
    fields = [field for field in table.schema.fields if has_variant(field.type)]
    columns = Scope.of(table).whole_columns()
    used = inputs([*(columns[field.name] for field in fields), POSITION])
    for batch in file.read(used, None, "error"):
        for field in fields:
            try:
                with error_location(file=file.file.path):
                    check_variants(evaluate(columns[field.name], batch), field)
            except MalformedVariantError as error:
                row = None if error.row is None else batch.column(POSITION.name)[error.row].as_py()
                message = f"{error.message}: restore the file, or delete its malformed rows"
                raise MalformedVariantError(message, file=error.file, row=row, column=error.column) from None


class ChangeWriter:
    """Writes rows and their change type to change data files."""

    def __init__(self, store: Store, after: TableConfiguration, name: NameFile = new_name) -> None:
        table = replace(after, extra_columns=(CHANGE_TYPE,))
        options = WriteOptions(shredding=None, files=FileOptions(max_variant_stats_paths=0))

        def name_of(number: int) -> str:
            # The name of a data file, with the prefix that Delta gives change data files.
            return f"cdc-{name(number).removeprefix('part-')}"

        self._router = Router(store, table, options, name=name_of, folder=f"{CHANGE_DATA}/")

    def add(self, rows: pa.RecordBatch, change: ChangeType) -> None:
        """Write rows that have the columns of the table."""
        if rows.num_rows:
            kind: Any = pa.repeat(pa.scalar(change), rows.num_rows)
            self._router.add(rows.append_column(CHANGE_TYPE.name, kind))

    def close(self) -> WrittenFiles:
        return self._router.close()

    def discard(self) -> None:
        """Remove all files written so far."""
        self._router.discard()


def write_whole_files(
    version: TableVersion,
    after: TableConfiguration,
    files: Iterable[FileEntry],
    change: ChangeType,
    name: NameFile = new_name,
) -> WrittenFiles:
    """Write all rows of data files of a version to change data files and return these."""
    table = TableReader.of(version)
    writer = ChangeWriter(version.store, after, name)
    try:
        for file in files:
            for batch in table.open(file).read_whole():
                writer.add(batch, change)
        return writer.close()
    except BaseException:
        writer.discard()
        raise
