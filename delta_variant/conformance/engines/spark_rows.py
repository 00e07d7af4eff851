"""Rows as a client of Spark hands them out, from Spark itself or from a server that speaks Spark Connect."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import VariantVal

from ..engine import Cell, VariantBytes

__all__ = ["cell", "quote", "row_cells"]


def row_cells(rows: list[Row]) -> list[dict[str, Cell]]:
    """Return rows by the names of their columns."""
    return [{name: cell(value) for name, value in row.asDict().items()} for row in rows]


def cell(value: Any) -> Cell:
    """Return a value of a row, and what is within it."""
    if isinstance(value, VariantVal):
        return VariantBytes(bytes(value.metadata), bytes(value.value))
    if isinstance(value, Row):
        return {name: cell(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        return {name: cell(part) for name, part in value.items()}
    return [cell(part) for part in value] if isinstance(value, list) else value


def quote(name: str) -> str:
    """Return a name of a column as SQL takes it."""
    return f"`{name.replace('`', '``')}`"
