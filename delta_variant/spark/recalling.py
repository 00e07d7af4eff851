"""The tables of a stream of merges: each micro-batch reads the commits since the one before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ..storage.store import TableLocation, location_key, remember

__all__ = ["RecalledTables", "recall"]


@dataclass
class RecalledTables:
    """The tables of one stream, by `location_key`.

    Only those of the last batch are kept, because a stream may merge into another table in each batch.
    """

    _tables: dict[str, TableLocation] = field(default_factory=dict)

    @contextmanager
    def of_batch(self) -> Iterator[None]:
        """Let `recall` return these tables in the block, which belongs to one batch."""
        used: dict[str, TableLocation] = {}
        token = _CURRENT.set((self._tables, used))
        try:
            yield
        finally:
            _CURRENT.reset(token)
            self._tables = used


_CURRENT: ContextVar[tuple[dict[str, TableLocation], dict[str, TableLocation]] | None] = ContextVar(
    "tables of a micro-batch", default=None
)


def recall(table: TableLocation) -> TableLocation:
    """Return a location with the memo of the batch before, or `table` itself outside of micro-batches."""
    current = _CURRENT.get()
    if current is None:
        return table
    remembered = remember(table)
    if remembered is table:
        return table
    before, used = current
    key = location_key(table)
    return used.setdefault(key, before.get(key, remembered))
