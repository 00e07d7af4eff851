"""Delete rows that match a condition, or all rows."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from .._checks import options_of
from ..data_file.options import FileOptions, WriteOptions
from ..errors import ArgumentTypeError
from ..execution import timezone_of
from ..expressions.tree import Literal
from ..log.commit_context import CommitOptions
from ..log.load import load_latest
from ..read.scope import Scope
from ..storage.store import TableLocation
from ..write.copy_on_write import removal
from ..write.rewrite import RewriteResult
from .rewrite import RewritePlan, run_rewrite


def delete(
    table: TableLocation,
    where: str,
    *,
    timezone: str | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
) -> RewriteResult:
    """Delete the rows for which `where` is true, as one commit.

    Files without such rows are not rewritten. Files with only such rows are removed without reading all
    their columns. A predicate over partition columns only removes whole files without reading them. After an
    error the table is unchanged.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        where: An SQL predicate over columns and Variant paths, as in `read_table`. Rows for which it is NULL
            remain. `delete_all` deletes all rows.
        timezone: The time zone of local times in `where`, as in `read_table`. None, the default, is that of
            the engine of a `Table`, `"UTC"` without one.
        files: How new files are written; see `FileOptions`. None, the default, uses its defaults.
        commit: The `txn` and the metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `RewriteResult` with `rows_deleted`, `rows_copied` and the new version, None if no row matches.

    Raises:
        ExpressionError: `where` cannot be parsed or bound to the table.
        CastError: A value cannot be cast.
        UnsupportedFeatureError: This version cannot delete rows of the table, or the table is append-only.
        CommitConflictError: A concurrent commit changed rows that this one read.
        AmbiguousWriteError: Another run may have committed `txn`.
        ArgumentTypeError: An argument has the wrong type.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import delete, write_table
        >>> table = "events"
        >>> result = write_table(table, pa.table({"id": [1, 2, 3]}))
        >>> delete(table, "id > 1").rows_deleted
        2
    """
    if where is None:
        # A delete of all rows must not happen by accident.
        raise ArgumentTypeError("where: expected an SQL predicate, got None: pass one, or call delete_all")
    return run_rewrite(plan_delete(table, where, timezone=timezone, files=files, commit=commit), table)


def delete_all(table: TableLocation, *, commit: CommitOptions | None = None) -> RewriteResult:
    """Delete all rows, as one commit that reads no data file.

    The schema, the properties and the history of the table remain.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        commit: The `txn` and the metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `RewriteResult` with `rows_deleted` and the new version, None if the table has no files.

    Raises:
        UnsupportedFeatureError: This version cannot delete rows of the table, or the table is append-only.
        CommitConflictError: A concurrent commit changed rows.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import delete_all, write_table
        >>> table = "events"
        >>> result = write_table(table, pa.table({"id": [1, 2, 3]}))
        >>> delete_all(table).rows_deleted
        3
    """
    return run_rewrite(plan_delete(table, None, commit=commit), table)


def plan_delete(
    table: TableLocation,
    where: str | None,
    *,
    timezone: str | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
) -> RewritePlan:
    """Return the plan of a delete, of all rows without `where`; raises the errors that precede reading."""
    files, commit = options_of("files", files, FileOptions), options_of("commit", commit, CommitOptions)
    snapshot = load_latest(table).in_timezone(timezone_of(table, timezone))
    predicate = Scope.of_read(snapshot.configuration).predicate(where)
    snapshot.configuration.check_may_rewrite(removes_rows=True)
    parameters = {"predicate": [] if where is None else [where]}
    matching = Literal(pa.scalar(True)) if predicate is None else predicate
    change, options = partial(removal, predicate=matching), WriteOptions(files=files)
    return RewritePlan(snapshot, predicate, change, "DELETE", parameters, options, commit)
