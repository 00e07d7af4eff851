"""Streams into tables write each row once, and streams out of them read each version once."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import InheritableThread
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.utils import is_remote
from spark.sources import read_batches, stream_source
from spark.tables import LONGEST_QUERY, data_files, finished, listed_files, on_spark, rows
from support.intercepted_store import InterceptedObjects

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import AmbiguousWriteError, SchemaError, UnsupportedFeatureError
from delta_variant.operations import write as write_operation
from delta_variant.spark.attempts import Attempt, Job
from delta_variant.spark.engine import RecalledTables, recall
from delta_variant.spark.stream_sinks import query_of
from delta_variant.spark.stream_sources import Follower, Position
from delta_variant.storage import store
from delta_variant.storage.store import open_store, put


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    dvs.register(spark)
    return spark


def add_lines(folder: Path, *texts: str) -> None:
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    path = folder / f"{number:03}.txt"
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    # A stream reads files in the order of their times, which may be equal otherwise.
    os.utime(path, (1_800_000_000 + number,) * 2)


def into_table(
    spark: SparkSession, tmp_path: Path, app_id: str | None = "app", **options: object
) -> StreamingQuery:
    """Stream the lines of a folder into a table with foreachBatch, one file for each batch."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
    writer = dvs.batch_writer(tmp_path / "t", variant_columns=["value"], app_id=app_id, **options)
    query = lines.writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path / "c"))
    return finished(query.trigger(availableNow=True).start())


def append(table: Path, *numbers: int) -> None:
    dv.write_table(
        table, pa.table({"event": pa.array([f'{{"n":{n}}}' for n in numbers], pa.json_())}), mode="append"
    )


# Into a table.


@pytest.mark.classic("the id of a streaming query")
def test_each_micro_batch_is_one_commit_with_the_id_of_the_query(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}', '{"n":2}')
    add_lines(tmp_path / "lines", '{"n":3}')
    query = into_table(spark, tmp_path, app_id=None)
    snapshot = dv.load_snapshot(tmp_path / "t")
    assert snapshot.version == 1
    assert {app: txn.version for app, txn in snapshot.txns.items()} == {str(query.id): 1}
    assert query_of(f"file:{tmp_path / 'c'}") == str(query.id)
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


def record_reads_of_log(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each file of a log is read from now on."""
    read: Counter[str] = Counter()

    def record(call: str, key: str) -> None:
        if call.startswith("get") and "_delta_log/" in key:
            read[key.rpartition("/")[2]] += 1

    monkeypatch.setattr(store, "_LOCAL", InterceptedObjects(store._LOCAL, record))
    return read


@pytest.mark.classic("functions of `foreachBatch` in the process of the client")
def test_a_micro_batch_reads_the_commits_since_the_one_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for number in range(4):
        data = pa.table({"value": pa.array([str(number)], pa.json_())})
        dv.write_table(tmp_path / "t", data, mode="append")
        add_lines(tmp_path / "lines", str(4 + number))
    read = record_reads_of_log(monkeypatch)
    into_table(spark, tmp_path)
    commits = {name: count for name, count in read.items() if name.endswith(".json")}
    assert commits == {f"{version:020}.json": 1 for version in range(7)}
    assert dv.load_snapshot(tmp_path / "t").version == 7


@pytest.mark.classic("functions of `foreachBatch` in the process of the client")
def test_a_merge_of_a_micro_batch_reads_the_commits_since_the_one_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The function that builds the merges of a stream passes a path, in another spelling for each batch."""
    for number in range(4):
        dv.write_table(tmp_path / "t", [{"id": number}], mode="append")
        add_lines(tmp_path / "lines", str(4 + number))
    read, seen = record_reads_of_log(monkeypatch), []

    def build(batch: DataFrame) -> dv.Merge:
        seen.append(Counter(read))
        table = tmp_path / "t" if len(seen) % 2 else (tmp_path / "t").as_uri()
        return on_spark(spark, table).merge(batch, "target.id = source.id").when_not_matched_insert_all()

    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
    query = lines.selectExpr("bigint(value) AS id").writeStream.foreachBatch(dvs.batch_merger(build))
    query = query.option("checkpointLocation", str(tmp_path / "c"))
    finished(query.trigger(availableNow=True).start())
    commits = {name: count for name, count in read.items() if name.endswith(".json")}
    assert commits == {f"{version:020}.json": 1 for version in range(7)}
    assert len(seen) == 4
    assert rows(tmp_path / "t", id="id") == [{"id": number} for number in range(8)]


def test_a_stream_recalls_the_tables_of_its_last_batch(tmp_path: Path):
    handle, tables = dv.Table(str(tmp_path / "handle")), RecalledTables()
    with tables.of_batch():
        first, other = recall(tmp_path / "t"), recall(tmp_path / "other")
        assert recall(handle) is handle
        assert recall((tmp_path / "t").as_uri()) is first
    with tables.of_batch():
        assert recall(str(tmp_path / "t")) is first
    with tables.of_batch():
        assert recall(tmp_path / "other") is not other
    with RecalledTables().of_batch():
        assert recall(tmp_path / "t") is not first
    assert recall(tmp_path / "t") == tmp_path / "t"


def test_a_batch_that_spark_forgot_is_not_written_again(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}')
    add_lines(tmp_path / "lines", '{"n":2}')
    into_table(spark, tmp_path)
    # The state after a driver crashes between our commit and Spark's.
    (tmp_path / "c" / "commits" / "1").unlink()
    (tmp_path / "c" / "commits" / ".1.crc").unlink(missing_ok=True)
    add_lines(tmp_path / "lines", '{"n":3}')
    into_table(spark, tmp_path)
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_schema_evolves_between_micro_batches(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}')
    into_table(spark, tmp_path)
    add_lines(tmp_path / "lines", '{"n":{"m":2}}')
    lines = spark.readStream.text(str(tmp_path / "lines")).selectExpr("value", "length(value) AS length")
    options = {"app_id": "app", "variant_columns": ["value"], "schema_mode": "merge"}
    writer = dvs.batch_writer(tmp_path / "t", **options)
    query = lines.writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path / "c"))
    finished(query.trigger(availableNow=True).start())
    assert rows(tmp_path / "t", n="to_json(value)", length="length") == [
        {"n": '{"n":1}', "length": None},
        {"n": '{"n":{"m":2}}', "length": 13},
    ]


