"""The SQL text of Python objects that are parameters of a statement."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from math import isfinite

__all__ = ["literal_text"]


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
