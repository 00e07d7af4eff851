"""Streams of tables whose rows change: the commits that are accepted, and the change data feed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from spark.sources import read_batches, stream_source
from spark.tables import finished
from spark.twins import CHANGE_FEED
from support.commits import commit_actions

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import (
    ChangesNotRecordedError,
    SchemaError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from delta_variant.protocol.actions import CommitInfo
from delta_variant.spark.data_source import DeltaVariantSource
from delta_variant.spark.stream_sources import Follower, Position, Tolerance

TOLERANCES: list[Tolerance | None] = [None, "ignore_deletes", "ignore_changes", "skip_change_commits"]
DELTA_NAMES = {
    "ignore_deletes": "ignoreDeletes",
    "ignore_changes": "ignoreChanges",
    "skip_change_commits": "skipChangeCommits",
}


def append(table: Path, *ids: int, **options: Any) -> None:
    rows = [{"id": n, "day": f"d{n % 2}", "event": {"n": n}} for n in ids]
    dv.write_table(table, rows, mode="append", variant_columns=["event"], **options)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table whose commits append, delete a partition, update rows and append."""
    append(tmp_path / "t", 1, 2, 3, 4, partition_by="day", configuration=CHANGE_FEED)
    dv.delete(tmp_path / "t", "day = 'd1'")
    dv.update(tmp_path / "t", {"event:n": "20"}, "id = 2")
    append(tmp_path / "t", 5)
    return tmp_path / "t"


def files_of(table: Path, tolerance: Tolerance | None, start: int) -> list[tuple[int, int]]:
    """Return version and number of files of each commit that a stream reads."""
    snapshot = dv.load_snapshot(table)
    follower = Follower(snapshot, frozenset({tolerance} if tolerance else ()))
    steps = [step for step in follower.steps(Position(start)) if step.file is not None]
    return [(step.after.version, step.after.index) for step in steps]


def test_each_option_accepts_the_commits_that_it_names(table: Path):
    assert files_of(table, "skip_change_commits", 0) == [(0, 1), (0, 2), (3, 1)]
    assert files_of(table, "ignore_changes", 0) == [(0, 1), (0, 2), (2, 1), (3, 1)]
    with pytest.raises(UnsupportedFeatureError, match=r"changes or removes rows \(UPDATE\)") as caught:
        files_of(table, "ignore_deletes", 0)
    assert caught.value.version == 2
    with pytest.raises(UnsupportedFeatureError, match=r"removes rows \(DELETE\).* ignore_deletes") as caught:
        files_of(table, None, 0)
    assert caught.value.version == 1
    dv.write_table(
        table, [{"id": 9, "day": "d1", "event": None}], mode="overwrite", variant_columns=["event"]
    )
    with pytest.raises(
        UnsupportedFeatureError, match=r"\(WRITE\).* skip_change_commits .*starting_version=5"
    ):
        files_of(table, None, 4)
    assert files_of(table, "skip_change_commits", 4) == []


def test_the_commits_before_one_that_fails_are_read_first(table: Path):
    append(table, 6)
    dv.delete_all(table)
    source = stream_source(table, startingVersion="3")
    end = source.latestOffset(Position(3).offset, ReadAllAvailable())
    assert Position(**end) == Position(5)
    with pytest.raises(UnsupportedFeatureError, match="starting_version=6"):
        source.latestOffset(end, ReadAllAvailable())


def test_a_stream_continues_after_two_changes_of_the_schema(tmp_path: Path):
    append(tmp_path, 1)
    before = stream_source(tmp_path)
    for name in ("more", "still_more"):
        dv.write_table(tmp_path, [{"id": 2, name: 1}], mode="append", schema_mode="merge")
    with pytest.raises(SchemaError, match=r"version 1 of .* restart the query"):
        before.latestOffset(Position(1).offset, ReadAllAvailable())
    restarted = stream_source(tmp_path)
    assert Position(**restarted.latestOffset(Position(1).offset, ReadAllAvailable())) == Position(3)


