"""One operation has the same tasks, rows, bounds and commits in one process and by tasks of Spark."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.twins import FEATURES, content, orphans, twins

import delta_variant as dv
from delta_variant.execution import LocalExecutor, Task
from delta_variant.operations.write import WriteTask
from delta_variant.spark import SparkEngine
from delta_variant.spark.executor import SparkExecutor


def merged(table: dv.Table) -> dv.Merge:
    """Return a merge of rows in memory, which updates, deletes and inserts."""
    rows = [
        {"id": number, "day": "b", "n": number % 7, "event": {"n": number}} for number in range(90, 200, 3)
    ]
    merge = table.merge(rows, "target.id = source.id", variant_columns=["event"])
    merge = merge.when_matched_delete("source.n = 3").when_matched_update({"event:n": "source.n", "n": "0"})
    return merge.when_not_matched_insert_all()


OPERATIONS: dict[str, Callable[[dv.Table], object]] = {
    "delete": lambda table: table.delete("event:n::bigint > 4"),
    "delete whole files": lambda table: table.delete("id < 31"),
    "update": lambda table: table.update({"event:n": "id", "n": "n + 1"}, "id % 7 < 3"),
    "merge": lambda table: merged(table).execute(),
    "vacuum": lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
    "restore": lambda table: table.restore(1),
    "optimize": lambda table: table.optimize(),
    "audit": lambda table: table.audit(data=True),
    "repair_statistics": lambda table: table.repair_statistics(),
}


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch) -> dict[type, list[type]]:
    """Return the classes of the tasks that each executor runs, without repetitions."""
    found: dict[type, list[type]] = {LocalExecutor: [], SparkExecutor: []}
    for executor, classes in found.items():
        monkeypatch.setattr(executor, "run", recording(executor.run, classes))
    return found


def recording(run: Callable[..., Iterator[Any]], classes: list[type]) -> Callable[..., Iterator[Any]]:
    def record(executor: Any, tasks: Iterable[Task[Any]]) -> Iterator[Any]:
        listed = list(tasks)
        classes.extend(type(task) for task in listed if type(task) not in classes)
        return run(executor, listed)

    return record


def bounds(table: Path) -> dict[str, Any]:
    """Return the least and the greatest values in the statistics of the latest version."""
    wanted = {"first": "min(id)", "last": "max(id)", "least": "min(n)", "most": "max(event:n::bigint)"}
    return dict(dv.aggregate(table, wanted).values)


def test_a_write_has_the_same_task_rows_bounds_and_commits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tasks: list[WriteTask] = []
    of = WriteTask.of
    monkeypatch.setattr(WriteTask, "of", lambda write: tasks.append(of(write)) or tasks[-1])
    here, there = twins(tmp_path, FEATURES["partitioned"], random.Random("write"))
    tasks.clear()
    rows = [{"id": number, "day": "c", "n": number % 7, "event": f'{{"n":{number}}}'} for number in range(40)]
    dv.Table(here).append(pa.Table.from_pylist(rows), variant_columns=["event"])
    df = spark.createDataFrame(
        [tuple(row.values()) for row in rows], "id long, day string, n long, event string"
    )
    dv.Table(there, engine=SparkEngine(spark)).append(df.coalesce(1), variant_columns=["event"])
    assert [type(task) for task in tasks] == [WriteTask, WriteTask]
    assert tasks[0].options == tasks[1].options
    ours, expected = content(there), content(here)
    # Files of other bytes have the same rows.
    for found in (ours, expected):
        found["operation"][2].pop("numOutputBytes")
    assert ours == expected
    assert bounds(there) == bounds(here)
    assert orphans(there) == set()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_tasks_rows_bounds_and_commits_are_the_same(
    spark: SparkSession, tmp_path: Path, classes: dict[type, list[type]], operation: str
):
    here, there = twins(tmp_path, FEATURES["partitioned"], random.Random(operation))
    for found in classes.values():
        found.clear()
    for table, engine in ((here, None), (there, SparkEngine(spark))):
        handle = dv.Table(table, engine=engine)
        handle.delete("day = 'a'")
        OPERATIONS[operation](handle)
    assert classes[LocalExecutor] == classes[SparkExecutor] != []
    assert content(there) == content(here)
    assert bounds(there) == bounds(here)
    assert orphans(there) == orphans(here) == set()
