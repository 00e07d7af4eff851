"""How much memory an engine holds: that of its process and of all that it started, such as Spark's JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["resident_bytes"]

PROC = Path("/proc")

# Of /proc/<pid>/stat, what follows the name of the program, which may have spaces and brackets.
GROUP, RESIDENT_PAGES = 2, 21


def resident_bytes(group: int) -> int:
    """Return the memory that the processes of a group hold; 0 where there is no /proc to tell, as on macOS.

    Address space is no measure: a JVM reserves far more than it ever uses.
    """
    pages = sum(int(stat[RESIDENT_PAGES]) for stat in _stats() if int(stat[GROUP]) == group)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _stats() -> Iterator[list[str]]:
    for file in PROC.glob("[0-9]*/stat"):
        # A process may end while it is looked at.
        with suppress(OSError):
            yield file.read_text(errors="replace").rpartition(")")[2].split()