@pytest.mark.parametrize("start", [Position(0), Position(0, is_initial=True)])
def test_rows_that_do_not_fit_the_schema_fail_the_stream(tmp_path: Path, start: Position):
    dv.write_table(tmp_path, [{"id": 1}])
    dv.write_table(tmp_path, [{"id": "a"}], mode="overwrite", schema_mode="overwrite")
    source = stream_source(tmp_path, skipChangeCommits="true")
    with pytest.raises(SchemaError, match=r"version 0 .*changed its type from long to string") as caught:
        source.latestOffset(start.offset, ReadAllAvailable())
    assert (caught.value.version, caught.value.column) == (0, "id")
    assert Position(**source.latestOffset(Position(1).offset, ReadAllAvailable())) == Position(2)


def test_the_feed_of_a_stream_must_be_recorded_at_each_version(tmp_path: Path):
    append(tmp_path, 1, configuration=CHANGE_FEED)
    append(tmp_path, 2)
    dv.set_properties(tmp_path, {"delta.enableChangeDataFeed": "false"})
    source = stream_source(tmp_path, readChangeFeed="true", startingVersion="0")
    end = source.latestOffset(Position(0).offset, ReadAllAvailable())
    assert Position(**end) == Position(2)
    with pytest.raises(ChangesNotRecordedError, match="at version 2"):
        source.latestOffset(end, ReadAllAvailable())


def test_a_stream_starts_at_a_time(table: Path):
    time = dv.read_changes(table, start=2, end=2).to_table()["_commit_timestamp"][0].as_py()
    source = stream_source(table, readChangeFeed="true", startingTimestamp=time.isoformat())
    assert Position(**source.initialOffset()) == Position(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": "1", "starting_version": "1"}, "'starting_version' is set twice"),
        ({"startingVersion": "1", "startingTimestamp": "2026-01-01"}, "exclude each other"),
        ({"readChangeFeed": "yes"}, "invalid value 'yes' of the option 'read_change_feed'"),
        ({"read_changes": "true"}, "unknown option 'read_changes'"),
    ],
)
def test_contradictory_options_are_errors(table: Path, options: dict[str, str], message: str):
    with pytest.raises(ValueError, match=message):
        stream_source(table, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": "1"}, "starting_version needs read_change_feed"),
        ({"readChangeFeed": "true", "version": "1"}, "read_change_feed and version exclude each other"),
        (
            {"readChangeFeed": "true", "endingVersion": "1", "endingTimestamp": "2026-01-01"},
            "exclude each other",
        ),
    ],
)
def test_contradictory_options_of_a_batch_are_errors(table: Path, options: dict[str, str], message: str):
    source = DeltaVariantSource({"path": str(table), **options})
    with pytest.raises(ValueError, match=message):
        source.reader(source.schema())


def test_a_commit_that_was_cleaned_up_does_not_continue_a_stream(table: Path):
    dv.Table(table).checkpoint()
    for version in (0, 1):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    source = stream_source(table, startingVersion="1")
    message = "version 1 of .* may have been cleaned up: .*start a new query"
    with pytest.raises(VersionNotFoundError, match=message):
        source.latestOffset(source.initialOffset(), ReadAllAvailable())


def test_a_start_that_the_table_cannot_have_is_an_error(table: Path):
    with pytest.raises(VersionNotFoundError, match=r"at version 9 of .* because its latest version is 3"):
        stream_source(table, startingVersion="9").initialOffset()
    assert stream_source(table, startingVersion="4").initialOffset()["version"] == 4
    with pytest.raises(ValueError, match="invalid value '-1' of the option 'starting_version'"):
        stream_source(table, startingVersion="-1")


def ids_between(table: Path, start: dict[str, Any], end: dict[str, Any], **options: str) -> list[int]:
    source = stream_source(table, **options)
    rows = [batch for group in source.partitions(start, end) for batch in source.read(group)]
    return sorted(chain.from_iterable(batch["id"].to_pylist() for batch in rows))


