"""Merges by tasks are those of one process, each of one commit, and failed tasks leave no files."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import max_by
from spark.driver import counted, counting, drop_stored_rows
from spark.tables import data_files, finished, listed_files, on_spark, rows, write_frame
from spark.twins import FEATURES, content, orphans, outcome, random_event, twins
from support.tables import read_actions
from write.test_row_tracking import tracked

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import (
    CastError,
    CommitConflictError,
    ConstraintViolationError,
    ExpressionError,
    InvalidJsonError,
    MergeAmbiguityError,
    UnsupportedFeatureError,
)
from delta_variant.operations.merge import execute
from delta_variant.operations.merge.joining import _normal
from delta_variant.operations.rewrite import REWRITE
from delta_variant.spark import executor, merging
from delta_variant.spark.executor import SparkExecutor
from delta_variant.spark.merge_tasks import buckets_of
from delta_variant.spark.running import BROADCAST
from delta_variant.spark.tasks import SHARED_BYTES, pack_sharing, unpack_sharing
from delta_variant.spark.versions import SPARK_ERRORS

ON = "target.id = source.id"
SCHEMA = "id long, day string, n long, event string"
TYPES = pa.schema({"id": pa.int64(), "day": pa.string(), "n": pa.int64(), "event": pa.string()})

PREDICATES = [
    "target.id = source.id",
    "target.id = source.id and target.n < source.n",
    "source.id = target.id and target.id < 80 and source.n > 1",
    "target.id + 1 = source.id and target.day = source.day",
]
SET = {"event:s": "source.day", "n": "source.n + target.n"}
CLAUSES: list[tuple[str, tuple[Any, ...]]] = [
    ("when_matched_delete", ("source.n = 3",)),
    ("when_matched_update", (SET, "target.n > 4 and target.event is not null")),
    ("when_matched_update_all", ("source.n > 5",)),
    ("when_matched_update", ({"event": "source.event", "day": "'z'"},)),
    ("when_not_matched_insert", ({"id": "source.id", "event:s": "source.day"}, "source.n > 6")),
    ("when_not_matched_insert_all", ("source.n is not null",)),
    ("when_not_matched_by_source_update", ({"n": "target.n + 100"}, "target.n < 2")),
    ("when_not_matched_by_source_delete", ("target.n = 9",)),
]


@pytest.fixture(autouse=True)
def distributed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Distribute the rows of small sources as those of large ones."""
    if "spark" not in request.fixturenames:
        yield
        return
    spark: SparkSession = request.getfixturevalue("spark")
    spark.conf.set(BROADCAST, "-1")
    yield
    spark.conf.unset(BROADCAST)


def random_source(source: random.Random, ids: range = range(170)) -> list[dict[str, Any]]:
    """Return rows, of which some match rows of the table."""
    return [
        {
            "id": None if source.random() < 0.05 else number,
            "day": source.choice(["a", "b", None]),
            "n": source.choice([None, *range(10)]),
            "event": random_event(source),
        }
        for number in sorted(source.sample(ids, source.randrange(1, 60)))
    ]


def with_clauses(merge: dv.Merge, clauses: list[tuple[str, tuple[Any, ...]]]) -> dv.Merge:
    for name, arguments in clauses:
        merge = getattr(merge, name)(*arguments)
    return merge


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA)


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize(("limit", "driver_bytes"), [("-1", -1), ("1MB", -1), ("1MB", 1 << 20)])
def test_merges_are_those_of_one_process(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    feature: str,
    limit: str,
    driver_bytes: int,
):
    spark.conf.set(BROADCAST, limit)
    monkeypatch.setattr(executor, "DRIVER_BYTES", driver_bytes)
    source = random.Random(f"{feature} {limit}")
    here, there = twins(tmp_path, FEATURES[feature], source)
    changes, on = random_source(source), source.choice(PREDICATES)
    clauses = [each for each in CLAUSES if source.random() < 0.7] or CLAUSES
    merges = [
        on_spark(spark, there).merge(frame(spark, changes), on, variant_columns=["event"]),
        dv.merge(here, pa.Table.from_pylist(changes, TYPES), on, variant_columns=["event"]),
    ]
    ours, expected = (outcome(with_clauses(merge, clauses).execute) for merge in merges)
    assert ours == expected
    assert content(there) == content(here)
    assert orphans(there) == set()
    assert dv.audit_table(there, data=True).is_clean


