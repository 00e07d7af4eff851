"""List the commits of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from .._checks import to_integer
from .._html import MAX_ROWS, html_table
from .._text import count
from .._threads import Threads
from ..errors import printable
from ..log.commits import read_commit_info
from ..log.load import open_to_read
from ..log.snapshot import Snapshot
from ..log.timestamps import CommitTimes, from_milliseconds, version_at
from ..storage.store import TableLocation


@dataclass(frozen=True, repr=False)
class HistoryEntry:
    """A commit of a table.

    Attributes:
        version: The version.
        timestamp: The time of the commit, in UTC.
        commit_info: The `commitInfo` action as it was written, empty without one (PROTOCOL.md, "Commit
            Provenance Information").

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> entry = dv.history("clicks")[0]
        >>> entry.version, entry.operation, entry.metrics["numOutputRows"]
        (0, 'WRITE', 1)
    """

    version: int
    timestamp: datetime
    commit_info: Mapping[str, Any]

    @property
    def operation(self) -> str | None:
        """Return the name of the operation, such as `WRITE`, None if the commit has none."""
        operation = self.commit_info.get("operation")
        return operation if isinstance(operation, str) else None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters of the operation. Values that are JSON text are decoded."""
        return {name: _decode(value) for name, value in self._mapping("operationParameters").items()}

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Return the metrics of the operation. Values that are JSON text are decoded, such as counts."""
        return {name: _decode(value) for name, value in self._mapping("operationMetrics").items()}

    @property
    def metadata(self) -> Any:
        """Return the user metadata of the commit, None without any. JSON text is decoded."""
        return _decode(self.commit_info.get("userMetadata"))

    def __repr__(self) -> str:
        details = parameters_text({**self.parameters, **self.metrics})
        what = f"{self.operation} at {_time_text(self)}" + (f", {details}" if details else "")
        return printable(f"<HistoryEntry {self.version}: {what}>")

    def _repr_html_(self) -> str:
        return _entries_table(f"version {self.version}", [self])

    def _mapping(self, name: str) -> Mapping[str, Any]:
        found = self.commit_info.get(name)
        return found if isinstance(found, dict) else {}


class History(list[HistoryEntry]):
    """The commits of a table, newest first."""

    def __repr__(self) -> str:
        entries = ", ".join(f"{each.version} {each.operation}" for each in self[:MAX_ROWS])
        more = ", …" if len(self) > MAX_ROWS else ""
        return printable(f"<History of {count(len(self), 'commit')}: {entries}{more}>")

    def _repr_html_(self) -> str:
        return _entries_table(count(len(self), "commit"), self[:MAX_ROWS])


def _entries_table(caption: str, entries: Sequence[HistoryEntry]) -> str:
    headings = ("version", "timestamp", "operation", "parameters", "metrics")
    rows = (
        (
            each.version,
            _time_text(each),
            each.operation,
            parameters_text(each.parameters),
            parameters_text(each.metrics),
        )
        for each in entries
    )
    return html_table(caption, headings, rows)


def _time_text(entry: HistoryEntry) -> str:
    return f"{entry.timestamp:%Y-%m-%d %H:%M:%S} UTC"


def history(table: TableLocation | Snapshot, limit: int | None = None) -> History:
    """Return the commits in the log of a table, newest first.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`. The history ends at the
            version that a handle or a snapshot selects.
        limit: The greatest number of commits to return, None for all.

    Returns:
        One entry for each commit. The timestamps are those that `load_snapshot(timestamp=…)` selects by.

    Raises:
        TableNotFoundError: There is no Delta log at `table`.
        MalformedLogError: A commit cannot be decoded.
        ValueError: `limit` is negative.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1]}))
        >>> _ = dv.delete(table, "id = 1")
        >>> [(entry.version, entry.operation) for entry in dv.history(table)]
        [(1, 'DELETE'), (0, 'WRITE')]
    """
    if limit is not None:
        limit = to_integer("limit", limit, 0)
    store, version, timestamp = open_to_read(table)
    last = version if timestamp is None else version_at(store, timestamp)
    times = CommitTimes.of(store)
    versions = [each for each in reversed(times.modified) if last is None or each <= last][:limit]
    with Threads(16) as threads:
        infos = threads.map(lambda version: read_commit_info(store, version), versions)
        return History(
            HistoryEntry(
                version,
                from_milliseconds(times.time_from(info, version)),
                {} if info is None else info.fields,
            )
            for version, info in zip(versions, infos, strict=True)
        )


def _decode(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return value


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Return the parameters or metrics of an operation as `name=value`, without those that say nothing."""
    return ", ".join(
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in parameters.items()
        if value not in (None, 0, "", [], {})
    )
