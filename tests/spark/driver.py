"""What the driver does. With Spark Connect, it is the server, which the tests have in their process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import SparkContext


def driver() -> Any:
    """Return the context of the driver, also if the session is one of Spark Connect."""
    return SparkContext._active_spark_context


def count_jobs() -> int:
    """Return how many jobs the driver has started."""
    return int(driver()._jsc.sc().dagScheduler().numTotalJobs())


def drop_stored_rows() -> None:
    """Remove the rows of all local checkpoints and caches, as if their executors were killed."""
    for number in list(driver()._jsc.getPersistentRDDs()):
        driver()._jsc.sc().unpersistRDD(number, True)


def counting(folder: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow` that counts the rows of its batches by files of a folder."""
    folder.mkdir()

    # Workers cannot import this module. A function in a function is pickled by value.
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (folder / uuid4().hex).write_text(str(batch.num_rows), "utf-8")
            yield batch

    return count


def counted(folder: Path) -> int:
    """Return how many rows the function of `counting` has seen."""
    return sum(int(path.read_text("utf-8")) for path in folder.iterdir())
