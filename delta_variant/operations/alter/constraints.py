"""CHECK constraints: added when all rows fulfil them, and dropped (PROTOCOL.md, "CHECK Constraints")."""

from __future__ import annotations

from collections.abc import Mapping

from ..._checks import check_text
from ...errors import SchemaError
from ...expressions.tree import inputs as expression_inputs
from ...log.snapshot import Snapshot
from ...protocol.schema.widening import check_type_changes
from ...scan.reader import DataFile, Table, files_of
from ...scan.scope import Scope
from ...storage.store import TableLocation
from ...variant.moments import UTC
from ...writer.constraints import Condition
from .alteration import commit_alteration, load_for_alter

__all__ = ["add_constraint", "drop_constraint"]

CONSTRAINT = "delta.constraints."


def add_constraint(
    table: TableLocation,
    name: str,
    check: str,
    *,
    timezone: str = UTC,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Add a CHECK constraint, as one commit, and return the version from which on it holds.

    `check` is SQL text over columns and Variant paths, such as `amount > 0` or `event:id::bigint is not
    null`. It has to be true of each row: NULL violates it. All rows that are there are read and checked
    first, with local times in `timezone` as in `read_table`, and no write of any engine may then break it.
    The time zone is not part of the constraint: each writer checks it by its own.

    Raises ConstraintViolationError for a row that it is not true of, ExpressionError for SQL that is not
    understood, SchemaError for a name that is taken, CommitConflictError when another commit changed metadata
    or protocol, or added rows that were not checked.
    """
    for argument, text in (("name", name), ("check", check)):
        check_text(argument, text)
    # It is the text of an expression, and no statement.
    check = check.rstrip("; \t\r\n")
    snapshot = load_for_alter(table, storage_options).in_timezone(timezone)
    check_type_changes(snapshot.schema)
    if not name.strip():
        raise ValueError("name is empty: give the constraint a name")
    if _key_of(snapshot, name) is not None:
        raise SchemaError(f"{snapshot.uri} has a constraint {name} already: drop that first")
    predicate = Scope.of(snapshot.schema, snapshot.timezone).predicate(check)
    assert predicate is not None
    _check_rows(snapshot, Condition(f"the CHECK constraint {name}", check, predicate))
    return commit_alteration(
        snapshot,
        configuration={**snapshot.configuration, f"{CONSTRAINT}{name.lower()}": check},
        relies_on_rows=True,
        operation="ADD CONSTRAINT",
        parameters={"name": name, "expr": check},
    )


def drop_constraint(
    table: TableLocation, name: str, *, storage_options: Mapping[str, str] | None = None
) -> int:
    """Drop a CHECK constraint, as one commit, and return the version without it.

    Raises SchemaError where there is none of the name, CommitConflictError when another commit changed
    metadata or protocol.
    """
    check_text("name", name)
    snapshot = load_for_alter(table, storage_options)
    key = _key_of(snapshot, name)
    if key is None:
        raise SchemaError(f"{snapshot.uri} has no constraint {name}")
    left = {each: text for each, text in snapshot.configuration.items() if each != key}
    said = {"name": name, "expr": snapshot.configuration[key], "existed": "true"}
    return commit_alteration(snapshot, configuration=left, operation="DROP CONSTRAINT", parameters=said)


def _key_of(snapshot: Snapshot, name: str) -> str | None:
    wanted = f"{CONSTRAINT}{name}".lower()
    return next((key for key in snapshot.configuration if key.lower() == wanted), None)


def _check_rows(snapshot: Snapshot, condition: Condition) -> None:
    table = Table.of(snapshot)
    for file in files_of(snapshot.files):
        _check_file(table, file, condition)


def _check_file(table: Table, file: DataFile, condition: Condition) -> None:
    for batch in table.open(file).read(expression_inputs([condition.expression]), None, "error"):
        condition.check(batch, lambda row: f"a row of {file.path}", ())
