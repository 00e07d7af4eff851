"""Optimizing with tasks plans and writes the same as one process, and failed tasks leave no files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.tables import data_files, listed_files, on_spark, rows, write_frame
from support.tables import read_actions
from write.test_row_tracking import tracked

import delta_variant as dv
from delta_variant.errors import CommitConflictError, ExpressionError
from delta_variant.log.file_set import FileSet
from delta_variant.operations.optimize import optimize
from delta_variant.spark import executor

COLUMNS = {"id": "id", "day": "day", "text": "to_json(event)"}
KEY = "event:k::bigint"
EVERY_TYPE = [
    "IF(id % 5 = 0, NULL, id) AS id",
    "CASE WHEN id % 2 = 0 THEN parse_json(concat('{\"a\":', id, '}')) END AS v",
    "array(named_struct('v', parse_json('1'), 'n', id), NULL) AS a",
    "map('k', parse_json('[2]'), 'n', NULL) AS m",
    "CASE WHEN id % 3 > 0 THEN named_struct('e', CASE WHEN id = 1 THEN parse_json('{\"k\":1}') END) END AS s",
    "timestamp'2026-01-01 00:00:00' AS t",
    "timestamp_ntz'2026-01-01 00:00:00' AS ntz",
    "date'2026-01-01' AS d",
    "CAST(id AS DECIMAL(5,2)) AS dec",
    "CAST(id AS TINYINT) AS tiny",
    "CAST('x' AS BINARY) AS bin",
    "CAST(id AS FLOAT) AS f",
    "id = 1 AS b",
]


LARGE = 10_000
"""The rows of a file that is large enough to be shredded by default."""


def write(table: Path, first: int, name: str = "old", count: int = 100, **options: Any) -> None:
    numbers = range(first, first + count)
    texts = [json.dumps({"k": number * 7919 % 100_003, name: str(number)}) for number in numbers]
    days = ["ab"[number % 2] for number in numbers]
    data = pa.table({"id": numbers, "day": days, "event": pa.array(texts, pa.json_())})
    dv.write_table(table, data, mode="append", **options)


@pytest.fixture(params=[None, "day"], ids=["whole", "partitioned"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a table of four commits, whose values drift from one path to another."""
    for number in range(4):
        name = "new" if number > 1 else "old"
        write(tmp_path / "t", LARGE * number, name, LARGE, partition_by=request.param)
    return tmp_path / "t"


