"""Reading the changes of a table, row by row and commit by commit (PROTOCOL.md, "Add CDC File")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import msgspec
import pyarrow as pa

from .._checks import to_integer
from .._options import OnConflict
from ..data_file.reader import RowRange
from ..errors import (
    ChangesNotRecordedError,
    MalformedLogError,
    SchemaError,
    TimestampAfterLatestError,
    VersionNotFoundError,
)
from ..log import deletion_vectors
from ..log.commits import CommitActions, read_versions
from ..log.load import load_protocol_and_metadata, load_snapshot
from ..log.snapshot import Snapshot, files_table
from ..log.timestamps import CommitTimes, Timestamp, from_milliseconds, version_at, version_from
from ..protocol import features, properties
from ..protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
    file_key,
)
from ..protocol.schema.column_mapping import PHYSICAL_NAME
from ..protocol.schema.json_text import parse as parse_schema
from ..protocol.schema.partition_values import partition_value_to_string
from ..protocol.types import PrimitiveType, StructField, StructType
from ..scan.plan import plan_files
from ..scan.reader import TableReader, files_of
from ..storage.store import Store, TableLocation, open_store
from ..variant.moments import UTC
from .read.query import Query
from .read.rows import check_readable, read_files
from .read.schema_changes import describe_incompatibility

__all__ = ["read_changes"]

ChangeType: TypeAlias = Literal["insert", "delete"]

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"


def _column(name: str, type_name: str) -> StructField:
    # Column mapping leaves these as they are.
    return StructField(name, PrimitiveType(type_name), True, {PHYSICAL_NAME: name})


COLUMNS = (
    _column(CHANGE_TYPE, "string"),
    _column(COMMIT_VERSION, "long"),
    _column(COMMIT_TIMESTAMP, "timestamp"),
)
_NAMES = tuple(column.name for column in COLUMNS)


def read_changes(
    table: TableLocation,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: Timestamp | None = None,
    ending_timestamp: Timestamp | None = None,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    timezone: str = UTC,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Return the rows that commits inserted, deleted and updated, as a stream of Arrow batches.

    The range begins with the first version, or the first of a time or later, and ends with the latest, or the
    latest of a time or before; both ends are in it. To the table's columns, as they are at its end, come
    `_change_type` (string: `insert`, `delete`, `update_preimage` or `update_postimage`), `_commit_version`
    (int64) and `_commit_timestamp` (timestamp in UTC); `columns`, `where` and `timezone` are those of
    `read_table`, and may name them. Versions come in order, rows within one in none.

    Raises ChangesNotRecordedError where the table had no change data feed (`delta.enableChangeDataFeed`) at a
    version of the range, SchemaError where its columns changed so that earlier rows cannot be read as later
    ones, VersionNotFoundError for versions and times that the log does not have, ValueError for a version and
    a time of the same end, or an end before the start; and what `read_table` does.
    """
    store = open_store(table, storage_options)
    first = _start(store, starting_version, starting_timestamp)
    end = load_snapshot(store, _end(store, ending_version, ending_timestamp)).in_timezone(timezone)
    check_readable(end)
    _check_order(end, first, is_latest=ending_version is None and ending_timestamp is None)
    commits = list(read_versions(store, first, end.version))
    _check_recorded(end, first, commits)
    feed = _Feed.of(end, columns, where, on_conflict)
    times = CommitTimes.of(store)
    batches = (batch for version, actions in commits for batch in feed.read(version, actions, times))
    return pa.RecordBatchReader.from_batches(feed.query.schema, batches)


def _start(store: Store, version: int | None, timestamp: Timestamp | None) -> int:
    if timestamp is None:
        return 0 if version is None else to_integer("starting_version", version, 0)
    if version is not None:
        raise ValueError("changes start at a version or at a timestamp, and not at both")
    return version_from(store, timestamp)


def _end(store: Store, version: int | None, timestamp: Timestamp | None) -> int | None:
    if timestamp is None:
        return version
    if version is not None:
        raise ValueError("changes end at a version or at a timestamp, and not at both")
    try:
        return version_at(store, timestamp)
    except TimestampAfterLatestError:
        return None


def _check_order(end: Snapshot, first: int, *, is_latest: bool) -> None:
    if first <= end.version:
        return
    if is_latest:
        raise VersionNotFoundError(f"{end.uri} has no version {first}: its latest is {end.version}")
    raise ValueError(f"the changes of {end.uri} would end at version {end.version}, before {first}")


def _check_recorded(end: Snapshot, first: int, commits: Sequence[CommitActions]) -> None:
    """Raise unless changes were recorded all the time, of rows that can be read as those of the end."""
    protocol, metadata = load_protocol_and_metadata(end.store, first)
    if first and {Metadata, RemoveFile} <= {type(action) for action in commits[0][1]}:
        # The rows that this commit removes are of the columns before.
        _check_columns(end, load_protocol_and_metadata(end.store, first - 1)[1], first - 1)
    for version, actions in commits:
        for action in actions:
            if isinstance(action, Protocol):
                protocol = action
            elif isinstance(action, Metadata):
                metadata = action
        if not features.supports(protocol, "changeDataFeed") or not properties.get(
            metadata.configuration, properties.ENABLE_CHANGE_DATA_FEED
        ):
            raise ChangesNotRecordedError(
                f"{end.uri} recorded no changes at version {version}: "
                f"{properties.ENABLE_CHANGE_DATA_FEED.name} was not set; read those of other versions"
            )
        _check_columns(end, metadata, version)


