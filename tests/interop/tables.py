"""The rows of a table as each side reads them, and the actions of its log as they stand there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import delta_variant as dv


def load(spark: SparkSession, table: Path) -> DataFrame:
    """Return the table as Spark reads it."""
    return spark.read.format("delta").load(str(table))


def rows_by_spark(spark: SparkSession, table: Path, columns: dict[str, str]) -> list[dict[str, Any]]:
    """Return rows of the given expressions, as Spark evaluates them, in the order of their texts."""
    selected = [f"{expression} AS {name}" for name, expression in columns.items()]
    return in_order(row.asDict() for row in load(spark, table).selectExpr(*selected).collect())


def rows_by_us(table: Path, columns: dict[str, str], where: str | None = None) -> list[dict[str, Any]]:
    """Return rows of the given expressions, as we evaluate them, in the order of their texts."""
    return in_order(dv.read_table(str(table), columns=columns, where=where).read_all().to_pylist())


def in_order(rows: Any) -> list[dict[str, Any]]:
    """Return rows in the order of their texts: tables have none, and rows with nulls cannot be compared."""
    return sorted(rows, key=str)


def actions(table: Path, kind: str) -> list[dict[str, Any]]:
    """Return the actions of one kind in all commits, in their order."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]
