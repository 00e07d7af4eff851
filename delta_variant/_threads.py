"""Threads that work for an iterator."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from types import TracebackType


class Threads(ThreadPoolExecutor):
    """A pool for a `with` block, whose end awaits all work; after an error only the work that has begun.

    An iterator that nobody closes is collected in any thread, also in one of its own pool, which cannot wait
    for itself: then nothing is awaited.
    """

    def __init__(self, count: int) -> None:
        self._started: set[int] = set()
        super().__init__(count, "delta-variant", lambda: self._started.add(get_ident()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown(wait=get_ident() not in self._started, cancel_futures=kind is not None)
