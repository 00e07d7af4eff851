"""The stream reader of the data source. PySpark 4.2 and newer have the interfaces that it implements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from math import inf
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
from ..read.file_reader import FileEntry
from .following import ChangeFollower, Follower, Position, Step, Tolerance
from .readers import FileReader, size_of
from .sources import first_version, group_files, read_group

MAX_FILES_PER_TRIGGER = 1000
"""The limit of a micro-batch without one of the options."""


@dataclass
class Allowance:
    """The files and bytes that a micro-batch may still read."""

    files: float = inf
    bytes: float = inf
    is_first: bool = True

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Allowance:
        size = options.get("max_bytes_per_trigger", inf)
        return cls(options.get("max_files_per_trigger", MAX_FILES_PER_TRIGGER if size == inf else inf), size)

    def admits(self, unit: Sequence[Step]) -> bool:
        """Return whether the micro-batch reads files that must not be separated; count them if so.

        As in Delta on Spark, one file may exceed the bytes that are left, and several only if they are the
        first ones.
        """
        sizes = [size_of(step.file) for step in unit if step.file is not None]
        if not sizes:
            return True
        files, size = (1, 1) if len(sizes) == 1 else (len(sizes), sum(sizes))
        if not self.is_first and (files > self.files or size > self.bytes):
            return False
        self.files, self.bytes, self.is_first = self.files - len(sizes), self.bytes - sum(sizes), False
        return True


class StreamSource(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a version of a table, and then the rows that are appended to it, or its changes."""

    def __init__(self, reader: FileReader, options: Mapping[str, Any]) -> None:
        self._reader = reader
        self._follower = _follower(reader, options)
        self._start = first_version(options)
        self._allowance = Allowance.of(options)
        self._last: int | None = None
        self._known = -1

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset at which a new query starts. Spark calls this twice for the first micro-batch."""
        return self._initial

    @cached_property
    def _initial(self) -> dict[str, Any]:
        if self._start == "latest":
            return self._follower.position(self._follower.latest() + 1).offset
        if isinstance(self._start, datetime):
            return self._follower.position(version_from(self._follower.store, self._start)).offset
        if self._start is not None:
            self._follower.check_version(self._start)
            return self._follower.position(self._start).offset
        return self._follower.position(self._reader.table.version, is_initial=True).offset

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return a limit that differs from ReadAllAvailable. Spark has none of both files and bytes."""
        files, size = self._allowance.files, self._allowance.bytes
        return ReadMaxBytes(int(size)) if files == inf else ReadMaxFiles(int(files))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Stop the query at the latest version at the time of this call."""
        self._last = self._follower.latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset at which the next micro-batch ends; it has at least one file."""
        end, unit = self._position(start), list[Step]()
        allowance = Allowance() if isinstance(limit, ReadAllAvailable) else replace(self._allowance)
        try:
            for step in self._follower.steps(end, self._last):
                unit.append(step)
                if step.is_split:
                    continue
                if not allowance.admits(unit):
                    break
                end = step.after
                unit.clear()
        except DeltaVariantError:
            # The commits before the one that cannot be read are read first.
            if end.offset == start:
                raise
        self._known = max(self._known, end.version)
        return end.offset

    def _position(self, offset: dict[str, Any]) -> Position:
        """Return the position of an offset, after a check of one that this reader has not returned."""
        position = Position(**offset)
        if position.version > self._known:
            self._follower.check_start(position)
            self._known = position.version
        return position

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset after the latest version, which the progress of a query shows."""
        return self._follower.position(self._follower.latest() + 1).offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the files between two positions, in groups."""
        files: list[FileEntry | ChangedFile] = []
        last = self._position(end)
        first = _start_before(self._position(start), last)
        if first != last:
            for step in self._follower.steps(first, last.version):
                if step.file is not None:
                    files.append(step.file)
                if step.after == last:
                    break
        return group_files(files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a group of files."""
        return read_group(self._reader, partition)


def _start_before(start: Position, end: Position) -> Position:
    """Return the start of a micro-batch, which is not after its end.

    Checkpoints do not have the start of the first micro-batch. If a query stops before that is committed, a
    restart passes the start of a new query. As in Delta on Spark, the batch then has the rows of the version
    at which it ends.
    """
    if (start.version, start.is_initial) <= (end.version, end.is_initial):
        return start
    if not start.is_initial:
        return end
    version = end.version if end.is_initial else end.version - 1
    return replace(start, version=version, index=0)


def _follower(reader: FileReader, options: Mapping[str, Any]) -> Follower:
    table = reader.table.open()
    if options.get("read_change_feed"):
        return ChangeFollower(table)
    tolerated = frozenset(name for name in get_args(Tolerance) if options.get(name))
    return Follower(table, tolerated)
