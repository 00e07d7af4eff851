"""Commit a rewrite and report its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...data_file.writer import WrittenFile
from ...errors import CommitConflictError, StoreError
from ...expressions.tree import Expression
from ...log import transaction
from ...log.conflicts import Reads
from ...log.snapshot import Snapshot
from ...scan.plan import may_contain_matches
from ...writer.change_data import cdc_file
from ...writer.copy_on_write import RewrittenFiles, add_inserted_files
from ...writer.partitioned import PartitionFile, add_file, discard
from ...writer.table_state import TableState, commit_context, now

__all__ = ["RewriteResult", "commit_rewrite"]


@dataclass(frozen=True)
class RewriteResult:
    """The result of an operation on the rows of a table.

    Attributes:
        version: The committed version, None if no row changed and nothing was committed.
        rows_deleted: The number of deleted rows.
        rows_updated: The number of updated rows.
        rows_inserted: The number of inserted rows.
        rows_copied: The number of unchanged rows copied to new files.
        files_removed: The number of files removed from the table.
        files: The new files.
    """

    version: int | None
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    files_removed: int = 0
    files: tuple[WrittenFile, ...] = ()


def commit_rewrite(
    snapshot: Snapshot,
    rewritten: RewrittenFiles,
    *,
    predicate: Expression | None,
    inserted: Sequence[PartitionFile] = (),
    data_change: bool = True,
    operation: str,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, int],
) -> int | None:
    """Commit a rewrite and return the version, None if there is nothing to commit.

    `predicate` selects the rows that the rewrite read, None for all rows. If a concurrent commit conflicts,
    remove the new files and raise CommitConflictError.
    """
    if not rewritten.files and not inserted and not rewritten.removed.num_rows:
        return None
    target = TableState.of(snapshot)
    rewritten = add_inserted_files(snapshot, target, rewritten, inserted)
    context = commit_context(
        operation,
        parameters,
        {
            "numRemovedFiles": rewritten.removed.num_rows,
            "numAddedFiles": len(rewritten.files),
            "numAddedBytes": sum(file.written.bytes for file in rewritten.files),
            "numAddedChangeFiles": len(rewritten.changes),
            **metrics,
        },
    )
    try:
        return transaction.replace_files(
            snapshot,
            rewritten.removed,
            [add_file(file, target, now()) for file in rewritten.files],
            changes=[cdc_file(file) for file in rewritten.changes],
            context=context,
            reads=Reads(rewritten.plan.files, lambda adds: may_contain_matches(snapshot, predicate, adds)),
            data_change=data_change,
        )
    except (CommitConflictError, StoreError):
        discard(snapshot.store, rewritten.paths)
        raise
