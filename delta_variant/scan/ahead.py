"""Read local files by several threads, ahead of their consumer and in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

from .reader import FileEntry

__all__ = ["BYTES_AHEAD", "read_ahead"]

BYTES_AHEAD = 32 << 20
"""The files that are read at the same time have this size in all, unless one file alone is larger."""

MAX_THREADS = 8
FILES_PER_THREAD = 2

Started = TypeVar("Started")


def read_ahead(
    files: Iterable[FileEntry], start: Callable[[FileEntry], Started]
) -> Generator[Started, None, None]:
    """Yield the result of `start` for each file, in order; an error is raised in the place of its file.

    Threads call `start` for the next files. Closing the iterator cancels files that have not begun, and waits
    for the others. A single file is read by the thread of the caller.
    """
    remaining = iter(files)
    first = list(islice(remaining, 2))
    if len(first) < 2:
        yield from map(start, first)
        return
    threads = min(os.cpu_count() or 1, MAX_THREADS)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="delta-variant-read")
    try:
        yield from _in_order(chain(first, remaining), start, pool, threads * FILES_PER_THREAD)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    files: Iterator[FileEntry],
    start: Callable[[FileEntry], Started],
    pool: ThreadPoolExecutor,
    max_files: int,
) -> Iterator[Started]:
    """Submit files while their total size permits, and yield the results."""
    pending: deque[tuple[int, Future[Started]]] = deque()
    size = 0
    for file in files:
        needed = BYTES_AHEAD if file.size is None else file.size
        while pending and (size + needed > BYTES_AHEAD or len(pending) == max_files):
            done, future = pending.popleft()
            yield future.result()
            # Its rows are consumed.
            size -= done
        pending.append((needed, pool.submit(start, file)))
        size += needed
    while pending:
        yield pending.popleft()[1].result()