@pytest.mark.parametrize("feed", ["false", "true"])
@pytest.mark.parametrize(
    ("limit", "start", "expected"),
    [("1000", "", [1, 2]), ("1", "", [2]), ("1000", "latest", [])],
    ids=["whole version", "one file", "latest"],
)
def test_a_first_batch_that_is_repeated_has_its_rows(
    tmp_path: Path, limit: str, start: str, expected: list[int], feed: str
):
    """Spark records the end of the first batch, and passes the start of a new query to repeat it."""
    table, options = tmp_path / "t", {"readChangeFeed": feed, "maxFilesPerTrigger": limit}
    options |= {"startingVersion": start} if start else {}
    append(table, 0, partition_by="day", configuration=CHANGE_FEED)
    dv.delete(table, "id = 0")
    append(table, 1, 2)
    first = stream_source(table, **options)
    end = first.latestOffset(first.initialOffset(), first.getDefaultReadLimit())
    append(table, 3)
    dv.delete(table, "id = 2")
    append(table, 4)
    assert first.initialOffset() != stream_source(table, **options).initialOffset()
    for source in (first, stream_source(table, **options)):
        assert ids_between(table, source.initialOffset(), end, **options) == expected


# With Spark.


def streamed(
    spark: SparkSession, table: Path, name: str, folder: Path, **options: str
) -> list[tuple[Any, ...]]:
    """Return the rows that a stream of a format reads until now, from its last checkpoint."""
    reader = spark.readStream.format(name)
    for each, text in options.items():
        reader = reader.option(each, text)
    df = reader.load(str(table)).selectExpr("*", "to_json(event) AS text").drop("event", "_commit_timestamp")
    query = df.writeStream.format("parquet").option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    finished(query.trigger(availableNow=True).start(str(folder / f"{name}-rows")))
    return sorted((tuple(row) for row in spark.read.parquet(str(folder / f"{name}-rows")).collect()), key=str)


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_each_option_has_the_meaning_that_it_has_in_delta(
    spark_with_delta: SparkSession, table: Path, tmp_path: Path, tolerance: Tolerance | None
):
    dvs.register(spark_with_delta)
    option = {DELTA_NAMES[tolerance]: "true"} if tolerance else {}
    found = []
    for name in ("delta", "delta_variant"):
        try:
            found.append(streamed(spark_with_delta, table, name, tmp_path, startingVersion="0", **option))
        except StreamingQueryException:
            found.append(None)
    assert found[0] == found[1]
    assert (found[0] is None) == (tolerance in (None, "ignore_deletes"))


def delete_partition(table: Path) -> None:
    dv.delete(table, "day = 'd1'")


def delete_rows(table: Path) -> None:
    dv.delete(table, "id = 1")


def update_rows(table: Path) -> None:
    dv.update(table, {"event:n": "20"}, "id = 2")


def merge_inserts(table: Path) -> None:
    rows = [{"id": 9, "day": "d0", "event": None}]
    merge = dv.merge(table, rows, "target.id = source.id", variant_columns=["event"])
    merge.when_not_matched_insert_all().execute()


def merge_updates(table: Path) -> None:
    rows = [{"id": 2, "day": "d1", "event": None}]
    merge = dv.merge(table, rows, "target.id = source.id", variant_columns=["event"])
    merge.when_matched_update_all().execute()


def overwrite(table: Path) -> None:
    rows = [{"id": 9, "day": "d0", "event": None}]
    dv.write_table(table, rows, mode="overwrite", variant_columns=["event"])


def replace_day(table: Path) -> None:
    rows = [{"id": 9, "day": "d1", "event": None}]
    dv.write_table(table, rows, mode="overwrite", where="day = 'd1'", variant_columns=["event"])


def restore(table: Path) -> None:
    dv.restore(table, 0)


def compact(table: Path) -> None:
    assert dv.optimize(table).files_before == 4


def set_property(table: Path) -> None:
    dv.set_properties(table, {"delta.logRetentionDuration": "interval 9 days"})


def mark_rows(table: Path) -> None:
    dv.set_properties(table, {"delta.enableDeletionVectors": "true"})
    dv.delete(table, "id = 1")


COMMITS = [
    delete_partition,
    delete_rows,
    update_rows,
    merge_inserts,
    merge_updates,
    overwrite,
    replace_day,
    restore,
    compact,
    set_property,
    mark_rows,
]


