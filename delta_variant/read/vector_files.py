"""Read files of deletion vectors."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from ..data_file.reader import RangeReader
from ..storage.store import Store

FILES = 8
"""How many files are kept in memory during a read."""

END_BYTES = 1 << 20
"""How much of a file is read at once: in most cases all of it."""


class VectorFiles:
    """The files of deletion vectors of a table.

    A file has the vectors of many data files: it is read once, unless it is large.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._files: dict[str, RangeReader] = {}
        self._lock = Lock()

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of half-open ranges `(start, end)` of a file; threads wait for each other."""
        with self._lock:
            file = self._files.get(path)
            if file is None:
                if len(self._files) == FILES:
                    del self._files[next(iter(self._files))]
                file = self._files[path] = RangeReader(self._store, path, END_BYTES)
        return file.read([start for start, _ in ranges], [end for _, end in ranges])
