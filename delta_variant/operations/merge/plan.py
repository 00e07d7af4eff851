"""A merge before it is executed, by one process or by tasks, and the commit of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ...data_file.options import WriteOptions
from ...expressions.tree import Expression
from ...log.commit_context import CommitOptions
from ...log.snapshot import Snapshot
from ...write.rewrite import RewriteResult, RewrittenFiles, commit_rewrite
from .clauses import Clause
from .joining import JoinPredicate, KeyValues

__all__ = ["MergeCounts", "MergePlan", "commit_merge"]


@dataclass(frozen=True)
class MergePlan:
    """A merge of a source into a table.

    Attributes:
        snapshot: The table.
        on: The SQL text of the predicate.
        join: The predicate.
        clauses: The clauses, in order.
        options: How new files are written.
        commit: The options of the commit.
    """

    snapshot: Snapshot
    on: str
    join: JoinPredicate
    options: WriteOptions
    commit: CommitOptions
    clauses: tuple[Clause, ...] = ()

    @property
    def reads_all_rows(self) -> bool:
        """Return whether a clause applies to rows of the table that match no source row."""
        return any(clause.when == "not matched by source" for clause in self.clauses)

    def check(self) -> None:
        """Raise the errors of `check_may_rewrite` if the table does not permit the merge."""
        inserts = [clause for clause in self.clauses if clause.action == "insert"]
        updates = [clause for clause in self.clauses if clause.action == "update"]
        self.snapshot.configuration.check_may_rewrite(
            removes_rows=len(inserts) < len(self.clauses),
            adds_rows=bool(inserts),
            assigned=frozenset().union(*(clause.columns for clause in updates)),
        )

    def target_predicate(self, keys: Sequence[KeyValues]) -> Expression | None:
        """Return a predicate for the rows that may change, by the keys of the source; None if all may."""
        return None if self.reads_all_rows else self.join.target_predicate(keys)


@dataclass(frozen=True)
class MergeCounts:
    """The number of rows that a merge updated, deleted and inserted, and the number of source rows."""

    updated: int
    deleted: int
    inserted: int
    source: int


def commit_merge(
    plan: MergePlan,
    predicate: Expression | None,
    rewritten: RewrittenFiles,
    counts: MergeCounts,
) -> RewriteResult:
    """Commit the files of a merge and return its result.

    `predicate` is the target predicate.
    """
    committed = commit_rewrite(
        plan.snapshot,
        rewritten,
        predicate=predicate,
        operation="MERGE",
        parameters={"predicate": plan.on, **_predicate_parameters(plan.clauses)},
        metrics={
            "numSourceRows": counts.source,
            "numTargetRowsInserted": counts.inserted,
            "numTargetRowsUpdated": counts.updated,
            "numTargetRowsDeleted": counts.deleted,
            "numTargetRowsCopied": rewritten.copied,
        },
        commit=plan.commit,
    )
    return RewriteResult(
        committed.version,
        metrics=committed.metrics,
        rows_deleted=counts.deleted,
        rows_updated=counts.updated,
        rows_inserted=counts.inserted,
        rows_copied=rewritten.copied,
        files_removed=rewritten.removed.num_rows,
        files=rewritten.files.files,
    )


def _predicate_parameters(clauses: Sequence[Clause]) -> Mapping[str, str]:
    """Return the parameters of `commitInfo` for the clauses, as Delta on Spark writes them."""
    names = {
        "matched": "matchedPredicates",
        "not matched": "notMatchedPredicates",
        "not matched by source": "notMatchedBySourcePredicates",
    }
    return {
        name: msgspec.json.encode(
            [
                {"actionType": each.action, **({} if each.text is None else {"predicate": each.text})}
                for each in clauses
                if each.when == when
            ]
        ).decode()
        for when, name in names.items()
    }
