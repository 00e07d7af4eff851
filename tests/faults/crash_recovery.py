"""Operations that SIGKILL ends, and checks of the table after each crash."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from support.processes import start
from table_operations import OPERATIONS, Rows, Step, prepare, read, rows_after

import delta_variant as dv
from delta_variant.errors import TableNotFoundError
from delta_variant.log.commits import read_commits
from delta_variant.log.listing import list_log
from delta_variant.log.load import load_snapshot
from delta_variant.protocol.actions import Action, AddFile, CommitInfo, decode_path
from delta_variant.storage.store import open_store

WORKERS = Path(__file__).with_name("crash_workers.py")
STEPS_PER_TABLE = 20
# Files that the store stages in the same folder until they are complete.
STAGED = re.compile(r".*\.(?:json|parquet)#\d+|_delta_log/_last_checkpoint#\d+")
DATA_FILE = re.compile(r"(?:[^/]*/)*part-[^/]*\.parquet")


@dataclass
class CrashCounts:
    """How many operations started, crashed, and had committed when they crashed, by their names."""

    started: Counter[str] = field(default_factory=Counter)
    crashed: Counter[str] = field(default_factory=Counter)
    committed: Counter[str] = field(default_factory=Counter)
    leftovers: int = 0

    def __str__(self) -> str:
        crashed, committed = self.crashed.total(), self.committed.total()
        names = ", ".join(f"{count} in {name}" for name, count in sorted(self.crashed.items()))
        return (
            f"{crashed} crashes ({names}), {committed} of them after the commit; every table loads, passes "
            f"its audit and has the rows of a version; {self.leftovers} files were left that no version "
            "refers to, and vacuum deletes them"
        )


class CrashWorkers:
    """A process that runs operations in processes of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, table: Path, step: Step, **crash: Any) -> dict[str, Any]:
        """Return how an operation ended, after how many steps and seconds."""
        order = {"table": str(table), "name": step.name, "present": step.present, "absent": step.absent}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order | crash) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def crash_workers() -> Iterator[CrashWorkers]:
    """Start the process that runs operations."""
    command = [sys.executable, str(WORKERS)]
    with start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield CrashWorkers(process)


def run_crashes(folder: Path, count: int, seed: int) -> CrashCounts:
    """Crash `count` operations at random steps and times, and check the tables against their versions."""
    random, counts, rows, number = Random(seed), CrashCounts(), Rows(), 0
    with crash_workers() as workers:
        while counts.crashed.total() < count:
            is_first = number % STEPS_PER_TABLE == 0
            if is_first:
                table, rows = folder / f"table {number}", {}
            if is_first or list_log(open_store(table), None).latest >= 0:
                name = "create" if is_first else random.choice(sorted(OPERATIONS.keys() - {"create"}))
                step = Step.random(name, rows, random)
                rows = _crash(workers, table, step, rows, random, counts)
            else:
                rows = _complete(workers, table, Step.random("create", rows, random))
            number += 1
            if number % STEPS_PER_TABLE == 0:
                counts.leftovers += check_versions(table)
    return counts


def _complete(workers: CrashWorkers, table: Path, step: Step) -> Rows:
    assert workers.run(table, step)["ended"] == 0
    return rows_after({}, step)


def _crash(
    workers: CrashWorkers, table: Path, step: Step, rows: Rows, random: Random, counts: CrashCounts
) -> Rows:
    rows = prepare(table, rows, step)
    complete = _rehearse(workers, table, step)
    if random.random() < 0.5:
        crash = {"at_step": random.randint(1, complete["steps"])}
    else:
        crash = {"after": random.uniform(0.001, complete["seconds"])}
    ended = workers.run(table, step, **crash)["ended"]
    assert ended in (0, -signal.SIGKILL), f"{step} ended with {ended}"
    before, after = rows, rows_after(rows, step)
    found = state(table)
    assert found == after or (ended and found == before), f"{step}, {crash}: {found}"
    counts.started[step.name] += 1
    if ended:
        counts.crashed[step.name] += 1
        counts.committed[step.name] += found == after and found != before
    return found


def _rehearse(workers: CrashWorkers, table: Path, step: Step) -> dict[str, Any]:
    """Run an operation on a copy of the table to learn how many steps and seconds it takes."""
    copy = table.with_name("rehearsal")
    if table.exists():
        shutil.copytree(table, copy)
    outcome = workers.run(copy, step)
    shutil.rmtree(copy)
    assert outcome["ended"] == 0, f"{step} fails without a crash, too"
    return outcome


def state(table: Path) -> Rows:
    """Return the rows of a table that loads and passes its audit, or no rows if it does not exist."""
    try:
        rows = read(table)
    except TableNotFoundError:
        return {}
    errors = [finding for finding in dv.audit_table(table, data=True).findings if finding.severity == "error"]
    assert not errors, errors
    return rows


def check_versions(table: Path) -> int:
    """Check the files of every version, and return the number of files that no version refers to.

    A vacuum deletes these files and leaves the latest version unchanged.
    """
    store = open_store(table)
    committed: set[str] = set()
    versions = read_commits(store, -1)
    vacuumed = max((version for version, actions in versions if _is_vacuum(actions)), default=0)
    for version, actions in versions:
        committed |= {decode_path(action.path) for action in actions if isinstance(action, AddFile)}
        if version < vacuumed:
            continue
        for path in load_snapshot(store, version).files["path"].to_pylist():
            assert (table / path).exists(), f"version {version} lacks {path}"
    everything = {path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file()}
    left = {path for path in everything - committed if not path.startswith("_delta_log/") or "#" in path}
    unexpected = [path for path in left if not (STAGED.fullmatch(path) or DATA_FILE.fullmatch(path))]
    assert not unexpected, f"unexpected files: {unexpected}"
    rows = state(table)
    removed = dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False).files
    assert {path for path in left if DATA_FILE.fullmatch(path)} <= set(removed)
    assert not any((table / path).exists() for path in removed)
    assert state(table) == rows
    return len(left)


def _is_vacuum(actions: Sequence[Action]) -> bool:
    infos = (action for action in actions if isinstance(action, CommitInfo))
    return any((info.operation or "").startswith("VACUUM") for info in infos)
