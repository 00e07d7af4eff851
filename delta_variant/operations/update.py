"""Update rows: set columns and paths in Variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, parts_by_bytes
from .._checks import options_of
from ..data_file.options import FileOptions, WriteOptions
from ..execution import timezone_of
from ..expressions.evaluate import evaluate, filter_mask, inputs_of
from ..expressions.tree import Expression, literal_bytes
from ..expressions.tree import inputs as expression_inputs
from ..log.commit_context import CommitOptions
from ..log.load import load_latest
from ..protocol.table_configuration import TableConfiguration
from ..read.predicate import leading_conditions
from ..read.scope import Scope
from ..storage.store import TableLocation
from ..write.assignment import Assignment, ColumnRoles, assign, assignments_of, replace_rows
from ..write.rewrite import ChangedBatch, RewriteResult, RowChange
from ..write.row_rules import RowRules
from .rewrite import RewritePlan, run_rewrite


def update(
    table: TableLocation,
    updates: Mapping[str, str | None],
    where: str | None = None,
    *,
    timezone: str | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
) -> RewriteResult:
    """Update the rows for which `where` is true, as one commit.

    Columns and paths that are not in `updates` keep their bytes. Generated columns that read an updated
    column are recomputed. Files without updated rows are not rewritten. After an error the table is
    unchanged.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        updates: A mapping from columns and paths of Variant columns (`event:user.email`) to SQL expressions,
            which are evaluated over the row before the update. A column gets the value cast to its type. A
            path gets a scalar or a Variant, and NULL as Variant null; missing or null objects on the path are
            created. None removes a path.
        where: An SQL predicate over columns and Variant paths, as in `read_table`. None, the default, updates
            all rows.
        timezone: The time zone of local times in SQL text, as in `read_table`. None, the default, is that of
            the engine of a `Table`, `"UTC"` without one.
        files: How new files are written; see `FileOptions`. None, the default, uses its defaults.
        commit: The `txn` and the metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `RewriteResult` with `rows_updated`, `rows_copied` and the new version, None if no row matches.

    Raises:
        ExpressionError: An SQL expression cannot be parsed or bound to the table.
        VariantPathError: A path leads through a value that is not an object, or past the end of an array.
        CastError: A value cannot be cast to the type of its column.
        SchemaError: A struct, list or map does not fit its column.
        ConstraintViolationError: An updated row violates a constraint.
        UnsupportedFeatureError: This version cannot update rows of the table, or the table is append-only.
        CommitConflictError: A concurrent commit changed rows that this one read.
        AmbiguousWriteError: Another run may have committed `txn`.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: `updates` is empty.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import read_table, update, write_table
        >>> table = "events"
        >>> rows = pa.table({"id": [1, 2], "event": ['{"n": 1}', '{"n": 2}']})
        >>> result = write_table(table, rows, variant_columns=["event"])
        >>> update(table, {"event:n": "event:n::bigint + 10"}, "id = 2").rows_updated
        1
        >>> read_table(table, columns=["event:n::bigint as n"], where="id = 2").to_pylist()
        [{'n': 12}]
    """
    plan = plan_update(table, updates, where, timezone=timezone, files=files, commit=commit)
    return run_rewrite(plan, table)


def plan_update(
    table: TableLocation,
    updates: Mapping[str, str | None],
    where: str | None,
    *,
    timezone: str | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
) -> RewritePlan:
    """Return the plan of an update; raises the errors of `update` that precede reading."""
    files, commit = options_of("files", files, FileOptions), options_of("commit", commit, CommitOptions)
    snapshot = load_latest(table).in_timezone(timezone_of(table, timezone))
    scope = Scope.of_read(snapshot.configuration)
    predicate = scope.predicate(where)
    assignments = assignments_of(updates, scope, scope.bind)
    if not assignments:
        raise ValueError("updates is empty: pass a mapping from a column or path to an SQL expression")
    assigned = {each.column for each in assignments}
    snapshot.configuration.check_may_rewrite(removes_rows=True, assigned=assigned)
    parameters = {} if where is None else {"predicate": [where]}
    change = partial(assigned_rows, predicate=predicate, assignments=assignments)
    return RewritePlan(snapshot, predicate, change, "UPDATE", parameters, WriteOptions(files=files), commit)


def assigned_rows(
    table: TableConfiguration, predicate: Expression | None, assignments: Sequence[Assignment]
) -> RowChange:
    """Return the change that assigns values to the rows for which a predicate is true."""
    scope = Scope.of(table)
    columns = scope.whole_columns()
    tested = [] if predicate is None else [predicate]
    values = [each.value for each in assignments if each.value is not None]
    read, constant = expression_inputs(values), literal_bytes(values)
    rules, assigned = RowRules.of(table), {each.column for each in assignments}
    roles = ColumnRoles.of(scope, rules, [assignments], tested=tested, values=values)

    def changes(batch: pa.RecordBatch) -> Array:
        if predicate is None:
            return pa.repeat(pa.scalar(True), batch.num_rows)
        return filter_mask(predicate, batch)

    def apply(batch: pa.RecordBatch) -> Iterator[ChangedBatch]:
        mask = changes(batch)
        for part in parts_by_bytes(pc.if_else(mask, constant, 0)):
            yield apply_to_part(batch.slice(*part), mask.slice(*part))

    def apply_to_part(batch: pa.RecordBatch, mask: Array) -> ChangedBatch:
        before = {name: evaluate(column, batch) for name, column in columns.items()}
        whole = {name: column.filter(mask) for name, column in before.items()}
        # Evaluate matching rows only, because a cast that fails on another row is not an error.
        matching = inputs_of(pa.record_batch(whole), read)
        changed = rules.complete_assigned(assign(whole, assignments, matching), assigned)
        rules.check_updated(changed)
        untouched = {name: before[name] for name in columns if changed[name] is whole[name]}
        arrays = replace_rows(before, mask, {**changed, **untouched}, scope.variants)
        remaining: Array = pa.repeat(pa.scalar(True), batch.num_rows)
        return ChangedBatch(pa.record_batch(list(arrays), names=list(columns)), remaining, mask)

    inputs = expression_inputs([*columns.values(), *tested])
    conditions = leading_conditions(predicate)
    return RowChange(expression_inputs(tested), conditions, changes, inputs, apply, roles)
