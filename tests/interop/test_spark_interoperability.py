"""Spark with Delta opens the tables that docs/reference/interoperability.md lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support import interoperability

import delta_variant as dv


@pytest.mark.parametrize("kind", interoperability.KINDS)
def test_spark_opens_the_tables_that_the_page_lists(spark: SparkSession, kind: str, tmp_path: Path):
    def read(table: Path) -> Any:
        frame = spark.read.format("delta").load(str(table))
        assert frame.schema["event"].dataType.typeName() == "variant"
        ((text,),) = frame.selectExpr("to_json(event)").collect()
        return json.loads(text)

    interoperability.write(tmp_path / "t", kind)
    found = interoperability.outcome(read, tmp_path / "t")
    assert found == interoperability.expected("Spark with Delta")[kind]


@pytest.mark.parametrize("scheme", ["variant", "http"])
def test_spark_has_no_file_system_for_views(spark: SparkSession, scheme: str):
    with pytest.raises(Exception, match=f'UNSUPPORTED_FILE_SYSTEM|No FileSystem for scheme "{scheme}"'):
        spark.read.parquet(f"{scheme}://127.0.0.1/events.parquet")


def test_spark_opens_the_views_that_the_page_lists(spark: SparkSession, tmp_path: Path):
    shredding = dv.ShreddingSchema.of({"user": {"id": pa.int64()}})
    rows = [{"event": {"user": {"id": number}}} for number in range(10)]
    dv.write_table(tmp_path / "s", rows, variant_columns=["event"], shredding=shredding)
    dv.export(tmp_path / "s", tmp_path / "t")
    frame = spark.read.format("delta").load(str(tmp_path / "t"))
    found = frame.where("event.typed_value.user.id < 2").selectExpr("event.typed_value.user.id").collect()
    assert sorted(found) == [(0,), (1,)]
    assert interoperability.cells(interoperability.VIEWS, "Spark with Delta") == ["no", "no", "yes"]
