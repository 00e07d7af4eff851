"""A vacuum and a restore delete and find the same files in one process, by tasks, and as Delta does."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from operations.test_vacuum import age, append, put
from pyspark.sql import SparkSession
from support.tables import list_files, read_actions

import delta_variant as dv
from delta_variant.errors import (
    DataFileError,
    StoreError,
)
from delta_variant.operations import vacuum
from delta_variant.spark import SparkEngine
from delta_variant.spark.executor import SparkExecutor
from delta_variant.typing import Engine

UNKNOWN = {"part-old.parquet", "day=d0/a b.parquet", "_delta_variant/1/0.json"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with current, removed and unknown files, and those of changes and tasks."""
    folder = tmp_path / "t"
    feed = {"delta.enableChangeDataFeed": "true"}
    append(folder, 0, 1, 2, 3, partition_by=["day"], configuration=feed)
    dv.update(folder, {"v:n": "10"}, "id = 1")
    dv.delete(folder, "day = 'd0'")
    for name in (*UNKNOWN, "_hidden/x", "inner/x"):
        put(folder, name)
    age(folder)
    append(folder, 5)
    put(folder, "part-new.parquet", days=1)
    return folder


def ids(table: Path) -> list[int]:
    return sorted(dv.read_table(table, columns=["id"]).to_table()["id"].to_pylist())


@pytest.mark.parametrize(("hours", "count"), [(None, 7), (0, 8)])
def test_a_vacuum_deletes_and_records_the_unused_files(
    engine: Engine | None, table: Path, hours: int | None, count: int
):
    before = set(list_files(table))
    handle, commit = dv.Table(table, engine=engine), dv.CommitOptions(metadata="cleaning")
    result = handle.vacuum(hours, dry_run=False, enforce_retention_duration=False, commit=commit)
    assert len(result.files) == count
    assert set(result.files) > UNKNOWN
    assert ids(table) == [1, 3, 5]
    left = {path for path in list_files(table) if not path.startswith("_delta_log")}
    assert left == {path for path in before if not path.startswith("_delta_log")} - set(result.files)
    *_, start, end = read_actions(table, "commitInfo")
    assert (start["operation"], end["operation"], result.version) == ("VACUUM START", "VACUUM END", 5)
    assert start["operationMetrics"]["numFilesToDelete"] == str(count)
    assert (end["operationMetrics"], end["operationParameters"]) == (
        {"numDeletedFiles": str(count)},
        {"status": "COMPLETED"},
    )
    assert [each.get("userMetadata") for each in (start, end)] == ["cleaning", "cleaning"]


def test_a_vacuum_deletes_the_files_that_delta_deletes(spark_with_delta: SparkSession, table: Path):
    spark = spark_with_delta
    # Delta lists the folders with as many tasks.
    setting = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    spark.conf.set(setting, "2")
    rows = spark.sql(f"VACUUM delta.`{table}` DRY RUN").collect()
    spark.conf.unset(setting)
    named = {unquote(row[0]).split(f"{table}/")[-1] for row in rows}
    # Delta does not know the records of tasks, and deletes empty folders.
    expected = {name for name in named if (table / name).is_file()}
    assert {*dv.vacuum(table).files} == expected | {"_delta_variant/1/0.json"}


def test_a_file_that_cannot_be_deleted_is_an_error_after_all_others(
    engine: Engine | None, table: Path, monkeypatch: pytest.MonkeyPatch
):
    def swap(*arguments: Any) -> None:
        """Replace a file by a folder, which cannot be deleted."""
        (table / "part-old.parquet").unlink()
        (table / "part-old.parquet").mkdir()
        check(*arguments)

    check = vacuum._check_not_added_again
    monkeypatch.setattr(vacuum, "_check_not_added_again", swap)
    monkeypatch.setattr(vacuum, "FILES_OF_TASK", 2)
    with pytest.raises(StoreError, match="cannot delete 1 of 7 files: ") as caught:
        dv.Table(table, engine=engine).vacuum(dry_run=False)
    assert str(caught.value.file).endswith("part-old.parquet")
    end = dv.history(table)[0]
    assert (end.parameters["status"], end.metrics) == ("FAILED", {"numDeletedFiles": 6})
    assert dv.vacuum(table).files == ()


def test_a_file_that_executors_do_not_share_with_the_driver_is_not_deleted(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(SparkExecutor, "run", lambda *_: iter([{}]))
    with pytest.raises(StoreError, match="executors have a disk of their own"):
        dv.Table(table, engine=SparkEngine(spark)).vacuum(dry_run=False)


def test_a_restore_returns_the_rows_of_the_version(engine: Engine | None, table: Path):
    handle = dv.Table(table, engine=engine)
    assert handle.restore(3).version is None
    assert handle.restore(1, commit=dv.CommitOptions(metadata="back")).version == 4
    assert ids(table) == [0, 1, 2, 3]
    assert (dv.history(table)[0].operation, dv.history(table)[0].metadata) == ("RESTORE", "back")


def test_a_restore_of_a_version_without_files_names_them(engine: Engine | None, table: Path):
    path = sorted(table.glob("day=d0/part-*"))[0]
    path.unlink()
    with pytest.raises(DataFileError, match=path.name):
        dv.Table(table, engine=engine).restore(0)


def test_a_restore_is_that_of_delta(spark_with_delta: SparkSession, table: Path):
    expected = sorted(dv.Table(table).as_of(1).scan().to_pylist(), key=str)
    dv.Table(table, engine=SparkEngine(spark_with_delta)).restore(1)
    ours = sorted(dv.read_table(table).to_pylist(), key=str)
    dv.restore(table, 3)
    spark_with_delta.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
    assert sorted(dv.read_table(table).to_pylist(), key=str) == ours == expected
    assert len(ours) == 4
