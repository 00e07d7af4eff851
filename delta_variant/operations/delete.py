"""Deleting rows."""

from __future__ import annotations

from collections.abc import Mapping

from ..data_file.options import DEFAULT_TARGET_FILE_SIZE, WriteOptions
from ..log.load import load_snapshot
from ..scan.scope import Scope
from ..storage.store import TableLocation
from ..variant.moments import UTC
from ..writer.copy_on_write import delete_rows
from ..writer.table_state import TableState
from .rewrite.permission import check_may_rewrite
from .rewrite.result import RewriteResult, commit_rewrite

__all__ = ["delete"]


def delete(
    table: TableLocation,
    where: str | None = None,
    *,
    timezone: str = UTC,
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE,
    storage_options: Mapping[str, str] | None = None,
) -> RewriteResult:
    """Delete the rows for which `where` is true, or all, as one commit.

    `where` is SQL text over columns and Variant paths, with local times in `timezone`, as in `read_table`; a
    row for which it is NULL stays. Files that hold no such row stay as they are, and files that hold only
    such rows are not read whole. Where `where` is over partition columns alone, no file is read at all.

    Raises ExpressionError for SQL that is not understood, UnsupportedFeatureError for a table whose rows may
    not be deleted, CommitConflictError when another commit changed what this one read; then, as after any
    error, the table is as it was.
    """
    snapshot = load_snapshot(table, storage_options=storage_options).in_timezone(timezone)
    predicate = Scope.of(snapshot.schema, snapshot.timezone).predicate(where)
    check_may_rewrite(snapshot, removes_rows=True)
    options = WriteOptions(target_file_size=target_file_size)
    rewritten = delete_rows(snapshot, predicate, TableState.of(snapshot), options)
    version = commit_rewrite(
        snapshot,
        rewritten,
        predicate=predicate,
        operation="DELETE",
        parameters={"predicate": [] if where is None else [where]},
        metrics={"numDeletedRows": rewritten.changed, "numCopiedRows": rewritten.copied},
    )
    return RewriteResult(
        version,
        rows_deleted=rewritten.changed,
        rows_copied=rewritten.copied,
        files_removed=rewritten.removed.num_rows,
        files=tuple(file.written for file in rewritten.files),
    )
