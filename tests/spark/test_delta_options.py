"""The options of the format `delta_variant` have the names and the meaning of Delta on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType as SparkStruct
from spark.driver import driver
from spark.sources import read_batches, stream_source
from spark.twins import CHANGE_FEED

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import (
    CommitConflictError,
    SchemaError,
    TimestampAfterLatestError,
    UnsupportedFeatureError,
)
from delta_variant.expressions.tree import Extraction
from delta_variant.spark.data_source import DeltaVariantSource
from delta_variant.spark.sources import BatchSource
from delta_variant.spark.stream_sources import Position
from delta_variant.spark.task_errors import TaskError

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
"""The time of version 0 of the table; each later version is of the next hour."""

READ, STREAM, WRITE = "read", "stream", "write"
# The value of each option of Delta that this package has, by what accepts it.
ACCEPTED = {
    READ: {
        "versionAsOf": "0",
        "timestampAsOf": "2026-03-01 12:30:00",
        "readChangeFeed": "true",
        "readChangeData": "true",
        "startingVersion": "0",
        "startingTimestamp": "2026-03-01",
        "endingVersion": "1",
        "endingTimestamp": "2026-03-02",
        "path": None,
    },
    STREAM: {
        "readChangeFeed": "true",
        "readChangeData": "true",
        "startingVersion": "latest",
        "startingTimestamp": "2026-03-01",
        "maxFilesPerTrigger": "1",
        "maxBytesPerTrigger": "1g",
        "ignoreDeletes": "true",
        "ignoreChanges": "true",
        "skipChangeCommits": "true",
        "failOnDataLoss": "true",
        "path": None,
    },
    WRITE: {
        "mergeSchema": "true",
        "overwriteSchema": "true",
        "replaceWhere": "day = 'a'",
        "optimizeWrite": "false",
        "partitionOverwriteMode": "STATIC",
        "txnAppId": "app",
        "txnVersion": "1",
        "userMetadata": "nightly",
        "dataChange": "true",
        "compression": "zstd",
        "path": None,
        "queryName": "q",
        "checkpointLocation": "/checkpoint",
    },
}
REJECTED_VALUES = {
    "failOnDataLoss": ("false", "new checkpoint"),
    "optimizeWrite": ("true", "SparkEngine"),
    "dataChange": ("false", "optimize"),
}
REJECTED = {
    "excludeRegex": "where",
    "ignoreFileDeletion": "ignoreDeletes",
    "schemaTrackingLocation": "restart the query",
    "schemaLocation": "restart the query",
    "streamingSourceTrackingId": "restart the query",
    "allowSourceColumnDrop": "restart the query",
    "allowSourceColumnRename": "restart the query",
    "allowSourceColumnTypeChange": "restart the query",
    "replaceOn": "merge",
    "replaceUsing": "merge",
    "targetAlias": "merge",
    "useNullIntolerantEqualityWithDPO": "merge",
    "maxRecordsPerFile": "target_file_size",
    "parquet.writer.version": "delta.parquet.format.version",
    "spark.sql.parquet.outputTimestampType": "microseconds",
    "writePartitionColumns": "in the log",
    "__v1_save_as_table_overwrite": "catalog",
}
WITH_ROWS = SparkStruct().add("id", "long").add("day", "string")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with a change data feed and versions of three hours: two appends and a delete."""
    path = tmp_path / "t"
    # Otherwise Delta's JARs reject time travel to old versions.
    retention = {"delta.deletedFileRetentionDuration": "interval 5000 weeks"}
    dv.write_table(path, ids(1, 2), partition_by="day", configuration={**CHANGE_FEED, **retention})
    dv.write_table(path, ids(3), mode="append")
    dv.delete(path, "id = 1")
    for version in range(3):
        time = (NOON + timedelta(hours=version)).timestamp()
        os.utime(path / "_delta_log" / f"{version:020}.json", (time, time))
    return path


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": numbers, "day": ["ab"[number % 2] for number in numbers]})


def source(table: Path, options: Mapping[str, str]) -> DeltaVariantSource:
    return DeltaVariantSource({"path": str(table), **options})


