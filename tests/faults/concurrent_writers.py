"""Processes that write to one table at the same time, and checks of every row and version."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import Empty
from typing import Any

import pandas  # noqa: F401 - pyarrow imports it for its first array: once, and not in each writer
from support.intercepted_store import intercept
from table_operations import data, read

import delta_variant as dv
from delta_variant.errors import CommitConflictError
from delta_variant.log.commits import read_commits
from delta_variant.protocol.actions import AddFile, CommitInfo
from delta_variant.storage.store import Store

APPENDS_PER_DELETE = 10

LONGEST_RUN = 900.0
"""Seconds after which the processes count as deadlocked."""


@dataclass(frozen=True)
class WriterCounts:
    """How many commits the writers made, in how many seconds, and how often another writer was first."""

    commits: int
    seconds: float
    puts: int
    conflicts: int

    def __str__(self) -> str:
        return (
            f"{self.commits:,} commits in {self.seconds:.0f} s ({self.commits / self.seconds:.0f} a second), "
            f"{self.puts - self.commits:,} retried after another writer's commit, "
            f"{self.conflicts:,} repeated after a conflict"
        )


def run_writers(
    table: str,
    *,
    writers: int,
    appends: int,
    deletes: bool = False,
    creates: bool = False,
    options: Mapping[str, str] | None = None,
) -> WriterCounts:
    """Append rows from several processes at the same time, delete some, and check every row and version.

    With `creates` the table does not exist at first, and the processes also compete for its first version.
    """
    if not creates:
        dv.write_table(dv.Table(table, options), data({-1: 0}))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["concurrent_writers"])
    counts = context.Queue()
    started = time.monotonic()
    processes = [
        context.Process(target=_run, args=(table, writer, appends, deletes, options, counts), daemon=True)
        for writer in range(writers)
    ]
    for process in processes:
        process.start()
    outcomes = [_outcome(counts, processes, started + LONGEST_RUN) for _ in processes]
    seconds = time.monotonic() - started
    for process in processes:
        process.join(timeout=60)
    commits, puts, conflicts = (sum(outcome[part] for outcome in outcomes) for part in range(3))
    expected = _remaining_rows(writers, appends, deletes) | (set() if creates else {-1})
    _check(table, options, commits if creates else commits + 1, expected)
    return WriterCounts(commits, seconds, puts, conflicts)


def _outcome(counts: Any, processes: Sequence[Any], end: float) -> tuple[int, int, int]:
    """Return the counts of one of the processes; fail if a process failed, or has no counts at the end."""
    while True:
        try:
            outcome: tuple[int, int, int] = counts.get(timeout=1)
            return outcome
        except Empty:
            assert all(process.exitcode in (None, 0) for process in processes), "a writer failed"
            assert time.monotonic() < end, f"a writer still runs after {LONGEST_RUN:.0f} s"


def _remaining_rows(writers: int, appends: int, deletes: bool) -> set[int]:
    rows = range(writers * appends)
    return {row for row in rows if not deletes or row % APPENDS_PER_DELETE}


def _run(
    table: str, writer: int, appends: int, deletes: bool, options: Mapping[str, str] | None, counts: Any
) -> None:
    puts: list[str] = []
    store = intercept(table, options, before=lambda call, key: puts.append(key) if call == "create" else None)
    commits = conflicts = 0
    for number in range(appends):
        row = writer * appends + number
        dv.write_table(store, data({row: row}), mode="append")
        commits += 1
        if deletes and number % APPENDS_PER_DELETE == APPENDS_PER_DELETE - 1:
            conflicts += _delete(store, row - row % APPENDS_PER_DELETE)
            commits += 1
    counts.put((commits, len(puts), conflicts))


def _delete(store: Store, row: int) -> int:
    """Delete a row, and return how many attempts ended in a conflict."""
    conflicts = 0
    while True:
        try:
            assert dv.delete(store, f"id = {row}").rows_deleted == 1
            return conflicts
        except CommitConflictError:
            conflicts += 1


def _check(table: str, options: Mapping[str, str] | None, commits: int, expected: set[int]) -> None:
    """Check every row and version of the table."""
    snapshot = dv.load_snapshot(dv.Table(table, options))
    assert snapshot.version == commits - 1, f"{commits} commits, and version {snapshot.version}"
    assert set(read(snapshot)) == expected
    versions = read_commits(snapshot.store, -1)
    assert [version for version, _ in versions] == list(range(commits))
    actions = [action for _, commit in versions for action in commit]
    infos = [action for action in actions if isinstance(action, CommitInfo)]
    assert len({info.fields["txnId"] for info in infos}) == commits
    paths = [action.path for action in actions if isinstance(action, AddFile)]
    assert len(set(paths)) == len(paths)
    assert dv.audit_table(dv.Table(table, options)).count("error") == 0
