"""A driver that streams lines into a table and is killed at a given step.

`python crash_driver.py FOLDER STEP`: FOLDER has the lines, and gets the table and the checkpoint. STEP is
`none`, or the step of the fourth write at which SIGKILL ends the driver and Spark: `tasks`, `commit` (the
write is not committed yet) or `done` (it is committed, but Spark does not know). Each batch makes two writes
to the table, of half the lines each, so a driver may be killed between them.
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

from pyspark.sql import DataFrame, SparkSession

from delta_variant import FileOptions
from delta_variant import spark as dvs
from delta_variant.spark import writing

FATAL_WRITE = 4


def main(folder: Path, step: str) -> None:
    """Stream all lines, one file for each batch."""
    plan_crash(step)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    # A fast start matters, and not how fast the code becomes.
    spark = spark.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    spark = spark.config("spark.sql.codegen.wholeStage", "false")
    spark = spark.config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session = spark.config("spark.log.level", "FATAL").getOrCreate()
    lines = session.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "lines"))
    write = dvs.batch_writer(
        folder / "table", variant_columns=["value"], files=FileOptions(target_file_size=2000)
    )

    def write_halves(df: DataFrame, batch: int) -> None:
        for rest in (0, 1):
            write(df.where(f"get_json_object(value, '$.n') % 2 = {rest}"), batch)

    query = lines.repartition(2).writeStream.foreachBatch(write_halves)
    query = query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    streaming = query.start()
    print("streaming", flush=True)
    streaming.awaitTermination()
    session.stop()


def plan_crash(step: str) -> None:
    """Patch the functions of a write so that the driver is killed at a step of the fatal write."""
    run, commit = writing._run, writing.commit_written
    if step == "tasks":
        writing._run = in_fatal_write(lambda: Timer(random.uniform(0, 1), crash).start(), before=run)
        # Keep fast tasks from starting a later batch before the timer fires.
        writing.commit_written = in_fatal_write(lambda: sleep(60), before=commit)
    elif step == "commit":
        writing.commit_written = in_fatal_write(crash, before=commit)
    elif step == "done":
        writing.commit_written = in_fatal_write(crash, after=commit)


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
    main(Path(sys.argv[1]), sys.argv[2])
