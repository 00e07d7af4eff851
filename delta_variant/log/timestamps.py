"""Map timestamps to versions, and versions to their commit times (PROTOCOL.md, "In-Commit Timestamps").

The time of a commit is its in-commit timestamp if the table has them, else the modification time of its file.
A modification time that is not later than the previous one is set to one millisecond after it, as in Delta on
Spark.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from ..errors import (
    ArgumentTypeError,
    MalformedLogError,
    ProtocolError,
    TimestampAfterLatestError,
    TimestampBeforeFirstError,
    VersionNotFoundError,
)
from ..protocol import properties
from ..protocol.actions import CommitInfo
from ..storage.store import Store
from ..variant.moments import UTC, instant_of
from .commits import read_commit_info
from .listing import LOG, commit_file_name, list_log
from .state import protocol_and_metadata_at

Timestamp: TypeAlias = datetime | str
"""A timezone-aware datetime, or ISO 8601 text, in UTC if the text has no offset."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_MILLISECOND = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(milliseconds=1)


def _to_milliseconds(timestamp: Timestamp) -> int:
    """Return a timestamp in milliseconds since 1970, rounded down.

    Raises ValueError for invalid text and for a datetime without a time zone, and ArgumentTypeError for other
    types.
    """
    if isinstance(timestamp, datetime):
        if timestamp.tzinfo is None:
            raise ValueError(
                f"invalid timestamp {str(timestamp)!r}: it has no time zone; add one with .astimezone()"
            )
        return (timestamp - _EPOCH) // timedelta(milliseconds=1)
    if not isinstance(timestamp, str):
        raise ArgumentTypeError(
            f"invalid timestamp {timestamp!r}: expected a timezone-aware datetime or an ISO 8601 string"
        )
    return _to_milliseconds(to_instant(timestamp, UTC))


def to_instant(text: str, zone: str) -> datetime:
    """Return ISO 8601 text as a datetime in UTC; text without an offset is in the time zone `zone`.

    Raises ValueError for invalid text.
    """
    try:
        # Before Python 3.11, fromisoformat does not accept Z.
        parsed = datetime.fromisoformat(f"{text[:-1]}+00:00" if text[-1:] in "zZ" else text)
        return parsed.astimezone(timezone.utc) if parsed.tzinfo else instant_of(parsed, zone)
    except (ValueError, OverflowError):
        raise ValueError(
            f"invalid timestamp {text!r}: expected ISO 8601, such as 2026-11-21T09:30:00+00:00"
        ) from None


def from_milliseconds(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


@dataclass(frozen=True)
class CommitTimes:
    """The times of the commits in the log, in milliseconds since 1970.

    `modified` maps the versions, in order, to adjusted modification times. From the version `in_commit_from`
    on, commits have in-commit timestamps instead; `enabled_at` is the timestamp of that version, None if it
    is not recorded.
    """

    store: Store
    modified: Mapping[int, int]
    in_commit_from: int | None
    enabled_at: int | None

    @classmethod
    def of(cls, store: Store) -> CommitTimes:
        """Return the times of a table's commits; raises what `load_snapshot` raises."""
        in_commit_from, enabled_at = _enablement(store)
        times: dict[int, int] = {}
        latest = 0
        for version, file in list_log(store, None).commits.items():
            if in_commit_from is None or version < in_commit_from:
                latest = max(file.modification_time, latest + 1)
            times[version] = latest
        return cls(store, times, in_commit_from, enabled_at)

    def time_of(self, version: int) -> int:
        """Return the time of a commit; raises MalformedLogError if its in-commit timestamp is missing."""
        if self._is_modification_time(version):
            return self.modified[version]
        return self.time_from(read_commit_info(self.store, version), version)

    def time_from(self, info: CommitInfo | None, version: int) -> int:
        """Return the time of a commit from its `commitInfo`; raises what `time_of` raises."""
        if self._is_modification_time(version):
            return self.modified[version]
        time = None if info is None else info.in_commit_timestamp
        if time is None or not 0 <= time <= _LAST_MILLISECOND:
            raise MalformedLogError(
                f"the table requires an inCommitTimestamp: expected milliseconds since 1970, got {time}",
                table=self.store.uri,
                version=version,
            ).at(file=f"{self.store.uri}/{commit_file_name(version)}")
        return time

    def versions_of(self, time: int) -> list[int]:
        """Return the versions, in order, that may be the version at a time."""
        start = self.in_commit_from
        if start is None:
            return list(self.modified)
        is_later = self.enabled_at is None or time >= self.enabled_at
        return [version for version in self.modified if (version >= start) == is_later]

    def _is_modification_time(self, version: int) -> bool:
        return self.in_commit_from is None or version < self.in_commit_from


def version_at(store: Store, timestamp: Timestamp) -> int:
    """Return the latest version that was committed at or before a timestamp.

    Raises TimestampBeforeFirstError if the log starts later, and TimestampAfterLatestError for a timestamp
    later than the latest commit, as Delta on Spark does, because a future commit could still precede it.
    Raises ValueError for an invalid timestamp, and what `load_snapshot` raises.
    """
    time = _to_milliseconds(timestamp)
    times, listing = CommitTimes.of(store), list_log(store, None)
    reached = 0 if listing.has(0) else min((found.version for found in listing.checkpoints), default=0)
    known = [version for version in times.modified if version >= reached]
    if not known:
        raise VersionNotFoundError(
            f"cannot load {store.uri} by timestamp because {LOG} has no commits", table=store.uri
        )
    candidates = [version for version in times.versions_of(time) if version >= reached]
    count = bisect_right(candidates, time, key=times.time_of)
    if not count:
        first = from_milliseconds(times.time_of(known[0])).isoformat()
        raise TimestampBeforeFirstError(
            f"{store.uri} has no version at {timestamp}: its log starts with version {known[0]} of {first}",
            table=store.uri,
            version=known[0],
        )
    version = candidates[count - 1]
    if version == known[-1] and (latest := times.time_of(version)) < time:
        raise TimestampAfterLatestError(
            f"{store.uri} has no version at {timestamp}: the latest version, {version}, is of "
            f"{from_milliseconds(latest).isoformat()}; omit the timestamp to load it",
            table=store.uri,
            version=version,
        )
    return version


def version_from(store: Store, timestamp: Timestamp) -> int:
    """Return the first version that was committed at or after a timestamp.

    Raises TimestampAfterLatestError if there is no such version, and what `version_at` raises.
    """
    times, time = CommitTimes.of(store), _to_milliseconds(timestamp)
    versions = list(times.modified)
    index = bisect_left(versions, time, key=times.time_of)
    if index == len(versions):
        raise TimestampAfterLatestError(
            f"{store.uri} has no version at or after {timestamp}", table=store.uri, version=versions[-1]
        )
    return versions[index]


def _enablement(store: Store) -> tuple[int | None, int | None]:
    """Return the first version with an in-commit timestamp, and its time; None if unknown or absent."""
    _, metadata = protocol_and_metadata_at(store)
    configuration = {} if metadata is None else metadata.configuration
    if not properties.get(configuration, properties.ENABLE_IN_COMMIT_TIMESTAMPS):
        return None, None
    version = properties.get(configuration, properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION)
    time = properties.get(configuration, properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP)
    if (version is None) != (time is None):
        raise ProtocolError(
            f"{store.uri} has only one of {properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name} and "
            f"{properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name}",
            table=store.uri,
        )
    return version or 0, time
