"""What happened to a table, commit by commit."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from .._checks import to_integer
from ..log.commits import read_commit_info
from ..log.timestamps import CommitTimes, from_milliseconds
from ..storage.store import TableLocation, open_store

__all__ = ["HistoryEntry", "history"]


@dataclass(frozen=True)
class HistoryEntry:
    """A commit: its version, when it was committed, in UTC, and what it says of itself.

    `commit_info` is its `commitInfo` as it was written, empty where it has none (PROTOCOL.md, "Commit
    Provenance Information").
    """

    version: int
    timestamp: datetime
    commit_info: Mapping[str, Any]

    @property
    def operation(self) -> str | None:
        """Return the name of the operation, such as `WRITE`."""
        operation = self.commit_info.get("operation")
        return operation if isinstance(operation, str) else None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters of the operation, decoded where they are JSON text, as they mostly are."""
        return {name: _decoded(value) for name, value in self._mapping("operationParameters").items()}

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Return the operation's metrics, whole numbers as such."""
        return {name: _decoded(value) for name, value in self._mapping("operationMetrics").items()}

    def _mapping(self, name: str) -> Mapping[str, Any]:
        found = self.commit_info.get(name)
        return found if isinstance(found, dict) else {}


def history(
    table: TableLocation, limit: int | None = None, *, storage_options: Mapping[str, str] | None = None
) -> list[HistoryEntry]:
    """Return what happened to a table, the latest first: all commits that are in the log, or `limit` of them.

    The times are those that `load_snapshot(timestamp=…)` goes by. Raises TableNotFoundError,
    MalformedLogError for a commit that cannot be understood, ValueError for a negative limit.
    """
    if limit is not None:
        limit = to_integer("limit", limit, 0)
    store = open_store(table, storage_options)
    times = CommitTimes.of(store)
    versions = list(times.modified)[::-1][:limit]
    with ThreadPoolExecutor(max_workers=16) as threads:
        infos = threads.map(lambda version: read_commit_info(store, version), versions)
        return [
            HistoryEntry(
                version,
                from_milliseconds(times.time_from(info, version)),
                {} if info is None else info.fields,
            )
            for version, info in zip(versions, infos, strict=True)
        ]


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return value
