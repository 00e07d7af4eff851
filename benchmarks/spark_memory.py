"""Measure the largest memory of a Python worker of Spark while it writes or changes a table.

    python benchmarks/spark_memory.py FOLDER [WORKLOAD …]

`rows` are 2,000,000 rows of small JSON documents, `large` are 200 documents of 10 MB. Each workload writes
them in a new session with one core: to one file after another, by the format to 16 partitions at once, and
optimized; or merges and updates half of the rows. The memory is the largest resident set of any worker.
Prints a line of JSON for each workload.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
}
# Random digits, which do not compress well, of 64 characters each.
TEXT = "transform(sequence(1, {length} div 64), i -> sha2(concat(id, ' ', i), 256))"
SMALL = (
    'concat(\'{"id":\', id, \',"user":{"name":"u\', id % 1000, \'"},"amount":\', id % 977, '
    '\',"tags":["a","\', id % 7, \'"]}\') AS event'
)
LARGE = "concat('{{\"id\":', id, ',\"text\":\"', array_join({text}, ''), '\"}}') AS event"
FRAMES = {
    "rows": (2_000_000, SMALL),
    "large": (200, LARGE.format(text=TEXT.format(length=10_000_000))),
}
OPERATIONS = ("write", "partitions", "optimized", "merge", "update")
SECONDS_BETWEEN_SAMPLES = 0.02


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("workloads", nargs="*", default=[f"{a}-{b}" for a in FRAMES for b in OPERATIONS])
    parser.add_argument("--here", action="store_true", help="run one workload in this process")
    arguments = parser.parse_args()
    if arguments.here:
        run(arguments.folder, *arguments.workloads[0].split("-"))
        return
    for workload in arguments.workloads:
        # Workers of an earlier workload keep the memory that they had.
        command = [sys.executable, __file__, str(arguments.folder), workload, "--here"]
        subprocess.run(command, check=True)


def run(folder: Path, frame: str, operation: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    shutil.rmtree(folder, ignore_errors=True)
    rows, event = FRAMES[frame]
    df = spark.range(0, rows, 1, 1).selectExpr("id", "id % 16 AS part", event)
    workers = Workers()
    if operation in ("merge", "update"):
        write(folder, df, operation)
    with workers:
        begun = time.perf_counter()
        if operation == "merge":
            merge(folder, df.where("id % 2 = 0").selectExpr("id + 1 AS id", "part", "event"))
        elif operation == "update":
            update(folder, spark)
        else:
            write(folder, df, operation)
    report = {
        "frame": frame,
        "operation": operation,
        "seconds": round(time.perf_counter() - begun, 1),
        "worker_mib": workers.largest >> 20,
        "driver_mib": peak_memory(os.getpid()) >> 20,
    }
    print(json.dumps(report), flush=True)
    spark.stop()


def write(folder: Path, df: Any, operation: str) -> None:
    import delta_variant as dv
    from delta_variant import spark as dvs

    engine = dvs.SparkEngine(df.sparkSession, optimize_write=operation == "optimized")
    table = dv.Table(folder, engine=engine)
    if operation != "partitions":
        table.append(df, variant_columns=["event"])
        return
    # The format cannot sort the rows by partition.
    table.append(df.limit(0), partition_by="part", variant_columns=["event"])
    dvs.register(df.sparkSession)
    df.write.format("delta_variant").mode("append").option("variant_columns", "event").save(str(folder))


def merge(folder: Path, source: Any) -> None:
    import delta_variant as dv
    from delta_variant import spark as dvs

    table = dv.Table(folder, engine=dvs.SparkEngine(source.sparkSession))
    merging = table.merge(source, "target.id = source.id", variant_columns=["event"])
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def update(folder: Path, spark: Any) -> None:
    import delta_variant as dv
    from delta_variant import spark as dvs

    dv.Table(folder, engine=dvs.SparkEngine(spark)).update({"event:amount": "0"}, "id % 2 = 0")


class Workers:
    """Samples the memory of the Python workers of this process while its body runs."""

    def __init__(self) -> None:
        self.largest = 0
        self._stop = Event()
        self._thread = Thread(target=self._sample)

    def __enter__(self) -> Workers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SECONDS_BETWEEN_SAMPLES):
            self.largest = max([self.largest, *map(peak_memory, worker_processes())])


def worker_processes() -> Iterator[int]:
    """Yield the Python workers below this process: those that a daemon has forked."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    for process in parents:
        line = list(ancestors(process, parents))
        if os.getpid() in line and all(is_python(each) for each in (process, line[0])):
            yield process


def ancestors(process: int, parents: dict[int, int]) -> Iterator[int]:
    while process in parents:
        process = parents[process]
        yield process


def is_python(process: int) -> bool:
    with suppress(OSError):
        # The JVM, and processes that it forks, have `pyspark` in their command, too.
        return "pyspark.daemon" in Path(f"/proc/{process}/cmdline").read_text()
    return False


def peak_memory(process: int) -> int:
    """Return the largest resident set of a process so far, in bytes."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


if __name__ == "__main__":
    main()
