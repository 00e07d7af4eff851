"""The column `_metadata` has the values that Spark's scan of the same files returns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import UnsupportedFeatureError

FIELDS = [f"_metadata.file_{name}" for name in ("path", "name", "size")]


def test_the_file_of_a_row_is_that_of_spark(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t \u00e9 100%25 {x}"
    dv.write_table(table, [{"id": 1, "p": "a b/#?"}, {"id": 2, "p": "\u2713"}], partition_by="p")
    found = dvs.read_table(spark, table, columns=["id", *FIELDS]).collect()
    files = [str(path).replace("{", "\\{").replace("}", "\\}") for path in table.rglob("*.parquet")]
    expected = spark.read.parquet(*files).selectExpr("id", *FIELDS).collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))


@pytest.mark.parametrize("columns", [None, ["id"]])
def test_rows_of_a_file_are_found_by_its_path(spark: SparkSession, tmp_path: Path, columns: list[str] | None):
    for number in range(2):
        dv.write_table(tmp_path, [{"id": number}], mode="append")
    path = dvs.read_table(spark, tmp_path, columns=FIELDS[:1], where="id = 1").first()[0]
    rows = dvs.read_table(spark, tmp_path, columns=columns, where=f"_metadata.file_path = '{path}'")
    assert rows.collect() == [(1,)]


def test_the_scan_of_spark_does_not_return_the_column(spark: SparkSession, tmp_path: Path):
    dv.write_table(tmp_path, [{"id": 1}])
    with pytest.raises(UnsupportedFeatureError, match=r"_metadata.*reader='kernel'"):
        dvs.read_table(spark, tmp_path, columns=FIELDS, reader="scan")