@pytest.mark.parametrize("driver_bytes", [-1, 1 << 20])
def test_a_rejected_inserted_row_leaves_no_file_of_a_task(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver_bytes: int
):
    spark.conf.unset(BROADCAST)
    monkeypatch.setattr(executor, "DRIVER_BYTES", driver_bytes)
    dv.write_table(tmp_path, [{"id": 1, "n": 1}])
    dv.add_constraint(tmp_path, "small", "id < 100")
    merge = on_spark(spark, tmp_path).merge(spark.createDataFrame([(1, 2), (200, 2)], "id long, n long"), ON)
    with pytest.raises(ConstraintViolationError, match="small"):
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert orphans(tmp_path) == set()
    assert dv.read_table(tmp_path).to_pylist() == [{"id": 1, "n": 1}]


def test_rows_keep_their_row_ids(spark: SparkSession, tmp_path: Path):
    here, there = twins(tmp_path, FEATURES["row tracking"], random.Random(1))
    source = [{"id": n, "day": "x", "n": n, "event": None} for n in range(0, 150, 7)]
    for merge in (
        on_spark(spark, there).merge(frame(spark, source), ON, variant_columns=["event"]),
        dv.merge(here, pa.Table.from_pylist(source, TYPES), ON, variant_columns=["event"]),
    ):
        merge.when_matched_update({"n": "source.n"}).execute()
    assert tracked(there) == tracked(here)


KEYS = {
    "int": (pa.int32(), [1, 2, None, -5, 2**31 - 1]),
    "long": (pa.int64(), [1, 2, None, -5, 2**62]),
    "float": (pa.float32(), [0.0, -0.0, None, float("nan"), 1.5]),
    "double": (pa.float64(), [0.0, -0.0, None, float("nan"), 1.5]),
    "string": (pa.string(), ["", "a", None, "ä\0", "b" * 40]),
    "binary": (pa.binary(), [b"", b"a", None, b"\xff", b"b" * 40]),
    "boolean": (pa.bool_(), [True, False, None, False, True]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), None, *[dt.date(1969, 12, 31)] * 2]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1900, 1, n, tzinfo=dt.timezone.utc) if n else None for n in (1, 2, 0, 3, 4)],
    ),
    "decimal": (
        pa.decimal128(10, 2),
        [Decimal("1.10"), Decimal("-3.00"), None, *[Decimal("0.01")] * 2],
    ),
}


@pytest.mark.parametrize("limit", ["-1", "1MB"])
def test_keys_of_all_types_match(spark: SparkSession, tmp_path: Path, limit: str):
    spark.conf.set(BROADCAST, limit)
    keys = pa.table({name: pa.array(values, arrow_type) for name, (arrow_type, values) in KEYS.items()})
    table = keys.append_column("row", pa.array(range(5)))
    for folder in ("here", "there"):
        dv.write_table(tmp_path / folder, table)
        dv.write_table(tmp_path / folder, table.slice(1, 2), mode="append")
    source = keys.take([0, 2, 3]).append_column("new", pa.array([100, 200, 300]))
    dv.write_table(tmp_path / "source", source)
    df = dvs.read_table(spark, tmp_path / "source", reader="kernel")
    on = " and ".join(f"target.`{name}` = source.`{name}`" for name in KEYS)
    for merge in (on_spark(spark, tmp_path / "there").merge(df, on), dv.merge(tmp_path / "here", source, on)):
        merge = merge.when_matched_update({"row": "source.new"})
        result = merge.when_not_matched_insert({"row": "-source.new"}).execute()
        assert (result.rows_updated, result.rows_inserted) == (2, 1)
    columns = {name: name for name in (*KEYS, "row")}
    found, expected = (rows(tmp_path / each, **columns) for each in ("there", "here"))
    assert str(found) == str(expected)


