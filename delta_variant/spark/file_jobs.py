"""Jobs whose tasks write files: what they return, and the files of lost attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, Protocol, TypeVar

from pyspark.sql import DataFrame

from ..log.commit_context import CommitResult
from ..storage.store import Store
from ..write.commit import NOT_COMMITTED, WriteResult, commit_files
from ..write.preparation import PreparedWrite
from ..write.written_files import WrittenFiles
from .attempts import Job, remove_lost
from .locations import check_files
from .running import Jobs, map_by_task
from .task_errors import restore_errors
from .tasks import Task, Written, messages

__all__ = ["commit_won", "commit_written", "files_written", "write_by_tasks"]

Result = TypeVar("Result", bound=CommitResult)


class Delivered(Protocol):
    """The result of a task that Spark delivered to the driver."""

    @property
    def attempt(self) -> str:
        """Return the identity of the attempt."""

    @property
    def samples(self) -> Sequence[str | None]:
        """Return a path in each folder to which the attempt may have written, None if there is no folder."""


def write_by_tasks(df: DataFrame, task: Task, job: Job, folders: Sequence[Store]) -> list[Any]:
    """Return the results of the tasks of a job, or remove their files from `folders` if one fails."""
    jobs = Jobs(df.sparkSession)
    try:
        with restore_errors():
            return messages(map_by_task(df, task).collect())
    except BaseException:
        jobs.wait()
        remove_lost(folders, job, (), of_all_runs=False)
        raise


def commit_written(
    write: PreparedWrite, written: Sequence[Written], job: Job, folders: Sequence[Store]
) -> WriteResult:
    """Commit the files of the delivered attempts of a job, and remove those of the others from `folders`."""
    invalid, files = sum(each.invalid for each in written), files_written(written)
    return commit_won(lambda: commit_files(write, files, invalid), written, job, folders)


def files_written(written: Iterable[Written]) -> WrittenFiles:
    """Return the files of the delivered attempts."""
    return WrittenFiles.join(each.files for each in written)


def commit_won(
    commit: Callable[[], Result], delivered: Iterable[Delivered], job: Job, folders: Sequence[Store]
) -> Result:
    """Call `commit`, and remove the files of all attempts that were not delivered from `folders`.

    Raises StoreError if the driver does not find the files of tasks: they are on the disks of executors.
    """
    delivered = list(delivered)
    try:
        for folder, paths in zip(folders, zip_longest(*(each.samples for each in delivered)), strict=False):
            check_files(folder, [path for path in paths if path is not None])
        result = commit()
    except NOT_COMMITTED:
        remove_lost(folders, job, (), of_all_runs=False)
        raise
    winners = [each.attempt for each in delivered]
    remove_lost(folders, job, winners, of_all_runs=result.version is not None)
    return result
