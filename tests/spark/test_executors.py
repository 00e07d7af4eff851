"""One operation has the same tasks, rows, bounds and commits in one process and by tasks of Spark."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.twins import FEATURES, content, orphans, outcome, twins
from support.tables import read_log
from write.test_row_tracking import tracked

import delta_variant as dv
from delta_variant.execution import LocalExecutor, Task
from delta_variant.log.snapshot import TableVersion
from delta_variant.operations.optimize.optimize import GroupsTask
from delta_variant.operations.rewrite import write_changes
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


Tasks: TypeAlias = dict[type, list[Any]]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    """Return the tasks that each executor runs, which both split alike."""
    found: Tasks = {LocalExecutor: [], SparkExecutor: []}
    for executor, tasks in found.items():
        monkeypatch.setattr(executor, "run", recording(executor.run, tasks))
    run_on_driver = SparkExecutor.run_on_driver

    def record(executor: SparkExecutor, step: str, task: Task[Any]) -> Any:
        found[SparkExecutor].append(task)
        return run_on_driver(executor, step, task)

    monkeypatch.setattr(SparkExecutor, "run_on_driver", record)
    monkeypatch.setattr(SparkExecutor, "split", LocalExecutor.split)
    return found


def recording(run: Callable[..., Iterator[Any]], found: list[Any]) -> Callable[..., Iterator[Any]]:
    def record(executor: Any, step: str, tasks: Iterable[Task[Any]]) -> Iterator[Any]:
        listed = [with_lists(task) for task in tasks]
        found.extend(listed)
        return run(executor, step, listed)

    return record


def with_lists(task: Any) -> Any:
    """Return a task whose iterator of files is a list."""
    if not isinstance(task, partial):
        return task
    return partial(task.func, *(list(each) if isinstance(each, Iterator) else each for each in task.args))


def anonymous(part: Any) -> Any:
    """Return a task without the location of its table, and without the names of new files."""
    if isinstance(part, TableVersion):
        return part.version, replace(part.configuration, uri="")
    if isinstance(part, GroupsTask):
        return replace(part, version=anonymous(part.version))
    if not isinstance(part, partial):
        return part
    values = [anonymous(each) for each in part.args]
    if part.func is write_changes:
        values[1] = [replace(file, path="") for file in values[1]]
    return part.func, values, part.keywords


UNIQUE = ("modificationTime", "deletionTimestamp", "timestamp", "txnId")


def actions(table: Path, after: int) -> list[Any]:
    """Return the actions of each commit after a version, without times, ids and the names of new files."""
    numbers: dict[str, str] = {}

    def without_names(action: dict[str, Any]) -> dict[str, Any]:
        ((kind, fields),) = action.items()
        known = {name: value for name, value in fields.items() if name not in UNIQUE}
        if kind in ("add", "cdc"):
            numbers.setdefault(fields["path"], f"{Path(fields['path']).parent}/{len(numbers)}")
        if "path" in fields:
            known["path"] = numbers.get(fields["path"], fields["path"])
        return {kind: known}

    return [list(map(without_names, commit)) for commit in read_log(table)[after + 1 :]]


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
    local, distributed = (replace(task, table=replace(task.table, uri="")) for task in tasks)
    # The rows of a task of Spark are sorted by partition.
    assert replace(distributed, max_open_partitions=local.max_open_partitions) == local
    assert actions(there, 4) == actions(here, 4) != []
    assert content(there) == content(here)
    assert orphans(there) == set()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_tasks_rows_bounds_and_commits_are_the_same(
    spark: SparkSession, tmp_path: Path, tasks: Tasks, operation: str
):
    here, there = twins(tmp_path, FEATURES["partitioned"], random.Random(operation))
    for found in tasks.values():
        found.clear()
    for table, engine in ((here, None), (there, SparkEngine(spark))):
        handle = dv.Table(table, engine=engine)
        handle.delete("day = 'a'")
        OPERATIONS[operation](handle)
    local, distributed = (
        [anonymous(task) for task in tasks[each]] for each in (LocalExecutor, SparkExecutor)
    )
    assert local == distributed != []
    # The statistics of the files are in their `add` actions.
    assert actions(there, 4) == actions(here, 4) != []
    assert content(there) == content(here)
    assert orphans(there) == orphans(here) == set()


DELETES = ["id % 7 = 3", "event:n::bigint > 4", "day = 'a'", "id < 31", "event:s::string = 'x' and id > 100"]
UPDATES: list[tuple[dict[str, str | None], str | None]] = [
    ({"event:n": "event:n::bigint + 1"}, "n > 5 and event is not null"),
    ({"day": "'c'", "n": "id"}, "id between 40 and 90"),
    ({"event:s": None, "n": "coalesce(n, 0) + 1"}, "event:s::string = 'y'"),
    ({"n": "null"}, None),
]


@pytest.mark.parametrize("feature", FEATURES)
def test_many_tasks_do_the_same_as_one(spark: SparkSession, tmp_path: Path, feature: str):
    source = random.Random(feature)
    where, update = source.choice(DELETES), source.choice(UPDATES)
    changes: list[Callable[[dv.Table], dv.RewriteResult]] = [
        lambda table: table.delete(where),
        lambda table: table.update(*update),
        lambda table: merged(table).execute(),
    ]
    for number, change in enumerate(changes):
        # Tasks do not share new files, so the next change would count other files.
        here, there = twins(tmp_path / str(number), FEATURES[feature], source)
        ours, expected = (
            outcome(partial(change, dv.Table(table, engine=engine)))
            for table, engine in ((there, SparkEngine(spark)), (here, None))
        )
        assert ours == expected
        assert content(there) == content(here)
        assert orphans(there) == set()
        assert dv.audit_table(there, data=True).is_clean
        if feature == "row tracking":
            assert tracked(there) == tracked(here)
