"""`delta_variant.spark.read_table` returns the same rows with Spark's scan and with our kernel."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark.tables import write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import ExpressionError, UnsupportedFeatureError

LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
READERS = ("auto", "scan", "kernel")
COLUMNS = {"id": "id", "user": "event:user.id::bigint", "kind": "event:kind::string", "day": "day"}


def table_of_events(folder: Path, files: int = 4, **options: object) -> Path:
    """Write files of 100 rows each, whose bounds of `user.id` are apart, by day."""
    for file in range(files):
        rows = range(file * 100, file * 100 + 100)
        texts = [json.dumps({"user": {"id": row}, "kind": "ab"[row % 2]}) for row in rows]
        data = pa.table(
            {"id": rows, "day": [dt.date(2026, 1, 1 + file % 2)] * 100, "event": pa.array(texts, pa.json_())}
        )
        dv.write_table(folder, data, mode="append", **(options if file == 0 else {}))
    return folder


def sorted_rows(df: DataFrame) -> list[dict[str, object]]:
    return sorted((row.asDict() for row in df.collect()), key=str)


def scanned_files(df: DataFrame) -> int:
    return len(df.inputFiles())


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("partition_by", [None, "day"])
def test_every_reader_returns_the_same_rows_for_paths_and_predicates(
    spark: SparkSession, tmp_path: Path, reader: str, partition_by: str | None
):
    table = table_of_events(tmp_path / "t", partition_by=partition_by)
    where = "event:user.id::bigint between 90 and 110 and event:kind::string = 'a'"
    found = dvs.read_table(spark, table, columns=COLUMNS, where=where, reader=reader)
    assert found.dtypes == [("id", "bigint"), ("user", "bigint"), ("kind", "string"), ("day", "date")]
    expected = dv.read_table(table, columns=COLUMNS, where=where).to_table().to_pylist()
    assert sorted_rows(found) == sorted(expected, key=str)
    assert len(expected) == 11


@pytest.mark.parametrize("reader", READERS)
def test_variant_get_works_on_the_dataframe(spark: SparkSession, tmp_path: Path, reader: str):
    table = table_of_events(tmp_path / "t", 1)
    df = dvs.read_table(spark, table, where="id < 2", reader=reader)
    assert dict(df.dtypes)["event"] == "variant"
    found = df.selectExpr("variant_get(event, '$.user.id', 'int') AS id", "to_json(event) AS text")
    assert sorted_rows(found) == [
        {"id": 0, "text": '{"kind":"a","user":{"id":0}}'},
        {"id": 1, "text": '{"kind":"b","user":{"id":1}}'},
    ]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_only_files_that_may_contain_a_matching_row_are_scanned(spark: SparkSession, tmp_path: Path):
    table = table_of_events(tmp_path / "t")
    assert scanned_files(dvs.read_table(spark, table)) == 4
    one = dvs.read_table(spark, table, where="event:user.id::bigint = 250")
    assert scanned_files(one) == 1
    assert [row["id"] for row in sorted_rows(one)] == [250]
    none = dvs.read_table(spark, table, where="event:user.id::bigint > 999")
    assert none.schema == one.schema
    assert sorted_rows(none) == []


@pytest.mark.parametrize("reader", ["scan", "kernel"])
def test_partition_columns_keep_values_and_order(spark: SparkSession, tmp_path: Path, reader: str):
    days = [dt.date(2026, 1, 1), None]
    moments = [dt.datetime(2026, 1, 1, 12), None]
    data = pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "local": pa.array(moments, pa.timestamp("us")),
            "text": pa.array(["a b/c=%", None]),
            "event": pa.array(['{"a":1}', "2"], pa.json_()),
        }
    )
    dv.write_table(tmp_path / "t", data, partition_by=["text", "local", "at", "day"])
    df = dvs.read_table(spark, tmp_path / "t", reader=reader)
    assert df.columns == ["day", "at", "local", "text", "event"]
    texts = ("string(day)", "string(at)", "string(local)", "text", "to_json(event) AS event")
    assert sorted((tuple(row) for row in df.selectExpr(*texts).collect()), key=str) == [
        ("2026-01-01", "2026-01-01 12:00:00", "2026-01-01 12:00:00", "a b/c=%", '{"a":1}'),
        (None, None, None, None, "2"),
    ]


@pytest.mark.classic("RDDs and other objects of the JVM")
def test_many_files_are_listed_in_few_tasks_or_read_by_the_kernel(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def forbid(*_: object) -> None:
        raise PySparkException("[CONFIG_NOT_AVAILABLE] as on Databricks serverless")

    table = table_of_events(tmp_path / "t", 33)
    before = spark.conf.get(LISTING_TASKS)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "listing")
    scanned = dvs.read_table(spark, table, reader="scan")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("listing")]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    assert [stage.numTasks for stage in stages if stage] == [spark.sparkContext.defaultParallelism]
    assert spark.conf.get(LISTING_TASKS) == before
    read = dvs.read_table(spark, table)
    assert (scanned_files(scanned), scanned_files(read)) == (33, 0)
    assert sorted_rows(read.drop("event")) == sorted_rows(scanned.drop("event"))
    assert read.count() == 3300
    monkeypatch.setattr(type(spark.conf), "set", forbid)
    assert scanned_files(dvs.read_table(spark, table, reader="scan")) == 33


@pytest.mark.parametrize("configuration", ["delta.columnMapping.mode", "delta.enableDeletionVectors"])
def test_the_kernel_reads_tables_that_a_scan_would_read_incorrectly(
    spark_with_delta: SparkSession, tmp_path: Path, configuration: str
):
    value = "name" if "Mapping" in configuration else "true"
    table = table_of_events(tmp_path / "t", 1, configuration={configuration: value})
    if value == "true":
        spark_with_delta.sql(f"DELETE FROM delta.`{table}` WHERE id >= 10")
    else:
        spark_with_delta.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN event TO renamed")
    with pytest.raises(UnsupportedFeatureError, match="pass reader='kernel'") as caught:
        dvs.read_table(spark_with_delta, table, reader="scan")
    assert caught.value.table == str(table)
    df = dvs.read_table(spark_with_delta, table)
    assert df.count() == (10 if value == "true" else 100)
    assert df.columns[2] == ("event" if value == "true" else "renamed")


def test_the_kernel_reads_nested_columns_and_every_type(spark: SparkSession, tmp_path: Path):
    df = spark.range(0, 3, 1, 1).selectExpr(
        "id",
        "array(named_struct('v', parse_json('1'), 'n', id), NULL) AS a",
        "map('k', parse_json('[2]'), 'n', NULL) AS m",
        "named_struct('x', CAST(1.5 AS DECIMAL(5,2)), 'v', parse_json('3')) AS s",
        "timestamp'2026-01-01 00:00:00' AS t",
        "timestamp_ntz'2026-01-01 00:00:00' AS ntz",
        "date'2026-01-01' AS d",
        "CAST(id AS TINYINT) AS tiny",
        "CAST('x' AS BINARY) AS bin",
        "CAST(id AS FLOAT) AS f",
        "id = 1 AS b",
    )
    write_frame(tmp_path / "t", df)
    texts = [
        "id",
        "to_json(to_variant_object(a)) AS a",
        "to_json(m['k']) AS k",
        "to_json(m['n']) AS n",
        "s.x AS x",
        "to_json(s.v) AS v",
        *df.columns[4:],
    ]
    scanned, read = (
        sorted_rows(dvs.read_table(spark, tmp_path / "t", reader=reader).selectExpr(*texts))
        for reader in ("scan", "kernel")
    )
    assert read == scanned == sorted_rows(df.selectExpr(*texts))


def test_an_earlier_version_is_read(spark: SparkSession, tmp_path: Path):
    table = table_of_events(tmp_path / "t", 2)
    assert dvs.read_table(spark, table, version=0).count() == 100
    assert dvs.read_table(spark, table, version=1).count() == 200


def test_invalid_sql_is_rejected_before_a_task_runs(spark: SparkSession, tmp_path: Path):
    table = table_of_events(tmp_path / "t", 1)
    with pytest.raises(ExpressionError, match="nothing"):
        dvs.read_table(spark, table, columns=["nothing"])


def test_spark_does_not_evaluate_sql_if_its_casts_are_lenient(
    spark: SparkSession, tmp_path: Path, configured: Callable[[str, str], None]
):
    dv.write_table(tmp_path / "t", pa.table({"event": pa.array(['{"a":"x"}'], pa.json_())}))
    configured("spark.sql.ansi.enabled", "false")
    with pytest.raises(PySparkException, match=r"CastError: .*x"):
        dvs.read_table(spark, tmp_path / "t", where="event:a::int = 1").collect()