@pytest.mark.parametrize("change", COMMITS, ids=lambda change: change.__name__)
def test_each_kind_of_commit_is_read_as_delta_reads_it(
    spark_with_delta: SparkSession, tmp_path: Path, change: Callable[[Path], None]
):
    """Compare with the rows of Delta's JARs, or its error, under each option."""
    table = tmp_path / "t"
    append(table, 1, 2, 3, 4, partition_by="day")
    append(table, 5, 6)
    change(table)

    def delta(option: dict[str, str]) -> list[int] | None:
        rows = spark_with_delta.readStream.format("delta").options(startingVersion="0", **option)
        query = rows.load(str(table)).select("id").writeStream.trigger(availableNow=True)
        try:
            finished(query.format("memory").queryName("found").start())
        except StreamingQueryException:
            return None
        return sorted(row.id for row in spark_with_delta.table("found").collect())

    def ours(option: dict[str, str]) -> list[int] | None:
        try:
            return sorted(chain.from_iterable(read_batches(table, "id", startingVersion="0", **option)))
        except UnsupportedFeatureError:
            return None

    for tolerance in TOLERANCES:
        option = {DELTA_NAMES[tolerance]: "true"} if tolerance else {}
        assert (tolerance, ours(option)) == (tolerance, delta(option))


@pytest.mark.parametrize(
    "limits",
    [
        {"maxFilesPerTrigger": "1"},
        {"maxFilesPerTrigger": "3"},
        {"maxBytesPerTrigger": "1"},
        {"maxBytesPerTrigger": "4k", "maxFilesPerTrigger": "3"},
    ],
    ids=str,
)
def test_limits_make_the_micro_batches_of_delta(
    spark_with_delta: SparkSession, tmp_path: Path, limits: dict[str, str]
):
    table = tmp_path / "t"
    append(table, 1, 2, 3, 4, partition_by="day", configuration=CHANGE_FEED)
    append(table, 5, 6, 8)
    # A row moves to another partition: its images before and after are in two change data files.
    dv.update(table, {"day": "'d1'"}, "id = 2")
    dv.delete(table, "day = 'd0'")
    append(table, 7)
    options = {**limits, "readChangeFeed": "true", "startingVersion": "0"}
    stream = spark_with_delta.readStream.format("delta").options(**options).load(str(table))
    query = finished(stream.writeStream.format("noop").trigger(availableNow=True).start())
    expected = [each.numInputRows for each in query.recentProgress if each.numInputRows]
    found = read_batches(table, "id", **options)
    assert [len(batch) for batch in found] == expected
    assert sum(expected) == 8 + 2 + 3


def test_changes_are_streamed_once_as_delta_streams_them(
    spark_with_delta: SparkSession, table: Path, tmp_path: Path
):
    spark = spark_with_delta
    dvs.register(spark)
    options = {"readChangeFeed": "true", "maxFilesPerTrigger": "1"}
    runs = []
    for operation in (
        lambda: None,
        lambda: dv.delete(table, "id = 4"),
        lambda: dv.write_table(table, [{"id": 2, "day": "d0"}], mode="overwrite", where="id = 2"),
    ):
        operation()
        found, expected = (
            streamed(spark, table, name, tmp_path, **options) for name in ("delta_variant", "delta")
        )
        assert found == expected
        runs.append(len(found))
    # The rows of the first run are insertions, each of the latest version.
    assert runs == [3, 4, 6]
    batch = spark.read.format("delta_variant").option("readChangeFeed", "true").option("startingVersion", 1)
    changes = (
        batch.option("endingVersion", 3).load(str(table)).select("id", "_change_type", "_commit_version")
    )
    expected_batch = dv.read_changes(table, start=1, end=3, columns=changes.columns).to_pylist()
    assert sorted(map(tuple, changes.collect())) == sorted(tuple(row.values()) for row in expected_batch)
    assert len(expected_batch) == 5


def rewrite_schema(table: Path, change: Callable[[list[dict[str, Any]]], object], **more: Any) -> None:
    """Commit the schema of a table after a change of its fields, as ALTER TABLE does."""
    state = dv.load_snapshot(table)
    schema = json.loads(state.metadata.schema_string)
    change(schema["fields"])
    metadata = replace(state.metadata, schema_string=json.dumps(schema), **more)
    commit_actions(state.store, state.version + 1, [CommitInfo({}), metadata])


def rename(fields: list[dict[str, Any]]) -> None:
    fields[0]["name"], fields[1]["name"] = "key", "date"


