"""Commit a rewrite and report its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data_file.writer import WrittenFile
from ..errors import CommitConflictError, StoreError
from ..expressions.tree import Expression
from ..log import transaction
from ..log.commit_context import CommitOptions, CommitResult, commit_context, is_repeated, transaction_of
from ..log.conflicts import Reads
from ..log.snapshot import Snapshot
from ..read.plan import may_contain_matches
from ..storage.store import discard
from .copy_on_write import RewrittenFiles

__all__ = ["RewriteResult", "commit_rewrite", "skip_repeated"]


@dataclass(frozen=True, repr=False)
class RewriteResult(CommitResult):
    """The result of a delete, an update or a merge.

    Attributes:
        version: The committed version, None if no row changed and nothing was committed.
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
    data_change: bool = True,
    operation: str,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, int],
    commit: CommitOptions,
) -> CommitResult:
    """Commit a rewrite, unless there is nothing to commit, and return its version and metrics.

    `predicate` selects the rows that the rewrite read, None for all rows. If a concurrent commit conflicts,
    remove the new files and raise CommitConflictError.
    """
    if not rewritten.files and not rewritten.removed.num_rows:
        return CommitResult(None)
    context = commit_context(
        operation,
        parameters,
        {
            "numRemovedFiles": rewritten.removed.num_rows,
            "numAddedFiles": len(rewritten.files),
            "numAddedBytes": rewritten.files.bytes,
            "numAddedChangeFiles": len(rewritten.changes),
            **metrics,
        },
        commit,
    )
    try:
        version = transaction.replace_files(
            snapshot,
            rewritten.removed,
            rewritten.files.adds,
            changes=rewritten.changes.change_actions(),
            context=context,
            reads=Reads(
                rewritten.plan.files,
                lambda adds: may_contain_matches(snapshot.configuration, predicate, adds),
            ),
            data_change=data_change,
        )
    except (CommitConflictError, StoreError):
        discard(snapshot.store, rewritten.paths())
        raise
    return CommitResult(version, metrics=context.metrics)