def test_an_option_that_does_not_exist_is_an_error_before_the_first_batch(tmp_path: Path):
    with pytest.raises(TypeError, match="on_invalid"):
        dvs.batch_writer(tmp_path / "t", on_invalid="reject")


def test_a_line_with_invalid_json_fails_the_stream_or_is_rejected(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}')
    add_lines(tmp_path / "lines", '{"n":2}', "{")
    with pytest.raises(StreamingQueryException, match="InvalidJsonError"):
        into_table(spark, tmp_path)
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}]
    rejects = tmp_path / "rejects"
    into_table(spark, tmp_path, json=dv.JsonOptions(on_invalid="reject", rejects=rejects))
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}, {"n": 2}]
    assert len(list(rejects.iterdir())) == 1


def rejected(tmp_path: Path) -> list[dict[str, Any]]:
    texts = (path.read_text("utf-8") for path in sorted((tmp_path / "rejects").iterdir()))
    return [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.mark.parametrize("optimize_write", [False, True])
def test_a_rejected_line_has_its_file_and_its_batch(
    spark: SparkSession, tmp_path: Path, optimize_write: bool
):
    add_lines(tmp_path / "lines", '{"n":1}')
    add_lines(tmp_path / "lines", "{", '{"n":2}')
    json_options = dv.JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects")
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
    lines = lines.select("value", "_metadata.file_name")
    write = dvs.batch_writer(
        tmp_path / "t",
        variant_columns=["value"],
        app_id="app",
        json=json_options,
        optimize_write=optimize_write,
    )
    query = lines.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    query = finished(query.trigger(availableNow=True).start())
    (reject,) = rejected(tmp_path)
    assert (reject["column_name"], reject["columns"], reject["text"]) == (
        "value",
        {"file_name": "001.txt"},
        "{",
    )
    # The function does not know the query on Spark Connect.
    origin = {"app_id": "app", "version": 1} if is_remote() else {"query": str(query.id), "batch": 1}
    assert {name: reject.get(name) for name in origin} == origin


def test_a_line_that_the_format_rejects_has_its_batch(source: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", "{")
    lines = source.readStream.text(str(tmp_path / "lines")).selectExpr("value", "'x' AS topic")
    query = lines.writeStream.format("delta_variant").option("variant_columns", "value")
    query = query.option("on_invalid", "reject").option("rejects", str(tmp_path / "rejects"))
    query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query = finished(query.start(str(tmp_path / "t")))
    (reject,) = rejected(tmp_path)
    assert reject["columns"] == {"topic": "x"}
    assert (reject["query"], reject["batch"]) == (str(query.id), 0)


def test_the_format_writes_a_stream_with_a_checkpoint_once(source: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}', '{"n":2}')
    add_lines(tmp_path / "lines", '{"n":3}')

    def run() -> StreamingQuery:
        lines = source.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
        query = lines.writeStream.format("delta_variant").option("variant_columns", "value")
        query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        return finished(query.start(str(tmp_path / "t")))

    query = run()
    (tmp_path / "c" / "commits" / "1").unlink()
    (tmp_path / "c" / "commits" / ".1.crc").unlink(missing_ok=True)
    run()
    snapshot = dv.load_snapshot(tmp_path / "t")
    assert {app: txn.version for app, txn in snapshot.txns.items()} == {str(query.id): 1}
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


@pytest.mark.parametrize("is_committed", [False, True])
def test_the_format_removes_what_a_killed_driver_left(
    source: SparkSession, tmp_path: Path, is_committed: bool
):
    def run() -> StreamingQuery:
        lines = source.readStream.text(str(tmp_path / "lines"))
        query = lines.writeStream.format("delta_variant").option("variant_columns", "value")
        query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        return finished(query.start(str(tmp_path / "t")))

    add_lines(tmp_path / "lines", '{"n":1}')
    query = run()
    store = open_store(tmp_path / "t")
    lost = Attempt(store, Job.of(None).of_batch(str(query.id), "0" if is_committed else "1"), 0)
    file = f"{lost.file_name(0)}.zstd.parquet"
    if is_committed:
        # The files of a batch that the table has may be those of the commit.
        (tmp_path / "c" / "commits" / "0").unlink()
        (tmp_path / "c" / "commits" / ".0.crc").unlink(missing_ok=True)
    else:
        put(store, file, b"")
        add_lines(tmp_path / "lines", '{"n":2}')
    run()
    assert len(rows(tmp_path / "t", n="value:n::int")) == 1 + (not is_committed)
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


# What a query reports.


@pytest.mark.classic("the id of a streaming query")
def test_the_progress_has_observed_metrics_and_the_history_each_batch(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}', '{"n":2}', "{")
    add_lines(tmp_path / "lines", "{")
    add_lines(tmp_path / "lines", '{"n":3}')
    rejects = dv.JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects")
    # The rows of an optimized write pass through two jobs, and are computed once.
    write = dvs.batch_writer(tmp_path / "t", variant_columns=["value"], json=rejects, optimize_write=True)
    results: list[dv.WriteResult] = []

    def run() -> StreamingQuery:
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
        parsed = sql.count_if(sql.expr("try_parse_json(value) IS NULL"))
        observed = lines.observe("input", sql.count("value").alias("rows"), parsed.alias("invalid"))
        query = observed.writeStream.foreachBatch(lambda df, batch: results.append(write(df, batch)))
        query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        return finished(query.start())

    query = run()
    progress = [each.observedMetrics["input"].asDict() for each in query.recentProgress]
    assert progress == [{"rows": 3, "invalid": 1}, {"rows": 1, "invalid": 1}, {"rows": 1, "invalid": 0}]
    found = [(each.version, each.rows, each.invalid, len(each.files)) for each in results]
    # The batch without valid lines is a commit, by which a repeated batch knows what it rejected.
    assert found == [(0, 2, 1, 1), (1, 0, 1, 0), (2, 1, 0, 1)]
    entries = dv.history(tmp_path / "t")[::-1]
    assert [each.metrics for each in entries] == [
        {
            "numFiles": files,
            "numOutputRows": rows,
            "numOutputBytes": sum(file.bytes for file in result.files),
            "numInvalidValues": invalid,
        }
        for result, (_, rows, invalid, files) in zip(results, found, strict=True)
    ]
    batches = [(each.parameters["queryId"], each.parameters["epochId"]) for each in entries]
    assert batches == [(str(query.id), number) for number in range(3)]
    assert len(list((tmp_path / "rejects").iterdir())) == 2
    forget_batch(tmp_path, 2)
    results.clear()
    run()
    assert [each.repeated for each in results] == [True]


def test_the_last_progress_has_observed_metrics_also_on_spark_connect(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}', '{"n":2}')
    lines = spark.readStream.text(str(tmp_path / "lines")).observe("lines", sql.count("value").alias("rows"))
    write = dvs.batch_writer(tmp_path / "t", variant_columns=["value"], app_id="app")
    query = lines.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    progress = finished(query.trigger(availableNow=True).start()).lastProgress
    assert progress is not None
    found = (progress.batchId, progress.numInputRows, progress.sink.numOutputRows)
    assert found == (0, 2, -1)
    row = progress.observedMetrics["lines"]
    # The guide says so.
    assert (row["values"][0] if is_remote() else row["rows"]) == 2


def test_a_repeated_batch_does_not_reject_its_lines_again(spark: SparkSession, tmp_path: Path):
    rejects = tmp_path / "rejects"
    options = {"json": dv.JsonOptions(on_invalid="reject", rejects=rejects)}
    add_lines(tmp_path / "lines", '{"n":1}')
    add_lines(tmp_path / "lines", "{")
    into_table(spark, tmp_path, **options)
    before = set(rejects.iterdir())
    forget_batch(tmp_path, 1)
    into_table(spark, tmp_path, **options)
    assert set(rejects.iterdir()) == before
    assert len(before) == 1


def test_the_progress_of_the_format_has_rows_and_offsets(source: SparkSession, tmp_path: Path):
    for number in range(2):
        append(tmp_path / "t", number, number)
    table = (
        source.readStream.format("delta_variant").option("maxFilesPerTrigger", 1).load(str(tmp_path / "t"))
    )
    query = table.writeStream.format("delta_variant").option("checkpointLocation", str(tmp_path / "c"))
    query = finished(query.trigger(availableNow=True).start(str(tmp_path / "copy")))
    progress = query.recentProgress
    assert [(each.numInputRows, each.sink.numOutputRows) for each in progress] == [(2, 2), (2, 2)]
    sources = [each.sources[0] for each in progress]
    offsets = [
        Position(*each, table_id=dv.load_snapshot(tmp_path / "t").metadata.id).offset
        for each in ((1, 1, True), (2,))
    ]
    assert [json.loads(each.latestOffset) for each in sources] == offsets[1:] * 2
    assert [json.loads(each.endOffset) for each in sources] == offsets
    parameters = [each.parameters for each in dv.history(tmp_path / "copy")]
    assert [(each["queryId"], each["epochId"]) for each in parameters] == [
        (str(query.id), 1),
        (str(query.id), 0),
    ]


def test_an_unreadable_query_id_raises_an_error_that_names_the_option(tmp_path: Path):
    with pytest.raises(UnsupportedFeatureError, match="txn_app_id"):
        query_of(str(tmp_path))


# Several writes to one table in a batch.


def numbers_of(table: Path) -> list[int]:
    return [row["n"] for row in rows(table, n="value:n::int")]


def of_rest(df: DataFrame, rest: int) -> DataFrame:
    return df.where(f"get_json_object(value, '$.n') % 2 = {rest}")


def batches(
    spark: SparkSession, tmp_path: Path, write: Callable[[DataFrame, int], object], checkpoint: str = "c"
) -> StreamingQuery:
    """Stream the lines of a folder to a function, one file for each batch."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
    query = lines.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / checkpoint))
    return finished(query.trigger(availableNow=True).start())


def forget_batch(tmp_path: Path, number: int) -> None:
    """Restore the state after a driver crashes between our commit and Spark's."""
    (tmp_path / "c" / "commits" / str(number)).unlink()
    (tmp_path / "c" / "commits" / f".{number}.crc").unlink(missing_ok=True)


def two_writers(table: Path, *app_ids: str) -> tuple[Callable[..., dv.WriteResult], ...]:
    names = app_ids or (None, None)
    return tuple(dvs.batch_writer(table, variant_columns=["value"], app_id=name) for name in names)


@pytest.fixture
def hundred_lines(tmp_path: Path) -> Path:
    """Return a folder with 100 lines, in two files."""
    for first in (0, 50):
        add_lines(tmp_path / "lines", *(f'{{"n":{n}}}' for n in range(first, first + 50)))
    return tmp_path


@pytest.mark.classic("functions of `foreachBatch` in the process of the client")
@pytest.mark.parametrize("app_ids", [(), ("even", "odd"), ("both", "both")])
def test_two_writers_to_one_table_in_a_batch_write_all_rows_once(
    spark: SparkSession, hundred_lines: Path, app_ids: tuple[str, ...], caplog: pytest.LogCaptureFixture
):
    even, odd = two_writers(hundred_lines / "t", *app_ids)
    results: list[dv.WriteResult] = []

    def write(df: DataFrame, batch: int) -> None:
        results.extend((even(of_rest(df, 0), batch), odd(of_rest(df, 1), batch)))

    batches(spark, hundred_lines, write)
    assert sorted(numbers_of(hundred_lines / "t")) == list(range(100))
    assert [(result.version, result.rows, result.repeated) for result in results] == [
        (version, 25, False) for version in range(4)
    ]
    results.clear()
    forget_batch(hundred_lines, 1)
    with caplog.at_level(logging.WARNING):
        query = batches(spark, hundred_lines, write)
    assert [(result.version, result.repeated) for result in results] == [(None, True), (None, True)]
    first = app_ids[0] if app_ids else str(query.id)
    skipped = [each for each in caplog.messages if f"has version 1 of the application {first!r}" in each]
    assert skipped
    assert all(each.startswith(f"query {query.id}, batch 1: ") for each in skipped)
    assert sorted(numbers_of(hundred_lines / "t")) == list(range(100))
    assert data_files(hundred_lines / "t") == listed_files(hundred_lines / "t")


@pytest.mark.parametrize(
    "app_ids",
    [pytest.param((), marks=pytest.mark.classic("the id of a streaming query")), ("even", "odd")],
)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_repeated_batch_that_failed_between_its_writes_makes_only_the_second(
    spark: SparkSession, hundred_lines: Path, app_ids: tuple[str, ...], mode: str
):
    names = app_ids or (None, None)
    first = dvs.batch_writer(hundred_lines / "t", variant_columns=["value"], mode=mode, app_id=names[0])
    second = dvs.batch_writer(hundred_lines / "t", variant_columns=["value"], app_id=names[1])
    # Spark Connect calls the function in another process.
    fatal = hundred_lines / "fatal"
    fatal.touch()

    def write(df: DataFrame, batch: int) -> None:
        first(of_rest(df, 0), batch)
        if fatal.exists():
            raise RuntimeError("between the writes")
        second(of_rest(df, 1), batch)

    with pytest.raises(StreamingQueryException, match="between the writes"):
        batches(spark, hundred_lines, write)
    assert len(numbers_of(hundred_lines / "t")) == 25
    fatal.unlink()
    batches(spark, hundred_lines, write)
    expected = range(100) if mode == "append" else range(50, 100)
    assert sorted(numbers_of(hundred_lines / "t")) == list(expected)


@pytest.mark.classic("the id of a streaming query")
def test_one_writer_called_twice_in_a_batch_writes_both_times(spark: SparkSession, hundred_lines: Path):
    write = dvs.batch_writer(hundred_lines / "t", variant_columns=["value"])

    def write_twice(df: DataFrame, batch: int) -> None:
        write(df, batch)
        write(df, batch)

    query = batches(spark, hundred_lines, write_twice)
    forget_batch(hundred_lines, 1)
    batches(spark, hundred_lines, write_twice)
    assert sorted(numbers_of(hundred_lines / "t")) == sorted([*range(100), *range(100)])
    txns = {app: txn.version for app, txn in dv.load_snapshot(hundred_lines / "t").txns.items()}
    assert txns == {str(query.id): 1, f"{query.id}#2": 1}


@pytest.mark.classic("the id of a streaming query")
def test_different_spellings_of_a_path_are_one_table(
    spark: SparkSession, hundred_lines: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(hundred_lines)
    (hundred_lines / "link").symlink_to(hundred_lines)
    paths = [hundred_lines / "t", "./t", (hundred_lines / "t").as_uri(), hundred_lines / "link" / "t"]
    writers = [dvs.batch_writer(path, variant_columns=["value"]) for path in paths]

    def write(df: DataFrame, batch: int) -> None:
        for rest, writer in enumerate(writers):
            writer(df.where(f"get_json_object(value, '$.n') % 4 = {rest}"), batch)

    batches(spark, hundred_lines, write)
    assert sorted(numbers_of(hundred_lines / "t")) == list(range(100))


def in_threads(*calls: Callable[[], object]) -> None:
    """Make calls, each in a thread of its own, and raise the first error."""
    errors: list[Exception] = []

    def call(each: Callable[[], object]) -> None:
        try:
            each()
        except Exception as error:
            errors.append(error)

    threads = [InheritableThread(target=call, args=(each,), daemon=True) for each in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST_QUERY)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.classic("the id of a streaming query")
def test_writes_in_threads_need_an_application_id_each(spark: SparkSession, hundred_lines: Path):
    def write_in_threads(even: Callable, odd: Callable) -> Callable[[DataFrame, int], None]:
        return lambda df, batch: in_threads(
            lambda: even(of_rest(df, 0), batch), lambda: odd(of_rest(df, 1), batch)
        )

    def write(*app_ids: str) -> Callable[[DataFrame, int], None]:
        return write_in_threads(*two_writers(hundred_lines / "t", *app_ids))

    def one_after_the_other(df: DataFrame, batch: int) -> None:
        for rest, writer in enumerate(two_writers(hundred_lines / "t")):
            in_threads(lambda writer=writer, rest=rest: writer(of_rest(df, rest), batch))

    first_line = pa.table({"value": pa.array(['{"n":-1}'], pa.json_())})
    dv.write_table(hundred_lines / "t", first_line)
    for unnamed in (write(), one_after_the_other):
        with pytest.raises(StreamingQueryException, match=r"AmbiguousWriteError: batch 0 writes .*app_id="):
            batches(spark, hundred_lines, unnamed)
    # The table has one of the writes, and its id does not tell which.
    with pytest.raises(StreamingQueryException, match=r"AmbiguousWriteError: .*without an application id"):
        batches(spark, hundred_lines, write("even", "odd"))
    assert len(numbers_of(hundred_lines / "t")) == 1 + 25

    dv.write_table(hundred_lines / "u", first_line)
    even, odd = two_writers(hundred_lines / "u", "even", "odd")
    batches(spark, hundred_lines, write_in_threads(even, odd))
    forget_batch(hundred_lines, 1)
    batches(spark, hundred_lines, write_in_threads(even, odd))
    assert sorted(numbers_of(hundred_lines / "u")) == list(range(-1, 100))


@pytest.mark.classic("functions of `foreachBatch` in the process of the client")
@pytest.mark.parametrize("is_repeating", [True, False])
def test_after_a_failed_write_a_batch_may_only_repeat_that_write(
    spark: SparkSession, hundred_lines: Path, monkeypatch: pytest.MonkeyPatch, is_repeating: bool
):
    even, odd = two_writers(hundred_lines / "t")
    failures = iter([True])

    def fail_once(*arguments):
        if next(failures, False):
            raise OSError("the store failed")
        return commit(*arguments)

    def write(df: DataFrame, batch: int) -> None:
        try:
            even(of_rest(df, 0), batch)
        except OSError:
            if is_repeating:
                even(of_rest(df, 0), batch)
        odd(of_rest(df, 1), batch)

    commit = write_operation.commit_files
    monkeypatch.setattr(write_operation, "commit_files", fail_once)
    if not is_repeating:
        with pytest.raises(
            StreamingQueryException, match=r"AmbiguousWriteError: .*a write before this one failed"
        ):
            batches(spark, hundred_lines, write)
        assert not (hundred_lines / "t" / "_delta_log").exists()
    batches(spark, hundred_lines, write)
    assert sorted(numbers_of(hundred_lines / "t")) == list(range(100))


# With a new checkpoint.


@pytest.mark.classic("the id of a streaming query")
def test_an_application_id_with_a_new_checkpoint_raises_and_skips_no_batch(
    spark: SparkSession, hundred_lines: Path
):
    def run(checkpoint: str, app_id: str | None) -> StreamingQuery:
        writer = dvs.batch_writer(hundred_lines / "t", variant_columns=["value"], app_id=app_id)
        return batches(spark, hundred_lines, writer, checkpoint)

    query = run("c", "app")
    txns = {app: txn.version for app, txn in dv.load_snapshot(hundred_lines / "t").txns.items()}
    assert txns == {"app": 1, f"app#origin={query.id}": 1}
    with pytest.raises(
        StreamingQueryException, match=r"AmbiguousWriteError: .*another run of the application"
    ):
        run("new", "app")
    assert sorted(numbers_of(hundred_lines / "t")) == list(range(100))
    add_lines(hundred_lines / "lines", '{"n":100}')
    run("c", "app")
    forget_batch(hundred_lines, 2)
    run("c", "app")
    assert sorted(numbers_of(hundred_lines / "t")) == list(range(101))
    run("new", "another app")
    run("newer", None)
    assert sorted(numbers_of(hundred_lines / "t")) == sorted([*range(101)] * 3)


@pytest.mark.classic("the id of a streaming query")
def test_an_application_id_of_another_delta_writer_raises(spark: SparkSession, hundred_lines: Path):
    table = pa.table({"value": pa.array(['{"n":-1}'], pa.json_())})
    dv.write_table(hundred_lines / "t", table, commit=dv.CommitOptions(txn=("app", 0)))
    writer = dvs.batch_writer(hundred_lines / "t", variant_columns=["value"], app_id="app")
    with pytest.raises(StreamingQueryException, match="AmbiguousWriteError"):
        batches(spark, hundred_lines, writer)
    assert numbers_of(hundred_lines / "t") == [-1]


def test_two_streams_of_the_format_with_one_application_id_raise(source: SparkSession, hundred_lines: Path):
    def run(checkpoint: str, app_id: str) -> None:
        lines = source.readStream.text(str(hundred_lines / "lines"))
        query = lines.writeStream.format("delta_variant").option("variant_columns", "value")
        query = query.option("checkpointLocation", str(hundred_lines / checkpoint))
        query = query.option("txn_app_id", app_id).trigger(availableNow=True)
        finished(query.start(str(hundred_lines / "t")))

    run("c", "app")
    forget_batch(hundred_lines, 0)
    run("c", "app")
    with pytest.raises(StreamingQueryException, match="AmbiguousWriteError"):
        run("other", "app")
    assert sorted(numbers_of(hundred_lines / "t")) == list(range(100))
    assert data_files(hundred_lines / "t") == listed_files(hundred_lines / "t")
    run("another", "another app")
    assert sorted(numbers_of(hundred_lines / "t")) == sorted([*range(100)] * 2)


def test_outside_a_query_only_the_same_rows_repeat_a_batch(spark: SparkSession, tmp_path: Path):
    write = dvs.batch_writer(tmp_path / "t", app_id="app")
    df = spark.range(3)
    assert [write(df, 0).version, write(df, 1).version, write(df, 1).repeated] == [0, 1, True]
    with pytest.raises(AmbiguousWriteError, match="app_id=") as caught:
        write(spark.range(4), 1)
    assert caught.value.table == str(tmp_path / "t")
    assert len(rows(tmp_path / "t", id="id")) == 6
    with pytest.raises(UnsupportedFeatureError, match="foreachBatch"):
        dvs.batch_writer(tmp_path / "t")(df, 2)


# Out of a table.


def test_a_stream_reads_the_table_and_then_what_is_appended(source: SparkSession, tmp_path: Path):
    def run() -> list[int]:
        table = source.readStream.format("delta_variant").option("columns", '{"n": "event:n::int"}')
        rate = table.option("max_files_per_trigger", 1).load(str(tmp_path / "t"))
        query = rate.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        finished(query.trigger(availableNow=True).start(str(tmp_path / "out")))
        return sorted(row.n for row in source.read.parquet(str(tmp_path / "out")).collect())

    append(tmp_path / "t", 1, 2)
    append(tmp_path / "t", 3)
    assert run() == [1, 2, 3]
    append(tmp_path / "t", 4)
    append(tmp_path / "t", 5)
    assert run() == [1, 2, 3, 4, 5]
    assert len(list((tmp_path / "c" / "commits").glob("[0-9]*"))) >= 4


def follower(table: Path) -> Follower:
    return Follower(dv.load_snapshot(table))


def test_positions_cover_the_files_of_a_version_and_of_each_commit(tmp_path: Path):
    for number in range(4):
        append(tmp_path / "t", number)
    found = list(follower(tmp_path / "t").steps(Position(1, is_initial=True)))
    assert [step.after for step in found] == [
        Position(1, 1, True),
        Position(1, 2, True),
        Position(2),
        Position(2, 1),
        Position(3),
        Position(3, 1),
        Position(4),
    ]
    assert [step.file is None for step in found] == [False, False, True, False, True, False, True]
    again = list(follower(tmp_path / "t").steps(Position(1, 1, True), last=2))
    assert again == found[1:5]
    assert list(follower(tmp_path / "t").steps(Position(4))) == []


@pytest.fixture
def sized(tmp_path: Path) -> Path:
    """Return a table whose commits have a file of one row, two of one row each, and one of four rows."""
    table = tmp_path / "sized"
    for ids in ([1], [2, 3], [4, 5, 6, 7]):
        rows = [{"id": n, "day": n % 2 if len(ids) == 2 else 0} for n in ids]
        options = {"partition_by": "day"} if ids == [1] else {}
        dv.write_table(table, rows, mode="append", **options)
    return table


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 2, 3, 4, 5, 6, 7]]),
        ({"maxFilesPerTrigger": "1"}, [[1], [2], [3], [4, 5, 6, 7]]),
        ({"maxFilesPerTrigger": "2"}, [[1, 2], [3, 4, 5, 6, 7]]),
        ({"maxFilesPerTrigger": "3"}, [[1, 2, 3], [4, 5, 6, 7]]),
        # The file that exceeds the bytes is still read.
        ({"maxBytesPerTrigger": "1"}, [[1], [2], [3], [4, 5, 6, 7]]),
        ({"maxBytesPerTrigger": "{1}"}, [[1], [2], [3], [4, 5, 6, 7]]),
        ({"maxBytesPerTrigger": "{1}+1"}, [[1, 2], [3, 4, 5, 6, 7]]),
        ({"maxBytesPerTrigger": "1g"}, [[1, 2, 3, 4, 5, 6, 7]]),
        # Whichever is reached first.
        ({"maxBytesPerTrigger": "1gb", "maxFilesPerTrigger": "3"}, [[1, 2, 3], [4, 5, 6, 7]]),
        ({"maxBytesPerTrigger": "{1}+1", "maxFilesPerTrigger": "3"}, [[1, 2], [3, 4, 5, 6, 7]]),
        ({"maxBytesPerTrigger": "{1}+1", "maxFilesPerTrigger": "1"}, [[1], [2], [3], [4, 5, 6, 7]]),
    ],
)
def test_limits_bound_a_micro_batch_and_a_stream_ends(
    sized: Path, options: dict[str, str], expected: list[list[int]]
):
    first = dv.load_snapshot(sized, version=0).files["size"][0].as_py()
    sizes = {"{1}": str(first), "{1}+1": str(first + 1)}
    options = {name: sizes.get(text, text) for name, text in options.items()}
    assert read_batches(sized, "id", startingVersion="0", **options) == expected