def _check_columns(end: Snapshot, metadata: Metadata, version: int) -> None:
    if metadata.schema_string == end.metadata.schema_string:
        obstacle = None
    else:
        before, after = metadata.configuration, end.configuration
        modes = [properties.get(each, properties.COLUMN_MAPPING_MODE) for each in (before, after)]
        columns = parse_schema(metadata.schema_string)
        obstacle = describe_incompatibility(columns, end.schema, modes[0], modes[1])
    if obstacle is None and metadata.partition_columns != end.partition_columns:
        obstacle = "the table was partitioned by other columns"
    if obstacle is not None:
        raise SchemaError(
            f"the changes of {end.uri} at version {version} cannot be read as rows of version "
            f"{end.version}: {obstacle}; end before the columns change, or start behind"
        )


@dataclass(frozen=True)
class _Change:
    """A file whose rows are changes: of one kind, or, where that is None, of those that it says itself.

    `rows` are those that changed, None for all that its deletion vector leaves.
    """

    file: AddFile
    kind: ChangeType | None
    rows: Sequence[RowRange] | None = None


@dataclass(frozen=True)
class _Feed:
    """A table whose rows are changes, and what is asked of them.

    What is the same for all rows of a file is a partition value of it: in `whole`, that is all that is told
    of a change, and in `told` all but its kind, which is a column of the file.
    """

    whole: Snapshot
    told: Snapshot
    query: Query
    on_conflict: OnConflict

    @classmethod
    def of(
        cls,
        end: Snapshot,
        columns: Mapping[str, str] | Sequence[str] | None,
        where: str | None,
        on_conflict: OnConflict,
    ) -> _Feed:
        if taken := [field.name for field in end.schema.fields if field.name.lower() in _NAMES]:
            raise SchemaError(f"{end.uri} has a column {taken[0]}, which is a name of the change data feed")
        wide = replace(end, schema=StructType((*end.schema.fields, *COLUMNS)))
        whole, told = _partitioned(wide, _NAMES), _partitioned(wide, _NAMES[1:])
        return cls(whole, told, Query.of(whole, columns, where), on_conflict)

    def read(self, version: int, actions: Sequence[Action], times: CommitTimes) -> Iterator[pa.RecordBatch]:
        """Yield the changes of one commit."""
        info = next((action for action in actions if isinstance(action, CommitInfo)), None)
        moment = from_milliseconds(times.time_from(info, version))
        values = {
            COMMIT_VERSION: str(version),
            COMMIT_TIMESTAMP: partition_value_to_string(moment, COLUMNS[2].type),
        }
        changes = [_with_values(change, values) for change in self._changes(version, actions)]
        yield from self._files(self.told, [each.file for each in changes if each.kind is None])
        yield from self._files(self.whole, [each.file for each in changes if each.kind and each.rows is None])
        for each in changes:
            if each.rows is not None:
                yield from self._rows(each)

    def _changes(self, version: int, actions: Sequence[Action]) -> Iterator[_Change]:
        if told := [action for action in actions if isinstance(action, AddCDCFile)]:
            yield from (_Change(_file(each, each.partition_values), None) for each in told)
            return
        added = {file_key(a)[0]: a for a in actions if isinstance(a, AddFile) and a.data_change}
        removed = {file_key(a)[0]: a for a in actions if isinstance(a, RemoveFile) and a.data_change}
        for path, remove in removed.items():
            if remove.partition_values is None and self.whole.metadata.partition_columns != _NAMES:
                raise MalformedLogError(
                    f"{self.whole.uri}, version {version}: the removal of {path} does not say its partition "
                    "values, so its rows are not known"
                )
            before = _file(remove, remove.partition_values or {})
            if path in added:
                yield from self._between(before, added[path])
            else:
                yield _Change(before, "delete")
        yield from (_Change(add, "insert") for path, add in added.items() if path not in removed)

    def _between(self, before: AddFile, after: AddFile) -> Iterator[_Change]:
        """Yield what became of the rows of a file that stays, by its deletion vectors."""
        gone, left = (
            deletion_vectors.load(self.whole.store, each.deletion_vector) for each in (after, before)
        )
        file = msgspec.structs.replace(after, deletion_vector=None)
        if rows := deletion_vectors.subtract_rows(gone, left):
            yield _Change(file, "delete", rows)
        if rows := deletion_vectors.subtract_rows(left, gone):
            yield _Change(file, "insert", rows)

    def _files(self, table: Snapshot, files: Sequence[AddFile]) -> Iterator[pa.RecordBatch]:
        if files:
            table = replace(table, files=files_table(files))
            plan = plan_files(table, self.query.predicate)
            yield from read_files(
                table, self.query, files_of(plan.files), plan.pruning_predicate, self.on_conflict
            )

    def _rows(self, change: _Change) -> Iterator[pa.RecordBatch]:
        (file,) = files_of(files_table([change.file]))
        for batch in (
            TableReader.of(self.whole).open(file).read(self.query.inputs, change.rows, self.on_conflict)
        ):
            result = self.query.result(batch)
            if result.num_rows:
                yield result


def _partitioned(table: Snapshot, names: Sequence[str]) -> Snapshot:
    partitions = (*table.partition_columns, *names)
    return replace(table, metadata=msgspec.structs.replace(table.metadata, partition_columns=partitions))


def _with_values(change: _Change, values: Mapping[str, str | None]) -> _Change:
    kind = {} if change.kind is None else {CHANGE_TYPE: change.kind}
    partition_values = {**change.file.partition_values, **values, **kind}
    return replace(change, file=msgspec.structs.replace(change.file, partition_values=partition_values))


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