@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_have_one_bucket(name: str):
    arrow_type, values = KEYS[name]
    keys = _normal(pa.array(values * 3, arrow_type))
    chunked = _normal(pa.array([None, *values], arrow_type)).slice(1)
    expected = buckets_of([keys, keys], 7).to_pylist()
    assert expected == buckets_of([chunked, chunked], 7).to_pylist() * 3
    assert set(expected) <= set(range(7))
    by_value: dict[str, set[int]] = {}
    for value, bucket in zip(keys.to_pylist(), expected, strict=True):
        by_value.setdefault(str(value), set()).add(bucket)
    assert {len(buckets) for buckets in by_value.values()} == {1}


def test_keys_are_spread_over_all_buckets():
    for keys in (pa.array(range(10_000)), pa.array([f"key{n}" for n in range(10_000)])):
        counts = pc.value_counts(buckets_of([keys], 16)).field("counts").to_pylist()
        assert len(counts) == 16
        assert min(counts) > 500


def test_rows_are_joined_by_two_keys_over_several_buckets(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(merging, "BUCKET_BYTES", 1 << 12)
    monkeypatch.setattr(merging, "INSERT_BYTES", 1 << 14)
    here, there = twins(tmp_path, FEATURES["partitioned"], random.Random(2))
    source = [{"id": n, "day": "ab"[n % 2], "n": n, "event": f'{{"n": {n}}}'} for n in range(2000)]
    on = "target.id = source.event:n::bigint and target.day = source.day"
    for merge in (
        on_spark(spark, there).merge(frame(spark, source).repartition(5), on, variant_columns=["event"]),
        dv.merge(here, pa.Table.from_pylist(source, TYPES), on, variant_columns=["event"]),
    ):
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert content(there) == content(here)
    assert orphans(there) == set()


def test_variants_and_nested_values_of_the_source_are_merged(spark: SparkSession, tmp_path: Path):
    df = spark.sql(
        "SELECT id, parse_json(concat('{\"n\":', id, '}')) AS event, map('k', id) AS m, "
        "named_struct('x', id, 'y', array('a')) AS s FROM range(6)"
    )
    write_frame(tmp_path / "t", df.where("id < 4"))
    merge = on_spark(spark, tmp_path / "t").merge(
        df.where("id > 1"), "target.event:n::bigint = source.event:n::bigint + 1"
    )
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    assert (merge.execute().rows_updated, len(rows(tmp_path / "t", id="id"))) == (1, 7)
    found = dvs.read_table(spark, tmp_path / "t").selectExpr("id", "event:n::int n", "s.x", "m['k'] k")
    assert sorted(map(tuple, found.collect())) == [
        *((n, n, n, n) for n in (0, 1, 2, 2)),
        *((n, n, n, n) for n in (3, 4, 5)),
    ]


def test_errors_are_those_of_one_process(spark: SparkSession, tmp_path: Path):
    here, there = twins(tmp_path, FEATURES["plain"], random.Random(3))
    twice = [{"id": 1, "day": "x", "n": 1, "event": "{}"}] * 2

    def compare(
        source: list[dict[str, Any]], clauses: list[tuple[str, tuple[Any, ...]]], error: type
    ) -> None:
        found = []
        for merge in (
            lambda: on_spark(spark, there).merge(frame(spark, source), ON, variant_columns=["event"]),
            lambda: dv.merge(here, pa.Table.from_pylist(source, TYPES), ON, variant_columns=["event"]),
        ):
            with pytest.raises(error) as caught:
                with_clauses(merge(), clauses).execute()
            found.append(getattr(caught.value, "message", str(caught.value)))
        assert found[0] == found[1]

    compare(twice, [("when_matched_update_all", ())], MergeAmbiguityError)
    compare([{**twice[0], "day": "a"}], [("when_matched_update", ({"n": "source.day::bigint"},))], CastError)
    compare(twice, [("when_matched_update", ({"missing": "1"},))], ExpressionError)
    compare(twice, [], ValueError)
    assert data_files(there) == listed_files(there)
    # Rows that several source rows match can be deleted.
    merge = on_spark(spark, there).merge(frame(spark, twice), ON, variant_columns=["event"])
    assert merge.when_matched_delete().execute().rows_deleted == 1
    bad = frame(spark, [{**twice[0], "event": "{"}])
    merge = on_spark(spark, there).merge(bad, ON, variant_columns=["event"]).when_matched_delete()
    with pytest.raises(InvalidJsonError):
        merge.execute()
    merge = on_spark(spark, there).merge(frame(spark, twice), "target.id < source.id")
    with pytest.raises(UnsupportedFeatureError, match=r"autoBroadcastJoinThreshold .* has no equality"):
        merge.when_matched_delete().execute()
    with pytest.raises(UnsupportedFeatureError, match="batch_merger"):
        on_spark(spark, there).merge(spark.readStream.format("rate").load(), "target.id = source.value")
    assert dv.load_snapshot(there).version == 5


def test_a_small_source_needs_no_equality(spark: SparkSession, tmp_path: Path):
    here, there = twins(tmp_path, FEATURES["partitioned"], random.Random(7))
    spark.conf.set(BROADCAST, "1MB")
    source = random_source(random.Random(7))
    for merge in (
        on_spark(spark, there).merge(frame(spark, source), "target.id < source.n", variant_columns=["event"]),
        dv.merge(
            here, pa.Table.from_pylist(source, TYPES), "target.id < source.n", variant_columns=["event"]
        ),
    ):
        result = merge.when_matched_delete().when_not_matched_insert_all("source.n < 3").execute()
        assert (result.rows_deleted, result.rows_inserted) == (
            max(row["n"] or 0 for row in source),
            sum(row["n"] == 0 for row in source),
        )
    assert content(there) == content(here)


def test_most_rows_of_a_small_source_can_be_in_one_partition(spark: SparkSession, tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"id": range(0, 50_000, 2)}))
    source = spark.range(40_000).coalesce(1).unionAll(spark.range(40_000, 40_040, 1, 20))
    spark.conf.set(BROADCAST, "1MB")
    merging = on_spark(spark, tmp_path / "t").merge(source, "target.id = source.id")
    result = merging.when_matched_delete().when_not_matched_insert_all().execute()
    assert (result.rows_deleted, result.rows_inserted) == (20_020, 20_020)
    ids = sorted(dv.read_table(tmp_path / "t").to_table()["id"].to_pylist())
    assert ids == [*range(1, 40_040, 2), *range(40_040, 50_000, 2)]


