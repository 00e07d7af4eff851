"""A rewrite of files by tasks: what they return, and the commit of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ..data_file.options import FileOptions
from ..execution import NameFile
from ..log.commit_context import CommitOptions, transaction_of
from ..log.snapshot import Snapshot
from ..read.file_reader import FileEntry
from ..read.plan import FilePlan
from ..write.change_data import ChangeType, write_whole_files
from ..write.copy_on_write import RewrittenFiles, RewrittenPart, combine_parts
from ..write.rewrite_result import RewriteResult, skip_repeated
from ..write.written_files import NO_FILES, WrittenFiles
from .attempts import Attempt, Job, forget
from .auto_compaction import compact_partitions, compacts
from .file_jobs import commit_won, write_by_tasks
from .reading import file_groups
from .running import distribute, parallelism
from .tasks import Task, TaskTable, Written, attempt_of, message, unpack_batches

__all__ = ["RewriteJob", "Rewritten", "names_of"]


@dataclass(frozen=True)
class Rewritten:
    """What an attempt of a task did: the files that it replaced, and the files of new rows.

    `counts` has the number of rows for each action of a merge.
    """

    attempt: str
    part: RewrittenPart
    inserted: WrittenFiles = NO_FILES
    counts: Mapping[str, int] | None = None

    @property
    def samples(self) -> tuple[str | None]:
        """Return the path of a file that the attempt wrote, None without one."""
        return (next(chain(self.part.paths, self.inserted.paths()), None),)


@dataclass(frozen=True)
class RewriteJob:
    """A run of a rewrite of a table by tasks."""

    spark: SparkSession
    snapshot: Snapshot
    table: TaskTable
    commit: CommitOptions
    job: Job
    files: FileOptions
    auto_compact: bool | None

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        snapshot: Snapshot,
        commit: CommitOptions,
        storage_options: Mapping[str, str] | None,
        files: FileOptions,
        auto_compact: bool | None,
    ) -> RewriteJob:
        transaction = transaction_of(commit)
        job = Job.of(None if transaction is None else transaction.application)
        table = TaskTable.of(snapshot, storage_options)
        return cls(spark, snapshot, table, commit, job, files, auto_compact)

    def skip_repeated(self) -> RewriteResult | None:
        """Return the result if the table already has the `txn` of the commit, None if it must proceed."""
        result = skip_repeated(self.snapshot, self.commit)
        if result is not None:
            forget(self.snapshot.store, self.job)
        return result

    def write(self, df: DataFrame, task: Task) -> list[Rewritten]:
        """Return the results of the tasks that rewrite files; if one fails, remove the files of all."""
        return write_by_tasks(df, task, self.job, [self.snapshot.store])

    def finish(
        self,
        candidates: FilePlan,
        done: Sequence[Rewritten],
        commit: Callable[[RewrittenFiles], RewriteResult],
    ) -> RewriteResult:
        """Commit what tasks did, with the files of new rows, and remove the files of lost attempts.

        If tasks wrote change data, the files of which all rows are new or deleted get change data, too. The
        partitions with new files are compacted if the job or the table asks for it.
        """
        changes: list[Written] = []
        if any(each.part.changes for each in done):
            changes = self._write_changes(done)
        rewritten = combine_parts(
            candidates,
            [each.part for each in done],
            inserted=[each.inserted for each in done],
            changes=[each.files for each in changes],
        )
        before = self.snapshot
        result = commit_won(lambda: commit(rewritten), [*done, *changes], self.job, [before.store])
        if result.version is not None and compacts(before.configuration, self.auto_compact):
            new, options = rewritten.files, self.table.storage_options
            compact_partitions(self.spark, before.store, before, new, self.files, options)
        return result

    def _write_changes(self, done: Sequence[Rewritten]) -> list[Written]:
        tasks = parallelism(self.spark)
        emptied = [(file, file.size or 0) for each in done for file in each.part.emptied]
        inserted = [(file, file.size or 0) for each in done for file in each.inserted.entries()]
        groups: list[tuple[ChangeType, tuple[FileEntry, ...]]] = [
            *(("delete", group) for group in file_groups(emptied, tasks)),
            *(("insert", group) for group in file_groups(inserted, tasks)),
        ]
        if not groups:
            return []
        task = ChangeFilesTask(self.table, self.job)
        return write_by_tasks(distribute(self.spark, groups), task, self.job, [self.snapshot.store])


def names_of(attempt: Attempt) -> NameFile:
    """Return the names of all files of an attempt, whichever of its writers asks for them."""
    numbers = count()
    return lambda _: attempt.file_name(next(numbers))


@dataclass(frozen=True)
class ChangeFilesTask:
    """Writes the rows of whole files to change data files."""

    table: TaskTable
    job: Job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a message with the change data files of each group of files."""
        snapshot = self.table.open()
        attempt = attempt_of(snapshot.store, self.job)
        name = names_of(attempt)
        for change, files in unpack_batches(batches):
            changes = write_whole_files(snapshot, snapshot.configuration, files, change, name)
            yield message(Written(attempt.identity, changes.compress(), 0))
