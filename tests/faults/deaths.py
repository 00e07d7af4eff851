"""Deaths by SIGKILL in the middle of operations, and what is left of the table after each."""

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

from operations import OPERATIONS, Rows, Step, prepare, read, rows_after

import delta_variant as dv
from delta_variant.errors import TableNotFoundError
from delta_variant.log.commits import read_commits
from delta_variant.log.load import load_snapshot
from delta_variant.log.state import table_exists
from delta_variant.protocol.actions import Action, AddFile, CommitInfo, decode_path
from delta_variant.storage import store

MORTALS = Path(__file__).with_name("mortals.py")
STEPS_A_TABLE = 20
# What the store stages beside the place of a file until it is whole.
STAGED = re.compile(r".*\.(?:json|parquet)#\d+|_delta_log/_last_checkpoint#\d+")
DATA_FILE = re.compile(r"(?:[^/]*/)*part-[^/]*\.parquet")


@dataclass
class Deaths:
    """How many operations were begun, died and were committed when they died, by their names."""

    begun: Counter[str] = field(default_factory=Counter)
    died: Counter[str] = field(default_factory=Counter)
    committed: Counter[str] = field(default_factory=Counter)
    leftovers: int = 0

    def __str__(self) -> str:
        died, committed = self.died.total(), self.committed.total()
        names = ", ".join(f"{count} in {name}" for name, count in sorted(self.died.items()))
        return (
            f"{died} deaths ({names}), {committed} of them behind the commit; every table loads, audits "
            f"clean and holds the rows of a version; {self.leftovers} files were left that no version has, "
            "and vacuum removes them"
        )


class Mortals:
    """A process that carries out operations in others."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, table: Path, step: Step, **death: Any) -> dict[str, Any]:
        """Return how an operation ended, after how many steps and seconds."""
        order = {"table": str(table), "name": step.name, "present": step.present, "absent": step.absent}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order | death) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def mortals() -> Iterator[Mortals]:
    """Run a process that carries out operations in others."""
    command = [sys.executable, str(MORTALS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Mortals(process)


def die(folder: Path, count: int, seed: int) -> Deaths:
    """Let `count` operations die at random steps and moments, and hold the tables against their versions."""
    random, deaths, rows, number = Random(seed), Deaths(), Rows(), 0
    with mortals() as others:
        while deaths.died.total() < count:
            is_first = number % STEPS_A_TABLE == 0
            if is_first:
                table, rows = folder / f"table {number}", {}
            if is_first or table_exists(store.open_store(table)):
                name = "create" if is_first else random.choice(sorted(OPERATIONS.keys() - {"create"}))
                step = Step.random(name, rows, random)
                rows = _trial(others, table, step, rows, random, deaths)
            else:
                rows = _alive(others, table, Step.random("create", rows, random))
            number += 1
            if number % STEPS_A_TABLE == 0:
                deaths.leftovers += check_versions(table)
    return deaths


def _alive(others: Mortals, table: Path, step: Step) -> Rows:
    assert others.run(table, step)["ended"] == 0
    return rows_after({}, step)


def _trial(others: Mortals, table: Path, step: Step, rows: Rows, random: Random, deaths: Deaths) -> Rows:
    rows = prepare(table, rows, step)
    whole = _rehearsed(others, table, step)
    if random.random() < 0.5:
        death = {"at_step": random.randint(1, whole["steps"])}
    else:
        death = {"after": random.uniform(0.001, whole["seconds"])}
    ended = others.run(table, step, **death)["ended"]
    assert ended in (0, -signal.SIGKILL), f"{step} ended with {ended}"
    before, after = rows, rows_after(rows, step)
    found = state(table)
    assert found == after or (ended and found == before), f"{step}, {death}: {found}"
    deaths.begun[step.name] += 1
    if ended:
        deaths.died[step.name] += 1
        deaths.committed[step.name] += found == after and found != before
    return found


def _rehearsed(others: Mortals, table: Path, step: Step) -> dict[str, Any]:
    """Carry out an operation on a copy of the table, to know how many steps and how long it takes."""
    copy = table.with_name("rehearsal")
    if table.exists():
        shutil.copytree(table, copy)
    outcome = others.run(copy, step)
    shutil.rmtree(copy)
    assert outcome["ended"] == 0, f"{step} fails without a death, too"
    return outcome


def state(table: Path) -> Rows:
    """Return the rows of a table that loads and audits clean; none where there is no table."""
    try:
        rows = read(table)
    except TableNotFoundError:
        return {}
    errors = [finding for finding in dv.audit_table(table, data=True).findings if finding.severity == "error"]
    assert not errors, errors
    return rows


def check_versions(table: Path) -> int:
    """Hold every version of a table against its files, and return how many files none of them has.

    A vacuum takes these away, and leaves the latest version as it is.
    """
    place = store.open_store(table)
    committed: set[str] = set()
    versions = read_commits(place, -1)
    vacuumed = max((version for version, actions in versions if _is_vacuum(actions)), default=0)
    for version, actions in versions:
        committed |= {decode_path(action.path) for action in actions if isinstance(action, AddFile)}
        if version < vacuumed:
            continue
        for path in load_snapshot(place, version).files["path"].to_pylist():
            assert (table / path).exists(), f"version {version} lacks {path}"
    everything = {path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file()}
    left = {path for path in everything - committed if not path.startswith("_delta_log/") or "#" in path}
    strange = [path for path in left if not (STAGED.fullmatch(path) or DATA_FILE.fullmatch(path))]
    assert not strange, f"what are {strange}?"
    rows = state(table)
    removed = dv.vacuum(table, 0, dry_run=False, enforce_retention_duration=False).files
    assert {path for path in left if DATA_FILE.fullmatch(path)} <= set(removed)
    assert not any((table / path).exists() for path in removed)
    assert state(table) == rows
    return len(left)


def _is_vacuum(actions: Sequence[Action]) -> bool:
    infos = (action for action in actions if isinstance(action, CommitInfo))
    return any((info.operation or "").startswith("VACUUM") for info in infos)
