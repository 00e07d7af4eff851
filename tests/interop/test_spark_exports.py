"""Spark with Delta reads exported tables, as an ordinary table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import delta_variant as dv
from delta_variant.views import files as view_files


def test_spark_reads_an_export_and_its_refresh(
    spark_with_delta: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(view_files.FOLDER, str(tmp_path / "cache"))
    source, target = tmp_path / "s", tmp_path / "t"
    schema = dv.ShreddingSchema.of({"x": pa.int64(), "user id": pa.string(), "l": pa.list_(pa.int64())})
    rows = [{"day": day, "event": {"x": n, "user id": f"u{n}", "l": [n]}} for day in "ab" for n in range(100)]
    dv.write_table(source, rows, variant_columns=["event"], shredding=schema, partition_by=["day"])
    dv.export(source, target)

    def read(where: str) -> list[tuple[object, ...]]:
        frame = spark_with_delta.read.format("delta").load(str(target)).where(where)
        paths = ("day", "event.typed_value.x", "event.typed_value.`user id`", "event.typed_value.l[0]")
        return sorted(tuple(row) for row in frame.selectExpr(*paths).collect())

    assert read("event.typed_value.x < 2") == [(day, n, f"u{n}", n) for day in "ab" for n in range(2)]
    dv.delete(source, "event:x::int > 0 and day = 'a'")
    dv.export(source, target)
    assert read("event.typed_value.x < 2") == [("a", 0, "u0", 0), ("b", 0, "u0", 0), ("b", 1, "u1", 1)]
    assert read("event.typed_value.`user id` = 'u99'") == [("b", 99, "u99", 99)]
    assert len(read("true")) == 101
