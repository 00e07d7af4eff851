"""Memory for large logs, from the system's allocator.

Arrow's own, mimalloc, asks for huge pages: on a machine whose memory is in pieces the kernel takes longer to
find them than the log takes to load.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa

__all__ = ["system_memory"]

_LOCK = Lock()
_before: list[pa.MemoryPool] = []
"""The default pool as each user found it: they may overlap, and the last gives back what the first found."""


@contextmanager
def system_memory() -> Iterator[None]:
    """Let Arrow's default pool be that of the system, where it would be mimalloc.

    Arrays keep the pool that they come from, so nothing that other threads do meanwhile is disturbed.
    """
    with _LOCK:
        _before.append(_before[0] if _before else pa.default_memory_pool())
        if pa.default_memory_pool().backend_name == "mimalloc":
            pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _LOCK:
            found = _before.pop()
            # Whoever chose another pool meanwhile keeps it.
            if not _before and pa.default_memory_pool().backend_name == "system":
                pa.set_memory_pool(found)
