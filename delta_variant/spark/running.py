"""The Spark session of a function, and the tasks that it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.utils import is_remote

from ..errors import UnsupportedFeatureError
from .tasks import MESSAGE, NamedColumns, ReportingTask, Task, pack

__all__ = [
    "Jobs",
    "check_batch",
    "check_classic",
    "distribute",
    "map_by_task",
    "run_task",
    "session_timezone",
]

JOB_GROUP = "spark.jobGroup.id"
MAX_WAIT_SECONDS = 10.0


def check_classic() -> None:
    """Raise UnsupportedFeatureError for Spark Connect, whose jobs cannot be tracked."""
    if is_remote():
        raise UnsupportedFeatureError(
            "delta_variant.spark expected a classic SparkSession, got one of Spark Connect: run with "
            "spark-submit or set a master"
        )


def session_timezone(spark: SparkSession) -> str:
    """Return the time zone in which Spark evaluates SQL text. Tasks have no session and need it sent."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def check_batch(df: DataFrame) -> None:
    """Raise UnsupportedFeatureError for a streaming DataFrame."""
    if df.isStreaming:
        raise UnsupportedFeatureError(
            "write_table expected a batch DataFrame, got a streaming one: write it with "
            "df.writeStream.foreachBatch(delta_variant.spark.batch_writer(table)) or "
            "df.writeStream.format('delta_variant')"
        )


def distribute(spark: SparkSession, values: Sequence[object]) -> DataFrame:
    """Return a DataFrame of messages with a partition for each value."""
    rows = spark.createDataFrame([(pack(value),) for value in values], MESSAGE)
    # Spark spreads the rows of a single partition evenly, those of many at random.
    return rows.coalesce(1).repartition(max(len(values), 1))


def run_task(
    spark: SparkSession, values: Sequence[object], task: Task, schema: SparkStruct | str = MESSAGE
) -> DataFrame:
    """Return the rows that a task yields for each of the values, by default messages."""
    return distribute(spark, values).mapInArrow(ReportingTask(task), schema)


def map_by_task(df: DataFrame, task: Task) -> DataFrame:
    """Return the messages that a task yields for each partition of a DataFrame.

    Columns are renamed on the way, because Spark's `mapInArrow` resolves columns by name and parses a name
    with a dot or a backtick as a path.
    """
    plain = df.toDF(*(f"column{number}" for number in range(len(df.columns))))
    return plain.mapInArrow(ReportingTask(NamedColumns(task, tuple(df.columns))), MESSAGE)


class Jobs:
    """The jobs that a thread starts after this object is made."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._tracker = context.statusTracker()
        self._group = context.getLocalProperty(JOB_GROUP)
        self._before = set(self._tracker.getJobIdsForGroup(self._group))

    def wait(self) -> None:
        """Wait, up to MAX_WAIT_SECONDS, until their tasks end: Spark kills those of a failed job late."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        while self._active_tasks() and time.monotonic() < end:
            time.sleep(0.1)

    def _active_tasks(self) -> int:
        started = set(self._tracker.getJobIdsForGroup(self._group)) - self._before
        jobs = (self._tracker.getJobInfo(job) for job in started)
        stages = (self._tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
        return sum(stage.numActiveTasks for stage in stages if stage)
