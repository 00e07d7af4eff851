"""Check several data files at once, and report the progress within each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from typing import TypeVar

from ..._progress import advance
from ..._threads import Threads
from .subjects import FileSubject

Result = TypeVar("Result")

THREADS = 8
REPORT_SECONDS = 0.2
"""The time after which the bytes read of a file are reported, although its check goes on."""


def check_files(files: Iterable[FileSubject], check: Callable[[FileSubject], Result]) -> Iterator[Result]:
    """Yield the result of each check in order, and report the bytes of the files.

    After an error or an interrupt, no other check begins.
    """
    running: dict[int, FileSubject] = {}
    sizes: list[int] = []
    begun: list[Future[Result]] = []

    def run(file: FileSubject) -> Result:
        running[id(file)] = file
        try:
            return check(file)
        finally:
            del running[id(file)]

    with Threads(THREADS) as threads:
        for file in files:
            sizes.append(int(file.add["size"]))
            begun.append(threads.submit(run, file))
        reported = done = 0
        for size, future in zip(sizes, begun, strict=True):
            while not wait([future], REPORT_SECONDS).done:
                known = (min(file.bytes_read, int(file.add["size"])) for file in list(running.values()))
                read = done + sum(known)
                advance(bytes_=max(read - reported, 0))
                reported = max(read, reported)
            done += size
            advance(files=1, bytes_=max(done - reported, 0))
            reported = max(done, reported)
            yield future.result()
