"""Build the state of a table at one version from its log (PROTOCOL.md, "Action Reconciliation").

The files of a snapshot are one Arrow table. A replay streams the batches of the checkpoint, and only copies
those of which later commits remove files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from operator import attrgetter
from string import ascii_letters, digits
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._html import html_table
from ..errors import MalformedLogError, printable
from ..protocol import properties
from ..protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    decode_path,
    encode_path,
    file_key,
)
from ..protocol.schema.arrow import to_arrow
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import StructType, sql_type
from ..storage.store import Store
from ..variant.moments import check_timezone
from .file_keys import FileKey, FileKeys, drop_files, drop_files_at_once
from .file_list import FileList

__all__ = [
    "FILES_SCHEMA",
    "TOMBSTONES_SCHEMA",
    "Checkpoint",
    "Commit",
    "CommitTables",
    "Snapshot",
    "add_actions",
    "are_unencoded",
    "as_checkpoint",
    "decode_paths",
    "files_table",
    "in_store",
    "listed_files",
    "remove_actions",
    "replay",
    "replay_tombstones",
    "subtract_files",
    "table_actions",
    "tombstones_table",
]

_PLAIN_CHARACTERS = f"{ascii_letters}{digits}/_.=-".encode()

_STRING_MAP = pa.map_(pa.string(), pa.string())

_DELETION_VECTOR = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline_dv", pa.string()),
        ("offset", pa.int32()),
        ("size_in_bytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("max_row_index", pa.int64()),
    ]
)

FILES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("encoded_path", pa.string()),
        ("partition_values", _STRING_MAP),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("stats", pa.string()),
        ("tags", _STRING_MAP),
        ("deletion_vector", _DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
"""The columns of `Snapshot.files`: the fields of an AddFile, `path` decoded and `stats` verbatim.

`encoded_path` is the path in the log, null if `encode_path` returns the same. An action on the file must
repeat it, because Spark compares the texts, and writers encode different characters.
"""

_TOMBSTONE_FIELDS: list[tuple[str, pa.DataType]] = [
    ("path", pa.string()),
    ("encoded_path", pa.string()),
    ("deletion_timestamp", pa.int64()),
    ("extended_file_metadata", pa.bool_()),
    ("partition_values", _STRING_MAP),
    ("size", pa.int64()),
    ("deletion_vector", _DELETION_VECTOR),
    ("base_row_id", pa.int64()),
    ("default_row_commit_version", pa.int64()),
]
TOMBSTONES_SCHEMA = pa.schema(_TOMBSTONE_FIELDS)
"""The fields of a RemoveFile in a checkpoint, with `path` both decoded and as in the log."""


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint: the actions that are not files, and batches of files.

    `files` have FILES_SCHEMA, `tombstones` have TOMBSTONES_SCHEMA. Both may be streams that can be iterated
    over only once. The files of a large checkpoint are a FileList, which is not read before it is used.
    """

    actions: Sequence[Action]
    files: Iterable[pa.RecordBatch] | FileList
    tombstones: Iterable[pa.RecordBatch] = ()


class CommitTables(msgspec.Struct, frozen=True):
    """A commit with its files as tables, which need less memory than actions.

    `actions` are the others. `added` has FILES_SCHEMA. `removed` has FILES_SCHEMA or TOMBSTONES_SCHEMA.
    """

    actions: Sequence[Action]
    added: pa.Table
    removed: pa.Table

    @property
    def touched(self) -> FileKeys:
        """Return the keys of all files."""
        return FileKeys.of_table(self.removed).union(FileKeys.of_table(self.added))


Commit: TypeAlias = "Sequence[Action] | CommitTables"


def table_actions(commit: Commit) -> Sequence[Action]:
    """Return the actions of a commit, of which those on files may be missing."""
    return commit.actions if isinstance(commit, CommitTables) else commit


