"""When versions were committed, and which was the table's at a time (PROTOCOL.md, "In-Commit Timestamps").

A commit's time is its in-commit timestamp where the table keeps them, otherwise the modification time of its
file; where that is not later than the one before, it counts as a millisecond later, as in Delta on Spark.
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
from .commits import read_commit_info
from .listing import LOG, commit_file_name, commit_modification_times, list_log
from .state import build_from_log, protocol_and_metadata

__all__ = ["CommitTimes", "Timestamp", "from_milliseconds", "to_milliseconds", "version_at", "version_from"]

Timestamp: TypeAlias = datetime | str
"""A time: a datetime that knows its time zone, or ISO 8601 text, of UTC where it names no other."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_MILLISECOND = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(milliseconds=1)


def to_milliseconds(timestamp: Timestamp) -> int:
    """Return a time in milliseconds since 1970, parts of one left out.

    Raises ValueError for text that is no time, and for a datetime without a time zone; ArgumentTypeError for
    other types.
    """
    if isinstance(timestamp, datetime):
        if timestamp.tzinfo is None:
            raise ValueError(f"{timestamp} has no time zone: give it one, as by .astimezone()")
        return (timestamp - _EPOCH) // timedelta(milliseconds=1)
    if not isinstance(timestamp, str):
        raise ArgumentTypeError(
            f"the time {timestamp!r} is no datetime that knows its time zone, and no ISO 8601 text"
        )
    try:
        # Before Python 3.11, fromisoformat does not know the Z.
        parsed = datetime.fromisoformat(f"{timestamp[:-1]}+00:00" if timestamp[-1:] in "zZ" else timestamp)
    except ValueError:
        raise ValueError(f"{timestamp!r} is no time as 2026-11-21T09:30:00+00:00") from None
    return to_milliseconds(parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc))


def from_milliseconds(milliseconds: int) -> datetime:
    """Return milliseconds since 1970 as a datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


@dataclass(frozen=True)
class CommitTimes:
    """The times of the commits that are in the log, in milliseconds since 1970.

    `modified` has the versions in order, and times of those that have no in-commit timestamp. Others say
    theirs themselves, from the version `in_commit_from` on; `enabled_at` is the time of that one, None where
    it is not told.
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
        for version, time in commit_modification_times(store).items():
            if in_commit_from is None or version < in_commit_from:
                latest = max(time, latest + 1)
            times[version] = latest
        return cls(store, times, in_commit_from, enabled_at)

    def time_of(self, version: int) -> int:
        """Return the time of a commit; raises MalformedLogError where it does not say what it should."""
        if self._is_modification_time(version):
            return self.modified[version]
        return self.time_from(read_commit_info(self.store, version), version)

    def time_from(self, info: CommitInfo | None, version: int) -> int:
        """Return the time of a commit whose `commitInfo` is known; raises what `time_of` raises."""
        if self._is_modification_time(version):
            return self.modified[version]
        time = None if info is None else info.in_commit_timestamp
        if time is None or not 0 <= time <= _LAST_MILLISECOND:
            raise MalformedLogError(
                f"{self.store.uri}/{commit_file_name(version)} has no inCommitTimestamp that is a time, "
                "and the table's properties promise one"
            )
        return time

    def versions_of(self, time: int) -> list[int]:
        """Return the versions in order among which the one of a time is."""
        start = self.in_commit_from
        if start is None:
            return list(self.modified)
        is_later = self.enabled_at is None or time >= self.enabled_at
        return [version for version in self.modified if (version >= start) == is_later]

    def _is_modification_time(self, version: int) -> bool:
        return self.in_commit_from is None or version < self.in_commit_from


def version_at(store: Store, timestamp: Timestamp) -> int:
    """Return the latest version that was committed at a time or before.

    Raises TimestampBeforeFirstError where there is none that the log still tells, and, as Delta on Spark
    does, TimestampAfterLatestError for a time behind the latest commit; ValueError for what is no time, and
    what `load_snapshot` raises.
    """
    time = to_milliseconds(timestamp)
    times, listing = CommitTimes.of(store), list_log(store, None)
    reached = 0 if listing.has(0) else min((found.version for found in listing.checkpoints), default=0)
    known = [version for version in times.modified if version >= reached]
    if not known:
        raise VersionNotFoundError(f"{store.uri}: {LOG} has no commit, so no version has a time")
    candidates = [version for version in times.versions_of(time) if version >= reached]
    count = bisect_right(candidates, time, key=times.time_of)
    if not count:
        first = from_milliseconds(times.time_of(known[0])).isoformat()
        raise TimestampBeforeFirstError(
            f"{store.uri} has no version of {timestamp}: "
            f"the first that its log tells, {known[0]}, is of {first}"
        )
    version = candidates[count - 1]
    if version == known[-1] and (latest := times.time_of(version)) < time:
        raise TimestampAfterLatestError(
            f"{store.uri} has no version of {timestamp}: the latest, {version}, is of "
            f"{from_milliseconds(latest).isoformat()}; leave the time out to get it"
        )
    return version


def version_from(store: Store, timestamp: Timestamp) -> int:
    """Return the first version that was committed at a time or later.

    Raises TimestampAfterLatestError where there is none, and what `version_at` raises.
    """
    times, time = CommitTimes.of(store), to_milliseconds(timestamp)
    versions = list(times.modified)
    place = bisect_left(versions, time, key=times.time_of)
    if place == len(versions):
        raise TimestampAfterLatestError(f"{store.uri} has no version of {timestamp} or later")
    return versions[place]


def _enablement(store: Store) -> tuple[int | None, int | None]:
    """Return the first version with an in-commit timestamp, None for none, and its time where it is told."""
    _, metadata = build_from_log(store, None, protocol_and_metadata)
    configuration = {} if metadata is None else metadata.configuration
    if not properties.get(configuration, properties.ENABLE_IN_COMMIT_TIMESTAMPS):
        return None, None
    version = properties.get(configuration, properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION)
    time = properties.get(configuration, properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP)
    if (version is None) != (time is None):
        raise ProtocolError(
            f"{store.uri} has one of {properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name} and "
            f"{properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name}, and not the other"
        )
    return version or 0, time
