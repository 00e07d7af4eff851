"""Spark and all our readers return the same rows in any time zone of the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark.tables import write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import ConstraintViolationError

ZONE = "spark.sql.session.timeZone"
# This rule compares a timestamp_ntz with the local time of a literal, which differs if the timestamp is in a
# gap. In Berlin, it makes `timestamp_ntz'2024-03-31 02:30:00' = timestamp'2024-03-31 02:30:00'` false.
EXCLUDED = "spark.sql.optimizer.excludedRules"
UNWRAP_CASTS = "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
ZONES = ["America/Los_Angeles", "Europe/Berlin", "-03:30"]

# Around the transitions of Europe/Berlin on 2024-03-31 and 2024-10-27, and around midnight in all zones.
LOCAL_TIMES = [
    "2023-12-31 14:59:59.999999",
    "2023-12-31 23:00:00",
    "2024-01-01 00:00:00",
    "2024-01-01 12:00:00",
    "2024-03-31 00:59:59",
    "2024-03-31 01:30:00",
    "2024-03-31 02:30:00",
    "2024-03-31 21:00:00",
    "2024-10-27 00:30:00",
    "2024-10-27 01:30:00",
    "2024-10-27 02:30:00",
    "1815-06-18 12:00:00",
]
CONDITIONS = [
    "ts >= timestamp'2024-01-01 12:00:00'",
    "ts = timestamp'2024-10-27 02:30:00'",
    "ts < '2024-03-31 02:30:00'",
    "ts between '2024-03-31' and '2024-04-01'",
    "ts in (timestamp'2024-01-01 00:00:00', timestamp'2024-10-27 02:30:00')",
    "ts > timestamp'2024-01-01 00:00:00 America/New_York'",
    "ts::date = date'2024-03-31'",
    "cast(ts as date) <= '2024-01-01'",
    "hour(ts) = 12",
    "year(ts) = 2024 and month(ts) = 1 and day(ts) = 1",
    "day >= ts",
    "day::timestamp <= timestamp'2024-03-31 00:00:00'",
    "day = timestamp'2024-10-27 00:00:00'",
    "local >= ts",
    "local = timestamp'2024-03-31 02:30:00'",
    "local::timestamp > timestamp'2024-10-27 00:59:00Z'",
    "ts::timestamp_ntz < timestamp_ntz'2024-03-31 03:00:00'",
    "ts::string like '2024-01-01 %'",
    "s::timestamp >= timestamp'2024-03-31 01:00:00Z'",
    "s = ts",
    "event:s::timestamp <= timestamp'2024-01-01 00:00:00Z'",
    "event:ts::timestamp >= '2024-03-31 02:30:00'",
    "event:ts::date = date'2024-10-27'",
    "event:ts::string >= '2024-03-31 03:30:00'",
    "event:local::timestamp < timestamp'2024-03-31 01:00:00Z'",
    "event:day::timestamp = timestamp'2024-01-01 00:00:00'",
    "to_json(event) like '%2024-01-01 12:00:00+%'",
]


@pytest.fixture
def session_in(spark: SparkSession) -> Iterator[Callable[[str], SparkSession]]:
    """Return a function that sets the session's time zone until the test ends."""
    before = spark.conf.get(ZONE)

    def set_zone(name: str) -> SparkSession:
        spark.conf.set(ZONE, name)
        dvs.register(spark)
        return spark

    spark.conf.set(EXCLUDED, UNWRAP_CASTS)
    yield set_zone
    spark.conf.unset(EXCLUDED)
    set_zone(before)


def moments(spark: SparkSession) -> DataFrame:
    """Return a row for each local time, also as an instant in UTC, each in its own partition."""
    texts = ", ".join(f"'{each}'" for each in LOCAL_TIMES)
    count = len(LOCAL_TIMES)
    # A list of Python would be sent to the tasks again by Python, for each condition and partition.
    rows = spark.range(0, count, 1, count).selectExpr("int(id) AS id", f"array({texts})[int(id)] AS s")
    plain = rows.selectExpr(
        "*", "to_timestamp_ltz(s || 'Z') AS ts", "s::timestamp_ntz AS local", "s::date AS day"
    )
    return plain.selectExpr("*", "to_variant_object(struct(s, ts, local, day)) AS event")


