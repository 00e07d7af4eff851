"""Assignments to columns and to fields of structs, as the mapping that `update` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._text import quote
from ..errors import ExpressionError
from ..protocol.types import DEFAULT, PrimitiveType, StructField, StructType, sql_type
from .parameters import literal_text


def named(schema: StructType) -> dict[str, StructField]:
    """Return the fields of a struct by their names in lower case."""
    return {field.name.lower(): field for field in schema.fields}


def field_of(fields: Mapping[str, StructField], name: str) -> StructField:
    """Return the field of a name in any case; raises ExpressionError."""
    found = fields.get(name.lower())
    if found is None:
        names = ", ".join(field.name for field in fields.values())
        raise ExpressionError(f"unknown column {name!r}: the table has {names}", column=name)
    return found


def default_of(field: StructField) -> str:
    """Return the SQL text of the default value of a column."""
    return str(field.metadata.get(DEFAULT, "null"))


def updates_of(
    assignments: Iterable[tuple[Sequence[str], str | None]], columns: Mapping[str, StructField], row: str = ""
) -> dict[str, str | None]:
    """Return the SQL text of each assigned column.

    Args:
        assignments: The path of each column or field, and its SQL text, None for the default value.
        columns: The columns of the table.
        row: The text before the name of a column of the row that is updated.

    Raises:
        ExpressionError: A path is unknown, or assigned twice.
    """
    values: dict[str, Any] = {}
    for path, text in assignments:
        field, level = field_of(columns, path[0]), values
        for name in path[1:]:
            level = level.setdefault(field.name, {})
            if not isinstance(field.type, StructType) or not isinstance(level, dict):
                raise ExpressionError(f"cannot set {'.'.join(path)!r}: it is set twice, or not in a struct")
            field = field_of(named(field.type), name)
        if field.name in level:
            raise ExpressionError(f"the column {'.'.join(path)!r} is set twice", column=path[0])
        level[field.name] = default_of(field) if text is None else text
    fields = {field.name: field for field in columns.values()}
    return {
        quote(name): value if isinstance(value, str) else _struct(fields[name], row + quote(name), value)
        for name, value in values.items()
    }


def _struct(column: StructField, path: str, values: Mapping[str, Any]) -> str:
    """Return the SQL text of a struct of which some fields change."""
    assert isinstance(column.type, StructType)
    parts = []
    for field in column.type.fields:
        inner = f"{path}.{quote(field.name)}"
        value = values.get(field.name, inner)
        if isinstance(value, dict):
            value = _struct(field, inner, value)
        elif isinstance(field.type, PrimitiveType):
            value = f"cast({value} as {sql_type(field.type)})"
        parts.append(f"{literal_text(field.name)}, {value}")
    return f"named_struct({', '.join(parts)})"
