"""Spark's UI and REST API show the operations of this package."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.spark_ui import SparkUI, spark_ui
from spark.test_streams import add_lines, into_table
from support.tables import read_actions

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.spark import SparkEngine, monitoring
from delta_variant.spark.monitoring import Monitor

IS_CONNECT = "SPARK_REMOTE" in os.environ
UNUSED: dict[str, Any] = {"dry_run": False, "enforce_retention_duration": False}


@pytest.fixture(scope="module")
def ui(spark: SparkSession) -> Iterator[SparkUI]:
    """Return the API of the session's UI."""
    with spark_ui() as started:
        yield started


@pytest.fixture(autouse=True)
def logs(caplog: pytest.LogCaptureFixture) -> None:
    """Print why metrics could not be reported, which is logged for debugging, where a test fails."""
    caplog.set_level("DEBUG", monitoring.__name__)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> dv.Table:
    """Return a table of 6 rows in two files."""
    for number in range(2):
        dv.write_table(tmp_path, [{"id": 3 * number + each} for each in range(3)], mode="append")
    return dv.Table(tmp_path, engine=SparkEngine(spark))


def merge(table: dv.Table, spark: SparkSession) -> object:
    matches = table.merge(spark.range(2, 4), "target.id = source.id")
    return matches.when_matched_update({"id": "10 * target.id"}).execute()


