"""Spark and we agree on time travel, restores, and the files that a vacuum deletes."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from interop.tables import rows_by_spark, rows_by_us
from pyspark.sql import SparkSession

import delta_variant as dv
from delta_variant.errors import TimestampAfterLatestError, TimestampBeforeFirstError
from delta_variant.log.listing import commit_file_name

COLUMNS = {"id": "id", "day": "day", "event": "to_json(event)"}
SHREDDED = {"delta.enableVariantShredding": "true", "delta.feature.variantShredding": "supported"}
FEATURES = {
    "column mapping and deletion vectors": {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
    },
    "row tracking, in-commit timestamps, v2 checkpoint and change data feed": {
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "3",
        "delta.enableChangeDataFeed": "true",
    },
}
# Delta's time travel is limited to the retention period.
START = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(days=1)


def create(spark: SparkSession, table: Path, properties: dict[str, str]) -> None:
    text = ", ".join(f"'{name}' = '{value}'" for name, value in {**SHREDDED, **properties}.items())
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING, event VARIANT) USING delta "
        f"PARTITIONED BY (day) TBLPROPERTIES ({text})"
    )


def insert(spark: SparkSession, table: Path, first: int, count: int) -> None:
    spark.sql(
        f"INSERT INTO delta.`{table}` SELECT id, elt(1 + id % 2, 'Zürich [a]', 'x=y%') AS day, "
        f"parse_json(format_string('{{\"n\": %d}}', id)) AS event FROM range({first}, {first + count}, 1, 1)"
    )


def enable_in_commit_timestamps(spark: SparkSession, table: Path) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")


def age(table: Path, days: float) -> None:
    """Make all files of a table older, except those of the log."""
    then = time.time() - days * 86_400
    for path in table.rglob("*"):
        if path.is_file() and "_delta_log" not in path.parts:
            os.utime(path, (then, then))


def at(table: Path, version: int, seconds: float) -> None:
    """Set the modification time of a commit's file."""
    os.utime(table / commit_file_name(version), ns=(0, int((START.timestamp() + seconds) * 10**3) * 10**6))


def version_by_spark(spark: SparkSession, table: Path, moment: datetime) -> int | str:
    """Return the version of a timestamp, or the name of the error."""
    jvm, session = spark._jvm, spark._jsparkSession
    delta_log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, str(table))
    java_time = jvm.java.sql.Timestamp(int(moment.timestamp() * 1000))
    none = jvm.scala.Option.empty()
    try:
        found = delta_log.history().getActiveCommitAtTime(java_time, none, False, True, False)
    except Exception as error:
        return re.search(r"DELTA_\w+", str(error))[0]
    return found.version()


def version_by_us(table: Path, moment: datetime) -> int | str:
    try:
        return dv.load_snapshot(table, timestamp=moment).version
    except TimestampAfterLatestError:
        return "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    except TimestampBeforeFirstError:
        return "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"


@pytest.mark.parametrize("enabled", ["never", "later", "at once"])
def test_a_timestamp_selects_the_same_version(spark: SparkSession, tmp_path: Path, enabled: str):
    table = tmp_path / "t"
    create(spark, table, {"delta.enableInCommitTimestamps": "true"} if enabled == "at once" else {})
    for version in (1, 2, 3):
        insert(spark, table, version, 1)
    if enabled == "later":
        spark.sql(
            f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"
        )
        insert(spark, table, 5, 1)
        insert(spark, table, 6, 1)
    # The clock goes backwards: the third commit is not later than the second.
    for version, seconds in enumerate((0, 10, 10, 9)):
        at(table, version, seconds)
    moments = {entry.timestamp for entry in dv.history(table)}
    steps = (-1, 0, 0.001, 0.002, 5, 10, 10.001, 10.002, 3600)
    moments |= {START + timedelta(seconds=step) for step in steps}
    moments |= {moment + timedelta(milliseconds=shift) for moment in moments for shift in (-1, 1)}
    found = {moment: version_by_us(table, moment) for moment in sorted(moments)}
    assert found == {moment: version_by_spark(spark, table, moment) for moment in moments}
    assert len(set(found.values())) > 5


