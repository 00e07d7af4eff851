"""Rows of a table as Spark and we read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import delta_variant as dv


def load(spark: SparkSession, table: Path) -> DataFrame:
    """Return the table as Spark reads it."""
    return spark.read.format("delta").load(str(table))


def rows_by_spark(spark: SparkSession, table: Path, columns: dict[str, str]) -> list[dict[str, Any]]:
    """Return rows of expressions that Spark evaluates, sorted by their text."""
    selected = [f"{expression} AS {name}" for name, expression in columns.items()]
    return in_order(row.asDict() for row in load(spark, table).selectExpr(*selected).collect())


def rows_by_us(table: Path, columns: dict[str, str], where: str | None = None) -> list[dict[str, Any]]:
    """Return rows of expressions that we evaluate, sorted by their text."""
    return in_order(dv.read_table(str(table), columns=columns, where=where).to_table().to_pylist())


def in_order(rows: Any) -> list[dict[str, Any]]:
    """Return rows sorted by their text, because rows with nulls cannot be compared."""
    return sorted(rows, key=str)
