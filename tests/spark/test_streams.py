"""Streams into tables, each row once, and out of them, each version once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles
from spark.tables import data_files, listed_files, rows

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import SchemaError, UnsupportedFeatureError
from delta_variant.spark.following import Follower, Position
from delta_variant.spark.sinks import query_of
from delta_variant.spark.sources import StreamSource, file_reader


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    dvs.register(spark)
    return spark


def add_lines(folder: Path, *texts: str) -> None:
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    (folder / f"{number:03}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")


def into_table(spark: SparkSession, tmp_path: Path, **options: object) -> StreamingQuery:
    """Stream the lines that are in a folder into a table by foreachBatch, one file a batch, and end."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
    writer = dvs.batch_writer(tmp_path / "t", variant_columns=["value"], **options)
    query = lines.writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path / "c"))
    return finished(query.trigger(availableNow=True).start())


def finished(query: StreamingQuery) -> StreamingQuery:
    query.awaitTermination()
    return query


def append(table: Path, *numbers: int) -> None:
    dv.write_table(
        table, pa.table({"event": pa.array([f'{{"n":{n}}}' for n in numbers], pa.json_())}), mode="append"
    )


# Into a table.


def test_each_micro_batch_is_one_commit_with_the_id_of_the_query(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}', '{"n":2}')
    add_lines(tmp_path / "lines", '{"n":3}')
    query = into_table(spark, tmp_path)
    snapshot = dv.load_snapshot(tmp_path / "t")
    assert snapshot.version == 1
    assert {app: txn.version for app, txn in snapshot.txns.items()} == {str(query.id): 1}
    assert query_of(f"file:{tmp_path / 'c'}") == str(query.id)
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


def test_a_batch_that_spark_forgot_is_not_written_again(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}')
    add_lines(tmp_path / "lines", '{"n":2}')
    into_table(spark, tmp_path)
    # What a driver leaves that dies between our commit and Spark's.
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
    writer = dvs.batch_writer(tmp_path / "t", variant_columns=["value"], schema_mode="merge")
    query = lines.writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path / "c"))
    finished(query.trigger(availableNow=True).start())
    assert rows(tmp_path / "t", n="to_json(value)", length="length") == [
        {"n": '{"n":1}', "length": None},
        {"n": '{"n":{"m":2}}', "length": 13},
    ]


def test_a_line_that_is_no_json_ends_the_stream_or_is_set_apart(spark: SparkSession, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}')
    add_lines(tmp_path / "lines", '{"n":2}', "{")
    with pytest.raises(Exception, match="InvalidJsonError"):
        into_table(spark, tmp_path)
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}]
    rejects = tmp_path / "rejects"
    into_table(spark, tmp_path, on_invalid="reject", rejects=rejects)
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 1}, {"n": 2}]
    assert len(list(rejects.iterdir())) == 1


def test_the_format_writes_a_stream_once_by_its_checkpoint(source: SparkSession, tmp_path: Path):
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


def test_a_query_whose_id_cannot_be_read_is_told_of_the_option(tmp_path: Path):
    with pytest.raises(UnsupportedFeatureError, match="txn_app_id"):
        query_of(str(tmp_path))


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
    snapshot = dv.load_snapshot(table)
    return Follower(snapshot.store, snapshot)


def test_positions_lead_through_the_files_of_a_version_and_of_each_commit(tmp_path: Path):
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


@pytest.mark.parametrize(
    ("limit", "end"),
    [
        (ReadMaxFiles(2), Position(1, 1)),
        (ReadMaxBytes(1), Position(1)),
        (ReadAllAvailable(), Position(3)),
    ],
)
def test_a_limit_bounds_a_micro_batch(tmp_path: Path, limit, end: Position):
    for number in range(3):
        append(tmp_path / "t", number)
    options = {"path": str(tmp_path / "t"), "storage_options": None}
    stream = StreamSource(file_reader(options), options)
    found = Position.of(stream.latestOffset(Position(0).offset, limit))
    assert (found.version, found.index) in {(end.version, end.index), (end.version + 1, 0)}


def test_a_commit_that_removes_rows_ends_the_stream_with_a_reason(tmp_path: Path):
    append(tmp_path / "t", 1, 2)
    dv.delete(tmp_path / "t", "event:n::int = 1")
    with pytest.raises(UnsupportedFeatureError, match="starting_version=2"):
        list(follower(tmp_path / "t").steps(Position(0)))


def test_files_that_are_only_put_together_are_passed_over(tmp_path: Path):
    append(tmp_path / "t", 1)
    append(tmp_path / "t", 2)
    dv.optimize(tmp_path / "t")
    found = list(follower(tmp_path / "t").steps(Position(2)))
    assert found == [step for step in found if step.file is None]


def test_a_commit_that_changes_the_schema_ends_the_stream(tmp_path: Path):
    append(tmp_path / "t", 1)
    before = follower(tmp_path / "t")
    dv.write_table(tmp_path / "t", pa.table({"more": [1]}), mode="append", schema_mode="merge")
    with pytest.raises(SchemaError, match="start the query again"):
        list(before.steps(Position(0)))
