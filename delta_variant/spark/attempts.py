"""Records of the task attempts that wrote files, by which files of failed attempts are found and removed.

Spark may run a task again, or twice at once, and delivers the result of one attempt. The others may leave
files, and an attempt that was killed cannot remove its own. An attempt therefore writes an empty file to
`_delta_variant/<job>/` before its first data file, and the names of its data files contain job, run and
attempt. The table is listed only if more attempts started than were delivered. Other writers skip folders
whose names begin with `_`. The next run of the same write removes what a killed driver left, and `vacuum`
removes old records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar
from uuid import NAMESPACE_URL, uuid4, uuid5

from ..errors import StoreError
from ..execution import NameFile
from ..operations.vacuum import TASK_RECORDS
from ..protocol.actions import Txn
from ..storage import store as storage
from ..storage.store import Store
from ..write.commit import NOT_COMMITTED
from .locations import check_files
from .task_errors import DriverPackage

Result = TypeVar("Result")


@dataclass(frozen=True)
class Job:
    """One run of a write by tasks. Runs with the same `txn` write the same rows and share `identity`."""

    identity: str
    run: str
    package: DriverPackage = field(default_factory=DriverPackage, repr=False)

    @classmethod
    def of(cls, txn: Txn | None) -> Job:
        identity = str(uuid4()) if txn is None else _identity(txn.app_id, txn.version)
        return cls(identity, uuid4().hex[:8])

    def of_batch(self, query: str, batch: str) -> Job:
        """Return the job of a micro-batch in this run: each run of the batch has the same identity."""
        return replace(self, identity=_identity(query, batch))

    @property
    def folder(self) -> str:
        return f"{TASK_RECORDS}/{self.identity}"


def _identity(writer: str, number: int | str) -> str:
    return str(uuid5(NAMESPACE_URL, f"{writer}/{number}"))


@dataclass
class Attempt:
    """One attempt of a task. It names its files, and records itself in the job's folder before the first."""

    store: Store
    job: Job
    partition: int
    identity: str = field(init=False)
    has_begun: bool = False

    def __post_init__(self) -> None:
        """Give the attempt a unique id."""
        self.identity = f"{self.job.run}-{uuid4().hex[:8]}"

    def file_name(self, number: int) -> str:
        """Return the name of the attempt's file with a number, and record the attempt on the first call."""
        if not self.has_begun:
            storage.put(self.store, f"{self.job.folder}/{self.identity}", b"")
            self.has_begun = True
        return f"part-{self.partition:05}-{self.job.identity}-{self.identity}-c{number:03}"


def names_of(attempt: Attempt) -> NameFile:
    """Return the names of all files of an attempt, whichever of its writers asks for them."""
    numbers = count()
    return lambda _: attempt.file_name(next(numbers))


def commit_won(
    commit: Callable[[], Result],
    job: Job,
    folders: Sequence[Store],
    *,
    winners: Collection[str],
    samples: Sequence[Sequence[str]],
) -> Result:
    """Call `commit`, and remove the files of all attempts that are not among `winners` from `folders`.

    `samples` has paths of files that tasks wrote to each of the folders. Raises StoreError if the driver does
    not find them: they are on the disks of executors.
    """
    try:
        for folder, paths in zip(folders, samples, strict=False):
            check_files(folder, list(paths))
        result = commit()
    except NOT_COMMITTED:
        remove_lost(folders, job, (), of_all_runs=False)
        raise
    is_committed = getattr(result, "version", None) is not None
    remove_lost(folders, job, winners, of_all_runs=is_committed)
    return result


def remove_lost(stores: Iterable[Store], job: Job, winners: Collection[str], *, of_all_runs: bool) -> None:
    """Remove the files in `stores` of all attempts that are not among `winners`.

    The first store is the table. Pass `of_all_runs=True` only after the job is committed. Until then the
    driver of another run may still commit its files.
    """
    table, *others = stores
    with suppress(StoreError):
        started = _started(table, job)
        if not of_all_runs:
            started = {attempt for attempt in started if attempt.startswith(f"{job.run}-")}
        if lost := started - set(winners):
            for store in (table, *others):
                _remove_files(store, lost)
        _forget(table, job, started)


def forget(table: Store, job: Job) -> None:
    """Remove the records of a job's attempts, but none of their data files."""
    with suppress(StoreError):
        _forget(table, job, _started(table, job))


def _started(table: Store, job: Job) -> set[str]:
    return {path.rsplit("/", 1)[-1] for path in storage.list_files(table, job.folder)}


def _remove_files(store: Store, lost: Collection[str]) -> None:
    paths = storage.list_files(store, "")
    storage.delete_all(store, [path for path in paths if any(f"-{attempt}-c" in path for attempt in lost)])


def _forget(table: Store, job: Job, attempts: Iterable[str]) -> None:
    storage.delete_all(table, [f"{job.folder}/{attempt}" for attempt in attempts])
    for path in (job.folder, TASK_RECORDS):
        # Only a local file system keeps empty folders.
        if folder := storage.local_path(table, path):
            with suppress(OSError):
                folder.rmdir()
