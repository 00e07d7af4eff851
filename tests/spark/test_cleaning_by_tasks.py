"""A vacuum and a restore by tasks are those of one process and of Delta."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from operations.test_vacuum import age, append, put
from pyspark.sql import SparkSession
from spark.tables import commits
from support.tables import list_files

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import StoreError
from delta_variant.spark import vacuuming


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Path, Path]:
    """Return two equal tables with current, removed and unknown files, and those of changes and tasks."""
    here, there = tmp_path / "here", tmp_path / "there"
    feed = {"delta.enableChangeDataFeed": "true"}
    append(here, 0, 1, 2, 3, partition_by=["day"], configuration=feed)
    dv.update(here, {"v:n": "10"}, "id = 1")
    dv.delete(here, "day = 'd0'")
    for name in ("part-old.parquet", "day=d0/a b.parquet", "_delta_variant/1/0.json", "_hidden/x", "inner/x"):
        put(here, name)
    age(here)
    append(here, 5)
    put(here, "part-new.parquet", days=1)
    shutil.copytree(here, there)
    return here, there


def outcome(call: Callable[[], Any]) -> Any:
    try:
        result = call()
    except (dv.DeltaVariantError, ValueError) as error:
        return type(error), str(error).replace("/here", "/there")
    found = {name: getattr(result, name) for name in type(result).__dataclass_fields__}
    return {name: sorted(each) if name == "files" else each for name, each in found.items()}


def infos(table: Path) -> list[tuple[Any, ...]]:
    names = ("operation", "operationParameters", "operationMetrics", "userMetadata")
    return [tuple(info.get(name) for name in names) for info in commits(table, "commitInfo")]


VACUUMS: dict[str, tuple[dict[str, Any], int]] = {
    "a dry run": ({}, 7),
    "the retention of the table": ({"dry_run": False, "commit": dv.CommitOptions(metadata="cleaning")}, 7),
    "a longer retention": ({"dry_run": False, "retention_hours": 31 * 24}, 0),
    "no retention": (
        {"dry_run": False, "retention_hours": 0, "enforce_retention_duration": False},
        8,
    ),
}


@pytest.mark.parametrize("case", VACUUMS)
def test_a_vacuum_is_that_of_one_process(spark: SparkSession, twins: tuple[Path, Path], case: str):
    here, there = twins
    options, count = VACUUMS[case]
    found = outcome(lambda: dvs.vacuum(spark, there, **options))
    assert found == outcome(lambda: dv.vacuum(here, **options))
    assert list_files(there) == list_files(here)
    assert infos(there) == infos(here)
    assert len(found["files"]) == count
    assert sorted(dv.read_table(there, columns=["id"]).to_table()["id"].to_pylist()) == [1, 3, 5]


@pytest.mark.parametrize(
    "options",
    [
        {"retention_hours": 1},
        {"retention_hours": -1},
        {"retention_hours": "1"},
        {"commit": {"txn": ("a", 1)}},
    ],
)
def test_the_errors_of_a_vacuum_are_those_of_one_process(
    spark: SparkSession, twins: tuple[Path, Path], options: dict[str, Any]
):
    if "commit" in options:
        options = {"commit": dv.CommitOptions(**options["commit"])}
    here, there = twins
    found = outcome(lambda: dvs.vacuum(spark, there, dry_run=False, **options))
    assert found == outcome(lambda: dv.vacuum(here, dry_run=False, **options))
    assert isinstance(found, tuple)


def test_a_vacuum_deletes_the_files_that_delta_deletes(
    spark_with_delta: SparkSession, twins: tuple[Path, Path]
):
    spark, table = spark_with_delta, twins[0]
    # Delta lists the folders with as many tasks.
    setting = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    spark.conf.set(setting, "2")
    rows = spark.sql(f"VACUUM delta.`{table}` DRY RUN").collect()
    spark.conf.unset(setting)
    named = {unquote(row[0]).split(f"{table}/")[-1] for row in rows}
    # Delta does not know the records of tasks, and deletes empty folders.
    expected = {name for name in named if (table / name).is_file()}
    assert {*dvs.vacuum(spark, table).files} == expected | {"_delta_variant/1/0.json"}


def swap(table: Path, name: str) -> None:
    """Replace a file by a folder, which cannot be deleted."""
    (table / name).unlink()
    (table / name).mkdir()


def test_a_file_that_cannot_be_deleted_is_an_error_after_all_others(
    spark: SparkSession, twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    table = twins[0]

    def run(*arguments: Any) -> Any:
        swap(table, "part-old.parquet")
        return run_task(*arguments)

    run_task = vacuuming.run_task
    monkeypatch.setattr(vacuuming, "run_task", run)
    monkeypatch.setattr(vacuuming, "FILES_OF_TASK", 2)
    with pytest.raises(StoreError, match="cannot delete 1 of 7 files: ") as caught:
        dvs.vacuum(spark, table, dry_run=False)
    assert str(caught.value.file).endswith("part-old.parquet")
    end = dv.history(table)[0]
    assert (end.parameters["status"], end.metrics) == ("FAILED", {"numDeletedFiles": 6})
    assert dv.vacuum(table).files == ()


def test_a_vacuum_whose_job_fails_records_what_was_deleted(
    spark: SparkSession, twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    table = twins[0]

    def fail(*_: Any) -> None:
        (table / "part-old.parquet").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(vacuuming, "run_task", fail)
    with pytest.raises(KeyboardInterrupt, match="interrupted: 1 of 7 unused files were deleted"):
        dvs.vacuum(spark, table, dry_run=False)
    assert dv.history(table)[0].metrics == {"numDeletedFiles": 1}


RESTORES: list[dict[str, Any]] = [
    {"version": 1},
    {"version": 9},
    {},
    {"version": 1, "timestamp": "2026-01-01T00:00:00Z"},
    {"version": 1, "commit": dv.CommitOptions(metadata="back")},
    {"version": 3},
]


@pytest.mark.parametrize("arguments", RESTORES)
def test_a_restore_is_that_of_one_process(
    spark: SparkSession, twins: tuple[Path, Path], arguments: dict[str, Any]
):
    here, there = twins
    found = outcome(lambda: dvs.restore(spark, there, **arguments))
    assert found == outcome(lambda: dv.restore(here, **arguments))
    assert infos(there) == infos(here)
    assert dv.read_table(there).to_table().equals(dv.read_table(here).to_table())


def test_a_restore_of_a_version_without_files_names_them(spark: SparkSession, twins: tuple[Path, Path]):
    for table in twins:
        for path in sorted(table.glob("day=d0/part-*"))[:1]:
            path.unlink()
    here, there = twins
    found = outcome(lambda: dvs.restore(spark, there, 0))
    assert found == outcome(lambda: dv.restore(here, 0))
    assert found[0] is dv.errors.DataFileError


def test_a_restore_is_that_of_delta(spark_with_delta: SparkSession, twins: tuple[Path, Path]):
    here, there = twins
    spark_with_delta.sql(f"RESTORE TABLE delta.`{here}` TO VERSION AS OF 1")
    dvs.restore(spark_with_delta, there, 1)
    rows = [sorted(dv.read_table(table).to_pylist(), key=str) for table in twins]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4
