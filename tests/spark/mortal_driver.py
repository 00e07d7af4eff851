"""A driver that streams lines into a table, and is killed at the place that it is told.

`python mortal_driver.py FOLDER DEATH`; FOLDER has the lines, and gets the table and the checkpoint. DEATH is
`none`, or what the driver is about when it is killed by SIGKILL, with Spark and all: `tasks`, `commit` (it is
not committed yet) or `done` (Spark does not know yet that it is), of the fourth write that it makes. Each
batch makes two writes to the table, of half the lines each, so a driver may die between them.
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

from delta_variant import spark as dvs
from delta_variant.spark import writing

FATAL_WRITE = 4


def main(folder: Path, death: str) -> None:
    """Stream all lines, a file a batch."""
    plan_death(death)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = spark.config("spark.log.level", "FATAL").getOrCreate()
    lines = session.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "lines"))
    write = dvs.batch_writer(folder / "table", variant_columns=["value"], target_file_size=2000)

    def write_halves(df: DataFrame, batch: int) -> None:
        for rest in (0, 1):
            write(df.where(f"get_json_object(value, '$.n') % 2 = {rest}"), batch)

    query = lines.repartition(2).writeStream.foreachBatch(write_halves)
    query = query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    streaming = query.start()
    print("streaming", flush=True)
    streaming.awaitTermination()
    session.stop()


def plan_death(death: str) -> None:
    run, commit = writing._run, writing.commit_written
    if death == "tasks":
        writing._run = at_batch(lambda: Timer(random.uniform(0, 1), die).start(), before=run)
        # However fast the tasks are, no later batch is begun.
        writing.commit_written = at_batch(lambda: sleep(60), before=commit)
    elif death == "commit":
        writing.commit_written = at_batch(die, before=commit)
    elif death == "done":
        writing.commit_written = at_batch(die, behind=commit)


def at_batch(act: Callable[[], None], *, before: Any = None, behind: Any = None) -> Any:
    """Return a function that does what it stands before or behind, and acts in the fatal write."""
    calls = 0

    def call(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == FATAL_WRITE:
            act()
        result = (before or behind)(*arguments)
        if behind and calls == FATAL_WRITE:
            act()
        return result

    return call


def die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
