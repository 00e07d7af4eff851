"""Changes that tasks read are those of one process and of Delta's own reader."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark.twins import CHANGE_FEED, FEATURES, Feature, make

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import CastError

TYPES = {"_change_type": "_change_type", "_commit_version": "_commit_version"}
COLUMNS = {"id": "id", "day": "day", "n": "event:n::bigint", "text": "to_json(event)", **TYPES}
CHANGED = {
    name: feature for name, feature in FEATURES.items() if feature.configuration.items() & CHANGE_FEED.items()
}


def sorted_rows(df: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in df.collect()), key=str)


def local_rows(table: Path, **options: Any) -> list[dict[str, Any]]:
    return sorted(dv.read_changes(table, **options).to_pylist(), key=str)


def change(table: Path, source: random.Random) -> None:
    """Make a commit of each kind of operation."""
    dv.update(table, {"event:n": "id + 100", "day": "'b'"}, f"id % 5 = {source.randrange(5)}")
    dv.delete(table, f"id % 7 = {source.randrange(7)}")
    dv.delete(table, "day = 'a'")
    dv.write_table(table, [{"id": 5, "n": 1}], mode="overwrite", where="id < 10")
    rows = [{"key": 20, "day": "m"}, {"key": 1000, "day": "a"}]
    merge = dv.merge(table, rows, "target.id = key").when_matched_update({"day": "source.day"})
    merge.when_not_matched_insert({"id": "key", "day": "source.day"}).execute()
    dv.restore(table, 3)
    dv.optimize(table)
    dv.delete_all(table)


@pytest.mark.parametrize("feature", CHANGED)
def test_changes_are_those_of_one_process(spark: SparkSession, tmp_path: Path, feature: str):
    source = random.Random(feature)
    make(tmp_path / "t", CHANGED[feature], source)
    change(tmp_path / "t", source)
    latest = dv.load_snapshot(tmp_path / "t").version
    for options in (
        {},
        {"start": 5, "where": "event:n::bigint > 100"},
        {"end": 9, "where": "_change_type like 'update%' and day is not null"},
        {"start": latest - 1, "end": latest, "where": "id < 31"},
    ):
        expected = local_rows(tmp_path / "t", columns=COLUMNS, **options)
        assert sorted_rows(dvs.read_changes(spark, tmp_path / "t", columns=COLUMNS, **options)) == expected
        assert expected


@pytest.mark.parametrize("has_vectors", ["true", "false"])
def test_changes_are_those_of_delta(spark_with_delta: SparkSession, tmp_path: Path, has_vectors: str):
    spark, table = spark_with_delta, tmp_path / "t"
    feature = Feature({**CHANGE_FEED, "delta.enableDeletionVectors": has_vectors}, partition_by=["day"])
    make(table, feature, random.Random(has_vectors), files=2)
    for statement in (
        "DELETE FROM {} WHERE id % 4 = 1",
        "UPDATE {} SET event = parse_json('[1]') WHERE id % 4 = 2",
        "MERGE INTO {} t USING (SELECT explode(array(3, 500)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, 'x')",
        "RESTORE TABLE {} TO VERSION AS OF 1",
        "DELETE FROM {} WHERE day = 'a'",
        "OPTIMIZE {}",
    ):
        spark.sql(statement.format(f"delta.`{table}`"))
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    wanted = (
        "id",
        "day",
        "n",
        "to_json(event) AS event",
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    )
    expected = sorted_rows(reader.load(str(table)).selectExpr(*wanted))
    found = dvs.read_changes(spark, table)
    assert sorted_rows(found.selectExpr(*wanted)) == expected
    assert found.dtypes == reader.load(str(table)).dtypes
    assert len({row["_change_type"] for row in expected}) == 4
    assert found.count() == len(expected)


def test_local_times_are_in_the_time_zone_of_the_session(spark: SparkSession, tmp_path: Path):
    dv.write_table(tmp_path / "t", [{"id": 1}], configuration=CHANGE_FEED)
    (time,) = dv.read_changes(tmp_path / "t").to_table()["_commit_timestamp"].to_pylist()
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        local = time.astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None)
        where = f"_commit_timestamp = timestamp'{local}'"
        df = dvs.read_changes(spark, tmp_path / "t", where=where)
        assert [row["id"] for row in df.collect()] == [1]
        assert df.selectExpr("CAST(_commit_timestamp AS STRING)").collect()[0][0][:19] == str(local)[:19]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": 0},
        {"start": 3, "end": 2},
        {"start": 9},
        {"start": 1, "end": 9},
        {"start": 1.5},
        {"start": 1, "columns": ["missing"]},
        {"start": 1, "where": "id +"},
        {"end": "1999-01-01T00:00:00Z"},
    ],
)
def test_errors_are_those_of_one_process(spark: SparkSession, tmp_path: Path, arguments: dict[str, Any]):
    table = tmp_path / "t"
    dv.write_table(table, [{"id": 1}])
    dv.set_properties(table, CHANGE_FEED)
    dv.write_table(table, [{"id": 2, "more": 1}], mode="append", schema_mode="merge")
    dv.write_table(table, [{"id": "a"}], mode="overwrite", schema_mode="overwrite")
    errors = []
    for read in (
        lambda: dv.read_changes(table, **arguments),
        lambda: dvs.read_changes(spark, table, **arguments),
    ):
        with pytest.raises((dv.DeltaVariantError, ValueError)) as caught:
            read()
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_an_error_of_a_task_is_that_of_the_row(spark: SparkSession, tmp_path: Path):
    events = pa.table({"event": pa.array(["1", '"x"'], pa.json_())})
    dv.write_table(tmp_path / "t", events, configuration=CHANGE_FEED)
    df = dvs.read_changes(spark, tmp_path / "t", columns={"n": "event::int"})
    with pytest.raises(CastError) as caught, dvs.restore_errors():
        df.collect()
    assert (caught.value.column, caught.value.row) == ("event", 1)
