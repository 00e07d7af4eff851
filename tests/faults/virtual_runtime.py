"""A clock, ids and thread pools that depend on a seed alone.

`install` replaces them in the standard library, so it has to run before `delta_variant` is imported: modules
bind these functions when they are imported.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from random import Random
from typing import Any

MILLISECOND = 1_000_000
START = 1_700_000_000_000 * MILLISECOND


class VirtualRuntime:
    """The source of ids and of the time in nanoseconds since 1970, which grows by 1 ms with each call."""

    def __init__(self) -> None:
        self._skew = threading.local()
        self.reset("start")

    def reset(self, seed: str, nanoseconds: int = START) -> None:
        """Start again at a time, with the ids of a seed."""
        self.nanoseconds = nanoseconds
        self._ids = Random(f"ids of {seed}")

    def set_skew(self, nanoseconds: int) -> None:
        """Let the clock of the current thread differ from that of the store."""
        self._skew.nanoseconds = nanoseconds

    def time_ns(self) -> int:
        """Return the time of the current thread."""
        return self._next() + getattr(self._skew, "nanoseconds", 0)

    def monotonic(self) -> float:
        """Return the time in seconds, which a call does not change."""
        return self.nanoseconds / 1_000_000_000

    def store_milliseconds(self) -> int:
        """Return the time of the store in milliseconds since 1970."""
        return self._next() // MILLISECOND

    def _next(self) -> int:
        self.nanoseconds += MILLISECOND
        return self.nanoseconds

    def sleep(self, seconds: float) -> None:
        self.nanoseconds += int(seconds * 1_000_000_000)

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self._ids.getrandbits(128), version=4)


class InlineExecutor:
    """A thread pool that runs each task in the calling thread, so that an operation is one thread."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> InlineExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, task: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(task(*arguments, **options))
        except BaseException as error:
            future.set_exception(error)
        return future

    def map(self, task: Callable[..., Any], *arguments: Any) -> Any:
        futures = [self.submit(task, *each) for each in zip(*arguments, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, **_: Any) -> None:
        pass


RUNTIME = VirtualRuntime()


def install() -> None:
    """Replace the clock, the ids and the thread pools of this process."""
    time.time_ns = RUNTIME.time_ns
    time.sleep = RUNTIME.sleep
    uuid.uuid4 = RUNTIME.uuid4
    concurrent.futures.ThreadPoolExecutor = InlineExecutor  # type: ignore[assignment,misc]
