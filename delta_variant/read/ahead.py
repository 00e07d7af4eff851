"""Read local files by several threads, ahead of their consumer and in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain
from typing import Generic, TypeVar

from .._threads import Threads
from .file_reader import FileEntry

__all__ = ["BYTES_AHEAD", "read_ahead"]

BYTES_AHEAD = 32 << 20
"""The files that are read ahead of the one that is consumed have less than this size in all."""

MAX_THREADS = 8
FILES_PER_THREAD = 2

Started = TypeVar("Started")


def read_ahead(
    files: Iterable[FileEntry],
    start: Callable[[FileEntry], Started],
    start_ahead: Callable[[FileEntry], Started],
) -> Generator[Started, None, None]:
    """Yield the started files in order; an error is raised in the place of its file.

    The thread of the caller calls `start` for the first file, and for each file that is too large to be read
    ahead. Other threads call `start_ahead` for the next files while the caller consumes the one before.
    Closing the iterator cancels files that have not begun, and waits for the others.
    """
    remaining = iter(files)
    first = next(remaining, None)
    if first is None:
        return
    consumed, following = start(first), next(remaining, None)
    if following is None:
        yield consumed
        return
    threads = min(os.cpu_count() or 1, MAX_THREADS)
    with Threads(threads) as pool:
        ahead = _Ahead(chain([following], remaining), start_ahead, pool, threads * FILES_PER_THREAD)
        while True:
            ahead.submit()
            yield consumed
            if ahead.futures:
                consumed = ahead.take()
            elif ahead.following is not None:
                consumed = start(ahead.skip())
            else:
                return


class _Ahead(Generic[Started]):
    """The files that are read ahead, and the file that follows them."""

    def __init__(
        self,
        files: Iterator[FileEntry],
        start: Callable[[FileEntry], Started],
        pool: Threads,
        max_files: int,
    ) -> None:
        self.futures: deque[tuple[int, Future[Started]]] = deque()
        self.following = next(files, None)
        self._files = files
        self._start = start
        self._pool = pool
        self._max_files = max_files
        self._size = 0

    def submit(self) -> None:
        """Submit files while their number and their total size permit."""
        while self.following is not None and len(self.futures) < self._max_files:
            size = BYTES_AHEAD if self.following.size is None else self.following.size
            if self._size + size >= BYTES_AHEAD:
                return
            self.futures.append((size, self._pool.submit(self._start, self.skip())))
            self._size += size

    def take(self) -> Started:
        """Wait for the first of the files that are read ahead."""
        size, future = self.futures.popleft()
        self._size -= size
        return future.result()

    def skip(self) -> FileEntry:
        """Return the following file, and continue with the one after it."""
        file, self.following = self.following, next(self._files, None)
        assert file is not None
        return file