def read(table: Path, column: str = "id", **options: str) -> list[Any]:
    """Return a column of the rows that a batch reads, sorted."""
    found = source(table, options)
    reader = found.reader(found.schema())
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return sorted(value for batch in batches for value in batch.column(column).to_pylist())


def write(table: Path, rows: pa.Table, *, overwrite: bool = False, **options: str) -> None:
    schema = SparkStruct()
    for name in rows.column_names:
        schema = schema.add(name, {"id": "long"}.get(name, "string"))
    sink = source(table, options).writer(schema, overwrite)
    sink.commit([sink.write(iter(rows.to_batches()))])


def opened(kind: str, table: Path, options: Mapping[str, str]) -> Any:
    """Return the reader or the writer of the format for options."""
    found = source(table, options)
    if kind == WRITE:
        overwrites = {"overwriteschema", "replacewhere"} & {name.lower() for name in options}
        return found.writer(WITH_ROWS, bool(overwrites))
    return found.reader(found.schema()) if kind == READ else found.streamReader(found.schema())


FEED = {"readChangeFeed": "true"}
NEEDED = {
    "startingVersion": FEED,
    "startingTimestamp": FEED,
    "endingVersion": FEED,
    "endingTimestamp": FEED,
    "txnAppId": {"txnVersion": "1"},
    "txnVersion": {"txnAppId": "app"},
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in ACCEPTED.items() for name in names]
)
@pytest.mark.parametrize("spell", [str, str.lower, str.upper])
def test_an_option_of_delta_is_accepted_in_any_case(
    table: Path, kind: str, name: str, spell: Callable[[str], str]
):
    value = ACCEPTED[kind][name]
    needed = NEEDED.get(name, {}) if kind != STREAM else {}
    opened(kind, table, {} if value is None else {spell(name): value, **needed})
    if value is not None and name not in ("queryName", "checkpointLocation"):
        with pytest.raises(ValueError, match="unknown option"):
            opened(kind, table, {f"{spell(name)}s": value, **needed})


@pytest.mark.parametrize("kind", [READ, STREAM, WRITE])
@pytest.mark.parametrize("name", REJECTED)
def test_an_option_that_is_not_supported_is_an_error_with_the_way_out(table: Path, kind: str, name: str):
    with pytest.raises(UnsupportedFeatureError, match=REJECTED[name]) as caught:
        opened(kind, table, {name: "true"})
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", REJECTED_VALUES)
def test_a_value_that_is_not_supported_is_an_error_with_the_way_out(table: Path, name: str):
    value, remedy = REJECTED_VALUES[name]
    kind = STREAM if name in ACCEPTED[STREAM] else WRITE
    with pytest.raises(UnsupportedFeatureError, match=remedy):
        opened(kind, table, {name: value})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, names in ACCEPTED.items()
        for name in {**ACCEPTED[READ], **ACCEPTED[STREAM], **ACCEPTED[WRITE]}
        if name not in names and name not in ("queryName", "checkpointLocation")
    ],
)
def test_an_option_of_another_operation_is_an_error(table: Path, kind: str, name: str):
    value = next(names[name] for names in ACCEPTED.values() if name in names)
    with pytest.raises(ValueError, match=f"unknown option '{name.lower()}'"):
        opened(kind, table, {name: str(value)})


def test_every_option_of_delta_is_accepted_or_rejected(spark_with_delta: SparkSession):
    options = driver()._jvm.org.apache.spark.sql.delta.DeltaOptions
    keys = options.validOptionKeys().mkString("\n").split("\n")
    listed = {name.lower() for names in [*ACCEPTED.values(), REJECTED] for name in names}
    assert {key.lower() for key in keys} - listed == set()
    assert len(keys) > 20


def test_a_schema_and_columns_are_all_that_a_read_reads(tmp_path: Path):
    rows = [{"id": 1, "event": {"user": {"id": 7}, "n": "x"}}]
    dv.write_table(tmp_path, rows, variant_columns=["event"])
    extracting = source(tmp_path, {"columns": '{"user": "event:user.id::int"}'})
    for reader, inputs in (
        (source(tmp_path, {}).reader(SparkStruct().add("id", "long")), [("id",)]),
        (extracting.reader(extracting.schema()), [("event", "user", "id")]),
    ):
        assert isinstance(reader, BatchSource)
        query = reader._reader.query
        found = [
            (each.column, *each.path) if isinstance(each, Extraction) else (each.name,)
            for each in query.inputs
        ]
        assert found == inputs


