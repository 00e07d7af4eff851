"""Optimizing a table: executors plan and write the groups of its files, the driver commits them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from .._options import Numeric
from ..data_file.options import DEFAULT_TARGET_FILE_SIZE, WriteOptions
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..operations.optimize.layout import FileGroup, plan_group, read_rows
from ..operations.optimize.optimize import (
    Optimization,
    OptimizePlan,
    commit_groups,
    plan_optimize,
    write_rows,
)
from ..scan.reader import DataFile, files_of
from ..storage.store import TableLocation
from ..writer.partitioned import PartitionFile
from .attempts import Job
from .failures import own_errors
from .ordering import by_group, row_columns, rows_in_order
from .running import check_classic, dealt_out, session_timezone
from .tasks import MESSAGE, TaskTable, Written, attempt_of, message, messages, messages_in
from .writing import commit_won, written_by

__all__ = ["optimize"]

Run: TypeAlias = "tuple[WriteOptions, Iterator[pa.RecordBatch]]"
"""Rows of one group, and how they are written."""

READ_COLUMNS = ["size", *(field.name for field in fields(DataFile))]
"""What tasks are told of files."""


def optimize(
    spark: SparkSession,
    table: TableLocation,
    where: str | None = None,
    *,
    sort_by: str | Sequence[str] | None = None,
    reshred: bool = False,
    numeric: Numeric = "value",
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Optimization:
    """Do what `delta_variant.optimize` does; tasks plan and write the groups of files, the driver commits.

    Each group is planned by one task, and written by one. With `sort_by` it is Spark that puts rows in order,
    each partition of the table over as many tasks as it is to have files; no task holds more than its rows.
    Local times in SQL text are those of the session's time zone.

    What tasks leave that Spark repeats or that fail is removed, and a job that fails commits nothing. Raises
    what `delta_variant.optimize` does.
    """
    check_classic()
    work = plan_optimize(
        load_snapshot(table, storage_options=storage_options).in_timezone(session_timezone(spark)),
        where,
        sort_by=sort_by,
        reshred=reshred,
        numeric=numeric,
        target_file_size=target_file_size,
    )
    place = TaskTable.of(work.snapshot, storage_options)
    groups = _planned(spark, work, place)
    if dry_run or not groups:
        return Optimization(None, tuple(groups))
    job, folders = Job.of(None), [work.snapshot.store]
    if work.keys:
        rows = rows_in_order(spark, place, groups, work.keys)
        sorting = SortedRowsTask(place, job, tuple(group.options for group in groups))
        written = written_by(rows, sorting, job, folders)
    else:
        parts = [replace(group, files=group.files.select(READ_COLUMNS)) for group in groups]
        written = written_by(dealt_out(spark, parts), GroupTask(place, job), job, folders)
    return commit_won(lambda files: commit_groups(work, groups, files), written, job, folders)


def _planned(spark: SparkSession, work: OptimizePlan, place: TaskTable) -> list[FileGroup]:
    """Return the groups of files that are written anew, in the order of the bins."""
    bins = [
        (number, replace(each, files=each.files.select(READ_COLUMNS)))
        for number, each in enumerate(work.bins)
    ]
    if not bins:
        return []
    with own_errors():
        rows = dealt_out(spark, bins).mapInArrow(PlanTask(place, work.options), MESSAGE).collect()
    groups: dict[int, FileGroup] = dict(messages(rows))
    return [replace(groups[number], files=work.bins[number].files) for number in sorted(groups)]


@dataclass(frozen=True)
class PlanTask:
    """Says how bins of files are written anew."""

    table: TaskTable
    options: WriteOptions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the numbers and the groups of the bins that came as messages, but of those that stay."""
        snapshot = self.table.opened()
        for number, chosen in messages_in(batches):
            group = plan_group(snapshot, chosen, self.options)
            if group is not None:
                yield message((number, group))


@dataclass(frozen=True)
class RewriteTask(ABC):
    """Writes rows of a table to new files of it."""

    table: TaskTable
    job: Job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one message, or none for no rows."""
        snapshot = self.table.opened()
        attempt, numbers = attempt_of(snapshot.store, self.job), count()
        files: list[PartitionFile] = []
        for options, rows in self.runs(snapshot, batches):
            files += write_rows(snapshot, rows, options, lambda _: attempt.file_name(next(numbers)))
        if files:
            yield message(Written(attempt.identity, tuple(files), 0))

    @abstractmethod
    def runs(self, snapshot: Snapshot, batches: Iterator[pa.RecordBatch]) -> Iterator[Run]:
        """Yield what is written, a group after the other."""


@dataclass(frozen=True)
class GroupTask(RewriteTask):
    """Writes the groups that come as messages, their rows as they lie."""

    def runs(self, snapshot: Snapshot, batches: Iterator[pa.RecordBatch]) -> Iterator[Run]:
        for group in messages_in(batches):
            yield (
                group.options,
                (rows for rows, _ in read_rows(snapshot, files_of(group.files), (), group.options)),
            )


@dataclass(frozen=True)
class SortedRowsTask(RewriteTask):
    """Writes rows that come in the order of their groups; `options` has how each group is written."""

    options: tuple[WriteOptions, ...]

    def runs(self, snapshot: Snapshot, batches: Iterator[pa.RecordBatch]) -> Iterator[Run]:
        for number, rows in by_group(batches, len(row_columns(snapshot))):
            yield self.options[number], rows
