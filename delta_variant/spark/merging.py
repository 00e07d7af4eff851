"""Merge a DataFrame into a table: executors join and rewrite files, the driver commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from .._logging import get_logger
from ..errors import UnsupportedFeatureError
from ..execution import Executor
from ..operations.merge.execute import MemorySource, MergedFiles, MergedPart
from ..operations.merge.joining import JoinPredicate, KeyValues
from ..operations.merge.plan import MergePlan
from ..protocol.schema.arrow import to_arrow
from ..protocol.types import StructType
from ..read.plan import FilePlan, plan_files
from .columns import from_spark
from .executor import SparkExecutor
from .file_tasks import check_no_identities
from .merge_tasks import (
    PART,
    SOURCE,
    ApplyTask,
    BucketTask,
    Chunk,
    JoinTask,
    MergeTable,
    Sizes,
    SourceTask,
    TargetTask,
    whole_batch,
)
from .monitoring import Monitor
from .readers import groups_of_table
from .running import (
    BROADCAST,
    broadcast_bytes,
    check_batch,
    is_case_sensitive,
    map_by_task,
    parallelism,
    run_task,
)
from .task_errors import restore_errors
from .tasks import TaskTable, from_ipc, messages, to_executors, unpack
from .versions import INSTALLED, SPARK_ERRORS

_LOGGER = get_logger(__name__)

MAX_RUNS = 4
"""How often a merge runs at most if executors are lost."""

LOST_ROWS = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
"""The error of Spark for stored rows whose executor is lost."""

BUCKET_BYTES = 64 << 20
"""The bytes of source rows that a task joins, approximately."""

INSERT_BYTES = 128 << 20
"""The bytes of source rows whose inserted rows one task writes, approximately."""


@dataclass(frozen=True)
class DataFrameSource:
    """A source that Spark computes once and stores on the executors.

    If Spark would broadcast it in a join, each task gets all of it. Otherwise its rows, and those of the
    table, are distributed by their keys. If an executor with stored rows is lost, the merge runs again.
    """

    rows: DataFrame
    columns: StructType

    @classmethod
    def of(cls, rows: DataFrame, variant_columns: Sequence[str]) -> DataFrameSource:
        """Return a source; raises SchemaError for its types, and UnsupportedFeatureError for a stream."""
        check_batch(rows, "merge")
        if INSTALLED < (4, 1):
            raise UnsupportedFeatureError(
                "cannot merge a DataFrame on PySpark 4.0 because it cannot send a row to a given task: "
                "upgrade to PySpark 4.1, or merge rows in memory, such as df.toArrow()"
            )
        case_sensitive = is_case_sensitive(rows.sparkSession)
        return cls(rows, from_spark(rows.schema, variant_columns, case_sensitive=case_sensitive))

    def rewrite(self, plan: MergePlan, executor: Executor) -> MergedFiles:
        """Rewrite the files with matching rows, and write the inserted rows, by tasks."""
        assert isinstance(executor, SparkExecutor), "a DataFrame is a source for its session"
        for _ in range(MAX_RUNS - 1):
            try:
                return self._rewrite(plan, executor)
            except SPARK_ERRORS as error:
                # Nothing is committed yet, and the tasks of this run have removed their files.
                if LOST_ROWS not in str(error):
                    raise
                uri = plan.snapshot.uri
                _LOGGER.warning("merge %s again: executors with rows of the source were lost", uri)
        return self._rewrite(plan, executor)

    def _rewrite(self, plan: MergePlan, executor: SparkExecutor) -> MergedFiles:
        with _store(self.rows, SourceTask(self.columns, plan.join), executor.monitor) as stored:
            if stored.bytes <= broadcast_bytes(executor.spark):
                streams = stored.collect(executor.monitor)
                rows = whole_batch([from_ipc(stream) for stream in streams], to_arrow(self.columns))
                return MemorySource(rows, self.columns).rewrite(plan, executor)
            check_distributed(plan)
            table = TaskTable.of(plan.snapshot, executor.storage_options)
            work = MergeTable(table, self.columns, plan.join, plan.clauses, plan.options)
            predicate = plan.target_predicate(_combine_keys(plan.join, stored.chunks))
            candidates = plan_files(plan.snapshot, predicate)
            parts = _join(executor, plan, work, stored, candidates)
        return MergedFiles(predicate, candidates, parts, (), sum(chunk.rows for chunk in stored.chunks))


def check_distributed(plan: MergePlan) -> None:
    """Raise UnsupportedFeatureError for a merge that needs all source rows in each task."""
    if not plan.join.keys:
        raise UnsupportedFeatureError(
            f"cannot merge a DataFrame larger than {BROADCAST} on {plan.on!r} because it has no equality of "
            "an expression over the table and one over the source: add one, or raise the setting",
            table=plan.snapshot.uri,
        )
    if plan.inserts:
        check_no_identities(plan.snapshot.configuration, plan.columns_inserted)


@dataclass(frozen=True)
class _StoredRows:
    """The stored rows of a source, its chunks, and the messages of those that came with them."""

    rows: DataFrame
    chunks: Sequence[Chunk]
    small: Sequence[bytes | None]

    @property
    def bytes(self) -> int:
        return sum(chunk.bytes for chunk in self.chunks)

    def collect(self, monitor: Monitor) -> list[Any]:
        small = [unpack(message) for message in self.small if message is not None]
        if len(small) == len(self.chunks):
            return small
        with restore_errors(), monitor.step("collect the rows of the source"):
            return messages(self.rows.select("message").collect())


@contextmanager
def _store(source: DataFrame, task: SourceTask, monitor: Monitor) -> Iterator[_StoredRows]:
    """Yield the stored rows of the source.

    A local checkpoint computes the source once. If an executor with stored rows is lost, their tasks fail,
    and the whole merge runs again: computing only the lost rows again may return other rows than those by
    which the first tasks decided.
    """
    with restore_errors(), monitor.step(task.step):
        # A query of Spark Connect does not complete a lazy checkpoint, so lost rows would be computed again.
        stored = map_by_task(source, task, SOURCE).localCheckpoint(eager=is_remote())
    try:
        message = f"if(length(message) <= {_small_bytes(stored)}, message, NULL) AS message"
        with restore_errors(), monitor.step(task.step):
            # `collect` takes longer, because it converts the messages to rows of Python.
            columns = stored.selectExpr("chunk", message).toArrow().to_pydict()
        chunks, small = columns.values()
        yield _StoredRows(stored, [unpack(chunk) for chunk in chunks], small)
    finally:
        _release(stored)


def _small_bytes(stored: DataFrame) -> int:
    """Return the size of messages that the driver collects together with their chunks, before it knows all.

    They have at most the size of a source that each task gets. A client of Spark Connect does not know the
    number of partitions.
    """
    partitions: int = 0 if is_remote() else _rdd(stored).getNumPartitions()
    return broadcast_bytes(stored.sparkSession) // partitions if partitions else 0


def _release(stored: DataFrame) -> None:
    """Remove the rows of a local checkpoint; its own `unpersist` would log a warning.

    A server of Spark Connect removes them when the DataFrame is deleted.
    """
    if not is_remote():
        context: Any = stored.sparkSession.sparkContext._jsc
        context.sc().unpersistRDD(_rdd(stored).id(), False)


def _rdd(stored: DataFrame) -> Any:
    java: Any = stored._jdf
    return java.queryExecution().analyzed().rdd()


def _combine_keys(join: JoinPredicate, chunks: Sequence[Chunk]) -> list[KeyValues]:
    if not chunks:
        return [KeyValues.of(pa.nulls(0)) for _ in join.keys]
    return [KeyValues.combine(parts) for parts in zip(*(chunk.keys for chunk in chunks), strict=True)]


def _join(
    executor: SparkExecutor, plan: MergePlan, work: MergeTable, stored: _StoredRows, candidates: FilePlan
) -> list[MergedPart]:
    tasks = parallelism(executor.spark)
    groups = list(groups_of_table(candidates.files, tasks))
    if not groups and all(clause.when != "not matched" for clause in plan.clauses):
        return []
    sizes = Sizes(
        buckets=max(-(-stored.bytes // BUCKET_BYTES), min(len(groups), tasks), 1),
        bins=len(groups),
        inserts=max(-(-stored.bytes // INSERT_BYTES), 1),
    )
    rows = stored.rows.select("message").mapInArrow(to_executors(BucketTask(plan.join, sizes.buckets)), PART)
    if groups:
        pruning = candidates.pruning_predicate
        read = TargetTask(work, pruning, plan.reads_all_rows, sizes.buckets)
        rows = rows.unionAll(run_task(executor.spark, list(enumerate(groups)), read, PART))
    buckets = rows.repartitionById(sizes.buckets, "part").sortWithinPartitions("side")
    joined = buckets.mapInArrow(to_executors(JoinTask(work, sizes)), PART)
    parts = joined.repartitionById(sizes.bins + sizes.inserts, "part")
    return executor.run_partitions(parts, ApplyTask(work))
