"""Rows of a table as Spark and we read them, and the actions in its log."""

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
    """Return rows of expressions that Spark evaluates, sorted by their text."""
    selected = [f"{expression} AS {name}" for name, expression in columns.items()]
    return in_order(row.asDict() for row in load(spark, table).selectExpr(*selected).collect())


def rows_by_us(table: Path, columns: dict[str, str], where: str | None = None) -> list[dict[str, Any]]:
    """Return rows of expressions that we evaluate, sorted by their text."""
    return in_order(dv.read_table(str(table), columns=columns, where=where).to_table().to_pylist())


def in_order(rows: Any) -> list[dict[str, Any]]:
    """Return rows sorted by their text, because rows with nulls cannot be compared."""
    return sorted(rows, key=str)


def actions(table: Path, kind: str) -> list[dict[str, Any]]:
    """Return the actions of one kind in all commits, in order."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]