@pytest.mark.classic("merges on the driver")
@pytest.mark.parametrize(
    ("files", "more_bytes", "steps"), [(2, 0, []), (2, -1, [REWRITE]), (1, 0, [REWRITE])]
)
def test_the_driver_merges_a_small_source_into_few_small_files(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: int,
    more_bytes: int,
    steps: list[str],
):
    for ids in (range(5), range(5, 10), range(20, 30)):
        dv.write_table(tmp_path, pa.table({"id": ids}), mode="append")
    spark.conf.unset(BROADCAST)
    read = [add["size"] for add in read_actions(tmp_path, "add")[:2]]
    monkeypatch.setattr(executor, "DRIVER_FILES", files)
    monkeypatch.setattr(executor, "DRIVER_BYTES", sum(read) + more_bytes)
    run, found = SparkExecutor.run_partitions, []
    record = lambda self, df, task: found.append(task.step) or run(self, df, task)  # noqa: E731
    monkeypatch.setattr(SparkExecutor, "run_partitions", record)
    merge = on_spark(spark, tmp_path).merge(spark.range(4, 7, 1, 2), ON)
    result = merge.when_matched_delete().when_not_matched_insert_all().execute()
    assert (result.rows_deleted, result.rows_inserted, result.files_removed) == (3, 0, 2)
    assert found == steps
    assert orphans(tmp_path) == set()


def test_tasks_share_large_batches():
    large, small = (pa.record_batch({"id": pa.array(range(n))}) for n in (SHARED_BYTES, 2))
    shared: list[Any] = []
    packed = [pack_sharing((number, large, small), shared) for number in range(2)]
    assert [each is large for each in shared] == [True]
    assert max(map(len, packed)) < SHARED_BYTES
    assert [unpack_sharing(each, shared) for each in packed] == [(0, large, small), (1, large, small)]


