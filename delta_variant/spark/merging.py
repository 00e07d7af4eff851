"""Merge a DataFrame into a table: executors join and rewrite files, the driver commits."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from .._checks import options_of, texts_of
from ..data_file.options import FileOptions, WriteOptions
from ..errors import UnsupportedFeatureError
from ..log.commit_context import CommitOptions
from ..log.load import load_latest
from ..operations.merge.builder import Merge, check_aliases, sides_of
from ..operations.merge.joining import JoinPredicate, KeyValues
from ..operations.merge.plan import MergeCounts, MergePlan, commit_merge
from ..protocol.types import StructType
from ..read.file_reader import FileEntry
from ..read.plan import FilePlan, plan_files
from ..storage.store import TableLocation
from ..write.rewrite_result import RewriteResult
from ..write.written_files import NO_FILES
from .columns import from_spark
from .credentials import session_options
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
)
from .queries.table_names import resolve_table
from .reading import groups_of_table
from .recalling import recall
from .rewrite_jobs import RewriteJob, Rewritten
from .running import (
    check_batch,
    is_case_sensitive,
    map_by_task,
    parallelism,
    run_task,
    session_timezone,
)
from .task_errors import restore_errors
from .tasks import to_executors, unpack
from .versions import INSTALLED, SPARK_ERRORS

__all__ = ["merge"]

_LOGGER = logging.getLogger(__name__)

MAX_RUNS = 4
"""How often a merge runs at most if executors are lost."""

LOST_ROWS = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
"""The error of Spark for stored rows whose executor is lost."""

BUCKET_BYTES = 64 << 20
"""The bytes of source rows that a task joins, approximately."""

INSERT_BYTES = 128 << 20
"""The bytes of source rows whose inserted rows one task writes, approximately."""


def merge(
    table: TableLocation,
    source: DataFrame,
    on: str,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    variant_columns: Sequence[str] = (),
    auto_compact: bool | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Merge:
    """Return a merge of `source` into a table, to which you add clauses before you call `execute()`.

    Executors join the source with the rows that can match it, rewrite the files with changed rows and write
    the inserted rows. The driver makes one commit. Neither side has to fit into the memory of one process.
    `execute()` computes the source once and stores it on the executors until it returns. If one of them is
    lost, it runs again, at most three times. A column that only
    one of the two has does not need an alias in SQL text. Local times in it are in the session's time zone.

    Files of tasks that fail or that Spark repeats are removed. A job that fails commits nothing.

    Args:
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`: the target of the merge.
        source: The rows of the source, a batch DataFrame.
        on: An SQL predicate over both, such as `target.event:user.id::bigint = source.id`. It needs an
            equality of an expression over the table and one over the source. Equalities decide which files
            are read.
        source_alias: The name of the source in SQL text, `"source"` by default.
        target_alias: The name of the table in SQL text, `"target"` by default.
        variant_columns: The names of source columns with JSON text that become Variants. Empty by default.
        auto_compact: Whether to compact the small files of the partitions that get files, as in
            `write_table`. By default as the table property `delta.autoOptimize.autoCompact` says, False
            without it.
        files: How new files are written; see `delta_variant.FileOptions`. None, the default, uses its
            defaults.
        commit: The `txn` and the metadata of the commit; see `delta_variant.CommitOptions`. None, the
            default, sets none.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        A `delta_variant.Merge` without clauses. Its `execute()` returns a `delta_variant.RewriteResult`. It
        also raises InvalidJsonError for a column in `variant_columns` with invalid JSON.

    Raises:
        ExpressionError: `on` cannot be parsed or bound.
        SchemaError: The source has a type that Delta does not have, or lacks a column of `variant_columns`.
        UnsupportedFeatureError: `on` has no equality of both sides, `source` is a stream, or PySpark is 4.0.
        ArgumentTypeError: An argument has the wrong type.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, [{"id": 1, "n": 10}, {"id": 2, "n": 20}])
        >>> source = spark.createDataFrame([(2, 21), (3, 30)], "id long, n long")
        >>> merge = dvs.merge(table, source, "target.id = source.id").when_matched_update_all()
        >>> result = merge.when_not_matched_insert_all().execute()
        >>> result.rows_updated, result.rows_inserted
        (1, 1)
    """
    check_batch(source, "merge")
    if INSTALLED < (4, 1):
        raise UnsupportedFeatureError(
            "cannot merge on PySpark 4.0 because it cannot send a row to a given task: "
            "upgrade to PySpark 4.1, or use delta_variant.merge"
        )
    files, commit = options_of("files", files, FileOptions), options_of("commit", commit, CommitOptions)
    check_aliases(source_alias, target_alias)
    spark = source.sparkSession
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    snapshot = load_latest(recall(table), storage_options).in_timezone(session_timezone(spark))
    names = texts_of("names", "variant_columns", variant_columns)
    columns = from_spark(source.schema, names, case_sensitive=is_case_sensitive(spark))
    sides = sides_of(snapshot, target_alias, columns, source_alias)
    join = JoinPredicate.of(sides.predicate(on))
    if not join.keys:
        raise UnsupportedFeatureError(
            f"cannot merge on Spark on {on!r} because it has no equality of an expression over the table and "
            "one over the source: add one, or use delta_variant.merge",
            table=snapshot.uri,
        )
    plan = MergePlan(snapshot, on, join, WriteOptions(files=files), commit)
    return Merge(plan, sides, partial(_execute, source, columns, storage_options, auto_compact))


def _execute(
    source: DataFrame,
    columns: StructType,
    storage_options: Mapping[str, str] | None,
    auto_compact: bool | None,
    plan: MergePlan,
) -> RewriteResult:
    plan.check()
    for _ in range(MAX_RUNS - 1):
        try:
            return _run(source, columns, storage_options, auto_compact, plan)
        except SPARK_ERRORS as error:
            # Nothing is committed yet, and the tasks of this run have removed their files.
            if LOST_ROWS not in str(error):
                raise
            _LOGGER.warning("merge %s again: executors with rows of the source were lost", plan.snapshot.uri)
    return _run(source, columns, storage_options, auto_compact, plan)


def _run(
    source: DataFrame,
    columns: StructType,
    storage_options: Mapping[str, str] | None,
    auto_compact: bool | None,
    plan: MergePlan,
) -> RewriteResult:
    spark, files = source.sparkSession, plan.options.files
    run = RewriteJob.of(spark, plan.snapshot, plan.commit, storage_options, files, auto_compact)
    if result := run.skip_repeated():
        return result
    work = MergeTable(run.table, columns, plan.join, plan.clauses, plan.options)
    with _store(source, SourceTask(columns, plan.join)) as (stored, chunks):
        predicate = plan.target_predicate(_combine_keys(plan.join, chunks))
        candidates = plan_files(plan.snapshot, predicate)
        done = _rewrite(run, plan, work, stored, candidates, sum(chunk.bytes for chunk in chunks))
    counts: Counter[str] = Counter()
    for each in done:
        counts.update(each.counts or {})
    counted = MergeCounts(
        counts["update"], counts["delete"], counts["insert"], sum(chunk.rows for chunk in chunks)
    )
    return run.finish(
        candidates, done, lambda rewritten: commit_merge(plan, predicate, rewritten, NO_FILES, counted)
    )


@contextmanager
def _store(source: DataFrame, task: SourceTask) -> Iterator[tuple[DataFrame, list[Chunk]]]:
    """Yield the stored rows of the source and their chunks.

    A local checkpoint computes the source once. If an executor with stored rows is lost, their tasks fail,
    and the whole merge runs again: computing only the lost rows again may return other rows than those by
    which the first tasks decided.
    """
    with restore_errors():
        # A query of Spark Connect does not complete a lazy checkpoint, so lost rows would be computed again.
        stored = map_by_task(source, task, SOURCE).localCheckpoint(eager=is_remote())
    try:
        with restore_errors():
            rows = stored.select("chunk").collect()
        yield stored, [unpack(row["chunk"]) for row in rows]
    finally:
        _release(stored)


def _release(stored: DataFrame) -> None:
    """Remove the rows of a local checkpoint; its own `unpersist` would log a warning.

    A server of Spark Connect removes them when the DataFrame is deleted.
    """
    if is_remote():
        return
    java: Any = stored._jdf
    context: Any = stored.sparkSession.sparkContext._jsc
    context.sc().unpersistRDD(java.queryExecution().analyzed().rdd().id(), False)


def _combine_keys(join: JoinPredicate, chunks: Sequence[Chunk]) -> list[KeyValues]:
    if not chunks:
        return [KeyValues.of(pa.nulls(0)) for _ in join.keys]
    return [KeyValues.combine(parts) for parts in zip(*(chunk.keys for chunk in chunks), strict=True)]


def _rewrite(
    run: RewriteJob,
    plan: MergePlan,
    work: MergeTable,
    stored: DataFrame,
    candidates: FilePlan,
    source_bytes: int,
) -> list[Rewritten]:
    spark = run.spark
    tasks = parallelism(spark)
    groups = list(groups_of_table(candidates.files, tasks))
    if not groups and all(clause.when != "not matched" for clause in plan.clauses):
        return []
    sizes = Sizes(
        buckets=max(-(-source_bytes // BUCKET_BYTES), min(len(groups), tasks), 1),
        bins=len(groups),
        inserts=max(-(-source_bytes // INSERT_BYTES), 1),
    )
    rows = stored.select("message").mapInArrow(to_executors(BucketTask(plan.join, sizes.buckets)), PART)
    if groups:
        pruning = candidates.pruning_predicate
        read = TargetTask(work, pruning, plan.reads_all_rows, sizes.buckets)
        rows = rows.unionAll(_read(spark, groups, read))
    buckets = rows.repartitionById(sizes.buckets, "part").sortWithinPartitions("side")
    joined = buckets.mapInArrow(to_executors(JoinTask(work, sizes)), PART)
    return run.write(joined.repartitionById(sizes.bins + sizes.inserts, "part"), ApplyTask(work, run.job))


def _read(spark: SparkSession, groups: Sequence[tuple[FileEntry, ...]], task: TargetTask) -> DataFrame:
    return run_task(spark, list(enumerate(groups)), task, PART)
