"""Expressions return the same values as Spark: parts of dates, casts of text, and time zones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from interop.tricky_texts import NOT_READ, TEXTS
from pyspark.sql import SparkSession

from delta_variant.expressions.bind import bind
from delta_variant.expressions.cast import cast_values
from delta_variant.expressions.evaluate import evaluate
from delta_variant.expressions.names import NameScope
from delta_variant.expressions.parse import parse, parse_type
from delta_variant.variant import values as variant_values

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def session_in(spark: SparkSession) -> Iterator[Any]:
    """Return a function that sets the session's time zone until the test ends."""
    before = spark.conf.get(ZONE)

    def set_zone(name: str) -> SparkSession:
        spark.conf.set(ZONE, name)
        return spark

    yield set_zone
    spark.conf.set(ZONE, before)


def ours(text: str, column: pa.Array, timezone: str = "UTC") -> list[object]:
    """Return an expression over the column `x`."""
    schema = pa.schema([("x", column.type)])
    bound = bind(parse(text), NameScope(schema, (), timezone))
    return evaluate(bound, pa.record_batch([column], schema=schema)).to_pylist()


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


# How to compare values of a type: Python's dates end with the year 9999, and NaN is not equal to itself.
SHOWN_BY_SPARK = {
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "cast({} as string)",
}
SHOWN_BY_US = {
    "date": lambda values: values.cast(pa.int32()),
    "timestamp": lambda values: values.cast(pa.int64()),
    "timestamp_ntz": lambda values: cast_values(values, pa.string(), strict=True),
}


def as_text(values: Iterable[object]) -> list[str]:
    return [repr(value) for value in values]


@pytest.mark.parametrize("timezone", ["UTC", "Australia/Adelaide"])
@pytest.mark.parametrize("name", TEXTS)
def test_casts_of_text_in_columns_and_variants_equal_those_of_spark(
    session_in: Any, name: str, timezone: str
):
    spark, texts = session_in(timezone), list(TEXTS[name])
    shown = SHOWN_BY_SPARK.get(name, "{}")
    column = shown.format(f"try_cast(x as {name})")
    path = shown.format(f"try_variant_get(to_variant_object(struct(x)), '$.x', '{name}')")
    rows = spark.createDataFrame(list(enumerate(texts)), "i int, x string").selectExpr("i", column, path)
    found = sorted((tuple(row) for row in rows.collect()), key=lambda row: row[0])

    array, arrow_type = pa.array(texts, pa.string()), parse_type(name)
    variants = variant_values.set_path(pa.nulls(len(texts), variant_values.VARIANT_TYPE), (), array)
    of_column = cast_values(array, arrow_type, strict=False, timezone=timezone)
    of_path = variant_values.extract(variants, (), arrow_type, strict=False, timezone=timezone)

    shown_by_us = SHOWN_BY_US.get(name, lambda values: values)
    values = zip(shown_by_us(of_column).to_pylist(), shown_by_us(of_path).to_pylist(), strict=True)
    not_read = NOT_READ.get(name, ())
    expected = [
        (text, None, None) if text in not_read else (text, *row[1:])
        for text, row in zip(texts, found, strict=True)
    ]
    assert as_text((text, *pair) for text, pair in zip(texts, values, strict=True)) == as_text(expected)
    read_by_spark = {text for text, row in zip(texts, found, strict=True) if row[1] is not None}
    assert set(not_read) <= read_by_spark
