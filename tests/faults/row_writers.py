"""Processes that change single rows of one file at the same time, of which SIGKILL may end some.

Each change is of another row, so that every one has to be committed, exactly once. A process that replaces a
killed one repeats the change that may have been committed, with the same `txn`.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pandas  # noqa: F401 - pyarrow imports it for its first array: once, and not in each writer
import pyarrow as pa
from support.intercepted_store import intercept
from support.tables import list_files
from table_operations import SHREDDING, data, read

import delta_variant as dv
from delta_variant.errors import CommitConflictError
from delta_variant.log.commits import read_commits
from delta_variant.log.deletion_vectors import file_path
from delta_variant.protocol.actions import AddCDCFile, AddFile, CommitInfo, decode_path
from delta_variant.storage.store import Store, open_store

LONGEST_RUN = 1800.0
"""Seconds after which the processes count as deadlocked."""


@dataclass(frozen=True)
class RowCounts:
    """How many changes the writers committed, in how many seconds, and what they had to repeat.

    `attempts` are the tries to commit, `conflicts` the changes that ran again, `kills` the killed processes.
    """

    commits: int
    seconds: float
    attempts: int
    conflicts: int
    kills: int

    def __str__(self) -> str:
        lost = self.attempts - self.commits
        return (
            f"{self.commits:,} commits in {self.seconds:.0f} s ({self.commits / self.seconds:.0f} a second), "
            f"{self.kills} processes killed, {lost:,} lost races, {self.conflicts:,} of them by a conflict "
            f"after which the change ran again ({self.conflicts / self.commits:.2f} a commit)"
        )


def run_row_writers(
    table: Path, *, writers: int, changes: int, vectors: bool = True, kills: int = 0, seed: int = 0
) -> RowCounts:
    """Change rows of one file from several processes at the same time, and check every row and version."""
    configuration = {"delta.enableDeletionVectors": str(vectors).lower(), "delta.checkpointInterval": "50"}
    rows = {row: row for row in range(3 * writers * changes)}
    dv.write_table(table, data(rows), configuration=configuration, shredding=SHREDDING)
    journals = [table.with_name(f"{table.name} {writer}.log") for writer in range(writers)]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["row_writers"])

    def start(writer: int) -> Any:
        arguments = (str(table), writer, changes, str(journals[writer]))
        process = context.Process(target=_run, args=arguments, daemon=True)
        process.start()
        return process

    started = time.monotonic()
    processes = [start(writer) for writer in range(writers)]
    killed = _kill(processes, start, journals, kills, Random(seed))
    for process in processes:
        process.join(max(1.0, started + LONGEST_RUN - time.monotonic()))
        assert process.exitcode == 0, f"a writer ended with {process.exitcode}"
    seconds = time.monotonic() - started
    done = [line.split() for journal in journals for line in journal.read_text().splitlines()]
    assert len(done) == writers * changes
    _check(table, writers, changes, vectors=vectors, killed=killed)
    attempts, conflicts = (sum(int(line[part]) for line in done) for part in range(2))
    return RowCounts(writers * changes, seconds, attempts, conflicts, killed)


def _kill(
    processes: list[Any], start: Callable[[int], Any], journals: Sequence[Path], kills: int, random: Random
) -> int:
    """Kill and replace running processes, each time after a change was committed; return how many."""
    killed = seen = 0
    while killed < kills and any(process.exitcode is None for process in processes):
        time.sleep(random.uniform(0, 0.02))
        done = sum(journal.read_text().count("\n") for journal in journals if journal.exists())
        writer = random.randrange(len(processes))
        if done > seen and processes[writer].exitcode is None:
            processes[writer].kill()
            processes[writer].join()
            killed, seen = killed + 1, done
            processes[writer] = start(writer)
    return killed


def _run(table: str, writer: int, changes: int, journal: str) -> None:
    puts: list[str] = []
    store = intercept(table, before=lambda call, key: puts.append(key) if call == "create" else None)
    with Path(journal).open("a+") as log:
        log.seek(0)
        for number in range(len(log.readlines()), changes):
            puts.clear()
            conflicts = _change(store, writer * changes + number, writer, number)
            commits = sum(key.endswith(".json") for key in puts)
            log.write(f"{commits} {conflicts}\n")
            log.flush()


def _change(store: Store, row: int, writer: int, number: int) -> int:
    """Delete, update or merge a row, and return how many attempts ended in a conflict."""
    commit = dv.CommitOptions(txn=(f"writer {writer}", number))
    conflicts = 0
    while True:
        try:
            if row % 3 == 0:
                dv.delete(store, f"id = {row}", commit=commit)
            elif row % 3 == 1:
                dv.update(store, {"event:n": "event:n::bigint + 1000000"}, f"id = {row}", commit=commit)
            else:
                source = pa.table({"key": pa.array([row], pa.int64())})
                merge = dv.merge(store, source, "id = key", commit=commit)
                merge.when_matched_update({"event:n": "event:n::bigint + 1000000"}).execute()
            return conflicts
        except CommitConflictError:
            conflicts += 1


def _check(table: Path, writers: int, changes: int, *, vectors: bool, killed: int) -> None:
    """Check every row and version of the table, and its files."""
    changed = writers * changes
    updated = {row: row + (row < changed) * 1_000_000 for row in range(3 * changed)}
    rows = {row: n for row, n in updated.items() if row >= changed or row % 3}
    assert read(table) == rows
    versions = read_commits(open_store(table), -1)
    assert [version for version, _ in versions] == list(range(changed + 1))
    actions = [action for _, commit in versions for action in commit]
    infos = [action for action in actions if isinstance(action, CommitInfo)]
    assert len({info.fields["txnId"] for info in infos}) == changed + 1
    if killed:
        dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False)
        assert read(table) == rows
    else:
        files = [each for each in actions if isinstance(each, AddFile | AddCDCFile)]
        vectors_of = (each.deletion_vector for each in files if isinstance(each, AddFile))
        stored = {file_path(each) for each in vectors_of if each is not None} - {None}
        assert list_files(table, "part-*.parquet") == {decode_path(each.path) for each in files}
        assert list_files(table, "*.bin") == stored
    if vectors:
        first = next(action for action in actions if isinstance(action, AddFile))
        (file,) = (each for each in dv.load_snapshot(table).files.to_pylist() if each["path"] == first.path)
        assert file["deletion_vector"]["cardinality"] == changed
    assert dv.audit_table(table, data=True).count("error") == 0
