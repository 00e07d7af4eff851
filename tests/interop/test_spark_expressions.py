"""Expressions give the values that Spark gives: parts of dates, casts of text, and time zones."""

from __future__ import annotations

import random

import pyarrow as pa
from pyspark.sql import SparkSession

from delta_variant.expression import bind, evaluate, parse


def ours(text: str, column: pa.Array) -> list[object]:
    """Return an expression over the column `x`."""
    schema = pa.schema([("x", column.type)])
    return evaluate(bind(parse(text), schema, ()), pa.record_batch([column], schema=schema)).to_pylist()


def test_parts_of_dates_and_timestamps_over_their_full_range(spark: SparkSession):
    random.seed(20260101)
    days = [-(2**31), 2**31 - 1, 0, -1, *(random.randrange(-(2**31), 2**31) for _ in range(2000))]
    micros = [-(2**63), 2**63 - 1, 0, -1, *(random.randrange(-(2**63), 2**63) for _ in range(2000))]
    rows = spark.createDataFrame(list(zip(days, micros, strict=True)), "d int, t bigint").selectExpr(
        "*", "date_from_unix_date(d) AS day", "timestamp_micros(t) AS at"
    )
    parts = [f"{part}({column})" for part in ("year", "month", "day") for column in ("day", "at")]
    asked = [*parts, "hour(at)"]
    found = [list(row) for row in rows.selectExpr("d", "t", *asked).collect()]
    columns = {
        "day": pa.array([row[0] for row in found], pa.int32()).cast(pa.date32()),
        "at": pa.array([row[1] for row in found], pa.int64()).cast(pa.timestamp("us", "UTC")),
    }
    for index, text in enumerate(asked, 2):
        (column,) = (name for name in columns if text.endswith(f"({name})"))
        expected = [row[index] for row in found]
        assert ours(text.replace(f"({column})", "(x)"), columns[column]) == expected