def test_version_as_of_reads_that_version(table: Path):
    assert read(table, versionAsOf="1") == [1, 2, 3]
    with pytest.raises(ValueError, match="version and timestamp exclude each other"):
        read(table, versionAsOf="1", timestampAsOf="2026-03-01")


@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("Asia/Tokyo", 9), ("America/Los_Angeles", -8)])
def test_times_are_in_the_time_zone_of_the_session(table: Path, zone: str, hours: int):
    def local(after: float) -> str:
        return (NOON + timedelta(hours=hours + after)).strftime("%Y-%m-%d %H:%M:%S")

    assert read(table, timezone=zone, timestampAsOf=local(1.5)) == [1, 2, 3]
    assert read(table, timezone=zone, timestampAsOf="2026-03-01T14:00:00Z") == [2, 3]
    with pytest.raises(TimestampAfterLatestError):
        read(table, timezone=zone, timestampAsOf=local(3))
    feed = {"timezone": zone, "readChangeFeed": "true"}
    changes = read(table, startingTimestamp=local(0.5), endingTimestamp=local(1.5), **feed)
    assert changes == [3]
    stream = stream_source(table, timezone=zone, startingTimestamp=local(0.5))
    assert Position(**stream.initialOffset()) == Position(1)
    with pytest.raises(ValueError, match="expected ISO 8601"):
        read(table, timestampAsOf="yesterday")


@pytest.mark.parametrize("name", ["readChangeFeed", "readChangeData"])
def test_read_change_feed_reads_the_changes(table: Path, name: str):
    assert read(table, startingVersion="1", **{name: "true"}) == [1, 3]
    assert read(table, **{name: "false"}) == [2, 3]


def test_starting_and_ending_version_are_inclusive(table: Path):
    feed = {"readChangeFeed": "true"}
    assert read(table, "_commit_version", startingVersion="1", **feed) == [1, 2]
    assert read(table, "_commit_version", startingVersion="0", endingVersion="1", **feed) == [0, 0, 1]


def test_starting_version_starts_a_stream(table: Path):
    assert Position(**stream_source(table, startingVersion="1").initialOffset()) == Position(1)
    assert Position(**stream_source(table, startingVersion="latest").initialOffset()) == Position(3)


@pytest.mark.parametrize("option", [{"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1"}])
def test_a_micro_batch_is_limited(table: Path, option: dict[str, str]):
    assert sorted(chain.from_iterable(read_batches(table, "id", **option))) == [2, 3]
    assert max(map(len, read_batches(table, "id", **option))) == 1


@pytest.mark.parametrize(
    ("option", "expected"),
    [("ignoreDeletes", [1, 2, 3]), ("ignoreChanges", [1, 2, 3]), ("skipChangeCommits", [1, 2, 3])],
)
def test_commits_that_remove_files_are_tolerated(table: Path, option: str, expected: list[int]):
    batches = read_batches(table, "id", startingVersion="0", **{option: "true"})
    assert sorted(chain.from_iterable(batches)) == expected
    stream = stream_source(table, startingVersion="2", **{option: "false"})
    with pytest.raises(UnsupportedFeatureError, match="removes rows"):
        stream.latestOffset(stream.initialOffset(), ReadAllAvailable())


def test_merge_schema_adds_columns(table: Path):
    more = ids(9).append_column("more", pa.array(["x"]))
    with pytest.raises(SchemaError, match="more"):
        write(table, more, mergeSchema="false")
    write(table, more, mergeSchema="true")
    names = [field.name for field in dv.load_snapshot(table).schema.fields]
    assert names == ["id", "day", "more"]
    assert read(table) == [2, 3, 9]


