"""Read the change data feed of a table (PROTOCOL.md, "Add CDC File")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from .._checks import is_number, to_integer
from .._options import OnConflict
from ..data_file.reader import RowRange
from ..errors import (
    ArgumentTypeError,
    ChangesNotRecordedError,
    DataFileError,
    MalformedLogError,
    SchemaError,
    StoreError,
    TimestampAfterLatestError,
    VersionNotFoundError,
)
from ..execution import timezone_of
from ..log import deletion_vectors
from ..log.commits import CommitActions, read_versions
from ..log.file_set import FileSet
from ..log.file_tables import files_table
from ..log.load import load_protocol_and_metadata, load_snapshot, open_to_read
from ..log.snapshot import Snapshot, TableVersion
from ..log.timestamps import CommitTimes, Timestamp, from_milliseconds, version_at, version_from
from ..protocol import features, properties
from ..protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DeletionVector,
    Metadata,
    Protocol,
    RemoveFile,
    commit_infos,
    file_key,
)
from ..protocol.schema.column_mapping import PHYSICAL_NAME
from ..protocol.schema.json_text import parse as parse_schema
from ..protocol.schema.partition_values import partition_value_to_string
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import PrimitiveType, StructField, StructType
from ..read.explanation import FileReport, ReadReport
from ..read.file_reader import FileEntry, TableReader, files_of, load_deleted
from ..read.plan import RowPlan, prune_files
from ..read.predicate import pruning_predicate_of
from ..read.query import Query
from ..read.rows import RowBatches, read_files
from ..read.scan import Scan
from ..read.scan_rows import ScanRows
from ..read.schema_changes import describe_incompatibility, describe_unreadable
from ..storage.store import Store, TableLocation

ChangeType: TypeAlias = Literal["insert", "delete"]
Vector: TypeAlias = "DeletionVector | None"

READ_AGAIN = (
    "start a new query with a new checkpoint and without startingVersion, which reads all rows of the table "
    "with its latest schema"
)
"""The remedy for a stream that cannot pass a change of the schema, which keeps the rows before the change."""

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"


def _column(name: str, type_name: str) -> StructField:
    # Column mapping does not rename these columns.
    return StructField(name, PrimitiveType(type_name), True, {PHYSICAL_NAME: name})


COLUMNS = (
    _column(CHANGE_TYPE, "string"),
    _column(COMMIT_VERSION, "long"),
    _column(COMMIT_TIMESTAMP, "timestamp"),
)
_NAMES = tuple(column.name for column in COLUMNS)


def read_changes(
    table: TableLocation | Snapshot,
    *,
    start: int | Timestamp | None = None,
    end: int | Timestamp | None = None,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    limit: int | None = None,
    timezone: str | None = None,
    on_conflict: OnConflict = "error",
) -> Scan:
    """Return a scan of the rows that commits inserted, deleted and updated.

    The rows have the columns of the table at the end of the range, followed by `_change_type` (string:
    `insert`, `delete`, `update_preimage` or `update_postimage`), `_commit_version` (int64) and
    `_commit_timestamp` (timestamp in UTC). They are ordered by version. The order within a version is
    undefined.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`. The version that a handle
            or a snapshot selects ends the range by default.
        start: The first version of the range, inclusive. A timezone-aware datetime or an ISO 8601 string is
            the first version committed at that time or later. None, the default, starts at version 0.
        end: The last version of the range, inclusive. A timezone-aware datetime or an ISO 8601 string is the
            last version committed at that time or earlier. None, the default, ends at the latest version.
        columns: The columns to return, as in `read_table`, including the three columns above. None, the
            default, returns all columns.
        where: An SQL predicate, as in `read_table`, that may read the three columns above. None, the default,
            returns all changes.
        limit: The maximum number of rows, as in `read_table`. None, the default, returns all changes.
        timezone: The time zone of local times in SQL text, as in `read_table`. None, the default, is that of
            the engine of a `Table`, `"UTC"` without one.
        on_conflict: What to do if `value` and `typed_value` of a shredded Variant contradict each other, as
            in `read_table`. `"error"` by default.

    Returns:
        A `Scan`, as `read_table` returns it.

    Raises:
        ChangesNotRecordedError: `delta.enableChangeDataFeed` was not set at a version of the range.
        SchemaError: The columns changed within the range so that earlier rows do not fit the later schema.
        VersionNotFoundError: The log does not have a version or a timestamp of the range.
        ArgumentTypeError: An end of the range is not an integer, a datetime or a string.
        ValueError: The range is empty.
        DeltaVariantError: The table cannot be read; see `read_table`.

    Example:
        >>> import pyarrow as pa
        >>> from delta_variant import delete, read_changes, write_table
        >>> table = "events"
        >>> feed = {"delta.enableChangeDataFeed": "true"}
        >>> result = write_table(table, pa.table({"id": [1, 2]}), configuration=feed)
        >>> result = delete(table, "id = 2")
        >>> read_changes(table, start=1, columns=["id", "_change_type"]).to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
    """
    changes = plan_changes(
        table, start=start, end=end, columns=columns, where=where, timezone=timezone, on_conflict=on_conflict
    )
    return Scan(changes, limit)


def plan_changes(
    table: TableLocation | Snapshot,
    *,
    start: int | Timestamp | None,
    end: int | Timestamp | None,
    columns: Mapping[str, str] | Sequence[str] | None,
    where: str | None,
    timezone: str | None,
    on_conflict: OnConflict,
) -> Changes:
    """Return the changes that `read_changes` reads; raises its errors."""
    store, version, timestamp = open_to_read(table)
    if end is None:
        end = timestamp if version is None else version
    first = _first_version(store, start)
    last = load_end(store, end).in_timezone(timezone_of(table, timezone))
    _check_order(last, first, is_latest=end is None)
    commits = list(check_commits(last, first, read_versions(store, first, last.version)))
    feed = ChangeFeed.of(last, columns, where, on_conflict)
    return Changes(feed, commits, CommitTimes.of(store))


def load_end(store: Store, end: int | Timestamp | None) -> Snapshot:
    """Return the version that ends a range of changes; raises the errors of `read_changes`."""
    last = load_snapshot(store, _last_version(store, end))
    last.configuration.check_may_read()
    return last


def _first_version(store: Store, start: int | Timestamp | None) -> int:
    if isinstance(start, datetime | str):
        return version_from(store, start)
    return 0 if start is None else _to_version("start", start)


def _last_version(store: Store, end: int | Timestamp | None) -> int | None:
    if not isinstance(end, datetime | str):
        return None if end is None else _to_version("end", end)
    try:
        return version_at(store, end)
    except TimestampAfterLatestError:
        return None


def _to_version(name: str, value: Any) -> int:
    if not is_number(value):
        expected = "a version, a timezone-aware datetime or an ISO 8601 string"
        raise ArgumentTypeError(f"{name}: expected {expected}, got {value!r}")
    return to_integer(name, value, 0)


def _check_order(end: Snapshot, first: int, *, is_latest: bool) -> None:
    if first <= end.version:
        return
    if is_latest:
        message = f"{end.uri} does not have version {first}: the latest version is {end.version}"
        raise VersionNotFoundError(message, table=end.uri, version=first)
    raise ValueError(f"the range of changes ends at version {end.version}, before it starts at {first}")


def check_commits(
    end: TableVersion, first: int, commits: Iterable[CommitActions], *, is_stream: bool = False
) -> Iterator[CommitActions]:
    """Yield the commits from the version `first` on, after a check of each.

    A stream passes columns that column mapping renamed or dropped.

    Raises ChangesNotRecordedError or SchemaError for a version that did not record changes, or whose rows do
    not fit the schema at the end.
    """
    for version, actions in commits:
        if version == first:
            protocol, metadata = load_protocol_and_metadata(end.store, first)
            if first and {Metadata, RemoveFile} <= {type(action) for action in actions}:
                # The rows that this commit removes are of the columns before.
                _check_columns(end, load_protocol_and_metadata(end.store, first - 1)[1], first - 1, is_stream)
        for action in actions:
            if isinstance(action, Protocol):
                protocol = action
            elif isinstance(action, Metadata):
                metadata = action
        if not features.supports(protocol, "changeDataFeed") or not properties.get(
            metadata.configuration, properties.ENABLE_CHANGE_DATA_FEED
        ):
            raise ChangesNotRecordedError(
                f"{end.uri} does not have a change data feed at version {version} because "
                f"{properties.ENABLE_CHANGE_DATA_FEED.name} was not set: read other versions",
                table=end.uri,
                version=version,
            )
        _check_columns(end, metadata, version, is_stream)
        yield version, actions


def _check_columns(end: TableVersion, metadata: Metadata, version: int, is_stream: bool) -> None:
    found = column = None
    if is_stream:
        found = describe_unreadable(metadata, end.metadata)
    elif metadata.schema_string != end.metadata.schema_string:
        mode = properties.get(metadata.configuration, properties.COLUMN_MAPPING_MODE)
        columns = parse_schema(metadata.schema_string)
        found = describe_incompatibility(columns, end.schema, mode, end.configuration.mapping_mode)
    if found is not None:
        column, reason = found
    elif not is_stream and metadata.partition_columns != end.partition_columns:
        reason = "the partition columns changed"
    else:
        return
    remedy = READ_AGAIN if is_stream else "end the range before that change or start it after"
    raise SchemaError(
        f"cannot read the changes of {end.uri} at version {version} with the schema of version "
        f"{end.version} because {reason}: {remedy}",
        table=end.uri,
        version=version,
        column=column,
    )


class ChangedFile(msgspec.Struct, frozen=True):
    """A file whose rows are changes.

    Attributes:
        file: The data file or change data file. What is constant for its changes is among its partition
            values: version and timestamp, and of data files the change type.
        has_types: Whether it is a change data file, which has a column with the change types.
        vectors: The deletion vectors of a data file before and after the commit: its changes are the rows
            that only one of them marks. None for all rows that are not deleted.
    """

    file: FileEntry
    has_types: bool = False
    vectors: tuple[Vector, Vector] | None = None


class _Change(msgspec.Struct, frozen=True):
    """A `ChangedFile` as the log has it; `kind` is the change type of all of its rows."""

    file: AddFile
    kind: ChangeType | None
    vectors: tuple[Vector, Vector] | None = None


@dataclass(frozen=True)
class ChangeFeed:
    """A table whose rows are changes, with the schema of the version `end`, and the query over them.

    Metadata of changes that is constant for a file is read as partition values: the change type, version and
    timestamp of data files (`data_files`), version and timestamp of change data files (`cdc_files`).
    """

    end: TableVersion
    data_files: TableVersion
    cdc_files: TableVersion
    query: Query
    on_conflict: OnConflict

    @classmethod
    def of(
        cls,
        end: TableVersion,
        columns: Mapping[str, str] | Sequence[str] | None,
        where: str | None,
        on_conflict: OnConflict,
    ) -> ChangeFeed:
        """Return the feed of a table with the schema of `end`; raises ExpressionError and SchemaError."""
        query = query_of_changes(end.configuration, columns, where)
        wide = _with_change_columns(end.configuration)
        data_files, cdc_files = (
            TableVersion(end.store, end.version, _partition_by(wide, names)) for names in (_NAMES, _NAMES[1:])
        )
        return cls(end, data_files, cdc_files, query, on_conflict)

    def plan(
        self, version: int, actions: Sequence[Action], times: CommitTimes, report: ReadReport
    ) -> list[ChangedFile]:
        """Return the files with changes of one commit, without those that have no matching row."""
        info = next(commit_infos(actions), None)
        values = _values_of(version, times.time_from(info, version))
        changes = [_with_values(change, values) for change in self._changes(version, actions)]
        marked = [each for each in changes if each.vectors is not None]
        whole = [each.file for each in changes if each.kind is not None]
        typed = [each.file for each in changes if each.kind is None and each.vectors is None]
        return [
            *(ChangedFile(file, has_types=True) for file in self._prune(self.cdc_files, typed, report)),
            *(ChangedFile(file) for file in self._prune(self.data_files, whole, report)),
            *(ChangedFile(_entry(each.file), vectors=each.vectors) for each in marked),
        ]

    def files_of_version(self, snapshot: Snapshot, time: int) -> list[ChangedFile]:
        """Return the files of a version, committed at `time`, with each row as an insertion."""
        values = {**_values_of(snapshot.version, time), CHANGE_TYPE: "insert"}
        files = files_of(snapshot.files.sort_by("path"))
        return [
            ChangedFile(replace(file, partition_values={**file.partition_values, **values})) for file in files
        ]

    def read(self, files: Sequence[ChangedFile], report: ReadReport, *, ahead: bool) -> RowBatches:
        for table, has_types in ((self.cdc_files, True), (self.data_files, False)):
            chosen = [each.file for each in files if each.has_types == has_types and each.vectors is None]
            predicate = None
            if self.query.pruning is not None:
                predicate = pruning_predicate_of(self.query.pruning, table.partition_columns)
            if chosen:
                yield from read_files(
                    table, self.query, chosen, predicate, self.on_conflict, report, ahead=ahead
                )
        for each in files:
            if each.vectors is not None:
                yield from self._read_marked(each.file, each.vectors, report)

    def _changes(self, version: int, actions: Sequence[Action]) -> Iterator[_Change]:
        if cdc_files := [action for action in actions if isinstance(action, AddCDCFile)]:
            yield from (_Change(_file(each, each.partition_values), None) for each in cdc_files)
            return
        added = {file_key(a)[0]: a for a in actions if isinstance(a, AddFile) and a.data_change}
        removed = {file_key(a)[0]: a for a in actions if isinstance(a, RemoveFile) and a.data_change}
        for path, remove in removed.items():
            if remove.partition_values is None and self.data_files.metadata.partition_columns != _NAMES:
                raise MalformedLogError(
                    f"the remove action of {path} has no partitionValues, so its rows are unknown", file=path
                ).at(table=self.data_files.uri, version=version)
            before = _file(remove, remove.partition_values or {})
            if path not in added:
                yield _Change(before, "delete")
                continue
            after = added[path]
            file = msgspec.structs.replace(after, deletion_vector=None)
            yield _Change(file, None, (before.deletion_vector, after.deletion_vector))
        yield from (_Change(add, "insert") for path, add in added.items() if path not in removed)

    def _prune(
        self, table: TableVersion, files: Sequence[AddFile], report: ReadReport
    ) -> Iterator[FileEntry]:
        if files:
            plan = prune_files(table.configuration, FileSet(files_table(files)), self.query.pruning)
            report.add(plan)
            yield from files_of(plan.files)

    def _read_marked(self, file: FileEntry, vectors: tuple[Vector, Vector], report: ReadReport) -> RowBatches:
        """Yield the rows that only one of two deletion vectors of a file marks."""
        before, after = (load_deleted(self.data_files, each) for each in vectors)
        kinds: tuple[tuple[ChangeType, Sequence[RowRange]], ...] = (
            ("delete", deletion_vectors.subtract_rows(after, before)),
            ("insert", deletion_vectors.subtract_rows(before, after)),
        )
        for kind, rows in kinds:
            if rows:
                values = {**file.partition_values, CHANGE_TYPE: kind}
                yield from self._read_rows(replace(file, partition_values=values), rows, report)

    def _read_rows(self, file: FileEntry, rows: Sequence[RowRange], report: ReadReport) -> RowBatches:
        opened = TableReader.of(self.data_files).open(file)
        report.num_files += 1
        report.num_bytes += file.size or 0
        decoded = 0
        try:
            for batch in opened.read(self.query.inputs, rows, self.on_conflict):
                decoded += batch.num_rows
                result = self.query.result(batch)
                if result.num_rows:
                    yield result
        finally:
            plan, bytes_read = RowPlan(rows), opened.native.bytes_read
            report.files.append(FileReport(plan, bytes_read, decoded, file.is_residual))


@dataclass(frozen=True)
class Changes(ScanRows):
    """The changes of a range of commits, as the rows of a scan."""

    feed: ChangeFeed
    commits: Sequence[CommitActions]
    times: CommitTimes

    @property
    def uri(self) -> str:
        return self.feed.end.uri

    @property
    def version(self) -> int:
        return self.feed.end.version

    @property
    def bound(self) -> Query:
        return self.feed.query

    def with_query(self, query: Query) -> Changes:
        return replace(self, feed=replace(self.feed, query=query))

    def split(self) -> Iterator[Changes]:
        """Yield the changes of each commit."""
        for commit in self.commits:
            yield replace(self, commits=[commit])

    def stream(self, report: ReadReport, *, ahead: bool) -> RowBatches:
        """Yield the changes, oldest commit first."""
        for version, actions in self.commits:
            files = self.feed.plan(version, actions, self.times, report)
            try:
                yield from self.feed.read(files, report, ahead=ahead)
            except (DataFileError, StoreError) as error:
                error.version = version
                raise

    def files(self) -> list[ChangedFile]:
        """Return the files with changes, oldest commit first."""
        report = ReadReport()
        return [
            file
            for version, actions in self.commits
            for file in self.feed.plan(version, actions, self.times, report)
        ]

    def count_all(self) -> int:
        """Return the number of changes; only the columns of the predicate are read."""
        counted = self.with_query(self.bound.without_outputs())
        return sum(batch.num_rows for batch in counted.stream(ReadReport(), ahead=True))


def query_of_changes(
    table: TableConfiguration, columns: Mapping[str, str] | Sequence[str] | None, where: str | None
) -> Query:
    """Return the query over the changes of a table; raises ExpressionError and SchemaError."""
    if taken := [field.name for field in table.schema.fields if field.name.lower() in _NAMES]:
        raise SchemaError(
            f"cannot read changes of {table.uri} because the change data feed reserves the name of its "
            f"column {taken[0]!r}: rename the column",
            table=table.uri,
            column=taken[0],
        )
    return Query.of(_with_change_columns(table), columns, where)


def _with_change_columns(table: TableConfiguration) -> TableConfiguration:
    return replace(table, schema=StructType((*table.schema.fields, *COLUMNS)))


def _partition_by(table: TableConfiguration, names: Sequence[str]) -> TableConfiguration:
    partitions = (*table.partition_columns, *names)
    metadata = msgspec.structs.replace(table.metadata, partition_columns=partitions)
    return replace(table, metadata=metadata)


def _with_values(change: _Change, values: Mapping[str, str | None]) -> _Change:
    kind = {} if change.kind is None else {CHANGE_TYPE: change.kind}
    partition_values = {**change.file.partition_values, **values, **kind}
    return msgspec.structs.replace(
        change, file=msgspec.structs.replace(change.file, partition_values=partition_values)
    )


def _values_of(version: int, time: int) -> dict[str, str | None]:
    """Return the metadata that all changes of a commit have, as partition values."""
    moment = partition_value_to_string(from_milliseconds(time), COLUMNS[2].type)
    return {COMMIT_VERSION: str(version), COMMIT_TIMESTAMP: moment}


def _entry(file: AddFile) -> FileEntry:
    (entry,) = files_of(files_table([file]))
    return entry


def _file(action: AddCDCFile | RemoveFile, partition_values: Mapping[str, str | None]) -> AddFile:
    removed = action if isinstance(action, RemoveFile) else None
    return AddFile(
        path=action.path,
        partition_values=dict(partition_values),
        size=action.size or 0,
        modification_time=0,
        data_change=True,
        stats=None if removed is None else removed.stats,
        deletion_vector=None if removed is None else removed.deletion_vector,
    )