@dataclass(frozen=True, repr=False, eq=False)
class Snapshot:
    """The state of a table at one version.

    `files` has one row for each logical file (FILES_SCHEMA). The files of a large checkpoint are loaded when
    `files` is first used; a read that selects files does not use it. `timestamp` is the in-commit timestamp
    of the version in milliseconds since 1970, None if the table does not have them.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> snapshot = dv.load_snapshot("clicks")
        >>> snapshot.version, snapshot.num_files, snapshot.arrow_schema.names
        (0, 1, ['id'])
    """

    store: Store
    version: int
    configuration: TableConfiguration
    files: pa.Table
    txns: Mapping[str, Txn]
    domain_metadata: Mapping[str, DomainMetadata]
    timestamp: int | None = None

    def in_timezone(self, timezone: str) -> Snapshot:
        """Return the snapshot with local times in another time zone.

        Args:
            timezone: The time zone of local times in SQL text, as in `read_table`.

        Raises:
            ValueError: The time zone is unknown.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}])
            >>> dv.load_snapshot("clicks").in_timezone("Europe/Berlin").timezone
            'Europe/Berlin'
        """
        check_timezone(timezone)
        configuration = replace(self.configuration, timezone=timezone)
        return replace(self, configuration=configuration, files=self.__dict__["files"])

    @property
    def uri(self) -> str:
        """Return the URI or the path of the table."""
        return self.configuration.uri

    @property
    def protocol(self) -> Protocol:
        """Return the protocol of the table."""
        return self.configuration.protocol

    @property
    def metadata(self) -> Metadata:
        """Return the metadata of the table."""
        return self.configuration.metadata

    @property
    def schema(self) -> StructType:
        """Return the schema of the table."""
        return self.configuration.schema

    @property
    def timezone(self) -> str:
        """Return the time zone of local times."""
        return self.configuration.timezone

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the schema as Arrow types, as a scan of all columns returns it."""
        return to_arrow(self.schema)

    @property
    def properties(self) -> Mapping[str, str]:
        """Return the texts of the table properties."""
        return self.configuration.properties

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Return the logical names of the partition columns, in order."""
        return self.metadata.partition_columns

    @property
    def num_files(self) -> int:
        """Return the number of logical files."""
        totals = self._listed_totals
        return self.files.num_rows if totals is None else totals[0]

    @property
    def num_bytes(self) -> int:
        """Return the total size of all data files in bytes."""
        totals = self._listed_totals
        return int(pc.sum(self.files["size"]).as_py() or 0) if totals is None else totals[1]

    @property
    def _listed_totals(self) -> tuple[int, int] | None:
        """Return the number of files and bytes of the list, None if it is loaded or cannot be read."""
        listed = listed_files(self)
        try:
            return None if listed is None else listed.totals()
        except MalformedLogError:
            # Loading the files uses other files of the log, if they have the same actions.
            return None

    def __repr__(self) -> str:
        features = sorted({*(self.protocol.reader_features or ()), *(self.protocol.writer_features or ())})
        lines = [
            f"Snapshot of {self.uri}",
            f"  version     {self.version}",
            f"  files       {self.num_files:,} ({self.num_bytes:,} bytes)",
            f"  protocol    {self.protocol.min_reader_version}, {self.protocol.min_writer_version}",
            f"  features    {', '.join(features)}",
            f"  partitions  {', '.join(self.partition_columns)}",
            *(f"  property    {name} = {value}" for name, value in sorted(self.properties.items())),
            *(
                f"  column      {_column(field.name, sql_type(field.type), field.nullable)}"
                for field in self.schema.fields
            ),
        ]
        return "\n".join(printable(line) for line in lines if line.split()[1:])

    def _repr_html_(self) -> str:
        caption = f"{self.uri}, version {self.version}: {self.num_files:,} files, {self.num_bytes:,} bytes"
        columns = [
            (each.name, sql_type(each.type), "" if each.nullable else "not null")
            for each in self.schema.fields
        ]
        properties = [(name, value, "property") for name, value in sorted(self.properties.items())]
        return html_table(caption, ("column", "type", ""), [*columns, *properties])


class _Files:
    """The field `files` of a snapshot: a table, or the list that is loaded as one when it is first used."""

    def __get__(self, snapshot: Snapshot | None, owner: object = None) -> pa.Table:
        if snapshot is None:
            raise AttributeError("files")
        files: pa.Table | FileList = snapshot.__dict__["files"]
        if isinstance(files, FileList):
            files = snapshot.__dict__["files"] = files.load()
        return files

    def __set__(self, snapshot: Snapshot, files: pa.Table | FileList) -> None:
        snapshot.__dict__["files"] = files


# Not in the class, where a dataclass would take it for the default of the field.
Snapshot.files = _Files()  # type: ignore[assignment]


def listed_files(snapshot: Snapshot) -> FileList | None:
    """Return the list of a snapshot's files while it is not loaded, None once `files` is a table."""
    files: pa.Table | FileList = snapshot.__dict__["files"]
    return files if isinstance(files, FileList) else None


