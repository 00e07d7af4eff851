"""Processes that write to one table at once, and what came of it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty
from typing import Any

import pandas  # noqa: F401 - pyarrow imports it for its first array: once, and not in each racer
from operations import data, read

import delta_variant as dv
from delta_variant.errors import CommitConflictError
from delta_variant.log.commits import read_commits
from delta_variant.protocol.actions import AddFile, CommitInfo
from delta_variant.storage.objects import LocalFiles, RemoteObjects

APPENDS_A_DELETE = 10


@dataclass(frozen=True)
class Race:
    """How many commits a race took, how long, and how often another writer was first."""

    commits: int
    seconds: float
    puts: int
    conflicts: int

    def __str__(self) -> str:
        return (
            f"{self.commits:,} commits in {self.seconds:.0f} s ({self.commits / self.seconds:.0f} a second), "
            f"{self.puts - self.commits:,} were tried again behind another writer, "
            f"{self.conflicts:,} were in conflict and done anew"
        )


def race(
    table: str,
    *,
    writers: int,
    appends: int,
    deletes: bool = False,
    creates: bool = False,
    options: Mapping[str, str] | None = None,
) -> Race:
    """Let processes append rows at once, delete some between, and look at every row and version.

    With `creates` there is no table at first, and the processes race for its first version, too.
    """
    if not creates:
        dv.write_table(table, data({-1: 0}), storage_options=options)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["racers"])
    counts = context.Queue()
    started = time.monotonic()
    racers = [
        context.Process(target=_run, args=(table, writer, appends, deletes, options, counts))
        for writer in range(writers)
    ]
    for racer in racers:
        racer.start()
    outcomes = [_outcome(counts, racers) for _ in racers]
    seconds = time.monotonic() - started
    for racer in racers:
        racer.join(timeout=60)
    commits, puts, conflicts = (sum(outcome[part] for outcome in outcomes) for part in range(3))
    left = _left(writers, appends, deletes) | (set() if creates else {-1})
    _check(table, options, commits if creates else commits + 1, left)
    return Race(commits, seconds, puts, conflicts)


def _outcome(counts: Any, racers: Sequence[Any]) -> tuple[int, int, int]:
    """Return what one of the processes counted, unless one of them failed."""
    while True:
        try:
            outcome: tuple[int, int, int] = counts.get(timeout=1)
            return outcome
        except Empty:
            assert all(racer.exitcode in (None, 0) for racer in racers), "a writer failed"


def _left(writers: int, appends: int, deletes: bool) -> set[int]:
    rows = range(writers * appends)
    return {row for row in rows if not deletes or row % APPENDS_A_DELETE}


def _run(
    table: str, writer: int, appends: int, deletes: bool, options: Mapping[str, str] | None, counts: Any
) -> None:
    puts = _counted_puts()
    commits = conflicts = 0
    for number in range(appends):
        row = writer * appends + number
        dv.write_table(table, data({row: row}), mode="append", storage_options=options)
        commits += 1
        if deletes and number % APPENDS_A_DELETE == APPENDS_A_DELETE - 1:
            conflicts += _delete(table, row - row % APPENDS_A_DELETE, options)
            commits += 1
    counts.put((commits, len(puts), conflicts))


def _delete(table: str, row: int, options: Mapping[str, str] | None) -> int:
    """Delete a row, and return how often that had to be done anew."""
    conflicts = 0
    while True:
        try:
            assert dv.delete(table, f"id = {row}", storage_options=options).rows_deleted == 1
            return conflicts
        except CommitConflictError:
            conflicts += 1


def _counted_puts() -> list[str]:
    """Return a list that grows by each commit that this process tries."""
    puts: list[str] = []
    for kind in (LocalFiles, RemoteObjects):
        kind.create = _counting(kind.create, puts)  # type: ignore[method-assign]
    return puts


def _counting(
    create: Callable[[Any, str, bytes], None], puts: list[str]
) -> Callable[[Any, str, bytes], None]:
    def counted(objects: Any, key: str, data: bytes) -> None:
        puts.append(key)
        create(objects, key, data)

    return counted


def _check(table: str, options: Mapping[str, str] | None, commits: int, expected: set[int]) -> None:
    """Hold every row and version against what was written."""
    snapshot = dv.load_snapshot(table, storage_options=options)
    assert snapshot.version == commits - 1, f"{commits} commits, and version {snapshot.version}"
    assert set(read(snapshot)) == expected
    versions = read_commits(snapshot.store, -1)
    assert [version for version, _ in versions] == list(range(commits))
    actions = [action for _, commit in versions for action in commit]
    infos = [action for action in actions if isinstance(action, CommitInfo)]
    assert len({info.fields["txnId"] for info in infos}) == commits
    paths = [action.path for action in actions if isinstance(action, AddFile)]
    assert len(set(paths)) == len(paths)
    assert dv.audit_table(table, storage_options=options).count("error") == 0