@pytest.fixture(params=[None, "day"], ids=["whole", "partitioned"])
def shredded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a table of four commits with few rows, whose shredding an optimize keeps."""
    schema = dv.ShreddingSchema.of({"k": pa.int64()})
    for first in range(0, 400, 100):
        write(tmp_path / "t", first, partition_by=request.param, shredding=schema)
    return tmp_path / "t"


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    """Return a table of two commits and two partitions."""
    for first in (0, 100):
        write(tmp_path / "t", first, partition_by="day")
    return tmp_path / "t"


def keys_of(table: Path, path: str) -> list[int]:
    """Return the keys of one file, in the order of its rows."""
    snapshot = dv.load_snapshot(table)
    file = replace(snapshot, file_set=FileSet(snapshot.files.filter(pc.field("path") == path)))
    return dv.read_table(file, columns={"k": KEY}).to_table()["k"].to_pylist()


def test_the_plan_equals_that_of_one_process_and_is_executed(spark: SparkSession, table: Path):
    before = rows(table, **COLUMNS)
    expected = dv.optimize(table, dry_run=True)
    plan = on_spark(spark, table).optimize(dry_run=True)
    assert (plan.version, plan.groups, str(plan)) == (None, expected.groups, str(expected))
    done = on_spark(spark, table).optimize()
    assert (done.version, done.groups, len(done.files)) == (4, plan.groups, len(plan.groups))
    assert rows(table, **COLUMNS) == before
    assert listed_files(table) == {file.path for file in done.files}
    info = read_actions(table, "commitInfo")[-1]
    assert (info["operation"], info["operationMetrics"]["numRemovedFiles"]) == (
        "OPTIMIZE",
        str(done.files_before),
    )
    assert {remove["dataChange"] for remove in read_actions(table, "remove")} == {False}
    paths = {path.path for file in done.files for path in file.variants["event"]}
    assert ("k",) in paths
    assert dv.audit_table(table, data=True).is_clean
    assert on_spark(spark, table).optimize().version is None


def test_tasks_purge_the_files_with_deletion_vectors(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    configuration = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    write(table, 0, partition_by="day", configuration=configuration)
    dv.delete(table, "id in (1, 2)")
    before = tracked(table)
    assert on_spark(spark, table).optimize().version is None
    done = on_spark(spark, table).optimize(purge=True)
    assert (done.version, done.rows_purged, len(done.files)) == (2, 2, 2)
    assert listed_files(table) == {file.path for file in done.files}
    assert dv.load_snapshot(table).files["deletion_vector"].null_count == 2
    assert tracked(table) == before


@pytest.mark.usefixtures("small_files_are_separated", "small_files_are_shredded")
@pytest.mark.parametrize("configuration", [{}, {"delta.enableRowTracking": "true"}], ids=["plain", "tracked"])
def test_the_residual_rows_of_all_tasks_have_one_file(
    spark: SparkSession, tmp_path: Path, configuration: dict[str, str]
):
    table = tmp_path / "t"
    for first in range(0, 80, 20):
        numbers = range(first, first + 20)
        texts = [f'{{"k": "{n}"}}' if n % 20 in (3, 4) else f'{{"k": {n}}}' for n in numbers]
        data = pa.table({"id": numbers, "event": pa.array(texts, pa.json_())})
        dv.write_table(table, data, mode="append", configuration=configuration if first == 0 else None)
    before = rows(table, id="id", text="to_json(event)")
    residual = [file["size"] for file in dv.load_snapshot(table).files.to_pylist() if file["tags"]]
    assert len(residual) == 4
    # Two files of residual rows fit into one of this size, so that two tasks write residual rows.
    files = dv.FileOptions(target_file_size=max(residual) * 2 + 100)
    done = on_spark(spark, table).optimize(files=files)
    assert sum(len(group.paths) == 2 and group.options.is_residual for group in done.groups) == 2
    assert [file.rows for file in done.files if file.is_residual] == [8]
    assert sum(file.rows for file in done.files) == 80
    assert rows(table, id="id", text="to_json(event)") == before
    listed = {file.path for file in done.files}
    assert listed_files(table) == listed
    assert {path.name for path in table.glob("*.parquet")} - listed == {
        remove["path"] for remove in read_actions(table, "remove")
    }
    assert dv.audit_table(table, data=True).is_clean


def test_tasks_rewrite_the_files_of_a_dropped_feature(spark: SparkSession, shredded: Path):
    before, old = rows(shredded, **COLUMNS), listed_files(shredded)
    assert on_spark(spark, shredded).drop_feature("variantShredding").version
    assert rows(shredded, **COLUMNS) == before == rows(dv.load_snapshot(shredded, 3), **COLUMNS)
    assert dv.shredded_columns(shredded).keys() == {"id", "day", "event"}
    assert listed_files(shredded).isdisjoint(old)
    assert data_files(shredded) == listed_files(shredded) | old


def test_rows_are_sorted_over_the_files_of_each_partition(spark: SparkSession, shredded: Path):
    before = rows(shredded, **COLUMNS)
    done = on_spark(spark, shredded).optimize(
        sort_by=[KEY, "id"], files=dv.FileOptions(target_file_size=2 << 10)
    )
    assert len(done.files) > len(done.groups)
    assert rows(shredded, **COLUMNS) == before
    for day in {group.partition_values.get("day") for group in done.groups}:
        paths = [file.path for file in done.files if day is None or file.path.startswith(f"day={day}/")]
        runs = sorted(keys_of(shredded, path) for path in paths)
        found = [key for run in runs for key in run]
        assert found
        assert found == sorted(found)
    explained = dv.read_table(shredded, where=f"{KEY} = 500").explain()
    assert explained.files_read <= len(done.groups)
    assert json.loads(read_actions(shredded, "commitInfo")[-1]["operationParameters"]["sortBy"]) == [
        KEY,
        "id",
    ]


def test_a_z_order_of_tasks_skips_files_for_each_key(spark: SparkSession, tmp_path: Path):
    random = Random(5)
    for first in range(0, 8000, 2000):
        numbers = range(first, first + 2000)
        mixed = [number * 7919 % 8009 for number in numbers]
        pad = [random.randbytes(16) for _ in numbers]
        dv.write_table(tmp_path, pa.table({"n": numbers, "m": mixed, "pad": pad}), mode="append")
    done = on_spark(spark, tmp_path).optimize(
        z_order_by=["n", "m"], files=dv.FileOptions(target_file_size=10 << 10)
    )
    assert len(done.files) >= 12
    found = dv.read_table(tmp_path).to_table().sort_by("n")
    assert found["n"].to_pylist() == list(range(8000))
    assert found["m"].to_pylist() == [number * 7919 % 8009 for number in range(8000)]
    for where in ("n = 100", "n = 5100", "m = 100", "m = 5100"):
        assert dv.read_table(tmp_path, where=where).explain().files_read <= 2 * len(done.files) ** 0.5
    assert json.loads(read_actions(tmp_path, "commitInfo")[-1]["operationParameters"]["zOrderBy"]) == [
        "n",
        "m",
    ]


def test_values_of_every_type_survive_the_sort(spark: SparkSession, tmp_path: Path):
    for first in (0, 20):
        df = spark.range(first, first + 20, 1, 1).selectExpr(*EVERY_TYPE)
        write_frame(tmp_path / "t", df, mode="append")
    before = sorted(dv.read_table(tmp_path / "t").to_table().to_pylist(), key=str)
    done = on_spark(spark, tmp_path / "t").optimize(
        sort_by=["id", "v:a::int", "b"], files=dv.FileOptions(numeric="strict")
    )
    assert [file.rows for file in done.files] == [40]
    after = dv.read_table(tmp_path / "t").to_table()
    assert sorted(after.to_pylist(), key=str) == before
    ids = after["id"].to_pylist()
    assert ids == [*sorted(each for each in ids if each is not None), *[None] * 8]


@pytest.mark.parametrize("sort_by", [None, KEY])
def test_rows_keep_their_row_ids(spark: SparkSession, tmp_path: Path, sort_by: str | None):
    write(tmp_path / "t", 0, configuration={"delta.enableRowTracking": "true"})
    write(tmp_path / "t", 100)
    dv.update(tmp_path / "t", {"day": "'c'"}, "id = 7")
    before = tracked(tmp_path / "t")
    assert on_spark(spark, tmp_path / "t").optimize(sort_by=sort_by).version == 3
    assert tracked(tmp_path / "t") == before


def fail(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the task of the first group fail `times` times after it has written its files."""

    def failing(kind: type[Any]) -> type[Any]:
        # Spark's workers cannot import this module. A class that a function defines is pickled by value.
        class Failing(kind):  # type: ignore[misc]
            def run(self, store: Any, name: Any, batches: Any) -> Iterator[Any]:
                for result in super().run(store, name, batches):
                    yield result
                    # SortedGroups has no numbers of tasks.
                    has_failed = str(result).startswith(("(0, WrittenGroups", "WrittenGroups"))
                    if has_failed and TaskContext.get().attemptNumber() < times:
                        raise OSError("the disk failed")

        return Failing

    for kind in (executor.EachTask, executor.SortedGroups):
        monkeypatch.setattr(executor, kind.__name__, failing(kind))


