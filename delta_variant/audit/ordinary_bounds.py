"""Bounds of ordinary columns as values that compare: what JSON has of them, by the column's type."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, TypeAlias

from ..data_types import VARIANT, ArrayType, DataType, MapType, PrimitiveType, StructType, decimal_of

__all__ = ["comparable", "ordinary_columns"]

Path: TypeAlias = tuple[str, ...]

INTEGERS = ("long", "integer", "short", "byte")


def ordinary_columns(columns: StructType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """Yield the leaf columns that are no Variant, each with its path."""
    for field in columns.fields:
        where = (*path, field.name)
        if isinstance(field.type, StructType):
            yield from ordinary_columns(field.type, where)
        elif field.type != VARIANT:
            yield where, field.type


def comparable(value: Any, data_type: DataType) -> Any:
    """Return a bound as a value that compares with others of its column, None where it is none."""
    if isinstance(data_type, ArrayType | MapType) or not isinstance(data_type, PrimitiveType):
        return None
    try:
        return _comparable(value, data_type)
    except (ValueError, ArithmeticError):
        return None


def _comparable(value: Any, data_type: PrimitiveType) -> Any:
    if isinstance(value, bool):
        return value if data_type.name == "boolean" else None
    if data_type.name in INTEGERS or decimal_of(data_type):
        return Decimal(value) if isinstance(value, int | Decimal) else None
    if data_type.name in ("float", "double"):
        number = float(value) if isinstance(value, int | float | Decimal) else math.nan
        return None if math.isnan(number) else number
    if not isinstance(value, str):
        return None
    if data_type.name == "string":
        return value.encode("utf-8", "surrogatepass")
    if data_type.name == "date":
        return date.fromisoformat(value)
    if data_type.name in ("timestamp", "timestamp_ntz"):
        return _moment(value)
    return None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "T"))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)