def test_a_predicate_casts_the_values_of_matched_rows_only(spark: SparkSession, tmp_path: Path):
    texts = ['{"n":"none"}', '{"n":1}', '{"n":"two"}', '{"n":3}']
    dv.write_table(tmp_path / "t", pa.table({"id": [1, 2, 3, 4], "event": pa.array(texts, pa.json_())}))
    merge = on_spark(spark, tmp_path / "t").merge(spark.range(2, 5, 2), ON)
    merge = merge.when_matched_update({"event:n": "0"}, where="target.event:n::bigint = 1")
    assert merge.execute().rows_updated == 1
    failing = on_spark(spark, tmp_path / "t").merge(spark.range(3, 4), ON)
    with pytest.raises(CastError, match="two") as caught:
        failing.when_matched_delete("event:n::bigint = 0").execute()
    assert caught.value.row == 2


def test_the_source_is_computed_once_and_not_for_a_repeated_merge(spark: SparkSession, tmp_path: Path):
    table, counts = tmp_path / "t", tmp_path / "counts"
    dv.write_table(table, pa.table({"id": range(100)}))
    source = spark.range(50, 150, 1, 3).repartition(4).mapInArrow(counting(counts), "id long")

    def merge() -> dv.RewriteResult:
        commit = dv.CommitOptions(txn=("loader", 1), metadata="mine")
        started = on_spark(spark, table).merge(source, ON, commit=commit)
        return started.when_matched_delete().when_not_matched_insert_all().execute()

    result = merge()
    assert (result.rows_deleted, result.rows_inserted, result.metrics["numSourceRows"]) == (50, 50, 100)
    assert counted(counts) == 100
    assert merge().repeated
    assert counted(counts) == 100
    assert [info.get("userMetadata") for info in read_actions(table, "commitInfo")] == [None, "mine"]
    assert data_files(table) - listed_files(table) == {
        remove["path"] for remove in read_actions(table, "remove")
    }


def fail(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, times: int) -> None:
    """Let the first task of one kind fail `times` times after it has done its work."""
    kind = getattr(module, name)

    work = "run" if hasattr(kind, "run") else "__call__"

    def do_and_fail(task: Any, *arguments: Any) -> Iterator[Any]:
        yield from getattr(kind, work)(task, *arguments)
        context = TaskContext.get()
        if context.partitionId() == 0 and context.attemptNumber() < times:
            raise OSError("the disk failed")

    # Spark's workers cannot import this module. A class that a function defines is pickled by value.
    monkeypatch.setattr(module, name, type("Failing", (kind,), {work: do_and_fail}))


@pytest.mark.parametrize("limit", ["-1", "1MB"])
def test_tasks_that_fail_once_leave_each_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
):
    spark.conf.set(BROADCAST, limit)
    here, there = twins(tmp_path, FEATURES["change data feed"], random.Random(4))
    for module, name in [
        (executor, "EachTask"),
        *((merging, each) for each in ("SourceTask", "JoinTask", "ApplyTask")),
    ]:
        fail(monkeypatch, module, name, times=1)
    source = random_source(random.Random(4))
    for merge in (
        on_spark(spark, there).merge(frame(spark, source), ON, variant_columns=["event"]),
        dv.merge(here, pa.Table.from_pylist(source, TYPES), ON, variant_columns=["event"]),
    ):
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert content(there) == content(here)
    assert orphans(there) == set()
    # The rows of a whole file and others, in tables of the same files.
    here, there = twins(tmp_path / "delete", FEATURES["change data feed"], random.Random(4))
    on_spark(spark, there).delete("id < 33")
    dv.delete(here, "id < 33")
    assert content(there) == content(here)
    assert orphans(there) == set()


@pytest.mark.classic("the end of the tasks of a failed job")
def test_a_job_that_fails_or_conflicts_commits_nothing_and_leaves_no_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _, table = twins(tmp_path, FEATURES["change data feed"], random.Random(5))
    before = data_files(table)
    source = frame(spark, random_source(random.Random(5)))
    merge = on_spark(spark, table).merge(source, ON, variant_columns=["event"]).when_matched_update_all()
    with monkeypatch.context() as patch:
        fail(patch, merging, "ApplyTask", times=9)
        with pytest.raises(PySparkException, match="OSError: the disk failed"):
            merge.when_not_matched_insert_all().execute()
    assert data_files(table) == before
    dv.delete(table, "id < 140")
    before = data_files(table)
    with pytest.raises(CommitConflictError):
        merge.execute()
    assert data_files(table) == before
    assert read_actions(table, "commitInfo")[-1]["operation"] == "DELETE"


