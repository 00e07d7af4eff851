"""The Spark session of a function, and the tasks that it runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any, Literal
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.utils import is_remote

from ..errors import ArgumentTypeError, DeltaVariantError, UnsupportedFeatureError
from .monitoring import JOB_GROUP
from .options import size_of
from .tasks import MESSAGE, NamedColumns, Task, pack, to_executors
from .versions import INSTALLED

MAX_WAIT_SECONDS = 10.0

ROW_NUMBER_BITS = 33
"""The low bits of `monotonically_increasing_id`, which number the rows of a partition."""

MANY_ROWS = 1 << 20
"""More rows than a cluster runs tasks at once."""

COUNT_SECONDS = 60.0
"""How long a count of tasks is used: a cluster can grow and shrink."""

# When the tasks of a session of Spark Connect were counted, and how many there were.
_COUNTED: WeakKeyDictionary[SparkSession, tuple[float, int]] = WeakKeyDictionary()


def check_session(spark: Any) -> None:
    """Raise ArgumentTypeError unless `spark` is a session, DeltaVariantError if it was stopped."""
    # The session of Spark Connect is another class of this name.
    if not any(base.__name__ == "SparkSession" for base in type(spark).__mro__):
        raise ArgumentTypeError(f"spark: expected a SparkSession, got {spark!r}")
    is_stopped = spark.is_stopped if is_remote() else spark.sparkContext._jsc is None
    if is_stopped:
        raise DeltaVariantError(
            "the Spark session was stopped: pass a running session, and create engines and tables again"
        )


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks Spark runs at once by default."""
    if not is_remote():
        return spark.sparkContext.defaultParallelism
    counted = _COUNTED.get(spark)
    if counted is None or time.monotonic() >= counted[0] + COUNT_SECONDS:
        counted = _COUNTED[spark] = time.monotonic(), _count_tasks(spark)
    return counted[1]


def _count_tasks(spark: SparkSession) -> int:
    # A client of Spark Connect does not know the cluster: a range has as many partitions by default.
    last = spark.range(MANY_ROWS).select(sql.spark_partition_id().alias("number")).agg({"number": "max"})
    return int(last.collect()[0][0]) + 1


def session_timezone(spark: SparkSession) -> str:
    """Return the time zone in which Spark evaluates SQL text. Tasks have no session and need it sent."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
"""The setting for the bytes up to which Spark sends one side of a join to all tasks, 10 MB by default."""


def broadcast_bytes(spark: SparkSession) -> int:
    """Return the bytes of rows up to which each task gets all of them, -1 for never."""
    text = str(spark.conf.get(BROADCAST))
    return -1 if text.startswith("-") else size_of(text)


def is_case_sensitive(spark: SparkSession) -> bool:
    return spark.conf.get("spark.sql.caseSensitive", "false") == "true"


def check_batch(df: DataFrame, function: Literal["write_table", "merge"]) -> None:
    """Raise UnsupportedFeatureError for a streaming DataFrame."""
    remedies = {
        "write_table": "write it with df.writeStream.foreachBatch(delta_variant.spark.batch_writer(table)) "
        "or df.writeStream.format('delta_variant')",
        "merge": "merge each micro-batch with "
        "df.writeStream.foreachBatch(delta_variant.spark.batch_merger(build))",
    }
    if df.isStreaming:
        raise UnsupportedFeatureError(
            f"{function} expected a batch DataFrame, got a streaming one: {remedies[function]}"
        )


def distribute(spark: SparkSession, values: Iterable[object]) -> DataFrame:
    """Return a DataFrame of messages with a partition for each value."""
    packed = [(number, pack(value)) for number, value in enumerate(values)]
    rows = spark.createDataFrame(packed, f"number int, {MESSAGE}")
    # PySpark 4.0 cannot send a row to a given task.
    move = rows.repartitionById if INSTALLED >= (4, 1) else rows.repartition
    return move(max(len(packed), 1), "number").select("message")


def run_task(
    spark: SparkSession, values: Iterable[object], task: Task, schema: SparkStruct | str = MESSAGE
) -> DataFrame:
    """Return the rows that a task yields for each of the values, by default messages."""
    return distribute(spark, values).mapInArrow(to_executors(task), schema)


def map_by_task(df: DataFrame, task: Task, schema: str = MESSAGE) -> DataFrame:
    """Return the rows that a task yields for each partition of a DataFrame, by default messages.

    Columns are renamed on the way, because Spark's `mapInArrow` resolves columns by name and parses a name
    with a dot or a backtick as a path.
    """
    plain = df.toDF(*(f"column{number}" for number in range(len(df.columns))))
    return plain.mapInArrow(to_executors(NamedColumns(task, tuple(df.columns))), schema)


def row_in_partition() -> Column:
    """Return the number of a row among those of its partition, from 0."""
    return sql.monotonically_increasing_id().bitwiseAND((1 << ROW_NUMBER_BITS) - 1)


class Jobs:
    """The jobs that a thread starts after this object is made. Spark Connect does not tell about them."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker: Any = None
        if is_remote():
            return
        self._context: Any = spark.sparkContext
        self._tracker = self._context.statusTracker()
        self._group = self._context.getLocalProperty(JOB_GROUP)
        self._before = self._ids()

    def _ids(self) -> set[int]:
        """Return the jobs of the group, as one text: each element of an array is a request to the JVM."""
        ids = self._context._jsc.statusTracker().getJobIdsForGroup(self._group)
        return set(json.loads(self._context._jvm.java.util.Arrays.toString(ids)))

    def wait(self) -> None:
        """Wait, up to MAX_WAIT_SECONDS, until their tasks end: Spark kills those of a failed job late."""
        if self._tracker is None:
            return
        end = time.monotonic() + MAX_WAIT_SECONDS
        while self._active_tasks() and time.monotonic() < end:
            time.sleep(0.1)

    def _active_tasks(self) -> int:
        jobs = (self._tracker.getJobInfo(job) for job in self._ids() - self._before)
        stages = (self._tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
        return sum(stage.numActiveTasks for stage in stages if stage)
