"""Spark reads every row of the tables that we changed, and we change the tables that Spark wrote."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pytest
from interop.tables import load, rows_by_spark, rows_by_us
from pyspark.sql import SparkSession

import delta_variant as dv

COLUMNS = {"id": "id", "day": "day", "event": "to_json(event)", "n": "event:n::bigint"}
FEATURES = {
    "plain": {},
    "column mapping": {"delta.columnMapping.mode": "name"},
    "in-commit timestamps": {"delta.enableInCommitTimestamps": "true"},
    "deletion vectors": {"delta.enableDeletionVectors": "true"},
    "v2 checkpoint": {"delta.checkpointPolicy": "v2"},
}


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    texts = [f'{{"n": {number}, "deep": {{"s": "x{number}"}}}}' for number in numbers]
    days = [("a", "b", None)[number % 3] for number in numbers]
    return pa.table({"id": list(numbers), "day": days, "event": pa.array(texts, pa.string())})


def write(table: Path, data: pa.Table, **options) -> None:
    dv.write_table(str(table), data, variant_columns=["event"], **options)


def assert_same(spark: SparkSession, table: Path, ids: list[int]) -> None:
    """Assert that Spark and we read the same rows, with the expected ids."""
    theirs = rows_by_spark(spark, table, COLUMNS)
    assert rows_by_us(table, COLUMNS) == theirs
    assert sorted(row["id"] for row in theirs) == ids


@pytest.mark.parametrize(
    ("feature", "partition_by"), list(zip(FEATURES, cycle([None, ["day"]]), strict=False))
)
def test_spark_reads_a_table_after_each_operation(spark: SparkSession, tmp_path: Path, feature, partition_by):
    table = tmp_path / "t"
    write(table, rows(0, 12), partition_by=partition_by, configuration=FEATURES[feature])
    write(table, rows(12, 12), mode="append")
    dv.delete(str(table), "event:n::bigint in (1, 2, 13)")
    left = [number for number in range(24) if number not in (1, 2, 13)]
    assert_same(spark, table, left)
    write(table, rows(102, 1), mode="overwrite", where="day = 'a'")
    left = [*(number for number in left if number % 3), 102]
    assert_same(spark, table, left)
    dv.update(str(table), {"event:deep.t": "id", "event:new.x": "'x'", "day": "'c'"}, "id in (4, 5, 102)")
    assert_same(spark, table, left)
    assert load(spark, table).where("day = 'c' AND event:new.x::string = 'x'").count() == 3
    dv.delete(str(table), "day is null")
    left = [number for number in left if number % 3 != 2 or number == 5]
    assert_same(spark, table, left)
    source = pa.table({"key": [left[0], 300], "day": ["a", "b"]})
    merge = dv.merge(str(table), source, "target.event:n::bigint = key and target.id = key")
    merge = merge.when_matched_update({"event:merged": "source.day"})
    merge.when_not_matched_insert({"id": "key", "day": "source.day", "event:n": "key"}).execute()
    left = [*left, 300]
    assert_same(spark, table, sorted(left))
    assert load(spark, table).where("event:merged::string = 'a'").count() == 1
    dv.optimize(str(table), sort_by="event:n::bigint", files=dv.FileOptions(target_file_size=1 << 10))
    assert_same(spark, table, sorted(left))
    write(table, rows(200, 3), mode="overwrite")
    assert_same(spark, table, [200, 201, 202])


def test_rows_that_spark_deleted_stay_deleted(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING, event VARIANT) USING delta "
        "PARTITIONED BY (day) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        "'delta.enableVariantShredding' = 'true', 'delta.feature.variantShredding' = 'supported')"
    )
    spark.sql(
        f"INSERT INTO delta.`{table}` SELECT id, elt(1 + id % 2, 'Zürich [a]', 'x=y%') AS day, "
        "parse_json(format_string('{\"n\": %d}', id)) AS event FROM range(0, 20, 1, 1)"
    )
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (3, 4)")
    dv.delete(str(table), "event:n::bigint = 5")
    left = [number for number in range(20) if number not in (3, 4, 5)]
    assert_same(spark, table, left)
    dv.delete(str(table), "day = 'Zürich [a]'")
    assert_same(spark, table, [number for number in left if number % 2])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 7")
    assert_same(spark, table, [number for number in left if number % 2 and number != 7])


def test_a_merge_that_adds_columns_has_the_outcome_of_delta(spark: SparkSession, tmp_path: Path):
    rows = pa.table({"id": [1, 2], "n": [10, 20], "s": [{"a": 1}, {"a": 2}]})
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for table in (ours, theirs):
        dv.write_table(table, rows)
    query = (
        "SELECT 2L AS id, 'b' AS note, named_struct('a', 7L, 'c', 'x') AS s UNION ALL "
        "SELECT 3L, 'c', named_struct('a', 8L, 'c', 'y')"
    )
    spark.sql(query).createOrReplaceTempView("evolving_source")
    spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{theirs}` AS target USING evolving_source AS source "
        "ON target.id = source.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    source = pa.table({"id": [2, 3], "note": ["b", "c"], "s": [{"a": 7, "c": "x"}, {"a": 8, "c": "y"}]})
    merge = dv.merge(ours, source, "target.id = source.id", schema_mode="merge")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = [spark.read.format("delta").load(str(table)).orderBy("id") for table in (ours, theirs)]
    assert found[0].columns == found[1].columns
    assert found[0].collect() == found[1].collect()
