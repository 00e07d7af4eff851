"""Convert rows of a Spark client, classic or Spark Connect, to cells."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import VariantVal

from ..engine import Cell, VariantBytes

__all__ = ["cell", "quote", "row_cells"]


def row_cells(rows: list[Row]) -> list[dict[str, Cell]]:
    """Return rows as cells by column name."""
    return [{name: cell(value) for name, value in row.asDict().items()} for row in rows]


def cell(value: Any) -> Cell:
    """Return a value of a row, including nested values, as a cell."""
    if isinstance(value, VariantVal):
        return VariantBytes(bytes(value.metadata), bytes(value.value))
    if isinstance(value, Row):
        return {name: cell(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        return {name: cell(part) for name, part in value.items()}
    return [cell(part) for part in value] if isinstance(value, list) else value


def quote(name: str) -> str:
    """Return a column's name as a quoted SQL identifier."""
    return f"`{name.replace('`', '``')}`"
