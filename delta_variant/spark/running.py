"""The Spark session that a function works with, and the tasks that it still runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from ..errors import UnsupportedFeatureError
from .tasks import MESSAGE, NamedColumns, Task, pack

__all__ = ["Jobs", "check_batch", "check_classic", "distribute", "map_by_task", "session_timezone"]

JOB_GROUP = "spark.jobGroup.id"
LONGEST_WAIT = 10.0


def check_classic() -> None:
    """Raise UnsupportedFeatureError within Spark Connect, which has no jobs to follow."""
    if is_remote():
        raise UnsupportedFeatureError(
            "delta_variant.spark works with a classic SparkSession, and this one is of Spark Connect: run "
            "it by spark-submit, or with a master"
        )


def session_timezone(spark: SparkSession) -> str:
    """Return the time zone in which Spark evaluates SQL text; tasks are sent it, as they have no session."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def check_batch(df: DataFrame) -> None:
    """Raise UnsupportedFeatureError for a streaming DataFrame."""
    if df.isStreaming:
        raise UnsupportedFeatureError(
            "write_table writes a DataFrame at rest: write a stream by df.writeStream.foreachBatch("
            "delta_variant.spark.batch_writer(table)) or df.writeStream.format('delta_variant')"
        )


def distribute(spark: SparkSession, values: Sequence[object]) -> DataFrame:
    """Return values as messages for tasks, one for each."""
    rows = spark.createDataFrame([(pack(value),) for value in values], MESSAGE)
    # A single partition is dealt out evenly, many by chance.
    return rows.coalesce(1).repartition(max(len(values), 1))


def map_by_task(df: DataFrame, task: Task) -> DataFrame:
    """Return the messages of a task that runs on each partition of a DataFrame.

    Spark's `mapInArrow` looks columns up by name, and parses a name with a dot or a backtick as a path.
    """
    plain = df.toDF(*(f"column{number}" for number in range(len(df.columns))))
    return plain.mapInArrow(NamedColumns(task, tuple(df.columns)), MESSAGE)


class Jobs:
    """The jobs that a thread starts from here on."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._tracker = context.statusTracker()
        self._group = context.getLocalProperty(JOB_GROUP)
        self._before = set(self._tracker.getJobIdsForGroup(self._group))

    def wait(self) -> None:
        """Return when none of their tasks runs, or after a while: those of a failed job are killed late."""
        end = time.monotonic() + LONGEST_WAIT
        while self._active_tasks() and time.monotonic() < end:
            time.sleep(0.1)

    def _active_tasks(self) -> int:
        started = set(self._tracker.getJobIdsForGroup(self._group)) - self._before
        jobs = (self._tracker.getJobInfo(job) for job in started)
        stages = (self._tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
        return sum(stage.numActiveTasks for stage in stages if stage)
