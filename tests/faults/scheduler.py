"""Operations as threads that make one store call at a time, in an order that a seed determines.

Each operation has a store of its own, whose calls wait until the scheduler grants them. Only one thread runs
at any time: an operation runs from a granted call up to its next one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from obstore.exceptions import GenericError
from support.memory_objects import MemoryUpload

from delta_variant.storage.objects import Objects, StoredFile

SWITCH_PROBABILITIES = (0.03, 0.1, 0.3, 1.0)
"""How likely another operation is granted the next call. Rare switches pause one until others have ended."""

LONGEST_HISTORY = 120.0
"""Seconds after which operations count as deadlocked."""

COMMIT = re.compile(r"_delta_log/(\d{20})\.json")


@dataclass
class Outcome:
    """What an operation returned or raised, the versions that it committed, and the files that it wrote.

    `attempts` counts how often it tried to commit.
    """

    result: Any = None
    error: BaseException | None = None
    commits: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    lost_answers: int = 0
    attempts: int = 0


class Scheduler:
    """Grants the calls of operations one at a time."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._switch = random.choice(SWITCH_PROBABILITIES)
        self._gates: dict[int, threading.Semaphore] = {}
        self._finished = threading.Semaphore(0)
        self.trace: list[str] = []

    def run(self, operations: Sequence[Callable[[], Any]], outcomes: Sequence[Outcome]) -> None:
        """Run operations to their ends."""
        self._gates = {number: threading.Semaphore(0) for number in range(len(operations))}
        threads = [
            threading.Thread(target=self._run_one, args=(number, operation, outcomes[number]), daemon=True)
            for number, operation in enumerate(operations)
        ]
        for thread in threads:
            thread.start()
        self._grant(self._pick(None))
        if not self._finished.acquire(timeout=LONGEST_HISTORY):
            raise TimeoutError(f"the operations are deadlocked after {len(self.trace)} calls")
        for thread in threads:
            thread.join()

    def wait_turn(self, number: int, call: str) -> None:
        """Return when the scheduler grants a call of an operation."""
        chosen = self._pick(number)
        if chosen != number:
            self._grant(chosen)
            self._gates[number].acquire()
        self.trace.append(f"{number} {call}")

    def _run_one(self, number: int, operation: Callable[[], Any], outcome: Outcome) -> None:
        self._gates[number].acquire()
        try:
            outcome.result = operation()
        except BaseException as error:
            outcome.error = error
        del self._gates[number]
        self._grant(self._pick(None))

    def _pick(self, running: int | None) -> int | None:
        waiting = [number for number in self._gates if number != running]
        if running is not None and (not waiting or self._random.random() >= self._switch):
            return running
        return self._random.choice(waiting) if waiting else None

    def _grant(self, number: int | None) -> None:
        (self._finished if number is None else self._gates[number]).release()


@dataclass(frozen=True)
class ScheduledObjects:
    """The store of one operation. `lost_answers` is how likely the answer to a `create` is lost."""

    objects: Objects
    scheduler: Scheduler
    number: int
    outcome: Outcome
    random: Random
    lost_answers: float = 0.0

    def _wait(self, call: str, key: str) -> None:
        self.scheduler.wait_turn(self.number, f"{call} {key}")

    def get(self, key: str) -> bytes:
        self._wait("get", key)
        return self.objects.get(key)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self._wait("get_ranges", key)
        return self.objects.get_ranges(key, ranges)

    def get_end(self, key: str, length: int) -> tuple[int, bytes]:
        self._wait("get_end", key)
        return self.objects.get_end(key, length)

    def head(self, key: str) -> StoredFile:
        self._wait("head", key)
        return self.objects.head(key)

    def list_files(self, prefix: str, after: str | None) -> Iterator[StoredFile]:
        self._wait("list_files", prefix)
        return iter(list(self.objects.list_files(prefix, after)))

    def put(self, key: str, data: bytes) -> None:
        self._wait("put", key)
        self.outcome.files.append(key)
        self.objects.put(key, data)

    def create(self, key: str, data: bytes) -> None:
        self._wait("create", key)
        match = COMMIT.fullmatch(key)
        self.outcome.attempts += match is not None
        is_lost = self.random.random() < self.lost_answers
        if is_lost and self.random.random() < 0.5:
            self.outcome.lost_answers += 1
            raise GenericError("the request was lost")
        self._create(key, data)
        if match:
            self.outcome.commits.append(int(match[1]))
        if is_lost:
            self.outcome.lost_answers += 1
            raise GenericError("the answer was lost")

    def _create(self, key: str, data: bytes) -> None:
        self.objects.create(key, data)

    def delete(self, key: str) -> None:
        self._wait("delete", key)
        self.objects.delete(key)

    def open_upload(self, key: str) -> MemoryUpload:
        # A part changes nothing that another operation sees. Its write is a call of a native thread.
        return MemoryUpload(lambda data: self.put(key, data))


class RacyObjects(ScheduledObjects):
    """A broken store whose `create` looks for the file in one call and writes it in another."""

    def _create(self, key: str, data: bytes) -> None:
        if any(file.path == key for file in self.objects.list_files("", None)):
            raise FileExistsError(key)
        self._wait("create, second half", key)
        self.objects.put(key, data)


class AgelessObjects(ScheduledObjects):
    """A broken store that reports every file as old, so that a vacuum deletes files of running writers."""

    def list_files(self, prefix: str, after: str | None) -> Iterator[StoredFile]:
        return (replace(file, modification_time=0) for file in super().list_files(prefix, after))