@pytest.mark.parametrize("sort_by", [None, KEY])
def test_a_task_that_fails_twice_and_then_succeeds_leaves_each_row_once(
    spark: SparkSession, partitioned: Path, monkeypatch: pytest.MonkeyPatch, sort_by: str | None
):
    before, there = rows(partitioned, **COLUMNS), data_files(partitioned)
    fail(monkeypatch, times=2)
    done = on_spark(spark, partitioned).optimize(sort_by=sort_by)
    assert rows(partitioned, **COLUMNS) == before
    assert data_files(partitioned) == there | {file.path for file in done.files}


@pytest.mark.parametrize("sort_by", [None, KEY])
@pytest.mark.classic("the end of the tasks of a failed job")
def test_a_job_that_fails_commits_nothing_and_leaves_no_files(
    spark: SparkSession, partitioned: Path, monkeypatch: pytest.MonkeyPatch, sort_by: str | None
):
    there = data_files(partitioned)
    fail(monkeypatch, times=9)
    with pytest.raises(PySparkException, match="OSError: the disk failed"):
        on_spark(spark, partitioned).optimize(sort_by=sort_by)
    assert data_files(partitioned) == there
    assert dv.load_snapshot(partitioned).version == 1


def test_a_commit_that_conflicts_leaves_no_files(
    spark: SparkSession, partitioned: Path, monkeypatch: pytest.MonkeyPatch
):
    commit = optimize._commit_groups

    def commit_after_another(*arguments: Any) -> Any:
        dv.delete(partitioned, "id = 3")
        return commit(*arguments)

    there = data_files(partitioned)
    monkeypatch.setattr(optimize, "_commit_groups", commit_after_another)
    with pytest.raises(CommitConflictError, match="removed"):
        on_spark(spark, partitioned).optimize()
    assert len(rows(partitioned, id="id")) == 199
    assert read_actions(partitioned, "commitInfo")[-1]["operation"] == "DELETE"
    assert data_files(partitioned) == there | listed_files(partitioned)


def test_invalid_keys_and_predicates_are_rejected_before_a_task_runs(spark: SparkSession, tmp_path: Path):
    write(tmp_path / "t", 0)
    with pytest.raises(ExpressionError, match="have no order"):
        on_spark(spark, tmp_path / "t").optimize(sort_by="event:k")
    with pytest.raises(ExpressionError, match="expected only partition columns"):
        on_spark(spark, tmp_path / "t").optimize("id = 1")
