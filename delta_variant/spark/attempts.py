"""Which attempts of a job's tasks have begun files, so that the files of those that lose can be removed.

Spark may run a task again, or twice at once, and delivers what one attempt says. All others may leave files
behind, and an attempt that was killed cannot remove them. So an attempt writes an empty file below
`_delta_variant/<job>/` before its first data file, and the names of its data files have job, run and attempt
in them: only where more attempts began than won is the whole table listed. Other writers and VACUUM pass over
folders whose names begin with `_`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import NAMESPACE_URL, uuid4, uuid5

from ..errors import StoreError
from ..protocol.actions import Txn
from ..storage import store
from ..storage.store import Store

__all__ = ["Attempt", "Job", "forget", "remove_lost"]

FOLDER = "_delta_variant"


@dataclass(frozen=True)
class Job:
    """A write by tasks: one run of it, where a `txn` says that another run would write the same."""

    identity: str
    run: str

    @classmethod
    def of(cls, txn: Txn | None) -> Job:
        identity = uuid4() if txn is None else uuid5(NAMESPACE_URL, f"{txn.app_id}/{txn.version}")
        return cls(str(identity), uuid4().hex[:8])

    @property
    def folder(self) -> str:
        return f"{FOLDER}/{self.identity}"


@dataclass
class Attempt:
    """One attempt of a task: it names its files, and is entered in the job's list before the first."""

    place: Store
    job: Job
    partition: int
    identity: str = field(init=False)
    has_begun: bool = False

    def __post_init__(self) -> None:
        """Give the attempt an id that no other has."""
        self.identity = f"{self.job.run}-{uuid4().hex[:8]}"

    def file_name(self, number: int) -> str:
        """Return the name of the attempt's file of that number."""
        if not self.has_begun:
            store.put(self.place, f"{self.job.folder}/{self.identity}", b"")
            self.has_begun = True
        return f"part-{self.partition:05}-{self.job.identity}-{self.identity}-c{number:03}"


def remove_lost(places: Iterable[Store], job: Job, winners: Collection[str], *, of_all_runs: bool) -> None:
    """Remove what attempts that did not win have left in `places`, whose first is the table.

    Only for a job that is committed may it be those of all its runs: of another one, whose driver may still
    be there, no run can be committed any more.
    """
    table, *others = places
    with suppress(StoreError):
        begun = _begun(table, job) if of_all_runs else _begun_by_run(table, job)
        if lost := begun - set(winners):
            for place in (table, *others):
                _remove_files(place, lost)
        _forget(table, job, begun)


def forget(table: Store, job: Job) -> None:
    """Remove the list of a job's attempts, and nothing that they wrote."""
    with suppress(StoreError):
        _forget(table, job, _begun(table, job))


def _begun(table: Store, job: Job) -> set[str]:
    return {path.rsplit("/", 1)[-1] for path in store.list_files(table, job.folder)}


def _begun_by_run(table: Store, job: Job) -> set[str]:
    return {attempt for attempt in _begun(table, job) if attempt.startswith(f"{job.run}-")}


def _remove_files(place: Store, lost: Collection[str]) -> None:
    for path in store.list_files(place, ""):
        if any(f"-{attempt}-c" in path for attempt in lost):
            store.delete(place, path)


def _forget(table: Store, job: Job, attempts: Iterable[str]) -> None:
    for attempt in attempts:
        store.delete(table, f"{job.folder}/{attempt}")
    for path in (job.folder, FOLDER):
        # Only a local disk has folders that stay when they are empty.
        if folder := store.local_path(table, path):
            with suppress(OSError):
                folder.rmdir()