@pytest.mark.parametrize("name", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
@pytest.mark.parametrize("text", ["0", "-1", "x", "1x"])
def test_a_limit_is_a_positive_number(sized: Path, name: str, text: str):
    with pytest.raises(ValueError, match=f"invalid value '{text}' of the option"):
        stream_source(sized, **{name: text})


def test_a_micro_batch_does_not_read_all_later_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(40):
        dv.write_table(tmp_path, pa.table({"id": [number]}), mode="append")
    read = record_reads_of_log(monkeypatch)
    source = stream_source(tmp_path, startingVersion="0", maxFilesPerTrigger="1")
    end = source.latestOffset(source.initialOffset(), source.getDefaultReadLimit())
    assert Position(**end) == Position(1)
    assert 16 <= sum(name.endswith(".json") for name in read) <= 32


def test_a_trigger_without_a_limit_reads_everything(sized: Path):
    source = stream_source(sized, startingVersion="0", maxFilesPerTrigger="1")
    end = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    assert Position(**end) == Position(3)
    assert Position(**source.reportLatestOffset()) == Position(3)


def test_a_stream_that_ends_ignores_later_versions(sized: Path):
    source = stream_source(sized, startingVersion="0", maxFilesPerTrigger="2")
    source.prepareForTriggerAvailableNow()
    dv.write_table(sized, [{"id": 8, "day": 0}], mode="append")
    ends = [source.initialOffset()]
    while len(ends) < 2 or ends[-1] != ends[-2]:
        ends.append(source.latestOffset(ends[-1], source.getDefaultReadLimit()))
    assert [Position(**end) for end in ends[1:]] == [Position(1, 1), Position(3), Position(3)]
    assert Position(**source.reportLatestOffset()) == Position(4)


def test_a_commit_that_removes_rows_fails_the_stream(tmp_path: Path):
    append(tmp_path / "t", 1, 2)
    dv.delete(tmp_path / "t", "event:n::int = 1")
    with pytest.raises(UnsupportedFeatureError, match="starting_version=2") as caught:
        list(follower(tmp_path / "t").steps(Position(0)))
    assert (caught.value.table, caught.value.version) == (str(tmp_path / "t"), 1)


def test_compacted_files_are_skipped(tmp_path: Path):
    append(tmp_path / "t", 1)
    append(tmp_path / "t", 2)
    dv.optimize(tmp_path / "t")
    found = list(follower(tmp_path / "t").steps(Position(2)))
    assert found == [step for step in found if step.file is None]


def test_a_commit_that_changes_the_schema_fails_the_stream(tmp_path: Path):
    append(tmp_path / "t", 1)
    before = follower(tmp_path / "t")
    dv.write_table(tmp_path / "t", pa.table({"more": [1]}), mode="append", schema_mode="merge")
    with pytest.raises(SchemaError, match="restart the query") as caught:
        list(before.steps(Position(0)))
    assert (caught.value.table, caught.value.version) == (str(tmp_path / "t"), 1)
