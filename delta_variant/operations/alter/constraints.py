"""Add CHECK constraints that all rows satisfy, and drop them (PROTOCOL.md, "CHECK Constraints")."""

from __future__ import annotations

from ..._checks import check_text, list_names
from ...errors import SchemaError
from ...execution import timezone_of
from ...expressions.tree import inputs as expression_inputs
from ...log.commit_context import CommitOptions, CommitResult, without_txn
from ...log.snapshot import Snapshot
from ...protocol.properties import CONSTRAINT
from ...protocol.schema.evolution import check_type_changes
from ...read.file_reader import FileEntry, TableReader, files_of
from ...read.scope import Scope
from ...storage.store import TableLocation
from ...write.row_rules import RowConstraint, constraint_predicate
from .alteration import load_for_alter, plan_alteration


def add_constraint(
    table: TableLocation,
    name: str,
    check: str,
    *,
    timezone: str | None = None,
    commit: CommitOptions | None = None,
) -> CommitResult:
    """Add a CHECK constraint, as one commit, after checking all existing rows.

    The constraint must be true for each row: NULL violates it. Afterwards every writer must check it.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        name: The name of the constraint. Names are case-insensitive.
        check: SQL text over columns and Variant paths, such as `amount > 0` or
            `event:id::bigint is not null`.
        timezone: The time zone of local times in `check` while existing rows are checked. It is not part of
            the constraint: each writer uses its own time zone. None, the default, is that of the engine of a
            `Table`, `"UTC"` without one.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with the committed version, None if nothing changes.

    Raises:
        ConstraintViolationError: The constraint is not true for an existing row.
        ExpressionError: `check` cannot be parsed, or names an unknown column.
        SchemaError: A constraint of that name exists already.
        ValueError: `name` is empty.
        CommitConflictError: A concurrent commit changed the metadata, the protocol or the rows.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"amount": [1, 2]}))
        >>> dv.add_constraint(table, "positive", "amount > 0").version
        1
    """
    commit = without_txn(commit, "add_constraint")
    for argument, text in (("name", name), ("check", check)):
        check_text(argument, text)
    # A constraint is an expression and not a statement, so it has no final semicolon.
    check = check.rstrip("; \t\r\n")
    snapshot = load_for_alter(table).in_timezone(timezone_of(table, timezone))
    check_type_changes(snapshot.schema)
    if not name.strip():
        raise ValueError("name is empty: pass the name of the constraint")
    if _key_of(snapshot, name) is not None:
        raise SchemaError(
            f"{snapshot.uri} has a constraint {name!r} already: drop it first", table=snapshot.uri
        )
    predicate = constraint_predicate(check, Scope.of(snapshot.configuration))
    _check_rows(snapshot, RowConstraint(f"the CHECK constraint {name}", check, predicate))
    return plan_alteration(
        snapshot,
        configuration={**snapshot.properties, f"{CONSTRAINT}{name.lower()}": check},
        relies_on_rows=True,
        operation="ADD CONSTRAINT",
        parameters={"name": name, "expr": check},
        commit=commit,
    ).run()


def drop_constraint(table: TableLocation, name: str, *, commit: CommitOptions | None = None) -> CommitResult:
    """Drop a CHECK constraint, as one commit.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        name: The name of the constraint. Names are case-insensitive.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `CommitResult` with the committed version, None if nothing changes.

    Raises:
        SchemaError: The table has no constraint of that name.
        CommitConflictError: A concurrent commit changed the metadata or the protocol.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"amount": [1, 2]}))
        >>> _ = dv.add_constraint(table, "positive", "amount > 0")
        >>> dv.drop_constraint(table, "positive").version
        2
    """
    commit = without_txn(commit, "drop_constraint")
    check_text("name", name)
    snapshot = load_for_alter(table)
    key = _key_of(snapshot, name)
    if key is None:
        known = [each[len(CONSTRAINT) :] for each in snapshot.properties if each.startswith(CONSTRAINT)]
        listed = list_names(known, name) or "none"
        raise SchemaError(
            f"{snapshot.uri} has no constraint {name!r}: its constraints are {listed}", table=snapshot.uri
        )
    remaining = {each: text for each, text in snapshot.properties.items() if each != key}
    parameters = {"name": name, "expr": snapshot.properties[key], "existed": "true"}
    return plan_alteration(
        snapshot, configuration=remaining, operation="DROP CONSTRAINT", parameters=parameters, commit=commit
    ).run()


def has_constraint(name: str, snapshot: Snapshot) -> bool:
    return _key_of(snapshot, name) is not None


def _key_of(snapshot: Snapshot, name: str) -> str | None:
    expected = f"{CONSTRAINT}{name}".lower()
    return next((key for key in snapshot.properties if key.lower() == expected), None)


def _check_rows(snapshot: Snapshot, constraint: RowConstraint) -> None:
    table = TableReader.of(snapshot)
    for file in files_of(snapshot.files):
        _check_file(table, file, constraint)


def _check_file(table: TableReader, file: FileEntry, constraint: RowConstraint) -> None:
    for batch in table.open(file).read(expression_inputs([constraint.expression]), None, "error"):
        constraint.check(batch, lambda row: {"file": file.path}, "an existing row")
