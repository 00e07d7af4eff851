"""Merge a share of a large table every minute while OPTIMIZE runs, by this library and by Delta on Spark.

    python benchmarks/spark_upserts.py FOLDER [--rows 10000000] [--changes 10000] [--minutes 60]
        [--interval 60] [--optimize 5]

Both have a copy of the same table with deletion vectors. In each interval, both merge the same changes, in
turn: nine tenths update rows all over the table, and the others are new. After every fifth interval, a thread
starts OPTIMIZE of both tables while the merges go on. A merge that loses to an OPTIMIZE is repeated. Prints a
line of JSON for each merge and OPTIMIZE, and for each engine the seconds of a merge as medians of the first
and the last tenth, and at most, the repeated merges, the failed OPTIMIZEs, the files and bytes of the folder,
and for all the largest memory of the driver's Python, its JVM and a Python worker, in MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import engines
from measure import size_of
from pyspark.sql import DataFrame, SparkSession
from spark_memory import Workers, peak_memory
from spark_rewrites import FILES, MERGES, rows

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import CommitConflictError
from delta_variant.spark.versions import SPARK_ERRORS

ENGINES = ("ours", "delta")
ATTEMPTS = 10


def is_conflict(error: Exception) -> bool:
    """Return whether a commit lost to another one; Delta's error is one of Spark."""
    is_of_delta = isinstance(error, SPARK_ERRORS) and "DELTA_CONCURRENT" in str(error)
    return is_of_delta or isinstance(error, CommitConflictError)


def changes(spark: SparkSession, number: int, size: argparse.Namespace) -> DataFrame:
    """Return the changes of an interval: rows at equal distances, another set each time, and new rows."""
    new = size.changes // 10
    step = size.rows // (size.changes - new)
    updates = rows(spark, number % step, size.rows, step).limit(size.changes - new)
    first = size.rows + number * new
    return updates.unionAll(rows(spark, first, first + new)).selectExpr("id", f"{number}L AS day", "event")


def optimize(spark: SparkSession, table: Path) -> None:
    dv.Table(table, engine=dvs.SparkEngine(spark)).optimize()


def optimize_by_delta(spark: SparkSession, table: Path) -> None:
    spark.sql(f"OPTIMIZE delta.`{table}`")


OPTIMIZES: dict[str, Callable[[SparkSession, Path], None]] = {"ours": optimize, "delta": optimize_by_delta}


class Run:
    """The merges and the OPTIMIZEs of both engines."""

    def __init__(self, spark: SparkSession, size: argparse.Namespace) -> None:
        self.spark = spark
        self.size = size
        self.seconds: dict[str, list[float]] = {name: [] for name in ENGINES}
        self.repeated = dict.fromkeys(ENGINES, 0)
        self.failed = dict.fromkeys(ENGINES, 0)
        self.most_files = dict.fromkeys(ENGINES, 0)
        self._optimizing: Thread | None = None

    def merge(self, number: int, name: str) -> None:
        """Merge the changes of an interval, again after a conflict."""
        begun = time.perf_counter()
        for attempt in range(ATTEMPTS):
            try:
                MERGES[name](self.spark, self.size.folder / name, changes(self.spark, number, self.size))
                break
            except Exception as error:
                self.repeated[name] += 1
                if attempt + 1 == ATTEMPTS or not is_conflict(error):
                    raise
        self.seconds[name].append(time.perf_counter() - begun)
        files = dv.load_snapshot(self.size.folder / name).num_files
        self.most_files[name] = max(self.most_files[name], files)
        show(merge=number, engine=name, seconds=round(self.seconds[name][-1], 2), files=files)

    def start_optimizing(self) -> None:
        """Start OPTIMIZE of both tables, unless the last one still runs."""
        if self._optimizing is None or not self._optimizing.is_alive():
            self._optimizing = Thread(target=self._optimize)
            self._optimizing.start()

    def finish(self) -> None:
        """Wait for OPTIMIZE, and raise unless both tables have the same rows."""
        if self._optimizing is not None:
            self._optimizing.join()
        sums = "count(*)", "sum(id)", "sum(day)", "sum(variant_get(event, '$.amount', 'int'))"
        found = {
            tuple(
                self.spark.read.format("delta").load(str(self.size.folder / name)).selectExpr(*sums).first()
            )
            for name in ENGINES
        }
        assert len(found) == 1, found

    def _optimize(self) -> None:
        for name in ENGINES:
            begun, error = time.perf_counter(), None
            try:
                OPTIMIZES[name](self.spark, self.size.folder / name)
            except Exception as conflict:
                if not is_conflict(conflict):
                    raise
                self.failed[name] += 1
                error = type(conflict).__name__
            show(optimize=name, seconds=round(time.perf_counter() - begun, 2), error=error)


def show(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def make_tables(spark: SparkSession, size: argparse.Namespace) -> None:
    """Write the table, and copy it."""
    shutil.rmtree(size.folder, ignore_errors=True)
    table = rows(spark, 0, size.rows).repartitionByRange(FILES, "id")
    engine, configuration = dvs.SparkEngine(spark), {"delta.enableDeletionVectors": "true"}
    dv.Table(size.folder / "ours", engine=engine).append(table, configuration=configuration)
    shutil.copytree(size.folder / "ours", size.folder / "delta")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=10_000, help="rows of each merge")
    parser.add_argument("--minutes", type=float, default=60, help="the length of the run")
    parser.add_argument("--interval", type=float, default=60, help="seconds between the starts of merges")
    parser.add_argument("--optimize", type=int, default=5, help="intervals between the starts of OPTIMIZE")
    size = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = engines.delta_session()
    make_tables(spark, size)
    run, begun = Run(spark, size), time.monotonic()
    with Workers() as workers:
        for number in range(int(size.minutes * 60 / size.interval)):
            time.sleep(max(0, begun + number * size.interval - time.monotonic()))
            if number % size.optimize == size.optimize - 1:
                run.start_optimizing()
            for name in ENGINES if number % 2 else reversed(ENGINES):
                run.merge(number, name)
        run.finish()
    for name, seconds in run.seconds.items():
        tenth = max(1, len(seconds) // 10)
        show(
            engine=name,
            merges=len(seconds),
            median_seconds=round(median(seconds), 2),
            first_seconds=round(median(seconds[:tenth]), 2),
            last_seconds=round(median(seconds[-tenth:]), 2),
            greatest_seconds=round(max(seconds), 2),
            repeated_merges=run.repeated[name],
            failed_optimizes=run.failed[name],
            most_files=run.most_files[name],
            folder_mb=round(size_of(size.folder / name) / 1e6),
        )
    show(
        minutes=round((time.monotonic() - begun) / 60, 1),
        driver_mib=peak_memory(os.getpid()) >> 20,
        jvm_mib=peak_memory(spark.sparkContext._gateway.proc.pid) >> 20,
        worker_mib=workers.largest >> 20,
    )
    spark.stop()


if __name__ == "__main__":
    main()