def test_a_merge_that_is_repeated_after_a_crash_removes_the_files_of_the_crash(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    dv.write_table(tmp_path / "t", pa.table({"id": range(10)}))

    def merge() -> dv.RewriteResult:
        commit = dv.CommitOptions(txn=("loader", 1))
        started = on_spark(spark, tmp_path / "t").merge(spark.range(5, 15), ON, commit=commit)
        return started.when_matched_delete().when_not_matched_insert_all().execute()

    def crash(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(execute, "commit_merge", crash)
        with pytest.raises(SystemExit):
            merge()
    assert orphans(tmp_path / "t")
    assert merge().version == 1
    assert orphans(tmp_path / "t") == set()
    assert rows(tmp_path / "t", id="id") == sorted(({"id": n} for n in [*range(5), *range(10, 15)]), key=str)


def test_local_times_are_in_the_time_zone_of_the_session(spark: SparkSession, tmp_path: Path):
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "Asia/Tokyo")
    try:
        df = spark.sql(
            "SELECT id, timestamp'2024-01-01 00:00:00' + make_interval(0,0,0,0,id) AS ts FROM range(48)"
        )
        for folder in ("here", "there"):
            write_frame(tmp_path / folder, df)
        source = df.where("id % 5 = 0").selectExpr("id", "ts::date AS day")
        on = "target.id = source.id and target.ts::date = source.day"
        set_noon = {"ts": "'2024-06-01 12:00:00'"}, "hour(target.ts) = 10"
        arrow = source.toArrow()
        ours = on_spark(spark, tmp_path / "there").merge(source, on).when_matched_update(*set_noon).execute()
        merge = dv.merge(tmp_path / "here", arrow, on, timezone="Asia/Tokyo")
        assert ours.rows_updated == merge.when_matched_update(*set_noon).execute().rows_updated == 1
        where = "ts::date = date'2024-01-02'"
        deleted = on_spark(spark, tmp_path / "there").delete(where).rows_deleted
        assert deleted == dv.delete(tmp_path / "here", where, timezone="Asia/Tokyo").rows_deleted
        updates = {"ts": "timestamp'2024-03-01 00:00:00'"}
        on_spark(spark, tmp_path / "there").update(updates, "hour(ts) = 3")
        dv.update(tmp_path / "here", updates, "hour(ts) = 3", timezone="Asia/Tokyo")
    finally:
        spark.conf.set(zone, before)
    found, expected = (rows(tmp_path / each, id="id", ts="ts") for each in ("there", "here"))
    assert found == expected


def test_delta_reads_what_tasks_wrote(spark_with_delta: SparkSession, tmp_path: Path):
    spark, (_, table) = spark_with_delta, twins(tmp_path, FEATURES["change data feed"], random.Random(6))
    source = frame(spark, random_source(random.Random(6), range(100, 300)))
    merge = on_spark(spark, table).merge(source, ON, variant_columns=["event"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    on_spark(spark, table).delete("n = 3")
    on_spark(spark, table).update({"n": "n + 1"}, "id < 50")
    columns = ["id", "day", "n"]
    read = spark.read.format("delta").load(str(table)).selectExpr(*columns, "to_json(event) AS event")
    ours = rows(table, **{name: name for name in columns}, event="to_json(event)")
    assert sorted((row.asDict() for row in read.collect()), key=str) == ours
    changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 5)
    theirs = changes.load(str(table)).select("_change_type", "id").collect()
    feed = dv.read_changes(table, start=5, columns=["_change_type", "id"]).to_table().to_pylist()
    assert sorted(map(tuple, theirs), key=str) == sorted((tuple(each.values()) for each in feed), key=str)


def test_events_of_debezium_are_applied_once_in_their_order(spark: SparkSession, tmp_path: Path):
    table, lines, random_events = tmp_path / "t", tmp_path / "lines", random.Random(8)
    write_frame(table, spark.range(0).selectExpr("id", "parse_json('{}') AS row"))
    lines.mkdir()
    state: dict[int, dict[str, Any]] = {}
    lsn = 0

    def apply_changes(batch: DataFrame) -> dv.Merge:
        path = "get_json_object(value, '$.{}')".format
        keyed = batch.selectExpr(
            "value",
            f"bigint({path('source.lsn')}) AS lsn",
            f"bigint(coalesce({path('after.id')}, {path('before.id')})) AS id",
        )
        last = keyed.groupBy("id").agg(max_by("value", "lsn").alias("event"))
        merge = on_spark(spark, table).merge(last, ON, variant_columns=["event"])
        merge = merge.when_matched_delete("source.event:op::string = 'd'")
        merge = merge.when_matched_update({"row": "source.event:after"})
        return merge.when_not_matched_insert(
            {"id": "source.id", "row": "source.event:after"}, "source.event:op::string <> 'd'"
        )

    for number in range(2):
        events = []
        for _ in range(40):
            identity, lsn = random_events.randrange(12), lsn + 1
            before = state.pop(identity, None)
            after = {"id": identity, "n": lsn} if before is None or random_events.random() < 0.6 else None
            op = "d" if after is None else "u" if before else random_events.choice("cr")
            if after:
                state[identity] = after
            events.append({"op": op, "before": before, "after": after, "source": {"lsn": lsn}})
        texts = [f"{json.dumps(event)}\n" for event in random_events.sample(events, len(events))]
        (lines / f"{number}.txt").write_text("".join(texts), "utf-8")
        for _ in range(2):
            query = spark.readStream.text(str(lines)).writeStream.foreachBatch(
                dvs.batch_merger(apply_changes, app_id="app")
            )
            query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
            finished(query.start())
            # The state after a driver crashes between our commit and Spark's: the next run repeats the batch.
            (tmp_path / "c" / "commits" / str(number)).unlink()
            (tmp_path / "c" / "commits" / f".{number}.crc").unlink(missing_ok=True)
    expected = [
        {"id": identity, "row": json.dumps(row, separators=(",", ":"))} for identity, row in state.items()
    ]
    assert rows(table, id="id", row="to_json(row)") == sorted(expected, key=str)
    assert dv.load_snapshot(table).version == 2
    with pytest.raises(UnsupportedFeatureError, match="app_id"):
        dvs.batch_merger(lambda batch: on_spark(spark, table).merge(batch, ON))(spark.range(1), 7)
    given = dv.CommitOptions(txn=("mine", 1))
    merger = dvs.batch_merger(lambda batch: on_spark(spark, table).merge(batch, ON, commit=given))
    with pytest.raises(ValueError, match="app_id"):
        merger(spark.range(1), 7)


@pytest.mark.parametrize(("losses", "is_merged"), [(1, True), (4, False)])
def test_a_merge_runs_again_if_stored_rows_are_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: int, is_merged: bool
):
    dv.write_table(tmp_path / "t", [{"id": 1, "n": 10}, {"id": 2, "n": 20}])
    before = data_files(tmp_path / "t")
    join, runs = merging._join, []

    def lose_rows(run: Any, plan: Any, work: Any, stored: DataFrame, *arguments: Any) -> Any:
        runs.append(run)
        if len(runs) <= losses:
            drop_stored_rows()
        return join(run, plan, work, stored, *arguments)

    monkeypatch.setattr(merging, "_join", lose_rows)
    source = spark.createDataFrame([(2, 21), (3, 30)], "id long, n long")
    merge = on_spark(spark, tmp_path / "t").merge(source, ON)
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    if not is_merged:
        with pytest.raises(SPARK_ERRORS, match="CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"):
            merge.execute()
        assert data_files(tmp_path / "t") == before
        return
    result = merge.execute()
    assert (result.version, result.rows_updated, result.rows_inserted, len(runs)) == (1, 1, 1, 2)
    found = rows(tmp_path / "t", id="id", n="n")
    assert found == [{"id": 1, "n": 10}, {"id": 2, "n": 21}, {"id": 3, "n": 30}]
    assert data_files(tmp_path / "t") - before == listed_files(tmp_path / "t") - before
