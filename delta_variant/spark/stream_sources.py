"""Read a table as a stream: the files of one version in order, then those that each later commit adds.

PySpark 4.2 and newer have the interfaces that the reader implements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from ..errors import DeltaVariantError, SchemaError, UnsupportedFeatureError, VersionNotFoundError
from ..log.commits import CommitActions, read_versions
from ..log.load import load_protocol_and_metadata, load_snapshot
from ..log.snapshot import Snapshot, TableVersion
from ..log.state import latest_version
from ..log.timestamps import CommitTimes, version_from
from ..operations.changes import READ_AGAIN, ChangedFile, ChangeFeed, check_commits
from ..protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile, decode_path
from ..read.explanation import ReadReport
from ..read.file_reader import FileEntry, files_of
from ..read.schema_changes import describe_unreadable
from ..storage.store import Store
from .readers import FileReader, size_of
from .sources import first_version, group_files, read_group

Tolerance: TypeAlias = Literal["ignore_deletes", "ignore_changes", "skip_change_commits"]
"""An option for commits that change or remove rows, with the meaning that it has in Delta on Spark."""


@dataclass(frozen=True)
class Position:
    """The progress of a stream: `index` files of those that a version adds, or contains if `is_initial`.

    `table_id` is the id in the metadata of the table, None in a checkpoint of an earlier version.
    """

    version: int
    index: int = 0
    is_initial: bool = False
    table_id: str | None = field(default=None, compare=False)

    @property
    def offset(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Step:
    """A file, or None for the end of a version, and the position after it.

    `is_split` is True if a micro-batch that ends after the file separates rows that belong together.
    """

    file: FileEntry | ChangedFile | None
    after: Position
    is_split: bool = False


class CommitFiles(NamedTuple):
    """The files of a commit that a stream reads."""

    version: int
    files: Sequence[FileEntry | ChangedFile]


@dataclass(frozen=True)
class Follower:
    """Follows the appends to a table. The stream has the schema of `table`."""

    table: TableVersion
    tolerated: Set[Tolerance] = frozenset()

    @property
    def store(self) -> Store:
        return self.table.store

    def latest(self) -> int:
        return latest_version(self.store)

    def position(self, version: int, *, is_initial: bool = False) -> Position:
        return Position(version, is_initial=is_initial, table_id=self.table.metadata.id)

    def check_version(self, version: int) -> None:
        """Raise VersionNotFoundError for a start that is later than the next version."""
        if version > self.table.version + 1 and version > (latest := self.latest()) + 1:
            raise VersionNotFoundError(
                f"cannot start a stream at version {version} of {self.store.uri} because its latest version "
                f"is {latest}",
                table=self.store.uri,
                version=version,
            )

    def check_start(self, position: Position) -> None:
        """Raise VersionNotFoundError for a position in another table, or after the versions of this one."""
        self._check_id(position.table_id)
        latest = self.table.version
        if position.version > latest + 1 and position.version > (latest := self.latest()) + 1:
            raise self._not_continued(
                f"its latest version is {latest}, and the stream is at version {position.version}"
            )

    def _check_id(self, table_id: str | None) -> None:
        if table_id not in (None, self.table.metadata.id):
            raise self._not_continued(f"its id was {table_id} and is {self.table.metadata.id}")

    def _not_continued(self, reason: str) -> VersionNotFoundError:
        return VersionNotFoundError(
            f"cannot continue the stream from {self.store.uri} because the location has another table, or "
            f"the table was created again: {reason}; start a new query with a new checkpoint, which reads "
            "the whole table",
            table=self.store.uri,
        )

    def steps(self, start: Position, last: int | None = None) -> Iterator[Step]:
        """Yield the steps after a position, up to and including the version `last`.

        Raises UnsupportedFeatureError for a commit that changes or removes rows and is not tolerated, and
        SchemaError for a version whose rows do not have the schema of the stream, VersionNotFoundError if the
        next commit was cleaned up.
        """
        if start.is_initial:
            snapshot = load_snapshot(self.store, start.version)
            self._check_id(snapshot.metadata.id)
            self._check_schema(snapshot.metadata, start.version)
            files = self._files_of_version(snapshot)
            yield from self._steps(CommitFiles(start.version, files), start.index, is_initial=True)
            start = self.position(start.version + 1)
        latest = self.latest()
        last = latest if last is None else min(last, latest)
        if start.version > last:
            return
        # The table may have been created again while the query runs.
        self._check_id(load_protocol_and_metadata(self.store, last)[1].id)
        for commit in self._files_of_commits(start.version, self._commits(start.version, last)):
            yield from self._steps(commit, start.index if commit.version == start.version else 0)

    def _commits(self, first: int, last: int) -> Iterator[CommitActions]:
        """Yield commits, of which a few are read ahead: a micro-batch may need the first ones only."""
        try:
            yield from read_versions(self.store, first, last)
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"cannot stream version {error.version} of {self.store.uri} because the log does not have "
                f"its commit, which may have been cleaned up: {READ_AGAIN}",
                table=self.store.uri,
                version=error.version,
            ) from error

    def _steps(self, commit: CommitFiles, first: int, *, is_initial: bool = False) -> Iterator[Step]:
        before, last = self.position(commit.version, is_initial=is_initial), len(commit.files) - 1
        for number, file in enumerate(commit.files[first:], first):
            # Change data files may have the image of a row before and after an update, one in each file.
            is_split = number < last and isinstance(file, ChangedFile) and file.has_types
            yield Step(file, replace(before, index=number + 1), is_split)
        yield Step(None, self.position(commit.version + 1))

    def _files_of_version(self, version: Snapshot) -> list[Any]:
        return list(files_of(version.files.sort_by("path")))

    def _files_of_commits(self, first: int, commits: Iterable[CommitActions]) -> Iterator[CommitFiles]:
        """Yield the files of the commits from the version `first` on, after a check of each commit."""
        if first <= self.table.version:
            self._check_schema(load_protocol_and_metadata(self.store, first)[1], first)
        for version, actions in commits:
            self._check_metadata(version, actions)
            is_read = self._is_read(version, actions)
            added = [action for action in actions if isinstance(action, AddFile) and action.data_change]
            yield CommitFiles(version, list(map(_data_file, added)) if is_read else [])

    def _check_metadata(self, version: int, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Protocol):
                replace(self.table.configuration, protocol=action).check_may_read()
            if isinstance(action, Metadata):
                self._check_schema(action, version)

    def _check_schema(self, metadata: Metadata, version: int) -> None:
        """Raise SchemaError if the rows of a version cannot be read with the schema of the stream."""
        now = self.table.metadata
        if (metadata.schema_string, metadata.partition_columns) == (now.schema_string, now.partition_columns):
            return
        if version > self.table.version:
            raise SchemaError(
                f"version {version} of {self.store.uri} changes the schema: restart the query to continue "
                "with the new schema",
                table=self.store.uri,
                version=version,
            )
        if found := describe_unreadable(metadata, now):
            raise SchemaError(
                f"cannot stream version {version} of {self.store.uri} with the schema of version "
                f"{self.table.version} because {found[1]}: {READ_AGAIN}",
                table=self.store.uri,
                version=version,
                column=found[0],
            )

    def _is_read(self, version: int, actions: Sequence[Action]) -> bool:
        """Return whether the files are read that a commit adds.

        Raises UnsupportedFeatureError for a commit that changes or removes rows and is not tolerated.
        """
        changed = [each for each in actions if isinstance(each, AddFile | RemoveFile) and each.data_change]
        if not any(isinstance(each, RemoveFile) for each in changed):
            return True
        if "skip_change_commits" in self.tolerated:
            return False
        is_delete = not any(isinstance(each, AddFile) for each in changed)
        if "ignore_changes" in self.tolerated or (is_delete and "ignore_deletes" in self.tolerated):
            return True
        operation = next((each.operation for each in actions if isinstance(each, CommitInfo)), None)
        what, remedy = (
            ("removes rows", "ignore_deletes to ignore such commits")
            if is_delete
            else ("changes or removes rows", "ignore_changes to read the files that they add")
        )
        raise UnsupportedFeatureError(
            f"cannot stream version {version} of {self.store.uri} because it {what}"
            f"{f' ({operation})' if operation else ''}, and a stream reads only appends: set the option "
            f"{remedy}, skip_change_commits to skip all that change rows, or read_change_feed to read "
            f"changes; or start a new query, of the whole table or with starting_version={version + 1}",
            table=self.store.uri,
            version=version,
        )


@dataclass(frozen=True)
class ChangeFollower(Follower):
    """Follows the change data feed of a table. All rows of its first version are insertions."""

    def _files_of_version(self, version: Snapshot) -> list[Any]:
        time = CommitTimes.of(self.store).time_of(version.version)
        return list(self._feed().files_of_version(version, time))

    def _files_of_commits(self, first: int, commits: Iterable[CommitActions]) -> Iterator[CommitFiles]:
        feed, times = self._feed(), CommitTimes.of(self.store)
        for version, actions in check_commits(feed.end, first, self._checked(commits), is_stream=True):
            yield CommitFiles(version, list(feed.plan(version, actions, times, ReadReport())))

    def _checked(self, commits: Iterable[CommitActions]) -> Iterator[CommitActions]:
        for version, actions in commits:
            self._check_metadata(version, actions)
            yield version, actions

    def _feed(self) -> ChangeFeed:
        # Without a predicate, the files of a commit and so the positions of a stream do not depend on it.
        return ChangeFeed.of(self.table, None, None, "error")


def _data_file(add: AddFile) -> FileEntry:
    vector = None if add.deletion_vector is None else msgspec.structs.asdict(add.deletion_vector)
    return FileEntry(decode_path(add.path), add.partition_values, vector, size=add.size)


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