def test_overwrite_schema_replaces_the_columns(table: Path):
    other = pa.table({"day": ["c"], "name": ["nine"]})
    write(table, other, overwrite=True, overwriteSchema="true")
    assert dv.read_table(table).to_table().to_pylist() == [{"day": "c", "name": "nine"}]
    with pytest.raises(ValueError, match="requires mode='overwrite'"):
        write(table, other, overwriteSchema="true")
    with pytest.raises(ValueError, match="exclude each other"):
        write(table, other, overwrite=True, overwriteSchema="true", mergeSchema="true")


def test_replace_where_replaces_the_rows_of_a_predicate(table: Path):
    write(table, ids(5, 7), overwrite=True, replaceWhere="day = 'b'")
    assert read(table) == [2, 5, 7]
    with pytest.raises(TaskError, match="PredicateViolationError"):
        write(table, ids(6), overwrite=True, replaceWhere="day = 'b'")
    with pytest.raises(ValueError, match="requires mode='overwrite'"):
        write(table, ids(5), replaceWhere="day = 'b'")


def test_a_transaction_is_written_once(table: Path):
    for number in (4, 5):
        write(table, ids(number), txnAppId="app", txnVersion="7")
    assert read(table) == [2, 3, 4]
    assert dv.load_snapshot(table).txns["app"].version == 7


def test_user_metadata_is_that_of_the_commit(table: Path):
    write(table, ids(4), userMetadata="nightly")
    assert dv.history(table)[0].metadata == "nightly"


# With Spark.


def outcome(
    spark: SparkSession, table: Path, name: str, mode: str, query: str, options: Mapping[str, str]
) -> Any:
    """Return the rows and the columns of a table after a write by a format, or that it failed."""
    try:
        spark.sql(query).write.format(name).mode(mode).options(**options).save(str(table))
    except (PySparkException, CommitConflictError):
        return "failed"
    found = dv.read_table(table).to_table()
    return found.column_names, sorted(map(str, found.to_pylist()))


@pytest.mark.parametrize(
    ("mode", "query", "options"),
    [
        ("append", "select 4L as id, 'a' as day, 'x' as more", {}),
        ("append", "select 4L as id, 'a' as day, 'x' as more", {"mergeSchema": "true"}),
        ("overwrite", "select 4L as id, 'a' as day, 'x' as more", {}),
        ("overwrite", "select 4L as id, 'a' as day, 'x' as more", {"mergeSchema": "true"}),
        ("overwrite", "select 'x' as id, 'a' as day", {"overwriteSchema": "true"}),
        ("overwrite", "select 'x' as id, 'a' as day", {}),
        ("overwrite", "select 4L as id, 'a' as day", {"replaceWhere": "day = 'a'"}),
        ("overwrite", "select 5L as id, 'b' as day", {"replaceWhere": "day = 'a'"}),
        ("overwrite", "select 4L as id, 'a' as day", {"partitionOverwriteMode": "static"}),
        ("overwrite", "select 4L as id, 'a' as day", {"partitionOverwriteMode": "dynamic"}),
        ("append", "select 4L as id, 'a' as day", {"txnAppId": "app", "txnVersion": "1"}),
    ],
)
def test_a_write_has_the_outcome_of_delta(
    spark_with_delta: SparkSession, tmp_path: Path, mode: str, query: str, options: dict[str, str]
):
    dvs.register(spark_with_delta)
    found = []
    for name in ("delta", "delta_variant"):
        path = tmp_path / name
        dv.write_table(path, ids(1, 2, 3), partition_by="day")
        found.append(outcome(spark_with_delta, path, name, mode, query, options))
    assert found[0] == found[1]


def test_a_time_is_that_of_delta_in_the_time_zone_of_the_session(spark_with_delta: SparkSession, table: Path):
    spark = spark_with_delta
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        dvs.register(spark)
        # It is 21:30 in Tokyo half an hour after version 0.
        for text, expected in (("2026-03-01 21:30:00", 2), ("2026-03-01 22:00:00", 3)):
            found = [
                spark.read.format(name).option("timestampAsOf", text).load(str(table)).count()
                for name in ("delta", "delta_variant")
            ]
            assert found == [expected, expected]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
        dvs.register(spark)
