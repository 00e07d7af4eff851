"""Add columns at their positions, and move or describe columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..._checks import list_names
from ...errors import SchemaError
from ...log.commit_context import CommitOptions, CommitResult
from ...log.snapshot import Snapshot
from ...protocol.schema.paths import FieldPath, edit_fields, path_text, resolve, split_at_field
from ...protocol.schema.rules import check_new as check_new_schema
from ...protocol.types import COMMENT, StructField, StructType, describe, fields_of
from ...storage.store import TableLocation
from .alteration import check_schema_may_change, load_for_alter, metadata_options, plan_alteration


class Position(NamedTuple):
    """The place of a field in its struct: after another field, None for the first place."""

    after: str | None

    def __str__(self) -> str:
        """Return the clause of ALTER TABLE."""
        return "FIRST" if self.after is None else f"AFTER {self.after}"


class Addition(NamedTuple):
    """A new field, the path of its struct, and its place there, None for the last one."""

    parent: FieldPath
    field: StructField
    position: Position | None = None


def add_fields(
    table: TableLocation, additions: Sequence[Addition], *, commit: CommitOptions | None = None
) -> CommitResult:
    """Add fields one after the other, as one commit; raises the errors of `add_columns`."""
    commit = metadata_options(commit, "add_columns")
    snapshot = load_for_alter(table)
    check_schema_may_change(snapshot)
    if not additions:
        raise ValueError("columns is empty: pass at least one column with its type")
    altered, parameters = snapshot.schema, []
    for addition in additions:
        _check_nullable(addition.field)
        altered = _with_field(altered, addition)
        path = (*addition.parent, addition.field.name)
        parameters.append(_parameter(path, addition.field, addition.position))
    check_new_schema(altered, mode=snapshot.configuration.mapping_mode)
    return plan_alteration(
        snapshot, columns=altered, operation="ADD COLUMNS", parameters={"columns": parameters}, commit=commit
    ).run()


def change_field(
    table: TableLocation, column: FieldPath, *, comment: str | None = None, position: Position | None = None
) -> CommitResult:
    """Give a field a comment or another place in its struct, as one commit.

    Raises SchemaError if there is no such field, or none of the name to place it after.
    """
    snapshot = load_for_alter(table)
    check_schema_may_change(snapshot)
    path = resolve_field(snapshot, column, "change")
    changed: list[StructField] = []

    def change(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        field = next(each for each in fields if each.name == path[-1])
        if comment is not None:
            field = replace(field, metadata={**field.metadata, COMMENT: comment})
        changed.append(field)
        if position is None:
            return tuple(field if each.name == field.name else each for each in fields)
        return _placed(tuple(each for each in fields if each.name != field.name), field, position)

    altered = edit_fields(snapshot.schema, path[:-1], change)
    return plan_alteration(
        snapshot,
        columns=altered,
        operation="CHANGE COLUMN",
        parameters=_parameter(path, changed[0], position),
    ).run()


def resolve_field(snapshot: Snapshot, column: FieldPath, verb: str) -> FieldPath:
    """Return the path of a column or of a struct field; raises SchemaError for other parts of columns."""
    path = resolve(snapshot.schema, column)
    if split_at_field(snapshot.schema, path)[1]:
        raise SchemaError(
            f"cannot {verb} {path_text(path)}: expected a column or a struct field, got a part of an array "
            "or a map",
            table=snapshot.uri,
            column=".".join(path),
        )
    return path


def _parameter(path: FieldPath, field: StructField, position: Position | None) -> dict[str, Any]:
    column = {
        "name": path_text(path),
        "type": describe(field.type),
        "nullable": True,
        "metadata": {name: text for name, text in field.metadata.items() if name == COMMENT},
    }
    return {"column": column} if position is None else {"column": column, "position": str(position)}


def _with_field(columns: StructType, addition: Addition) -> StructType:
    parent, field = resolve(columns, addition.parent), addition.field

    def add(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        if any(each.name.lower() == field.name.lower() for each in fields):
            where = (*parent, field.name)
            raise SchemaError(f"the column {path_text(where)} exists already", column=".".join(where))
        return _placed(fields, field, addition.position)

    return edit_fields(columns, parent, add)


def _placed(
    fields: tuple[StructField, ...], field: StructField, position: Position | None
) -> tuple[StructField, ...]:
    if position is None:
        return (*fields, field)
    if position.after is None:
        return (field, *fields)
    names = [each.name.lower() for each in fields]
    if position.after.lower() not in names:
        known = list_names([each.name for each in fields], position.after)
        raise SchemaError(
            f"cannot place {field.name!r} after {position.after!r}: expected one of {known}",
            column=field.name,
        )
    index = names.index(position.after.lower()) + 1
    return (*fields[:index], field, *fields[index:])


def _check_nullable(added: StructField) -> None:
    for path, field in fields_of(StructType((added,))):
        if not field.nullable:
            raise SchemaError(
                f"cannot add the column {path_text(path)} as NOT NULL because existing rows have no value: "
                "make it nullable",
                column=".".join(path),
            )
