"""Writes of DataFrames: the written tables, and tasks that fail or run twice."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark.driver import counted, counting
from spark.tables import data_files, listed_files, on_spark, rows, write_frame
from support.tables import read_actions
from write.test_row_rules import planted

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant._compressed import CompressedSequence
from delta_variant.errors import (
    CommitConflictError,
    ConstraintViolationError,
    InvalidJsonError,
    PredicateViolationError,
    SchemaError,
    TableExistsError,
    UnsupportedFeatureError,
)
from delta_variant.protocol import actions
from delta_variant.protocol.types import describe as describe_type
from delta_variant.spark import writing
from delta_variant.spark.attempts import Attempt, Job, remove_lost
from delta_variant.spark.executor import SparkExecutor
from delta_variant.storage.store import list_files, open_store, put

EVENT = 'concat(\'{"n":\', id, \',"user":{"name":"u\', id % 7, \'"}}\') AS event'
EVERY_TYPE = [
    "id",
    "CASE WHEN id % 2 = 0 THEN parse_json(concat('{\"a\":', id, '}')) END AS v",
    "array(parse_json('1'), NULL) AS a",
    "map('k', parse_json('[2]')) AS m",
    "CASE WHEN id % 3 > 0 THEN named_struct('e', CASE WHEN id = 1 THEN parse_json('{\"k\":1}') END) END AS s",
    "timestamp'2026-01-01 00:00:00' AS t",
    "timestamp_ntz'2026-01-01 00:00:00' AS ntz",
    "date'2026-01-01' AS d",
    "CAST(1.5 AS DECIMAL(5,2)) AS dec",
    "CAST(id AS SMALLINT) AS small",
    "CAST('x' AS BINARY) AS bin",
]


def events(spark: SparkSession, count: int = 100, partitions: int = 3) -> DataFrame:
    return spark.range(0, count, 1, partitions).selectExpr("id", EVENT)


def lines(spark: SparkSession, *texts: str) -> DataFrame:
    """Return one row for each text, each in its own partition."""
    return spark.createDataFrame([(text,) for text in texts], "event string").repartitionByRange(
        len(texts), "event"
    )


@pytest.mark.usefixtures("small_files_are_shredded")
def test_tasks_write_for_the_readers_that_the_table_remembers(spark: SparkSession, tmp_path):
    table = tmp_path / "t"
    unshredded = dv.FileOptions(compatibility="unshredded")
    write_frame(table, events(spark), variant_columns=["event"], files=unshredded)
    write_frame(table, events(spark), variant_columns=["event"], mode="append")
    check_unshredded(table, files=6)
    on_spark(spark, table).optimize()
    check_unshredded(table, files=1)


def check_unshredded(table: Path, files: int) -> None:
    """Raise unless the table has `files` files and deltalake reads all its rows."""
    assert dv.load_snapshot(table).num_files == files
    texts = dv.to_json(DeltaTable(table).to_pyarrow_table()["event"].combine_chunks()).to_pylist()
    assert sorted(texts) == sorted(2 * [f'{{"n":{n},"user":{{"name":"u{n % 7}"}}}}' for n in range(100)])


@pytest.mark.usefixtures("small_files_are_shredded")
def test_json_text_becomes_a_variant_with_one_shredding_schema_for_all_files(spark: SparkSession, tmp_path):
    result = write_frame(tmp_path / "t", events(spark), variant_columns=["event"], one_shredding=True)
    assert (result.version, result.rows, result.invalid, len(result.files)) == (0, 100, 0, 3)
    paths = {tuple((path.path, str(path.type)) for path in file.variants["event"]) for file in result.files}
    assert paths == {((("n",), "int64"), (("user", "name"), "string"))}
    assert rows(tmp_path / "t", id="id", text="to_json(event)")[1] == {
        "id": 1,
        "text": '{"n":1,"user":{"name":"u1"}}',
    }
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")
    assert read_actions(tmp_path / "t", "commitInfo")[0]["operationMetrics"]["numOutputRows"] == "100"
    adds = read_actions(tmp_path / "t", "add")
    assert len(adds) == 3
    assert all(json.loads(add["stats"])["minValues"]["event"] for add in adds)


def test_values_of_every_type_and_variants_are_written_unchanged(spark: SparkSession, tmp_path: Path):
    write_frame(tmp_path / "t", spark.range(0, 3, 1, 1).selectExpr(*EVERY_TYPE))
    assert rows(tmp_path / "t", id="id", v="to_json(v)", e="to_json(s.e)") == [
        {"id": 0, "v": '{"a":0}', "e": None},
        {"id": 1, "v": None, "e": '{"k":1}'},
        {"id": 2, "v": '{"a":2}', "e": None},
    ]
    first = dv.read_table(tmp_path / "t", where="id = 0").to_table().to_pylist()[0]
    assert [dv.to_json([each])[0].as_py() if each else None for each in first["a"]] == ["1", None]
    assert [(key, dv.to_json([each])[0].as_py()) for key, each in first["m"]] == [("k", "[2]")]
    assert {name: first[name] for name in ("t", "ntz", "d", "dec", "small", "bin")} == {
        "t": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
        "ntz": dt.datetime(2026, 1, 1),
        "d": dt.date(2026, 1, 1),
        "dec": Decimal("1.50"),
        "small": 0,
        "bin": b"x",
    }
    fields = {field.name: field for field in dv.load_snapshot(tmp_path / "t").schema.fields}
    assert [describe_type(fields[name].type) for name in ("small", "ntz", "a")] == [
        "short",
        "timestamp_ntz",
        "array<variant>",
    ]


def test_each_task_writes_one_file_for_each_partition_of_the_table(spark: SparkSession, tmp_path: Path):
    df = events(spark, 90).selectExpr("*", "nullif(id % 3, 2) AS day")
    result = write_frame(tmp_path / "t", df, variant_columns=["event"], partition_by="day")
    assert len(result.files) == 9
    assert {add["partitionValues"]["day"] for add in read_actions(tmp_path / "t", "add")} == {"0", "1", None}
    found = rows(tmp_path / "t", id="id", day="day")
    assert found == sorted(({"id": n, "day": n % 3 if n % 3 < 2 else None} for n in range(90)), key=str)


def test_files_of_a_result_are_decoded_when_they_are_used(spark: SparkSession, tmp_path: Path):
    df = events(spark, 90).selectExpr("*", "nullif(id % 3, 2) AS day")
    result = write_frame(tmp_path / "t", df, variant_columns=["event"], partition_by="day")
    assert isinstance(result.files, CompressedSequence)
    assert repr(result) == "WriteResult(version=0, rows=90, files=<9>)"
    assert [(file.path, file.bytes, file.stats.to_json()) for file in result.files] == [
        (actions.decode_path(add["path"]), add["size"], add["stats"])
        for add in read_actions(tmp_path / "t", "add")
    ]
    assert [file.rows for file in result.files] == 9 * [10]
    assert result.files[-1] == result.files[8] == tuple(result.files)[8]


def test_column_names_may_contain_dots_and_backticks(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    dvs.register(spark)
    df = events(spark, 9).selectExpr("id AS `a.b`", "event AS `e``.v`", "id % 3 AS `p.q`")
    mapped = {"delta.columnMapping.mode": "name"}
    arguments = {"variant_columns": ["e`.v"], "partition_by": "p.q"}
    assert write_frame(table, df, configuration=mapped, **arguments).rows == 9
    write_frame(table, df, mode="append", one_shredding=True, **arguments)
    on_spark(spark, table).optimize(sort_by="`a.b`")
    expected = sorted(({"id": n, "n": n, "part": n % 3} for n in [*range(9), *range(9)]), key=str)
    assert rows(table, id="`a.b`", n="`e``.v`:n::int", part="`p.q`") == expected
    df.write.format("delta_variant").mode("append").option("variant_columns", '["e`.v"]').save(str(table))
    assert len(rows(table, id="`a.b`")) == 27
    found = dvs.read_table(spark, table).orderBy("`a.b`").select("`a.b`", "`p.q`").collect()
    assert [tuple(row) for row in found[:4]] == [(0, 0), (0, 0), (0, 0), (1, 1)]


def test_variant_columns_are_resolved_like_spark_columns(spark: SparkSession, tmp_path: Path):
    dvs.register(spark)
    df = events(spark, 3).withColumnRenamed("event", "Event")
    write_frame(tmp_path / "t", df, variant_columns=["EVENT"])
    assert rows(tmp_path / "t", n="Event:n::int") == [{"n": 0}, {"n": 1}, {"n": 2}]
    append = df.write.format("delta_variant").mode("append").option("variant_columns", "event")
    append.save(str(tmp_path / "t"))
    assert len(rows(tmp_path / "t", n="Event:n::int")) == 6
    with pytest.raises(SchemaError, match="variant_columns") as caught:
        write_frame(tmp_path / "u", df, variant_columns=["missing"])
    assert caught.value.column == "missing"
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaError, match="variant_columns") as caught:
            write_frame(tmp_path / "u", df, variant_columns=["event"])
        assert caught.value.column == "event"
        assert write_frame(tmp_path / "u", df, variant_columns=["Event"]).rows == 3
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_an_append_that_does_not_fit_the_table_is_rejected(spark: SparkSession, tmp_path: Path):
    write_frame(tmp_path / "t", events(spark, 10), variant_columns=["event"])
    with pytest.raises(TableExistsError, match="mode='append'"):
        write_frame(tmp_path / "t", events(spark, 10), variant_columns=["event"])
    assert write_frame(tmp_path / "t", events(spark, 10), mode="ignore").version is None
    with pytest.raises(SchemaError, match="event"):
        write_frame(tmp_path / "t", events(spark, 10), mode="append")
    with pytest.raises(SchemaError, match="more"):
        write_frame(tmp_path / "t", spark.range(1).selectExpr("id", "1 AS more"), mode="append")
    merged = spark.range(1).selectExpr("id", "1 AS more")
    assert write_frame(tmp_path / "t", merged, mode="append", schema_mode="merge").version == 1
    before = data_files(tmp_path / "t")
    with pytest.raises(SchemaError, match="interval"):
        write_frame(tmp_path / "u", spark.sql("SELECT interval '1' day AS i"))
    assert data_files(tmp_path / "t") == before
    assert not (tmp_path / "u").exists()


def test_a_predicate_selects_rows_to_overwrite_and_holds_for_new_rows(spark: SparkSession, tmp_path: Path):
    write_frame(tmp_path / "t", events(spark, 10), variant_columns=["event"])

    def overwrite(df: DataFrame) -> int | None:
        return write_frame(
            tmp_path / "t", df, mode="overwrite", where="event:n::int >= 5", variant_columns=["event"]
        ).version

    assert overwrite(events(spark, 7).where("id > 5")) == 1
    assert [row["id"] for row in rows(tmp_path / "t", id="id")] == [0, 1, 2, 3, 4, 6]
    with pytest.raises(PredicateViolationError, match="event:n"):
        overwrite(events(spark, 7))
    assert (
        write_frame(tmp_path / "t", events(spark, 2), mode="overwrite", variant_columns=["event"]).rows == 2
    )
    assert len(rows(tmp_path / "t", id="id")) == 2


def test_an_overwrite_with_a_predicate_is_in_the_change_data_feed(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    settings = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    write_frame(table, events(spark, 10), variant_columns=["event"], configuration=settings)
    options = {"mode": "overwrite", "where": "event:n::int >= 6", "variant_columns": ["event"]}
    write_frame(table, events(spark, 8).where("id = 7"), **options)
    changes = dv.read_changes(table, start=1, columns=["_change_type", "id"]).to_table().to_pylist()
    assert sorted(tuple(change.values()) for change in changes) == [
        *(("delete", number) for number in (6, 7, 8, 9)),
        ("insert", 7),
    ]
    assert dv.audit_table(table, data=True).is_clean


def test_a_schema_is_inferred_from_the_first_rows_of_some_partitions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writing, "PARTITIONS", 2)
    # Every second partition is empty.
    df = spark.range(0, 36_000, 1, 6).where("id % 12000 < 6000").withColumnRenamed("id", "a.b")
    sample = writing._sample(df, ["a.b"])
    assert [part.column(0).to_pylist() for part in sample] == [
        list(range(first, first + writing.PARTITION_ROWS)) for first in (0, 12_000)
    ]
    assert writing._sample(spark.range(0), ["id"]) == []


# Not `orderBy`: Spark samples its input to find the ranges, which computes rows another time.
UPSTREAM = {
    "narrow": lambda df: df,
    "repartition": lambda df: df.repartition(3),
    "groupBy": lambda df: df.groupBy("event").count(),
}


@pytest.mark.parametrize("optimize_write", [False, True])
@pytest.mark.parametrize("one_shredding", [False, True])
@pytest.mark.parametrize("name", UPSTREAM)
def test_the_tasks_of_a_write_compute_each_row_once(
    spark: SparkSession, tmp_path: Path, name: str, one_shredding: bool, optimize_write: bool
):
    count = counting(tmp_path / "counts")
    df = UPSTREAM[name](spark.range(0, 20_000, 1, 2).selectExpr(EVENT).mapInArrow(count, "event string"))
    result = write_frame(
        tmp_path / "t",
        df,
        variant_columns=["event"],
        one_shredding=one_shredding,
        optimize_write=optimize_write,
        # Rows are sampled if they do not fit into one file.
        files=dv.FileOptions(target_file_size=50_000),
    )
    assert (result.rows, counted(tmp_path / "counts")) == (20_000, 20_000)
    assert not df.storageLevel.useDisk


def test_rows_that_the_user_persisted_stay_persisted(spark: SparkSession, tmp_path: Path):
    df = events(spark).persist()
    try:
        write_frame(tmp_path / "t", df, variant_columns=["event"], one_shredding=True)
        assert df.storageLevel.useMemory
    finally:
        df.unpersist()


def test_a_sampling_process_reads_all_rows_so_that_spark_reuses_it():
    batches = iter([pa.record_batch([["x" * 100] * 10], names=["event"])] * 3)
    (message,) = writing.FirstRows(500)(batches)
    (taken,) = pa.ipc.open_stream(message["message"][0].as_py())
    assert taken.num_rows < 10
    assert next(batches, None) is None


@pytest.mark.usefixtures("small_files_are_shredded")
def test_tasks_generate_columns_and_check_constraints(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    expressions = {"part": "id % 2", "n": "event:n::bigint"}
    metadata = {name: {"delta.generationExpression": text} for name, text in expressions.items()}
    empty = pa.table({"id": [0], "event": pa.array(["1"], pa.json_()), "part": [0], "n": [0]})
    planted(table, empty, {**metadata, "id": {"not null": True}}, partition_by="part")
    dv.add_constraint(table, "small", "n < 100")

    def append(count: int) -> dv.WriteResult:
        df = events(spark, count)
        # Only the driver shreds files as small as these.
        return write_frame(table, df, mode="append", variant_columns=["event"], one_shredding=True)

    result = append(100)
    assert rows(table, id="id", part="part", n="n")[5] == {"id": 13, "part": 1, "n": 13}
    assert {path.path for file in result.files for path in file.variants["event"]} == {
        ("n",),
        ("user", "name"),
    }
    # One for each of three tasks and two partitions.
    assert len(result.files) == 6
    with pytest.raises(ConstraintViolationError, match="small"):
        append(101)
    assert data_files(table) == listed_files(table)
    assert dv.load_snapshot(table).version == result.version


def test_a_line_of_invalid_json_raises_and_leaves_no_files(spark: SparkSession, tmp_path: Path):
    df = lines(spark, '{"a":1}', '{"a":2', '{"a":3}')
    with pytest.raises(InvalidJsonError, match=r"partition \d.*byte 7 of the text: "):
        write_frame(tmp_path / "t", df, variant_columns=["event"])
    assert data_files(tmp_path / "t") == set()
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_lines_of_invalid_json_are_rejected_with_their_location(spark: SparkSession, tmp_path: Path):
    result = write_frame(
        tmp_path / "t",
        lines(spark, '{"a":1}', '{"a":2', '{"a":3}'),
        variant_columns=["event"],
        json=dv.JsonOptions(on_invalid="reject", rejects=tmp_path / "rejects"),
    )
    assert (result.rows, result.invalid) == (2, 1)
    [file] = (tmp_path / "rejects").iterdir()
    [reject] = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert (reject["row"], reject["byte"], reject["text"]) == (0, 7, '{"a":2')
    assert rows(tmp_path / "t", a="event:a::int") == [{"a": 1}, {"a": 3}]


def test_lines_of_invalid_json_become_null(spark: SparkSession, tmp_path: Path):
    df = lines(spark, '{"a":1}', '{"a":2', '{"a":3}')
    result = write_frame(
        tmp_path / "t", df, variant_columns=["event"], json=dv.JsonOptions(on_invalid="null")
    )
    assert (result.rows, result.invalid) == (3, 1)
    assert rows(tmp_path / "t", a="event:a::int") == [{"a": 1}, {"a": 3}, {"a": None}]


def test_a_task_that_fails_twice_and_then_succeeds_writes_each_row_once(spark: SparkSession, tmp_path: Path):
    def fail_twice(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for number, batch in enumerate(batches):
            if number == 1 and context.partitionId() == 1 and context.attemptNumber() < 2:
                raise OSError("the disk failed")
            yield batch

    df = spark.range(0, 60_000, 1, 2).selectExpr("id", EVENT).mapInArrow(fail_twice, "id long, event string")
    # Small files, so that an attempt has written some when it fails.
    result = write_frame(
        tmp_path / "t", df, variant_columns=["event"], files=dv.FileOptions(target_file_size=1000)
    )
    assert result.rows == 60_000
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")
    [summary] = (
        dv.read_table(tmp_path / "t", columns=["id"])
        .to_table()
        .group_by([])
        .aggregate([("id", "sum"), ("id", "count_distinct")])
        .to_pylist()
    )
    assert summary == {"id_sum": 60_000 * 59_999 // 2, "id_count_distinct": 60_000}


@pytest.mark.classic("the end of the tasks of a failed job")
def test_a_job_that_fails_commits_nothing_and_leaves_no_files(spark: SparkSession, tmp_path: Path):
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 1 and TaskContext.get().partitionId() == 1:
                raise OSError("the disk failed")
            yield batch

    write_frame(tmp_path / "t", events(spark), variant_columns=["event"])
    before = data_files(tmp_path / "t")
    df = spark.range(0, 60_000, 1, 2).selectExpr("id", EVENT).mapInArrow(fail, "id long, event string")
    with pytest.raises(PySparkException, match="OSError: the disk failed"):
        write_frame(
            tmp_path / "t",
            df,
            mode="append",
            variant_columns=["event"],
            files=dv.FileOptions(target_file_size=1000),
            shredding=None,
        )
    assert data_files(tmp_path / "t") == before
    assert dv.load_snapshot(tmp_path / "t").version == 0


def test_files_of_killed_attempts_are_removed(tmp_path: Path):
    store, job = open_store(tmp_path), Job.of(None)
    won, lost, other = (Attempt(store, job, 3) for _ in range(3))
    for attempt in (won, lost, other):
        put(store, f"day=1/{attempt.file_name(0)}.zstd.parquet", b"")
    unknown = Attempt(store, Job.of(None), 3)
    put(store, f"{unknown.file_name(0)}.zstd.parquet", b"")

    remove_lost([store], job, [won.identity], of_all_runs=True)
    assert {Path(path).name for path in data_files(tmp_path)} == {
        f"{won.file_name(0)}.zstd.parquet",
        f"{unknown.file_name(0)}.zstd.parquet",
        unknown.identity,
    }


def test_a_run_keeps_the_files_of_another_run_until_the_job_is_committed(tmp_path: Path):
    store = open_store(tmp_path)
    txn = actions.Txn(app_id="app", version=1)
    first, second = (Attempt(store, Job.of(txn), 0) for _ in range(2))
    for attempt in (first, second):
        put(store, f"{attempt.file_name(0)}.parquet", b"")
    remove_lost([store], second.job, (), of_all_runs=False)
    assert f"{first.file_name(0)}.parquet" in data_files(tmp_path)
    remove_lost([store], second.job, (), of_all_runs=True)
    assert data_files(tmp_path) == set()


def test_the_records_of_many_attempts_are_deleted_by_one_request(monkeypatch: pytest.MonkeyPatch):
    store, job = open_store(f"memory:///{uuid4()}"), Job.of(None)
    attempts = [Attempt(store, job, number) for number in range(300)]
    paths = [f"{attempt.file_name(0)}.parquet" for attempt in attempts]
    for path in paths:
        put(store, path, b"")
    requests: list[object] = []
    delete = obstore.delete

    def record(*arguments: object) -> None:
        requests.append(arguments)
        delete(*arguments)

    monkeypatch.setattr(obstore, "delete", record)
    winners = [attempt.identity for attempt in attempts[:200]]
    remove_lost([store], job, winners, of_all_runs=True)
    assert list_files(store, "") == sorted(paths[:200])
    # One for the files of the lost attempts, and one for the records.
    assert len(requests) == 2


def test_two_drivers_append_concurrently(spark: SparkSession, tmp_path: Path):
    write_frame(tmp_path / "t", events(spark, 10), variant_columns=["event"])

    def append(_: int) -> int | None:
        df = events(spark, 10)
        return write_frame(tmp_path / "t", df, mode="append", variant_columns=["event"]).version

    with ThreadPoolExecutor(2) as drivers:
        assert sorted(drivers.map(append, range(4))) == [1, 2, 3, 4]
    assert len(rows(tmp_path / "t", id="id")) == 50
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


def test_a_write_with_a_txn_happens_once(spark: SparkSession, tmp_path: Path):
    for version in (0, 1, 1, 0):
        write_frame(
            tmp_path / "t",
            events(spark, 10),
            mode="append",
            variant_columns=["event"],
            commit=dv.CommitOptions(txn=("app", version)),
        )
    assert dv.load_snapshot(tmp_path / "t").version == 1
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


def test_one_of_two_concurrent_writes_with_one_txn_is_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_frame(tmp_path / "t", events(spark, 10), variant_columns=["event"])
    run = SparkExecutor.run_partitions

    def run_after_another(*arguments):
        monkeypatch.setattr(SparkExecutor, "run_partitions", run)
        append()
        return run(*arguments)

    def append() -> dv.WriteResult:
        return write_frame(
            tmp_path / "t",
            events(spark, 10),
            mode="append",
            variant_columns=["event"],
            commit=dv.CommitOptions(txn=("app", 1)),
        )

    monkeypatch.setattr(SparkExecutor, "run_partitions", run_after_another)
    with pytest.raises(CommitConflictError, match="app"):
        append()
    assert len(rows(tmp_path / "t", id="id")) == 20
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


def test_the_batch_function_rejects_a_stream(spark: SparkSession, tmp_path: Path):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(UnsupportedFeatureError, match="batch_writer"):
        write_frame(tmp_path / "t", stream)


def test_storage_options_are_sent_to_the_executors(spark: SparkSession, tmp_path: Path):
    uri = (tmp_path / "a table").as_uri()
    write_frame(dv.Table(uri, {"allow_http": "true"}), events(spark, 5), variant_columns=["event"])
    assert len(rows(tmp_path / "a table", id="id")) == 5
