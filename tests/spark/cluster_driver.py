"""A driver on a local cluster whose executors and Python workers are killed while it writes and merges.

`python cluster_driver.py FOLDER RUNS SEED` writes and merges a table in FOLDER, RUNS times, and checks its
rows each time. Prints how many processes it killed. Speculation is on, but Spark starts the copy of a slow
task on another host only, which this cluster does not have: see speculation_driver.py.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from spark.tables import on_spark, write_frame

import delta_variant as dv
from delta_variant.spark import executor

ROWS = 4000
PARTITIONS = 8
BATCH_SECONDS = 0.3
SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.minTaskRuntime": "300ms",
    # Every kill counts as a failure of the tasks that run on the executor.
    "spark.task.maxFailures": "20",
    "spark.stage.maxConsecutiveAttempts": "20",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
KILLS_PER_OPERATION = 2


def main(folder: Path, runs: int, seed: int) -> None:
    """Repeat the operations, with other moments of the kills each time."""
    source = random.Random(seed)
    executor.DRIVER_BYTES = -1
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    killed = 0
    for run in range(runs):
        table = folder / f"table {run}"
        for optimize_write in (False, True):
            shutil.rmtree(table, ignore_errors=True)
            with killing(source) as kills:
                write(spark, table, optimize_write=optimize_write)
            killed += len(kills)
            check(table, {n: n for n in range(ROWS)}, f"run {run}, optimize_write={optimize_write}")
        with killing(source) as kills:
            merge(spark, table)
        killed += len(kills)
        changed = {n: -n for n in range(ROWS // 2, ROWS * 3 // 2)}
        check(table, {**{n: n for n in range(ROWS)}, **changed}, f"run {run}, merge")
        print(f"run {run}: {killed} killed", flush=True)
    spark.stop()


def write(spark: SparkSession, table: Path, *, optimize_write: bool) -> None:
    df = slow_rows(spark, 0, ROWS).selectExpr("id", "concat('{\"n\":', id, '}') AS event", "id % 3 AS part")
    write_frame(table, df, variant_columns=["event"], partition_by="part", optimize_write=optimize_write)


def merge(spark: SparkSession, table: Path) -> None:
    rows = slow_rows(spark, ROWS // 2, ROWS * 3 // 2)
    source = rows.selectExpr("id", "concat('{\"n\":', -id, '}') AS event", "id % 3 AS part")
    merging = on_spark(spark, table).merge(source, "target.id = source.id", variant_columns=["event"])
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def slow_rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Return rows whose tasks last long enough to be killed, and to be run twice."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sleep(BATCH_SECONDS)
            yield batch

    return spark.range(first, end, 1, PARTITIONS).mapInArrow(wait, "id long")


def check(table: Path, expected: dict[int, int], what: str) -> None:
    """Raise unless the table has exactly the expected rows, and its folder no files of lost tasks."""
    found = dv.read_table(table, columns={"id": "id", "n": "event:n::int"}).to_table().to_pylist()
    assert sorted((row["id"], row["n"]) for row in found) == sorted(expected.items()), what
    files = {path.relative_to(table).as_posix() for path in table.rglob("*.parquet")}
    log = table / "_delta_log"
    known = {path for path in files if any(Path(path).name in text for text in texts(log))}
    assert files - known == {path for path in files if path.startswith("_delta_log")}, (what, files - known)


def texts(log: Path) -> list[str]:
    return [path.read_text("utf-8") for path in sorted(log.glob("*.json"))]


@contextmanager
def killing(source: random.Random) -> Iterator[list[int]]:
    """Kill executors and Python workers at random moments until the end of the body; yield their ids."""
    stop, killed = Event(), list[int]()

    def kill() -> None:
        for _ in range(KILLS_PER_OPERATION):
            if stop.wait(source.uniform(0.1, 3)):
                return
            executors, workers = processes()
            chosen: Any = executors if source.random() < 0.5 else workers
            if chosen:
                with suppress(ProcessLookupError):
                    victim = source.choice(chosen)
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)

    thread = Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def processes() -> tuple[list[int], list[int]]:
    """Return the executors and the Python workers of this driver."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
    mine = [process for process in commands if os.getpid() in ancestors(process, parents)]
    executors = [each for each in mine if "CoarseGrainedExecutorBackend" in commands[each]]
    daemons = {each for each in mine if "pyspark.daemon" in commands[each]}
    return executors, [each for each in daemons if parents.get(each) in daemons]


def ancestors(process: int, parents: dict[int, int]) -> Iterator[int]:
    """Yield the parent of a process, and its parents."""
    while process in parents:
        process = parents[process]
        yield process


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
