"""Read files, log and rows of a table, and wait for streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import delta_variant as dv
from delta_variant.spark import SparkEngine
from delta_variant.spark.streams import ENGINE_OPTIONS

LONGEST_QUERY = 240
"""Seconds after which a query that has all its input counts as stuck."""


def finished(query: StreamingQuery) -> StreamingQuery:
    """Return a query after it has ended. Stop it and fail if it does not end."""
    try:
        assert query.awaitTermination(LONGEST_QUERY), f"stuck: {query.status}"
    finally:
        query.stop()
    return query


def on_spark(spark: SparkSession, table: Any, **options: Any) -> dv.Table:
    """Return a table whose operations run on the executors of a session, with options of the engine."""
    return dv.Table(table, engine=SparkEngine(spark, **options))


def write_frame(table: Any, df: DataFrame, **options: Any) -> dv.WriteResult:
    """Write a DataFrame by tasks, with options of the write and of the engine."""
    of_engine = {name: options.pop(name) for name in ENGINE_OPTIONS if name in options}
    return dv.write_table(on_spark(df.sparkSession, table, **of_engine), df, **options)


def data_files(table: Path) -> set[str]:
    """Return the files in the folder of a table, except those of its log."""
    files = (path.relative_to(table) for path in table.rglob("*") if path.is_file())
    return {str(path) for path in files if path.parts[0] != "_delta_log"}


def listed_files(table: Path) -> set[str]:
    """Return the files of the latest version."""
    return set(dv.load_snapshot(table).files["path"].to_pylist())


def rows(table: Path, **columns: str) -> list[dict[str, Any]]:
    """Return columns of a table with our own reader, sorted by their text."""
    return sorted(dv.read_table(table, columns=columns).to_table().to_pylist(), key=str)
