"""Optimization of a table: executors plan and write groups of files, the driver commits them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from ..data_file.options import FileOptions, WriteOptions
from ..log.commit_context import CommitOptions
from ..log.load import load_latest
from ..log.snapshot import TableVersion
from ..operations.optimize.layout import FileGroup, is_large, plan_group, read_rows
from ..operations.optimize.optimize import (
    OptimizePlan,
    OptimizeResult,
    commit_groups,
    plan_optimize,
    write_rows,
)
from ..read.file_reader import FileEntry, files_of
from ..storage.store import TableLocation
from ..write.partitions import discard
from ..write.written_files import WrittenFiles
from .attempts import Job
from .credentials import session_options
from .file_jobs import commit_won, files_written, write_by_tasks
from .ordering import row_columns, sort_rows, split_by_group
from .queries.table_names import resolve_table
from .running import distribute, run_task, session_timezone
from .task_errors import restore_errors
from .tasks import TaskTable, Written, attempt_of, message, messages, unpack_batches

__all__ = ["optimize", "optimize_files"]

Run: TypeAlias = "tuple[WriteOptions, Iterator[pa.RecordBatch]]"
"""The rows of one group, and the options to write them with."""

READ_COLUMNS = [field.name for field in fields(FileEntry)]
"""The columns of `Snapshot.files` that tasks need."""


def optimize(
    spark: SparkSession,
    table: TableLocation,
    where: str | None = None,
    *,
    sort_by: str | Sequence[str] | None = None,
    reshred: bool = False,
    dry_run: bool = False,
    files: FileOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> OptimizeResult:
    """Compact small files and files with deleted rows, in one commit; executors plan and write the files.

    One task plans each group of files, and one task writes it. With `sort_by`, Spark sorts the rows of each
    partition of the table over as many tasks as the partition gets files. Local times in SQL text are in the
    session's time zone.

    Files of tasks that fail or that Spark repeats are removed. A job that fails commits nothing.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        where: A predicate in SQL over partition columns: only the partitions for which it is true are
            optimized. None is the whole table.
        sort_by: SQL text of columns and Variant paths. All files are rewritten, and the rows of each
            partition are sorted by these keys.
        reshred: Infer the shredding schema of each group again from its rows, and rewrite files with other
            paths.
        dry_run: Commit nothing and return the plan.
        files: How new files are written; see `FileOptions`. None, the default, uses its defaults.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        The groups of files, and the new version. `version` is None if there was nothing to do, or with
        `dry_run`.

    Raises:
        ExpressionError: `where` or `sort_by` cannot be parsed, or names an unknown column.
        CommitConflictError: A concurrent commit removed one of the files.
        UnsupportedFeatureError: Rows of the table must not be moved.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> result = dv.write_table(table, pa.table({"id": [3, 4]}), mode="append")
        >>> dvs.optimize(spark, table, sort_by="id").version
        2
    """
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    work = plan_optimize(
        load_latest(table, storage_options).in_timezone(session_timezone(spark)),
        where,
        sort_by=sort_by,
        reshred=reshred,
        files=files,
        commit=commit,
    )
    return optimize_files(spark, work, storage_options, dry_run=dry_run)


def optimize_files(
    spark: SparkSession,
    work: OptimizePlan,
    storage_options: Mapping[str, str] | None,
    *,
    dry_run: bool = False,
) -> OptimizeResult:
    """Rewrite the files of a plan by tasks, and commit them unless it is a dry run."""
    task_table = TaskTable.of(work.snapshot, storage_options)
    groups = _plan_groups(spark, work, task_table)
    if dry_run or not groups:
        return OptimizeResult(None, tuple(groups))
    job, folders = Job.of(None), [work.snapshot.store]
    if work.keys:
        rows = sort_rows(spark, task_table, groups, work.keys)
        sorting = SortedRowsTask(task_table, job, tuple(group.options for group in groups))
        written = write_by_tasks(rows, sorting, job, folders)
    else:
        parts = [replace(group, files=group.files.select(READ_COLUMNS)) for group in groups]
        written = write_by_tasks(distribute(spark, parts), GroupTask(task_table, job), job, folders)
    written = _merge_residual_files(spark, work, task_table, job, written)
    new = files_written(written)
    return commit_won(lambda: commit_groups(work, groups, new), written, job, folders)


def _plan_groups(spark: SparkSession, work: OptimizePlan, table: TaskTable) -> list[FileGroup]:
    """Return the groups of files to rewrite, in the order of the bins."""
    bins = [
        (number, replace(each, files=each.files.select(READ_COLUMNS)))
        for number, each in enumerate(work.bins)
    ]
    if not bins:
        return []
    with restore_errors():
        rows = run_task(spark, bins, PlanTask(table, work.options)).collect()
    groups: dict[int, FileGroup] = dict(messages(rows))
    return [replace(groups[number], files=work.bins[number].files) for number in sorted(groups)]


def _merge_residual_files(
    spark: SparkSession, work: OptimizePlan, table: TaskTable, job: Job, written: Sequence[Written]
) -> list[Written]:
    """Return the results of tasks with one residual file for each partition, and not one for each task."""
    store, target = work.snapshot.store, work.options.files.target_file_size
    residual: defaultdict[str, list[FileEntry]] = defaultdict(list)
    for file in (file for each in written for file in each.files.entries()):
        if file.is_residual and not is_large(file.size or 0, target):
            # All of its rows have their row ids, if the table tracks them.
            entry = replace(file, base_row_id=0, default_row_commit_version=0)
            residual[repr(sorted(file.partition_values.items()))].append(entry)
    parts = [files for files in residual.values() if len(files) > 1]
    if not parts:
        return list(written)
    options = replace(work.options, is_residual=True)
    new = write_by_tasks(distribute(spark, parts), ResidualFilesTask(table, job, options), job, [store])
    replaced = {file.path for files in parts for file in files}
    discard(store, replaced)
    return [*(replace(each, files=each.files.without(replaced)) for each in written), *new]


@dataclass(frozen=True)
class PlanTask:
    """Plans how bins of files are rewritten."""

    table: TaskTable
    options: WriteOptions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield number and group of each bin whose files are to be rewritten."""
        snapshot = self.table.open()
        for number, chosen in unpack_batches(batches):
            group = plan_group(snapshot, chosen, self.options)
            if group is not None:
                yield message((number, group))


