"""Convert rows of a Spark client, classic or Spark Connect, to cells."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import VariantVal

from ..engine import Cell, Query, VariantBytes
from .spark_sql import condition, projection

__all__ = ["cell", "quote", "row_cells", "select_rows"]


def select_rows(rows: DataFrame, query: Query) -> list[dict[str, Cell]]:
    """Return the answer of a query on the rows of a table."""
    if query.where:
        return row_cells(rows.where(condition(query)).select("id").collect())
    return row_cells(rows.selectExpr("id", f"{projection(query)} AS found").collect())


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