def test_the_history_is_the_same(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    create(spark, table, {})
    insert(spark, table, 0, 4)
    dv.delete(str(table), "event:n::bigint = 1", commit=dv.CommitOptions(metadata={"run": "42"}))
    enable_in_commit_timestamps(spark, table)
    insert(spark, table, 4, 4)
    one = spark.read.format("delta").load(str(table)).where("id = 4")
    one.write.format("delta").mode("append").option("userMetadata", "by Spark").save(str(table))
    theirs = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").selectExpr(
        "version",
        "unix_millis(timestamp) AS time",
        "operation",
        "operationMetrics['numOutputRows'] AS rows",
        "userMetadata",
    )
    ours = [
        (
            entry.version,
            int(entry.timestamp.timestamp() * 1000),
            entry.operation,
            entry.commit_info.get("operationMetrics", {}).get("numOutputRows"),
            entry.commit_info.get("userMetadata"),
        )
        for entry in dv.history(table)
    ]
    assert ours == [tuple(row) for row in theirs.collect()]
    assert [entry.metadata for entry in dv.history(table)] == [
        "by Spark",
        None,
        None,
        {"run": "42"},
        None,
        None,
    ]


@pytest.mark.parametrize("feature", FEATURES)
def test_both_restore_a_table(spark: SparkSession, tmp_path: Path, feature: str):
    table = tmp_path / "t"
    create(spark, table, FEATURES[feature])
    insert(spark, table, 0, 10)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (2, 3)")
    spark.sql(f"UPDATE delta.`{table}` SET event = parse_json('{{\"n\": -1}}') WHERE id = 4")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE day = 'x=y%'")
    versions = {
        version: spark.read.format("delta").option("versionAsOf", version).load(str(table)).toDF(*COLUMNS)
        for version in (1, 3)
    }
    expected = {
        version: sorted((row["id"], row["day"]) for row in frame.collect())
        for version, frame in versions.items()
    }
    for version in (1, 3):
        dv.restore(str(table), version)
        theirs = rows_by_spark(spark, table, COLUMNS)
        assert rows_by_us(table, COLUMNS) == theirs
        assert sorted((row["id"], row["day"]) for row in theirs) == expected[version]
        spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
        assert rows_by_us(table, COLUMNS) == rows_by_spark(spark, table, COLUMNS)
        insert(spark, table, 100 * version, 2)


def left_over_by_spark(spark: SparkSession, table: Path, hours: float | None) -> set[str]:
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    # Otherwise 10,000 tasks list the files.
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    retain = "" if hours is None else f" RETAIN {hours} HOURS"
    found = spark.sql(f"VACUUM delta.`{table}`{retain} DRY RUN").collect()
    return {row["path"].removeprefix(f"file:{table}/") for row in found}


@pytest.mark.parametrize("feature", FEATURES)
def test_both_vacuum_the_same_files(spark: SparkSession, tmp_path: Path, feature: str):
    table = tmp_path / "t"
    create(spark, table, FEATURES[feature])
    insert(spark, table, 0, 10)
    insert(spark, table, 10, 10)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (2, 13)")
    spark.sql(f"UPDATE delta.`{table}` SET event = parse_json('{{\"n\": -1}}') WHERE id = 4")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 5")
    names = [
        "part-orphan.parquet",
        "day=x%3Dy%25/orphan ü.parquet",
        "other/o.bin",
        "_delta_variant_sketches/1.arrow",
        ".hidden",
        "e/_f/g",
    ]
    for name in (*names, "_change_data/cdc-orphan.parquet"):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_bytes(b"x")
    age(table, 8)
    for hours in (None, 0):
        found = dv.vacuum(table, hours, enforce_retention_duration=False)
        theirs = left_over_by_spark(spark, table, hours)
        assert {path for path in theirs if not (table / path).is_dir()} == set(found.files)
    rows = rows_by_spark(spark, table, COLUMNS)
    assert dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False).files == found.files
    assert rows_by_spark(spark, table, COLUMNS) == rows == rows_by_us(table, COLUMNS)
    left = {path for path in left_over_by_spark(spark, table, 0) if not (table / path).is_dir()}
    assert left == set()


def test_spark_reads_a_table_of_ours_after_a_vacuum(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    for number in range(3):
        rows = pa.table({"id": [number], "day": ["a"], "event": pa.array([f'{{"n": {number}}}'], pa.json_())})
        dv.write_table(table, rows, mode="append")
    dv.update(table, {"event:n": "10"}, "id = 1")
    dv.optimize(table)
    found = dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False)
    assert len(found.files) == 4
    assert rows_by_us(table, COLUMNS) == rows_by_spark(spark, table, COLUMNS)
    assert len(rows_by_us(table, COLUMNS)) == 3