@dataclass(frozen=True)
class RewriteTask(ABC):
    """Writes rows of a table to new files."""

    table: TaskTable
    job: Job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a message with the new files, or nothing without rows."""
        snapshot = self.table.open()
        attempt, numbers = attempt_of(snapshot.store, self.job), count()
        files: list[WrittenFiles] = []
        for options, rows in self.runs(snapshot, batches):
            files.append(write_rows(snapshot, rows, options, lambda _: attempt.file_name(next(numbers))))
        if written := WrittenFiles.join(files):
            yield message(Written(attempt.identity, written.compress(), 0))

    @abstractmethod
    def runs(self, snapshot: TableVersion, batches: Iterator[pa.RecordBatch]) -> Iterator[Run]:
        """Yield the rows to write, one group after another."""


@dataclass(frozen=True)
class GroupTask(RewriteTask):
    """Writes groups of files, with their rows in the order of the files."""

    def runs(self, snapshot: TableVersion, batches: Iterator[pa.RecordBatch]) -> Iterator[Run]:
        for group in unpack_batches(batches):
            yield (
                group.options,
                (rows for rows, _ in read_rows(snapshot, files_of(group.files), (), group.options)),
            )


@dataclass(frozen=True)
class ResidualFilesTask(RewriteTask):
    """Writes the rows of new residual files to one file."""

    options: WriteOptions

    def runs(self, snapshot: TableVersion, batches: Iterator[pa.RecordBatch]) -> Iterator[Run]:
        for files in unpack_batches(batches):
            yield self.options, (rows for rows, _ in read_rows(snapshot, files, (), self.options))


@dataclass(frozen=True)
class SortedRowsTask(RewriteTask):
    """Writes rows that are sorted by group; `options` has the options of each group."""

    options: tuple[WriteOptions, ...]

    def runs(self, snapshot: TableVersion, batches: Iterator[pa.RecordBatch]) -> Iterator[Run]:
        for number, rows in split_by_group(batches, len(row_columns(snapshot.configuration))):
            yield self.options[number], rows
