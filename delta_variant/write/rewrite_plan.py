"""A delete or an update before it is executed, by one process or by tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..data_file.options import WriteOptions
from ..expressions.tree import Expression
from ..log.commit_context import CommitOptions
from ..log.snapshot import Snapshot
from ..protocol.table_configuration import TableConfiguration
from .copy_on_write import RewrittenFiles, RowChange
from .rewrite_result import RewriteResult, commit_rewrite

__all__ = ["RewritePlan", "commit_plan"]

METRICS = {"DELETE": "numDeletedRows", "UPDATE": "numUpdatedRows"}
"""The metric of the changed rows of each operation."""


@dataclass(frozen=True)
class RewritePlan:
    """A change of the rows of a table for which a predicate is true.

    Attributes:
        snapshot: The table.
        predicate: The bound predicate, None for all rows.
        change: Returns the change for the table. It can be pickled.
        operation: The name of the operation in the commit.
        parameters: The parameters of the operation in the commit.
        options: How new files are written.
        commit: The options of the commit.
    """

    snapshot: Snapshot
    predicate: Expression | None
    change: Callable[[TableConfiguration], RowChange]
    operation: Literal["DELETE", "UPDATE"]
    parameters: Mapping[str, Any]
    options: WriteOptions
    commit: CommitOptions


def commit_plan(plan: RewritePlan, rewritten: RewrittenFiles) -> RewriteResult:
    """Commit the files of an executed plan and return the result."""
    committed = commit_rewrite(
        plan.snapshot,
        rewritten,
        predicate=plan.predicate,
        operation=plan.operation,
        parameters=plan.parameters,
        metrics={METRICS[plan.operation]: rewritten.changed, "numCopiedRows": rewritten.copied},
        commit=plan.commit,
    )
    is_delete = plan.operation == "DELETE"
    return RewriteResult(
        committed.version,
        metrics=committed.metrics,
        rows_deleted=rewritten.changed if is_delete else 0,
        rows_updated=0 if is_delete else rewritten.changed,
        rows_copied=rewritten.copied,
        files_removed=rewritten.removed.num_rows,
        files=rewritten.files.files,
    )
