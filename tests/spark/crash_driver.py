"""A driver that streams lines into a table and is killed at a given step.

`python crash_driver.py FOLDER STEP SINK`: FOLDER has the lines, and gets the table and the checkpoint. STEP
is `none`, or the step of the fourth write at which SIGKILL ends the driver and Spark: `tasks`, `commit` (the
write is not committed yet) or `done` (it is committed, but Spark does not know). SINK is `writer`: each batch
makes two writes to the table, of half the lines each, so a driver may be killed between them. With `merger`
each batch makes two merges. With `format` the format writes each batch once, in processes of Spark, and STEP
is `none`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from time import sleep
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.spark import executor as spark_executor
from delta_variant.spark.executor import SparkExecutor

FATAL_WRITE = 4
SMALL_FILES = dv.FileOptions(target_file_size=2000)


def main(folder: Path, step: str, sink: str) -> None:
    """Stream all lines, one file for each batch."""
    spark_executor.DRIVER_BYTES = -1
    plan_crash(step)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    # A fast start matters, and not how fast the code becomes.
    spark = spark.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    spark = spark.config("spark.sql.codegen.wholeStage", "false")
    spark = spark.config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    # A driver that is killed in its first batch may leave a temporary file in the folder of the offsets, and
    # Spark would refuse to start again (SPARK-53103, since 4.1).
    spark = spark.config("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")
    session = spark.config("spark.log.level", "FATAL").getOrCreate()
    lines = session.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "lines"))
    query = SINKS[sink](session, lines.repartition(2), folder / "table")
    query = query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    streaming = query.start()
    print("streaming", flush=True)
    streaming.awaitTermination()
    session.stop()


def into_writer(_: SparkSession, lines: DataFrame, table: Path) -> DataStreamWriter:
    write = dvs.batch_writer(table, variant_columns=["value"], files=SMALL_FILES)
    return lines.writeStream.foreachBatch(in_halves(write))


def into_merger(_: SparkSession, lines: DataFrame, table: Path) -> DataStreamWriter:
    if not table.exists():
        dv.write_table(table, pa.table({"value": pa.array([], pa.json_())}), files=SMALL_FILES)

    def build(batch: DataFrame) -> dv.Merge:
        target = dv.Table(table, engine=dvs.SparkEngine(batch.sparkSession))
        on = "target.value:n::bigint = source.value:n::bigint"
        merge = target.merge(batch, on, variant_columns=["value"], files=SMALL_FILES)
        # A merge that runs twice would update the rows that it inserted.
        merge = merge.when_matched_update({"value:n": "-1"})
        return merge.when_not_matched_insert_all()

    return lines.writeStream.foreachBatch(in_halves(dvs.batch_merger(build)))


def into_format(session: SparkSession, lines: DataFrame, table: Path) -> DataStreamWriter:
    dvs.register(session)
    stream = lines.writeStream.format("delta_variant").option("path", str(table))
    return stream.option("variant_columns", "value").option("target_file_size", "2000")


SINKS = {"writer": into_writer, "merger": into_merger, "format": into_format}


def in_halves(write: Callable[[DataFrame, int], Any]) -> Callable[[DataFrame, int], None]:
    """Return a function that writes the even and then the odd numbers of a batch."""

    def write_halves(df: DataFrame, batch: int) -> None:
        for rest in (0, 1):
            write(df.where(f"get_json_object(value, '$.n') % 2 = {rest}"), batch)

    return write_halves


def plan_crash(step: str) -> None:
    """Patch the functions of a write so that the driver is killed at a step of the fatal write."""
    executor: Any = SparkExecutor
    run, commit = executor.run_partitions, executor.commit
    if step == "tasks":
        run = in_fatal_write(lambda: Timer(random.uniform(0, 1), crash).start(), before=run)
        # Keep fast tasks from starting a later batch before the timer fires.
        commit = in_fatal_write(lambda: sleep(60), before=commit)
    elif step == "commit":
        commit = in_fatal_write(crash, before=commit)
    elif step == "done":
        commit = in_fatal_write(crash, after=commit)
    executor.run_partitions, executor.commit = run, commit


def in_fatal_write(act: Callable[[], None], *, before: Any = None, after: Any = None) -> Any:
    """Return a wrapper of `before` or `after` that calls `act` before or after it in the fatal write."""
    calls = 0

    def call(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == FATAL_WRITE:
            act()
        result = (before or after)(*arguments)
        if after and calls == FATAL_WRITE:
            act()
        return result

    return call


def crash() -> None:
    """Kill the process group: the driver and its JVM."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