def in_store(snapshot: Snapshot, store: Store) -> Snapshot:
    """Return the snapshot with another store of the same table; its files are not loaded."""
    return replace(snapshot, store=store, files=snapshot.__dict__["files"])


def files_table(adds: Sequence[AddFile]) -> pa.Table:
    """Return AddFiles as a table of FILES_SCHEMA, with decoded paths."""
    return _table(adds, FILES_SCHEMA)


def add_actions(files: pa.Table) -> Iterator[AddFile]:
    """Yield the AddFiles of rows of FILES_SCHEMA, with paths as in the log."""
    for batch in files.to_batches(_ROWS_AS_OBJECTS):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            path, encoded, vector = row.pop("path"), row.pop("encoded_path"), row.pop("deletion_vector")
            yield AddFile(
                path=encoded or encode_path(path),
                partition_values=row.pop("partition_values") or {},
                data_change=True,
                deletion_vector=vector and DeletionVector(**vector),
                **row,
            )


def remove_actions(files: pa.Table, now: int, *, data_change: bool) -> Iterator[RemoveFile]:
    """Yield the RemoveFiles of rows of FILES_SCHEMA, with the fields that readers of changes or row ids need.

    `now` is the time of the removal in milliseconds since 1970.
    """
    for batch in files.to_batches(_ROWS_AS_OBJECTS):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            yield RemoveFile(
                path=row["encoded_path"] or encode_path(row["path"]),
                deletion_timestamp=now,
                data_change=data_change,
                extended_file_metadata=True,
                partition_values=row["partition_values"] or {},
                size=row["size"],
                stats=row["stats"],
                tags=row["tags"],
                deletion_vector=row["deletion_vector"] and DeletionVector(**row["deletion_vector"]),
                base_row_id=row["base_row_id"],
                default_row_commit_version=row["default_row_commit_version"],
            )


