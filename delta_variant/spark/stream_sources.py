"""The stream reader of the data source. PySpark 4.2 and newer have the interfaces that it implements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from ..errors import DeltaVariantError
from ..log.timestamps import version_from
from ..operations.changes import ChangedFile
from ..scan.reader import FileEntry
from ..storage.store import open_store
from .following import ChangeFollower, Follower, Position, Tolerance
from .reading import FileReader, file_groups
from .sources import TASKS, FileGroup, first_version, read_group

__all__ = ["StreamSource"]

MAX_FILES_PER_TRIGGER = 1000


class StreamSource(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a version of a table, and then the rows that are appended to it, or its changes."""

    def __init__(self, reader: FileReader, options: Mapping[str, Any]) -> None:
        self._reader = reader
        self._follower = _follower(reader, options)
        self._start = first_version(options)
        self._limit = _limit(options.get("max_files_per_trigger"), options.get("max_bytes_per_trigger"))
        self._last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset at which a new query starts."""
        if self._start == "latest":
            return Position(self._follower.latest() + 1).offset
        if isinstance(self._start, str):
            return Position(version_from(self._follower.store, self._start)).offset
        if self._start is not None:
            return Position(self._start).offset
        return Position(self._reader.snapshot.version, is_initial=True).offset

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a micro-batch."""
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Stop the query at the latest version at the time of this call."""
        self._last = self._follower.latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset at which the next micro-batch ends; it has at least one file."""
        end, files, size = Position.of(start), 0, 0
        try:
            for step in self._follower.steps(end, self._last):
                if step.file is not None:
                    files, size = files + 1, size + step.size
                    if _exceeds(limit, files, size):
                        break
                end = step.after
        except DeltaVariantError:
            # The commits before the one that cannot be read are read first.
            if end.offset == start:
                raise
        return end.offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the files between two positions, in groups."""
        files: list[tuple[FileEntry | ChangedFile, int]] = []
        first, last = Position.of(start), Position.of(end)
        if first != last:
            for step in self._follower.steps(first):
                if step.file is not None:
                    files.append((step.file, step.size))
                if step.after == last:
                    break
        return [FileGroup(group) for group in file_groups(files, TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a group of files."""
        return read_group(self._reader, partition)


def _follower(reader: FileReader, options: Mapping[str, Any]) -> Follower:
    store = open_store(reader.snapshot.uri, reader.storage_options)
    if options.get("read_change_feed"):
        return ChangeFollower(store, replace(reader.snapshot, store=store))
    tolerated = frozenset(name for name in get_args(Tolerance) if options.get(name))
    return Follower(store, reader.snapshot, tolerated)


def _limit(files: int | None, size: int | None) -> ReadLimit:
    if files is not None and size is not None:
        raise ValueError("max_files_per_trigger and max_bytes_per_trigger exclude each other: set one")
    return ReadMaxFiles(files or MAX_FILES_PER_TRIGGER) if size is None else ReadMaxBytes(size)


def _exceeds(limit: ReadLimit, files: int, size: int) -> bool:
    if isinstance(limit, ReadMaxFiles):
        return files > limit.max_files
    if isinstance(limit, ReadMaxBytes):
        return files > 1 and size > limit.max_bytes
    assert isinstance(limit, ReadAllAvailable)
    return False
