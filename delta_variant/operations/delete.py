"""Delete rows that match a condition, or all rows."""

from __future__ import annotations

from collections.abc import Mapping

from ..data_file.options import DEFAULT_TARGET_FILE_SIZE, WriteOptions
from ..errors import ArgumentTypeError
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..scan.scope import Scope
from ..storage.store import TableLocation
from ..variant.moments import UTC
from ..writer.copy_on_write import delete_rows
from ..writer.table_state import TableState
from .rewrite.permission import check_may_rewrite
from .rewrite.result import RewriteResult, commit_rewrite

__all__ = ["delete", "delete_all"]


def delete(
    table: TableLocation,
    where: str,
    *,
    timezone: str = UTC,
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE,
    storage_options: Mapping[str, str] | None = None,
) -> RewriteResult:
    """Delete the rows for which `where` is true, as one commit.

    Files without such rows are not rewritten. Files with only such rows are removed without reading all
    their columns. A predicate over partition columns only removes whole files without reading them. After an
    error the table is unchanged.

    Args:
        table: The path or URI of the table.
        where: An SQL predicate over columns and Variant paths, as in `read_table`. Rows for which it is NULL
            remain. `delete_all` deletes all rows.
        timezone: The time zone of local times in `where`, as in `read_table`. `"UTC"` by default.
        target_file_size: The approximate size of new files in bytes, 128 MiB by default.
        storage_options: Options of the object store, with the keys of deltalake. None by default.

    Returns:
        A `RewriteResult` with `rows_deleted`, `rows_copied` and the new version, None if no row matches.

    Raises:
        ExpressionError: `where` cannot be parsed or bound to the table.
        CastError: A value cannot be cast.
        UnsupportedFeatureError: This version cannot delete rows of the table, or the table is append-only.
        CommitConflictError: A concurrent commit changed rows that this one read.
        ArgumentTypeError: `where` is not a string.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from delta_variant import delete, write_table
        >>> table = tempfile.mkdtemp()
        >>> result = write_table(table, pa.table({"id": [1, 2, 3]}))
        >>> delete(table, "id > 1").rows_deleted
        2
    """
    if where is None:
        raise ArgumentTypeError("where: expected an SQL predicate, got None: pass one, or call delete_all")
    snapshot = load_snapshot(table, storage_options=storage_options).in_timezone(timezone)
    return _delete(snapshot, where, WriteOptions(target_file_size=target_file_size))


def delete_all(table: TableLocation, *, storage_options: Mapping[str, str] | None = None) -> RewriteResult:
    """Delete all rows, as one commit that reads no data file.

    The schema, the properties and the history of the table remain.

    Args:
        table: The path or URI of the table.
        storage_options: Options of the object store, with the keys of deltalake. None by default.

    Returns:
        A `RewriteResult` with `rows_deleted` and the new version, None if the table has no files.

    Raises:
        UnsupportedFeatureError: This version cannot delete rows of the table, or the table is append-only.
        CommitConflictError: A concurrent commit changed rows.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from delta_variant import delete_all, write_table
        >>> table = tempfile.mkdtemp()
        >>> result = write_table(table, pa.table({"id": [1, 2, 3]}))
        >>> delete_all(table).rows_deleted
        3
    """
    return _delete(load_snapshot(table, storage_options=storage_options), None, WriteOptions())


def _delete(snapshot: Snapshot, where: str | None, options: WriteOptions) -> RewriteResult:
    predicate = Scope.of(snapshot.schema, snapshot.timezone).predicate(where)
    check_may_rewrite(snapshot, removes_rows=True)
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