def subtract_files(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows of `files` whose logical files are not in `others`; both have FILES_SCHEMA."""
    remaining = drop_files_at_once(files.to_batches(), FileKeys.of_table(others))
    return pa.Table.from_batches(remaining, FILES_SCHEMA)


def tombstones_table(removes: Sequence[RemoveFile]) -> pa.Table:
    """Return RemoveFiles as a table of TOMBSTONES_SCHEMA, with decoded paths."""
    return _table(removes, TOMBSTONES_SCHEMA)


def are_unencoded(paths: pa.StringArray) -> bool:
    """Return whether paths contain no encoded characters; False may also mean that this is unknown."""
    characters = paths.buffers()[2]
    return characters is None or not characters.to_pybytes().translate(None, _PLAIN_CHARACTERS)


def decode_paths(texts: pa.StringArray) -> tuple[Any, Any]:
    """Return the decoded paths, and the paths in the log where `encode_path` returns others, else null.

    The second is None instead of an array of nulls.
    """
    if are_unencoded(texts):
        return texts, None
    paths: list[Any] = texts.to_pylist()
    return (
        pa.array(map(decode_path, paths), texts.type, size=len(texts)),
        pa.array(map(_encoded_path, paths), texts.type, size=len(texts)),
    )


def _encoded_path(text: str) -> str | None:
    return None if encode_path(decode_path(text)) == text else text


def replay(
    store: Store,
    version: int,
    checkpoint: Checkpoint | None,
    commits: Iterable[Commit],
    *,
    timestamp: int | None = None,
) -> Snapshot:
    """Return the snapshot at `version` from a checkpoint and the commits after it, oldest first.

    The latest action on a logical file `(path, dvId)`, a `txn` application or a domain applies; tombstones
    remove files. `timestamp` is the in-commit timestamp of the version if the last of `commits` does not have
    it. Raises MalformedLogError if there is no protocol or no metaData, and what `parse_schema` raises for
    the schema.
    """
    state = _State()
    if checkpoint is not None:
        state.apply(checkpoint.actions)
    touched, added = FileKeys(), list[pa.RecordBatch]()
    for commit in commits:
        if isinstance(commit, CommitTables):
            touched, added = _after_changes(touched, added, *state.take_files())
            state.apply(commit.actions)
            touched, added = _after_changes(touched, added, commit.touched, commit.added)
        else:
            state.apply(commit)
    touched, added = _after_changes(touched, added, *state.take_files())
    if state.timestamp is None:
        state.timestamp = timestamp
    if state.metadata is not None and not properties.get(
        state.metadata.configuration, properties.ENABLE_IN_COMMIT_TIMESTAMPS
    ):
        state.timestamp = None
    if checkpoint is not None and isinstance(checkpoint.files, FileList):
        later = pa.Table.from_batches(added, FILES_SCHEMA)
        return _snapshot(store, version, state, checkpoint.files.after(touched, later))
    files = () if checkpoint is None else checkpoint.files
    # A checkpoint is a stream, of which only the remaining files are kept.
    remaining = (
        drop_files_at_once(files, touched) if isinstance(files, list) else map(drop_files(touched), files)
    )
    batches = _append([batch for batch in remaining if batch.num_rows], added)
    return _snapshot(store, version, state, pa.Table.from_batches(batches, FILES_SCHEMA))


def _after_changes(
    touched: FileKeys, added: Sequence[pa.RecordBatch], keys: FileKeys, files: pa.Table
) -> tuple[FileKeys, list[pa.RecordBatch]]:
    """Return the files that commits touched and those that they added, after changes of a later commit."""
    remaining = [batch for batch in drop_files_at_once(added, keys) if batch.num_rows]
    return touched.union(keys), [*remaining, *files.to_batches()]


def as_checkpoint(snapshot: Snapshot) -> Checkpoint:
    """Return a snapshot as what the replay of later commits starts from."""
    actions: list[Action] = [snapshot.protocol, snapshot.metadata]
    actions += [*snapshot.txns.values(), *snapshot.domain_metadata.values()]
    listed = listed_files(snapshot)
    return Checkpoint(actions, snapshot.files.to_batches() if listed is None else listed)


def replay_tombstones(checkpoint: Checkpoint | None, commits: Iterable[Commit]) -> pa.Table:
    """Return the tombstones of a checkpoint and the commits after it, as a table of TOMBSTONES_SCHEMA."""
    removed: dict[FileKey, RemoveFile] = {}
    touched: set[FileKey] = set()
    batches: Iterable[pa.RecordBatch] = () if checkpoint is None else checkpoint.tombstones
    for commit in commits:
        if isinstance(commit, CommitTables):
            batches = _after_removals(batches, touched, removed)
            batches = [*drop_files_at_once(batches, commit.touched), *commit.removed.to_batches()]
            removed, touched = {}, set()
            continue
        for action in commit:
            if isinstance(action, (AddFile, RemoveFile)):
                key = file_key(action)
                touched.add(key)
                removed.pop(key, None)
                if isinstance(action, RemoveFile):
                    removed[key] = action
    return pa.Table.from_batches(_after_removals(batches, touched, removed), TOMBSTONES_SCHEMA)


def _after_removals(
    batches: Iterable[pa.RecordBatch], touched: set[FileKey], removed: Mapping[FileKey, RemoveFile]
) -> list[pa.RecordBatch]:
    later = tombstones_table(list(removed.values())).to_batches()
    return [*map(drop_files(FileKeys.of(touched)), batches), *later]


class _State:
    """The state during the replay of a log."""

    def __init__(self) -> None:
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.timestamp: int | None = None
        self.txns: dict[str, Txn] = {}
        self.domains: dict[str, DomainMetadata] = {}
        self.added: dict[FileKey, AddFile] = {}
        self.touched: set[FileKey] = set()

    def take_files(self) -> tuple[FileKeys, pa.Table]:
        """Return the keys of the files that commits touched, and those that they added, and forget both."""
        taken = FileKeys.of(self.touched), files_table(list(self.added.values()))
        self.touched, self.added = set(), {}
        return taken

    def apply(self, actions: Iterable[Action]) -> None:
        """Apply the actions of one commit."""
        self.timestamp = None
        for action in actions:
            if isinstance(action, AddFile):
                key = file_key(action)
                self.touched.add(key)
                self.added[key] = action
            elif isinstance(action, RemoveFile):
                key = file_key(action)
                self.touched.add(key)
                self.added.pop(key, None)
            else:
                self._apply_table_action(action)

    def _apply_table_action(self, action: Action) -> None:
        if isinstance(action, Protocol):
            self.protocol = action
        elif isinstance(action, Metadata):
            self.metadata = action
        elif isinstance(action, Txn):
            self.txns[action.app_id] = action
        elif isinstance(action, CommitInfo):
            self.timestamp = action.in_commit_timestamp
        elif isinstance(action, DomainMetadata):
            if action.removed:
                self.domains.pop(action.domain, None)
            else:
                self.domains[action.domain] = action


def _snapshot(store: Store, version: int, state: _State, files: Any) -> Snapshot:
    if state.protocol is None or state.metadata is None:
        lacking = "protocol" if state.protocol is None else "metaData"
        raise MalformedLogError(
            f"the log of {store.uri} lacks {lacking} up to version {version}",
            table=store.uri,
            version=version,
        )
    return Snapshot(
        store=store,
        version=version,
        configuration=TableConfiguration.of(store.uri, state.protocol, state.metadata),
        files=files,
        txns=state.txns,
        domain_metadata=state.domains,
        timestamp=state.timestamp,
    )


def _append(batches: list[pa.RecordBatch], added: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return all batches, with the last ones merged that are not larger than the rows after them.

    A snapshot that moves on by many small commits has few batches, and copies each row a few times only.
    """
    merged = sum(batch.num_rows for batch in added)
    while added and batches and batches[-1].num_rows <= merged:
        if merged + batches[-1].num_rows > _BATCH_ROWS:
            break
        merged += batches[-1].num_rows
        table = pa.Table.from_batches([batches.pop(), *added])
        added = table.combine_chunks(_pool_for_files()).to_batches()
    return [*batches, *added]


def _table(actions: Sequence[AddFile | RemoveFile], schema: pa.Schema) -> pa.Table:
    starts = range(0, len(actions), _BATCH_ROWS)
    return pa.Table.from_batches([_batch(actions[row : row + _BATCH_ROWS], schema) for row in starts], schema)


def _batch(actions: Sequence[AddFile | RemoveFile], schema: pa.Schema) -> pa.RecordBatch:
    paths, encoded_paths = decode_paths(_plain(actions, schema.field("path")))
    if encoded_paths is None:
        encoded_paths = pa.nulls(len(actions), pa.string(), memory_pool=_pool_for_files())
    columns = [
        _COLUMNS.get(field.name, _plain)(actions, field) for field in schema if field.name not in _PATHS
    ]
    return pa.record_batch([paths, encoded_paths, *columns], schema=schema)


def _plain(actions: Sequence[Any], field: Any) -> Any:
    return _array(map(attrgetter(field.name), actions), field.type, len(actions))


def _maps(actions: Sequence[Any], field: Any) -> Any:
    maps = list(map(attrgetter(field.name), actions))
    present = [entries for entries in maps if entries]
    ends = list(accumulate((len(entries or ()) for entries in maps), initial=0))
    keys = _array(list(chain.from_iterable(present)), pa.string())
    values = _array([value for entries in present for value in entries.values()], pa.string())
    array: Any = pa.MapArray
    mask = _array([entries is None for entries in maps], pa.bool_())
    offsets = _array(ends, pa.int32())
    return array.from_arrays(offsets, keys, values, field.type, pool=_pool_for_files(), mask=mask)


def _vectors(actions: Sequence[Any], field: Any) -> Any:
    vectors = map(attrgetter(field.name), actions)
    return _array([vector and msgspec.structs.asdict(vector) for vector in vectors], field.type)


def _array(values: Iterable[Any], arrow_type: pa.DataType, size: int | None = None) -> Any:
    return pa.array(values, arrow_type, size=size, memory_pool=_pool_for_files())


_BATCH_ROWS = 50_000
"""The rows of a batch: few enough that their texts do not exceed the 2 GB of an array."""

_ROWS_AS_OBJECTS = 1000
"""The rows that are Python objects at once; each needs 2 kB."""

_PATHS = ("path", "encoded_path")
"""The first columns of FILES_SCHEMA and TOMBSTONES_SCHEMA."""

_COLUMNS: dict[str, Callable[[Sequence[Any], Any], Any]] = {
    "partition_values": _maps,
    "tags": _maps,
    "deletion_vector": _vectors,
}


def _pool_for_files() -> pa.MemoryPool:
    """Return the memory pool for the columns of many files.

    mimalloc, which is Arrow's default, requests huge pages. On a machine with fragmented memory, the kernel
    needs longer to find them than the whole log takes to load. Another pool that the process chose is used.
    """
    default = pa.default_memory_pool()
    return pa.system_memory_pool() if default.backend_name == "mimalloc" else default


def _column(name: str, type_text: str, nullable: bool) -> str:
    return f"{name} {type_text}" if nullable else f"{name} {type_text} not null"
