"""The SQL text of values: of parameters of a statement, and of subqueries in it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.types import type_name


def literal_text(value: object) -> str | None:
    """Return a value as a literal of Spark SQL, None for a type that has none."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if -(1 << 63) <= value < 1 << 63 else None
        case float():
            return f"{value!r}D" if isfinite(value) else f"double('{value}')"
        case Decimal():
            return f"{value:f}BD" if value.is_finite() else None
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case bytes():
            return f"x'{value.hex()}'"
        case dt.datetime():
            # Python has no type for a time that is local to a place or to none.
            return None if value.tzinfo is None else f"timestamp'{value.isoformat(' ')}'"
        case dt.date():
            return f"date'{value.isoformat()}'"
    return None


def scalar_text(rows: pa.Table) -> str:
    """Return the value of a subquery as SQL text of the same type: of one column, NULL without rows.

    Raises ExpressionError for more columns or rows, and for a type that has no literals.
    """
    if rows.num_columns != 1 or rows.num_rows > 1:
        raise ExpressionError(
            f"a subquery in SET: expected one value, got {rows.num_columns} columns and "
            f"{'more than one row' if rows.num_rows > 1 else 'one row'}: use an aggregate or LIMIT 1"
        )
    kind = rows.schema.field(0).type
    value: Any = rows.column(0)[0].as_py() if rows.num_rows else None
    is_local = isinstance(value, dt.datetime) and value.tzinfo is None
    text = f"timestamp_ntz'{value.isoformat(' ')}'" if is_local else literal_text(value)
    if text is None or pa.types.is_nested(kind):
        raise ExpressionError(
            f"a subquery in SET returned {type_name(kind)}: use MERGE INTO … USING (query) for such values"
        )
    return text if pa.types.is_null(kind) else f"cast({text} as {type_name(kind)})"