def by_condition(
    rows: Callable[[str], DataFrame], conditions: Sequence[str] = CONDITIONS
) -> dict[str, list[int]]:
    """Return the ids that `rows` finds for each condition, with one job."""
    parts = [
        rows(condition).selectExpr(f"{number} AS number", "id") for number, condition in enumerate(conditions)
    ]
    found: dict[str, list[int]] = {condition: [] for condition in conditions}
    for number, identity in reduce(DataFrame.unionAll, parts).collect():
        found[conditions[number]].append(identity)
    return {condition: sorted(ids) for condition, ids in found.items()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("zone", ZONES)
def test_all_readers_find_the_rows_that_spark_finds(
    session_in: Callable[[str], SparkSession], tmp_path: Path, zone: str
):
    spark, uri = session_in(zone), str(tmp_path / "t")
    df = moments(spark)
    files = write_frame(uri, df).files
    assert len(files) == len(LOCAL_TIMES)

    expected = by_condition(df.coalesce(1).where)
    assert by_condition(lambda each: dvs.read_table(spark, uri, where=each, reader="kernel")) == expected
    assert by_condition(lambda each: dvs.read_table(spark, uri, where=each, reader="scan")) == expected
    source = spark.read.format("delta_variant")
    # The format hands the condition and the zone to the reader "kernel", in processes that start slowly:
    # each condition in one of the zones, and each zone with some of the conditions.
    some = CONDITIONS[ZONES.index(zone) :: len(ZONES)]
    found = by_condition(lambda each: source.option("where", each).load(uri), some)
    assert found == {each: expected[each] for each in some}
    ours = {
        each: sorted(
            dv.read_table(uri, columns=["id"], where=each, timezone=zone).to_table()["id"].to_pylist()
        )
        for each in CONDITIONS
    }
    assert ours == expected


def test_the_option_of_the_format_overrides_the_time_zone_of_the_session(
    session_in: Callable[[str], SparkSession], tmp_path: Path
):
    spark, uri = session_in("Asia/Tokyo"), str(tmp_path / "t")
    write_frame(uri, moments(spark))
    source = spark.read.format("delta_variant").option("where", "hour(ts) = 12")
    in_utc = source.option("timezone", "UTC").load(uri)
    assert sorted(row.id for row in in_utc.collect()) == [3, 11]


def test_a_handle_uses_the_local_times_of_the_session_in_every_method(
    session_in: Callable[[str], SparkSession], tmp_path: Path
):
    spark, midnight = session_in("Asia/Tokyo"), "ts = timestamp'2024-01-01 00:00:00'"
    table = dv.Table(tmp_path / "t", engine=dvs.SparkEngine(spark))
    rows = spark.sql("SELECT timestamp'2024-01-01 00:00:00' AS ts")
    table.append(rows, configuration={"delta.enableChangeDataFeed": "true"})
    assert table.scan(where=midnight).count() == 1
    assert table.aggregate(["count(*)"], where=midnight).values == {"count(*)": 1}
    assert table.changes(where=midnight).count() == 1
    assert table.add_constraint("midnight", midnight).version == 1
    assert table.delete(midnight).rows_deleted == 1


def test_writes_use_the_local_times_of_the_session(session_in: Callable[[str], SparkSession], tmp_path: Path):
    spark, uri = session_in("Asia/Tokyo"), str(tmp_path / "t")
    rows = moments(spark).select("id", "ts")
    write_frame(uri, rows)
    dv.add_constraint(uri, "old", "ts < '2025-01-01'", timezone="Asia/Tokyo")
    # In Tokyo, 2024-01-01 begins at 15:00 UTC on the day before.
    new_year = rows.where("id in (1, 2, 3)").selectExpr("id + 100 AS id", "ts")
    write_frame(uri, new_year, mode="overwrite", where="ts::date = '2024-01-01'")
    assert sorted(dv.read_table(uri).to_table()["id"].to_pylist()) == [0, *range(4, 12), 101, 102, 103]
    late = spark.sql("SELECT 1000 AS id, timestamp'2025-01-01 00:00:00' AS ts")
    with pytest.raises(ConstraintViolationError, match="old"):
        write_frame(uri, late, mode="append")


def test_partition_values_without_time_zone_are_read_as_spark_reads_them(
    session_in: Callable[[str], SparkSession], spark_with_delta: SparkSession, tmp_path: Path
):
    spark, uri = session_in("Asia/Tokyo"), str(tmp_path / "t")
    setting = "spark.databricks.delta.write.utcTimestampPartitionValues"
    spark.conf.set(setting, "false")
    try:
        moments(spark).select("id", "ts").write.format("delta").partitionBy("ts").save(uri)
    finally:
        spark.conf.unset(setting)
    by_spark = {
        row.id: row.m
        for row in spark.read.format("delta").load(uri).selectExpr("id", "unix_micros(ts) m").collect()
    }
    for reader in ("kernel", "scan"):
        rows = dvs.read_table(spark, uri, reader=reader).selectExpr("id", "unix_micros(ts) m").collect()
        assert {row.id: row.m for row in rows} == by_spark
    ours = dv.read_table(uri, timezone="Asia/Tokyo").to_table()
    assert dict(zip(ours["id"].to_pylist(), ours["ts"].cast(pa.int64()).to_pylist(), strict=True)) == by_spark
