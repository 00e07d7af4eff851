"""A driver on a standalone cluster of two hosts, which starts copies of slow tasks on the other host.

`python speculation_driver.py FOLDER RUNS` writes tables in FOLDER and checks them. In each write, the first
attempt of a task stops in the middle, so that its copy wins. Prints how many copies Spark has started.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession
from spark.tables import data_files, listed_files, write_frame
from support import processes

import delta_variant as dv

ROWS = 80_000
MASTER, *WORKERS = "127.0.0.1", "127.0.0.2", "127.0.0.3"
DEPLOY = "org.apache.spark.deploy"
LONGER_THAN_ANY_COPY = 600
SETTINGS = {
    "spark.driver.host": MASTER,
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.minTaskRuntime": "300ms",
    "spark.locality.wait": "0",
    "spark.executor.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


def main(folder: Path, runs: int) -> None:
    """Write tables, with and without `optimize_write`."""
    with cluster(folder) as master:
        builder = SparkSession.builder.master(master)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        for run in range(runs):
            table = folder / f"table {run}"
            df = spark.range(0, ROWS, 1, 4).mapInArrow(stop_first_attempt, "id long")
            files = dv.FileOptions(target_file_size=10_000)
            write_frame(table, df, files=files, optimize_write=run % 2 == 1)
            ids = dv.read_table(table, columns=["id"]).to_table()["id"].to_pylist()
            assert sorted(ids) == list(range(ROWS)), run
            assert data_files(table) == listed_files(table), run
            print(f"run {run}: {copies(spark)} copies", flush=True)
        spark.stop()


def stop_first_attempt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    for number, batch in enumerate(batches):
        if number == 1 and context is not None and (context.partitionId(), context.attemptNumber()) == (0, 0):
            sleep(LONGER_THAN_ANY_COPY)
        yield batch


def copies(spark: SparkSession) -> int:
    """Return how many copies of slow tasks Spark has started."""
    context: Any = spark.sparkContext._jsc.sc()
    store = context.statusStore()
    found = [store.speculationSummary(stage, 0) for stage in range(context.dagScheduler().nextStageId())]
    return sum(each.get().numTasks() for each in found if each.isDefined())


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start a cluster and yield its URL. Spark starts copies only on hosts with other names."""
    with socket.socket() as unused:
        unused.bind((MASTER, 0))
        port = unused.getsockname()[1]
    url = f"spark://{MASTER}:{port}"
    with ExitStack() as started:
        master = ["--host", MASTER, "--port", str(port), "--webui-port", "0"]
        started.enter_context(daemon(folder, MASTER, f"{DEPLOY}.master.Master", *master))
        for host in WORKERS:
            options = ["--host", host, "--cores", "2", "--memory", "1g", "--webui-port", "0"]
            options += ["--work-dir", str(folder / host), url]
            started.enter_context(daemon(folder, host, f"{DEPLOY}.worker.Worker", *options))
        yield url


@contextmanager
def daemon(folder: Path, host: str, *command: str) -> Iterator[None]:
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {**os.environ, "SPARK_LOCAL_IP": host}
    with (
        (folder / f"log of {host}").open("w") as log,
        processes.start([program, *command], env=environment, stdout=log, stderr=subprocess.STDOUT),
    ):
        yield


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