def rename_in_struct(fields: list[dict[str, Any]]) -> None:
    fields[2]["type"]["fields"][0]["name"] = "renamed"


@pytest.mark.parametrize("feed", ["true", "false"])
@pytest.mark.parametrize("is_initial", [True, False])
def test_a_stream_passes_columns_that_mapping_renamed_and_dropped(
    tmp_path: Path, feed: str, is_initial: bool
):
    columns = {"delta.columnMapping.mode": "name", **CHANGE_FEED}
    options: dict[str, Any] = {"configuration": columns, "partition_by": "day"}
    for number in range(2):
        rows = [{"id": number, "day": "d", "s": {"a": number, "b": 1}, "obsolete": 1}]
        dv.write_table(tmp_path / "t", rows, mode="append", **(options if number == 0 else {}))
    rewrite_schema(tmp_path / "t", rename, partition_columns=("date",))
    rewrite_schema(tmp_path / "t", rename_in_struct)
    rewrite_schema(tmp_path / "t", lambda fields: fields.pop(3))
    dv.write_table(tmp_path / "t", [{"key": 2, "date": "d", "s": {"renamed": 2, "b": 1}}], mode="append")
    source = stream_source(tmp_path / "t", readChangeFeed=feed)
    start = Position(0, is_initial=is_initial).offset
    groups = source.partitions(start, source.latestOffset(start, ReadAllAvailable()))
    found = [row for group in groups for batch in source.read(group) for row in batch.to_pylist()]
    found = [{name: row[name] for name in ("key", "date", "s")} for row in found]
    expected = [{"key": n, "date": "d", "s": {"renamed": n, "b": 1}} for n in range(3)]
    assert sorted(found, key=lambda row: row["key"]) == expected


@pytest.mark.parametrize("feed", ["true", "false"])
@pytest.mark.parametrize(
    ("change", "more", "reason"),
    [
        (lambda fields: fields[0].update(type="string"), {}, "changed its type from long to string"),
        (lambda fields: fields[0].update(nullable=False), {}, "was nullable"),
        (lambda fields: None, {"partition_columns": ()}, "the partition columns changed"),
    ],
)
def test_the_error_of_a_stream_that_cannot_pass_a_change_loses_no_rows(
    tmp_path: Path, feed: str, change: Any, more: dict[str, Any], reason: str
):
    append(tmp_path, 1, 2, partition_by="day", configuration=CHANGE_FEED)
    rewrite_schema(tmp_path, change, **more)
    source = stream_source(tmp_path, readChangeFeed=feed)
    with pytest.raises(SchemaError, match=f"{reason}: start a new query .* without startingVersion"):
        source.latestOffset(Position(0).offset, ReadAllAvailable())


@pytest.mark.parametrize("feed", ["true", "false"])
def test_a_table_that_was_created_again_does_not_continue_a_stream(tmp_path: Path, feed: str):
    def create(commits: int) -> None:
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        for number in range(commits):
            append(tmp_path / "t", number, **({} if number else {"configuration": CHANGE_FEED}))

    create(3)
    before = stream_source(tmp_path / "t", readChangeFeed=feed, startingVersion="1")
    start, limit = before.initialOffset(), ReadAllAvailable()
    end = before.latestOffset(start, limit)
    assert start == {**Position(1).offset, "table_id": dv.load_snapshot(tmp_path / "t").metadata.id}
    # An offset of an earlier version of this package has no id.
    assert before.latestOffset(Position(1).offset, limit) == end
    for commits in (2, 4):
        create(commits)
        again = stream_source(tmp_path / "t", readChangeFeed=feed, startingVersion="1")
        for offset in (start, end):
            with pytest.raises(VersionNotFoundError, match="start a new query with a new checkpoint"):
                again.latestOffset(offset, limit)
        with pytest.raises(VersionNotFoundError, match="start a new query with a new checkpoint"):
            again.partitions(start, end)
    # A query that runs notices it with the first commit that it would read.
    with pytest.raises(VersionNotFoundError, match="its id was"):
        before.latestOffset(end, limit)
    create(1)
    with pytest.raises(VersionNotFoundError, match="latest version is 0, and the stream is at version 3"):
        stream_source(tmp_path / "t", readChangeFeed=feed).latestOffset(Position(3).offset, limit)
