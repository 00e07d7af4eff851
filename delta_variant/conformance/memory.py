"""Measure the memory of an engine: of its process and all child processes, such as Spark's JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["resident_bytes"]

PROC = Path("/proc")

# Indices into the fields of /proc/<pid>/stat after the program name, which may contain spaces and brackets.
GROUP, RESIDENT_PAGES = 2, 21


def resident_bytes(group: int) -> int:
    """Return the resident memory of a process group in bytes; 0 without /proc, as on macOS.

    Address space is not a useful measure, because a JVM reserves far more than it uses.
    """
    pages = sum(int(stat[RESIDENT_PAGES]) for stat in _stats() if int(stat[GROUP]) == group)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _stats() -> Iterator[list[str]]:
    for file in PROC.glob("[0-9]*/stat"):
        # A process may end before its file is read.
        with suppress(OSError):
            yield file.read_text(errors="replace").rpartition(")")[2].split()