OPERATIONS: dict[str, tuple[Callable[[dv.Table, SparkSession], object], list[str]]] = {
    "WRITE": (lambda table, spark: table.append(spark.range(1)), ["write files"]),
    "MERGE": (
        merge,
        [
            "store the rows of the source",
            *(["collect the rows of the source"] if IS_CONNECT else []),
            "rewrite files with matching rows",
        ],
    ),
    "UPDATE": (lambda table, _: table.update({"id": "9"}, "id = 1"), ["rewrite files with matching rows"]),
    "DELETE": (lambda table, _: table.delete("id = 1"), ["rewrite files with matching rows"]),
    "OPTIMIZE": (lambda table, _: table.optimize(), ["plan groups of files", "rewrite groups of files"]),
    "VACUUM": (
        lambda table, _: (table.optimize(), table.vacuum(0, **UNUSED)),
        ["delete files"],
    ),
    "RESTORE": (lambda table, _: (table.optimize(), table.restore(0)), ["find missing files"]),
    "AUDIT": (lambda table, _: table.audit(data=True), ["audit files"]),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_job_names_its_operation_its_table_and_its_step(
    spark: SparkSession, ui: SparkUI, table: dv.Table, operation: str
):
    run, steps = OPERATIONS[operation]
    with ui.jobs() as jobs:
        run(table, spark)
    name = f"delta_variant {operation} {table.table_uri}"
    group, description = ("jobTags", "jobTags") if IS_CONNECT else ("jobGroup", "description")
    named = [job for job in jobs if name in str(job.get(group))]
    assert list(dict.fromkeys(step_of(job[description], name) for job in named)) == steps


def step_of(description: str | list[str], name: str) -> str:
    """Return the step in the description of a job, or in its tags."""
    texts = [description] if isinstance(description, str) else description
    (step,) = (text.partition(f"{name}: ")[2] for text in texts if f"{name}: " in text)
    return step


def metrics_of(ui: SparkUI, name: str) -> dict[str, str]:
    """Return the metrics of the latest entry of an operation."""
    latest = {each["description"]: each for each in reversed(ui.executions())}
    assert name in latest
    entry = latest[name]
    (node,) = entry["nodes"]
    assert name.endswith(node["nodeName"])
    assert entry["status"] == "COMPLETED"
    return {metric["name"]: metric["value"] for metric in node["metrics"]}


def sizes(table: dv.Table, version: int) -> list[str]:
    """Return the sizes of the files that a version adds, as Spark shows them."""
    return [f"{add['size']:.1f} B" for add in read_actions(table.table_uri, "add", version)]


@pytest.mark.classic("descriptions of jobs, and metrics in the UI")
def test_metrics_of_a_write(spark: SparkSession, ui: SparkUI, table: dv.Table):
    table.append(spark.range(7, 9, numPartitions=1))
    (size,) = sizes(table, 2)
    assert metrics_of(ui, f"delta_variant WRITE {table.table_uri}") == {
        "numFiles": "1",
        "numOutputRows": "2",
        "numOutputBytes": size,
        "version": "2",
    }


@pytest.mark.classic("descriptions of jobs, and metrics in the UI")
def test_metrics_of_a_merge_count_the_files_that_it_reads_and_skips(
    spark: SparkSession, ui: SparkUI, table: dv.Table
):
    matches = table.merge(spark.range(4, 7), "target.id = source.id")
    matches.when_matched_update({"id": "0"}).when_not_matched_insert_all().execute()
    found = metrics_of(ui, f"delta_variant MERGE {table.table_uri}")
    (skipped,), (read,) = sizes(table, 0), sizes(table, 1)
    assert (
        found.items()
        >= {
            "number of files read": "1",
            "size of files read": read,
            "number of files skipped": "1",
            "size of files skipped": skipped,
            "numTargetRowsUpdated": "2",
            "numTargetRowsInserted": "1",
            "version": "2",
        }.items()
    )


@pytest.mark.classic("descriptions of jobs, and metrics in the UI")
@pytest.mark.parametrize("is_query", [False, True])
def test_metrics_of_a_read(spark: SparkSession, ui: SparkUI, table: dv.Table, is_query: bool):
    text = f"SELECT id FROM delta.`{table.table_uri}` WHERE id > 3"
    rows = dvs.sql(spark, text) if is_query else dvs.read_table(spark, table, columns=["id"], where="id > 3")
    assert sorted(rows.collect()) == [(4,), (5,)]
    name = f"delta_variant READ {table.table_uri}"
    (skipped,), (read,) = sizes(table, 0), sizes(table, 1)
    assert metrics_of(ui, name) == {
        "number of files read": "1",
        "size of files read": read,
        "number of files skipped": "1",
        "size of files skipped": skipped,
        "version": "1",
    }
    query = ui.executions()[0]
    assert f"{name} version 1" in query["planDescription"]


@pytest.mark.classic("the id of a streaming query")
def test_an_operation_of_a_micro_batch_belongs_to_it(spark: SparkSession, ui: SparkUI, tmp_path: Path):
    add_lines(tmp_path / "lines", '{"n":1}')
    with ui.jobs() as jobs:
        query = into_table(spark, tmp_path, app_id=None)
    batch = f"id = {query.id}\nrunId = {query.runId}\nbatch = 0"
    write = f"{batch}: delta_variant WRITE {tmp_path / 't'}"
    (job,) = (job for job in jobs if "delta_variant" in job["description"])
    assert (job["jobGroup"], job["description"].strip()) == (str(query.runId), f"{write}: write files")
    executions = {each["id"]: each for each in ui.executions()}
    entry = next(each for each in executions.values() if tmp_path.name in each["description"])
    whole = executions[entry["rootExecutionId"]]
    texts = [each["description"].replace("<br/>", "\n").strip() for each in (entry, whole)]
    assert texts == [write, batch]
    assert metrics_of(ui, entry["description"])["numOutputRows"] == "1"


@pytest.mark.classic("descriptions of jobs, and metrics in the UI")
def test_the_users_group_and_description_stay(spark: SparkSession, ui: SparkUI, table: dv.Table):
    context = spark.sparkContext
    context.setJobGroup("nightly", "load of the night")
    try:
        with ui.jobs() as jobs:
            table.append(spark.range(1))
        with pytest.raises(PySparkException, match="unlucky"):
            table.append(spark.range(1).selectExpr("bigint(raise_error('unlucky')) AS id"))
        after = [context.getLocalProperty(f"spark.{name}") for name in ("jobGroup.id", "job.description")]
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    (job,) = jobs
    assert job["jobGroup"] == "nightly"
    assert job["description"] == f"load of the night: delta_variant WRITE {table.table_uri}: write files"
    assert after == ["nightly", "load of the night"]


def last(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches for a minute, unless Spark ends the task."""
    (batch,) = batches
    for _ in range(600):
        time.sleep(0.1)
        yield batch


def test_the_name_of_an_operation_cancels_it(spark: SparkSession, ui: SparkUI, table: dv.Table):
    name = f"delta_variant WRITE {table.table_uri}"
    slow = spark.range(1, numPartitions=1).mapInArrow(last, "id long")
    with ThreadPoolExecutor(1) as threads:
        write = threads.submit(table.append, slow)
        while not any(job["status"] == "RUNNING" and name in str(job) for job in ui.read("jobs")):
            time.sleep(0.1)
        if IS_CONNECT:
            spark.interruptTag(name)
        else:
            spark.sparkContext.cancelJobGroup(name)
        error = write.exception(30)
    assert error is not None
    assert "cancel" in str(error).lower()
    assert dv.load_snapshot(table.table_uri).version == 1


def test_the_name_of_a_table_has_no_credentials(spark: SparkSession, ui: SparkUI):
    monitor = Monitor(spark, "WRITE", "s3://key:secret@bucket/orders?sig=secret")
    with ui.jobs() as jobs, monitor.step("write files"):
        spark.range(1).collect()
    (job,) = jobs
    description = job["jobTags" if IS_CONNECT else "description"]
    assert step_of(description, "delta_variant WRITE s3://***@bucket/orders?***") == "write files"
    assert "secret" not in str(job)
