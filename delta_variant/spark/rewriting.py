"""Delete and update rows: executors rewrite the files that contain changed rows, the driver commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from .._checks import options_of
from ..data_file.options import FileOptions, WriteOptions
from ..log.commit_context import CommitOptions
from ..log.load import load_latest
from ..operations.delete import check_where, plan_delete
from ..operations.update import plan_update
from ..protocol.table_configuration import TableConfiguration
from ..read.plan import plan_files
from ..read.predicate import PruningPredicate
from ..storage.store import TableLocation
from ..write.copy_on_write import RowChange, is_partition_predicate, remove_files, rewrite_files
from ..write.rewrite_plan import RewritePlan, commit_plan
from ..write.rewrite_result import RewriteResult
from .attempts import Job
from .credentials import session_options
from .queries.table_names import resolve_table
from .reading import groups_of_table
from .rewrite_jobs import RewriteJob, Rewritten, names_of
from .running import distribute, parallelism, session_timezone
from .tasks import TaskTable, attempt_of, message, unpack_batches

__all__ = ["delete", "update"]


def delete(
    spark: SparkSession,
    table: TableLocation,
    where: str,
    *,
    auto_compact: bool | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> RewriteResult:
    """Delete the rows for which `where` is true, as one commit; executors rewrite the files.

    Files without such rows are not rewritten. A predicate over partition columns only removes whole files
    without reading them. Local times in `where` are in the session's time zone.

    Files of tasks that fail or that Spark repeats are removed. A job that fails commits nothing.

    Args:
        spark: A Spark session.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        where: An SQL predicate over columns and Variant paths, as in `read_table`. Rows for which it is NULL
            remain. `delta_variant.delete_all` deletes all rows.
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
        A `delta_variant.RewriteResult` with `rows_deleted`, `rows_copied` and the new version, None if no row
        matches.

    Raises:
        ExpressionError: `where` cannot be parsed or bound to the table.
        CastError: A value cannot be cast.
        UnsupportedFeatureError: This version cannot delete rows of the table, or the table is append-only.
        CommitConflictError: A concurrent commit changed rows that this one read.
        AmbiguousWriteError: Another run may have committed `txn`.
        ArgumentTypeError: An argument has the wrong type.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, [{"id": 1}, {"id": 2}, {"id": 3}])
        >>> dvs.delete(spark, table, "id > 1").rows_deleted
        2
    """
    check_where(where)
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    options = WriteOptions(files=options_of("files", files, FileOptions))
    snapshot = load_latest(table, storage_options).in_timezone(session_timezone(spark))
    plan = plan_delete(snapshot, where, options, options_of("commit", commit, CommitOptions))
    return _execute(spark, plan, storage_options, auto_compact)


def update(
    spark: SparkSession,
    table: TableLocation,
    updates: Mapping[str, str | None],
    where: str | None = None,
    *,
    auto_compact: bool | None = None,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> RewriteResult:
    """Update the rows for which `where` is true, as one commit; executors rewrite the files.

    Columns and paths that are not in `updates` keep their bytes. Generated columns that read an updated
    column are recomputed. Files without updated rows are not rewritten. Local times in SQL text are in the
    session's time zone.

    Files of tasks that fail or that Spark repeats are removed. A job that fails commits nothing.

    Args:
        spark: A Spark session.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        updates: A mapping from columns and paths of Variant columns (`event:user.email`) to SQL expressions,
            as in `delta_variant.update`. None removes a path.
        where: An SQL predicate over columns and Variant paths, as in `read_table`. None, the default, updates
            all rows.
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
        A `delta_variant.RewriteResult` with `rows_updated`, `rows_copied` and the new version, None if no row
        matches.

    Raises:
        ExpressionError: An SQL expression cannot be parsed or bound to the table.
        VariantPathError: A path leads through a value that is not an object, or past the end of an array.
        CastError: A value cannot be cast to the type of its column.
        SchemaError: A struct, list or map does not fit its column.
        ConstraintViolationError: An updated row violates a constraint.
        UnsupportedFeatureError: This version cannot update rows of the table, or the table is append-only.
        CommitConflictError: A concurrent commit changed rows that this one read.
        AmbiguousWriteError: Another run may have committed `txn`.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: `updates` is empty.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> rows = [{"id": 1, "event": {"n": 1}}, {"id": 2, "event": {"n": 2}}]
        >>> result = dv.write_table(table, rows, variant_columns=["event"])
        >>> dvs.update(spark, table, {"event:n": "event:n::bigint + 10"}, "id = 2").rows_updated
        1
        >>> dv.read_table(table, columns=["event:n::bigint as n"], where="id = 2").to_pylist()
        [{'n': 12}]
    """
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    options = WriteOptions(files=options_of("files", files, FileOptions))
    snapshot = load_latest(table, storage_options).in_timezone(session_timezone(spark))
    plan = plan_update(snapshot, updates, where, options, options_of("commit", commit, CommitOptions))
    return _execute(spark, plan, storage_options, auto_compact)


def _execute(
    spark: SparkSession,
    plan: RewritePlan,
    storage_options: Mapping[str, str] | None,
    auto_compact: bool | None,
) -> RewriteResult:
    files = plan.options.files
    run = RewriteJob.of(spark, plan.snapshot, plan.commit, storage_options, files, auto_compact)
    if result := run.skip_repeated():
        return result
    if plan.operation == "DELETE" and is_partition_predicate(plan.snapshot, plan.predicate):
        return commit_plan(plan, remove_files(plan.snapshot, plan.predicate))
    candidates = plan_files(plan.snapshot, plan.predicate)
    groups = groups_of_table(candidates.files, parallelism(spark))
    task = RewriteTask(run.table, run.job, plan.options, candidates.pruning_predicate, plan.change)
    done = run.write(distribute(spark, groups), task) if candidates.files.num_rows else []
    return run.finish(candidates, done, lambda rewritten: commit_plan(plan, rewritten))


@dataclass(frozen=True)
class RewriteTask:
    """Rewrites those of the files of a group that contain changed rows."""

    table: TaskTable
    job: Job
    options: WriteOptions
    pruning_predicate: PruningPredicate
    change: Callable[[TableConfiguration], RowChange]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a message with what was rewritten for each group of files."""
        snapshot = self.table.open()
        attempt, change = attempt_of(snapshot.store, self.job), self.change(snapshot.configuration)
        name = names_of(attempt)
        for files in unpack_batches(batches):
            part = rewrite_files(
                snapshot,
                files,
                self.pruning_predicate,
                lambda _: change,
                snapshot.configuration,
                self.options,
                name,
            )
            if part.replaced:
                yield message(Rewritten(attempt.identity, part.compress()))
