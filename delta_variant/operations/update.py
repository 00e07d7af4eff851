"""Updating rows: columns, and paths within Variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from .._arrow import Array
from ..data_file.options import DEFAULT_TARGET_FILE_SIZE, WriteOptions
from ..expressions.evaluate import evaluate, filter_mask
from ..expressions.tree import Expression
from ..expressions.tree import inputs as expression_inputs
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..scan.in_memory import inputs_of
from ..scan.plan import plan_files
from ..scan.scope import Scope
from ..storage.store import TableLocation
from ..variant.moments import UTC
from ..writer.copy_on_write import ChangedBatch, RowChange, rewrite_rows
from ..writer.table_state import TableState
from .rewrite.assignment import Assignment, assign, assignments_of, check_constraints, replace_rows
from .rewrite.permission import check_may_rewrite
from .rewrite.result import RewriteResult, commit_rewrite

__all__ = ["update"]


def update(
    table: TableLocation,
    updates: Mapping[str, str | None],
    where: str | None = None,
    *,
    timezone: str = UTC,
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE,
    storage_options: Mapping[str, str] | None = None,
) -> RewriteResult:
    """Change the rows for which `where` is true, or all, as one commit.

    `updates` maps columns, and paths of Variant columns (`event:user.email`), to SQL text that is evaluated
    over the row as it was, with local times in `timezone` as in `read_table`. A value is cast to the type of
    its column. In a Variant, a scalar or a Variant is set at the path, NULL as Variant null; objects that are
    missing or null on the way are made, and a path whose text is None is removed. What is not set keeps its
    bytes, but generated columns follow the columns that they read. Files that hold no such row stay as they
    are.

    Raises ExpressionError for SQL that is not understood, VariantPathError where a path leads through what is
    no object, CastError and SchemaError for values that do not fit, ConstraintViolationError for a row that a
    constraint is not true of, UnsupportedFeatureError for a table whose rows may not be changed,
    CommitConflictError when another commit changed what this one read; then, as after any error, the table is
    as it was.
    """
    snapshot = load_snapshot(table, storage_options=storage_options).in_timezone(timezone)
    scope = Scope.of(snapshot.schema, snapshot.timezone)
    predicate = scope.predicate(where)
    assignments = assignments_of(updates, scope, scope.bind)
    if not assignments:
        raise ValueError("updates is empty: name a column or a path, and what it becomes")
    check_may_rewrite(snapshot, removes_rows=True)
    options = WriteOptions(target_file_size=target_file_size)
    change = _change(snapshot, predicate, assignments)
    plan = plan_files(snapshot, predicate)
    rewritten = rewrite_rows(snapshot, plan, change, TableState.of(snapshot), options)
    version = commit_rewrite(
        snapshot,
        rewritten,
        predicate=predicate,
        operation="UPDATE",
        parameters={} if where is None else {"predicate": [where]},
        metrics={"numUpdatedRows": rewritten.changed, "numCopiedRows": rewritten.copied},
    )
    return RewriteResult(
        version,
        rows_updated=rewritten.changed,
        rows_copied=rewritten.copied,
        files_removed=rewritten.removed.num_rows,
        files=tuple(file.written for file in rewritten.files),
    )


def _change(snapshot: Snapshot, predicate: Expression | None, assignments: Sequence[Assignment]) -> RowChange:
    scope = Scope.of(snapshot.schema, snapshot.timezone)
    columns = scope.whole_columns()
    tested = [] if predicate is None else [predicate]
    values = [each.value for each in assignments if each.value is not None]
    read = expression_inputs(values)
    rules, assigned = TableState.of(snapshot).row_rules(), {each.column for each in assignments}

    def changes(batch: pa.RecordBatch) -> Array:
        if predicate is None:
            return pa.repeat(pa.scalar(True), batch.num_rows)
        return filter_mask(predicate, batch)

    def apply(batch: pa.RecordBatch) -> ChangedBatch:
        mask = changes(batch)
        before = {name: evaluate(column, batch) for name, column in columns.items()}
        whole = {name: column.filter(mask) for name, column in before.items()}
        # Of other rows nothing is cast: a value there that does not fit is no error.
        matching = inputs_of(pa.record_batch(list(whole.values()), names=list(whole)), read)
        changed = rules.regenerate(assign(whole, assignments, matching), assigned)
        check_constraints(rules, changed)
        untouched = {name: before[name] for name in columns if changed[name] is whole[name]}
        arrays = replace_rows(before, mask, {**changed, **untouched}, scope.variants)
        kept: Array = pa.repeat(pa.scalar(True), batch.num_rows)
        return ChangedBatch(pa.record_batch(list(arrays), names=list(columns)), kept, mask)

    inputs = expression_inputs([*columns.values(), *tested])
    copied = scope.variants_unread_by([*tested, *values]) - assigned - rules.columns_read
    return RowChange(expression_inputs(tested), changes, inputs, apply, copied)
