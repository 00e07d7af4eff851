"""The door to `_delta_log`: snapshots out of it, commits into it (PROTOCOL.md, "Delta Log Entries").

`load_snapshot` parses; whether this library may read or write what it finds is for `features` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import stats
from .actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    Txn,
    decode_commit,
    decode_path,
    encode_commit,
)
from .errors import (
    MalformedLogError,
    StoreError,
    TableNotFoundError,
    VersionNotFoundError,
)
from .snapshot import FILES_SCHEMA, Checkpoint, Snapshot, encoded_path, files_table, replay
from .store import Store, TableLocation, list_files, open_store, put_if_absent, read, read_if_present

__all__ = [
    "commit_file_name",
    "load_snapshot",
    "read_commits",
    "refresh",
    "table_exists",
    "write_commit",
]

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<unique>[0-9A-Fa-f-]{36}))?\.(?:parquet|json)"
)

CommitActions: TypeAlias = tuple[int, list[Action]]


def commit_file_name(version: int) -> str:
    """Return the path of a version's commit below the table's root."""
    return f"{_LOG}/{version:020d}.json"


def table_exists(store: Store) -> bool:
    """Tell whether the root has a log with at least one version in it."""
    listing = _list_log(store, None)
    return bool(listing.commits or listing.checkpoints)


def load_snapshot(
    table: TableLocation | Store,
    version: int | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Return the state of a table at `version`, by default the latest.

    Raises TableNotFoundError, VersionNotFoundError, and MalformedLogError for a log that lacks a version or
    holds one that cannot be understood. A stale or corrupt `_last_checkpoint` does no harm, nor does a
    checkpoint that cannot be read while older files can stand in for it.
    """
    store = table if isinstance(table, Store) else open_store(table, storage_options)
    hint = _checkpoint_hint(store)
    if hint is not None and (version is None or hint <= version):
        listing = _list_log(store, hint)
        if any(version is None or found.version <= version for found in listing.checkpoints):
            try:
                return _load(store, listing, version)
            except (MalformedLogError, VersionNotFoundError):
                # The hint hides what is older: a full listing may hold another way to this version.
                pass
    return _load(store, _list_log(store, None), version)


def refresh(snapshot: Snapshot) -> Snapshot:
    """Return the latest snapshot of the same table."""
    return load_snapshot(snapshot.store)


def read_commits(store: Store, after_version: int) -> list[CommitActions]:
    """Return the commits behind a version, in order, each with its version.

    Raises MalformedLogError for one that is missing between two others or cannot be understood.
    """
    commits = sorted(_list_log(store, after_version + 1).commits)
    return list(_read_commits(store, range(after_version + 1, max(commits, default=after_version) + 1)))


def write_commit(store: Store, version: int, actions: Iterable[Action]) -> None:
    """Commit a version, whole or not at all. Raises VersionExistsError when another writer has it."""
    put_if_absent(store, commit_file_name(version), encode_commit(actions))


@dataclass(frozen=True)
class _CheckpointFiles:
    """The files of one complete checkpoint."""

    version: int
    paths: tuple[str, ...]


@dataclass(frozen=True)
class _Listing:
    """What a listing of `_delta_log` shows: versions of commits, and complete checkpoints, newest first."""

    commits: frozenset[int]
    checkpoints: tuple[_CheckpointFiles, ...]

    @property
    def latest(self) -> int:
        """Return the highest version that the log knows, or -1."""
        return max(max(self.commits, default=-1), max((c.version for c in self.checkpoints), default=-1))


def _list_log(store: Store, start: int | None) -> _Listing:
    # "." sorts before every digit and letter, so this is just before the first file of version `start`.
    after = None if start is None else f"{_LOG}/{start:020d}"
    names = [path.removeprefix(f"{_LOG}/") for path in list_files(store, _LOG, after)]
    commits = frozenset(int(found[1]) for name in names if (found := _COMMIT.fullmatch(name)))
    checkpoints = sorted(_complete_checkpoints(names), key=lambda c: (c.version, c.paths), reverse=True)
    return _Listing(commits, tuple(checkpoints))


def _complete_checkpoints(names: Iterable[str]) -> Iterator[_CheckpointFiles]:
    by_parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        if not (found := _CHECKPOINT.fullmatch(name)):
            continue
        version = int(found["version"])
        if found["parts"] is None:
            yield _CheckpointFiles(version, (f"{_LOG}/{name}",))
        else:
            by_parts.setdefault((version, int(found["parts"])), {})[int(found["part"])] = f"{_LOG}/{name}"
    for (version, parts), paths in by_parts.items():
        if sorted(paths) == list(range(1, parts + 1)):
            yield _CheckpointFiles(version, tuple(paths[part] for part in sorted(paths)))


class _LastCheckpoint(msgspec.Struct):
    version: int


def _checkpoint_hint(store: Store) -> int | None:
    data = read_if_present(store, f"{_LOG}/_last_checkpoint")
    try:
        version = msgspec.json.decode(data or b"", type=_LastCheckpoint).version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return version if 0 <= version < 10**20 else None


def _load(store: Store, listing: _Listing, version: int | None) -> Snapshot:
    if listing.latest < 0:
        raise TableNotFoundError(f"there is no Delta table at {store.uri}: it has no {_LOG}")
    target = listing.latest if version is None else version
    if not 0 <= target <= listing.latest:
        raise VersionNotFoundError(f"{store.uri} has no version {target}: its latest is {listing.latest}")
    unreadable: MalformedLogError | None = None
    for files in (found for found in listing.checkpoints if found.version <= target):
        _check_no_gap(store, listing, files.version + 1, target)
        try:
            checkpoint = _read_checkpoint(store, files)
        except MalformedLogError as error:
            unreadable = unreadable or error
            continue
        return _replay(store, target, files.version, checkpoint)
    if 0 not in listing.commits:
        raise unreadable or _no_way_back(store, listing, target)
    _check_no_gap(store, listing, 0, target)
    return _replay(store, target, -1, None)


def _replay(store: Store, target: int, base: int, checkpoint: Checkpoint | None) -> Snapshot:
    commits = (actions for _, actions in _read_commits(store, range(base + 1, target + 1)))
    # A checkpoint has no commitInfo: the in-commit timestamp of its version is in the commit beside it.
    timestamp = _commit_timestamp(store, target) if base == target else None
    return replay(store, target, checkpoint, commits, timestamp=timestamp)


def _check_no_gap(store: Store, listing: _Listing, first: int, last: int) -> None:
    missing = next((version for version in range(first, last + 1) if version not in listing.commits), None)
    if missing is not None:
        raise MalformedLogError(
            f"{store.uri}: {commit_file_name(missing)} is missing, and later versions are there; restore it, "
            f"or load a version before {missing}"
        )


def _no_way_back(store: Store, listing: _Listing, target: int) -> Exception:
    reachable = [found.version for found in listing.checkpoints]
    if reachable:
        return VersionNotFoundError(
            f"{store.uri}: the log no longer reaches back to version {target}, only to {min(reachable)}"
        )
    return MalformedLogError(
        f"{store.uri}: {commit_file_name(0)} is missing and there is no checkpoint to stand in for it"
    )


def _read_commits(store: Store, versions: range) -> Iterator[CommitActions]:
    paths = [commit_file_name(version) for version in versions]
    if not paths:
        return
    with ThreadPoolExecutor(max_workers=min(16, len(paths))) as threads:
        data = threads.map(lambda path: read(store, path), paths)
        for version, path, content in zip(versions, paths, data, strict=True):
            yield version, decode_commit(content, f"{store.uri}/{path}")


def _commit_timestamp(store: Store, version: int) -> int | None:
    path = commit_file_name(version)
    data = read_if_present(store, path)
    infos = (a for a in decode_commit(data or b"", f"{store.uri}/{path}") if isinstance(a, CommitInfo))
    return next((info.in_commit_timestamp for info in infos), None)


_ADD_FIELDS = {
    "path": "path",
    "partitionValues": "partition_values",
    "size": "size",
    "modificationTime": "modification_time",
    "stats": "stats",
    "tags": "tags",
    "deletionVector": "deletion_vector",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
    "clusteringProvider": "clustering_provider",
}
_DELETION_VECTOR_FIELDS = {
    "storageType": "storage_type",
    "pathOrInlineDv": "path_or_inline_dv",
    "offset": "offset",
    "sizeInBytes": "size_in_bytes",
    "cardinality": "cardinality",
    "maxRowIndex": "max_row_index",
}
_TABLE_ACTIONS: dict[str, type[Protocol | Metadata | Txn | DomainMetadata | Sidecar]] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
    "sidecar": Sidecar,
}
# Tombstones of a checkpoint say nothing of its state.
_COLUMNS = [*(f"add.{name}" for name in _ADD_FIELDS), *_TABLE_ACTIONS]


def _read_checkpoint(store: Store, files: _CheckpointFiles) -> Checkpoint:
    checkpoint = _join([_read_checkpoint_file(store, path) for path in files.paths])
    sidecars = [action for action in checkpoint.actions if isinstance(action, Sidecar)]
    manifest = [action for action in checkpoint.actions if not isinstance(action, Sidecar)]
    if {Protocol, Metadata} - {type(action) for action in manifest}:
        raise MalformedLogError(f"{store.uri}/{files.paths[0]} lacks protocol or metaData")
    paths = [f"{_LOG}/_sidecars/{decode_path(sidecar.path)}" for sidecar in sidecars]
    return _join(
        [Checkpoint(manifest, checkpoint.files), *(_read_checkpoint_file(store, path) for path in paths)]
    )


def _join(parts: Sequence[Checkpoint]) -> Checkpoint:
    actions = [action for part in parts for action in part.actions]
    return Checkpoint(actions, pa.concat_tables([part.files for part in parts]))


def _read_checkpoint_file(store: Store, path: str) -> Checkpoint:
    name = f"{store.uri}/{path}"
    try:
        data = read(store, path)
        return _decode_manifest(data, name) if path.endswith(".json") else _decode_parquet(data)
    except (StoreError, pa.ArrowException, OSError, msgspec.MsgspecError) as error:
        raise MalformedLogError(f"the checkpoint {name} cannot be read: {error}") from error


def _decode_manifest(data: bytes, name: str) -> Checkpoint:
    actions = decode_commit(data, name)
    adds = [action for action in actions if isinstance(action, AddFile)]
    return Checkpoint([a for a in actions if not isinstance(a, (AddFile, RemoveFile))], files_table(adds))


def _decode_parquet(data: bytes) -> Checkpoint:
    file = pq.ParquetFile(pa.BufferReader(data))
    actions: list[Action] = []
    files: list[pa.Table] = []
    for batch in file.iter_batches(columns=_COLUMNS):
        if "add" in batch.schema.names:
            files.append(_files_of(cast(pa.StructArray, batch.column("add"))))
        for name, kind in _TABLE_ACTIONS.items():
            if name in batch.schema.names:
                actions += _actions_of(cast(pa.StructArray, batch.column(name)), kind)
    table = pa.concat_tables([FILES_SCHEMA.empty_table(), *files])
    return Checkpoint(actions, _with_parsed_stats(file, table) if table["stats"].null_count else table)


def _with_parsed_stats(file: pq.ParquetFile, files: pa.Table) -> pa.Table:
    """Fill in the statistics that a checkpoint has as columns only (requirements ST16)."""
    texts: list[str | None] = []
    for batch in file.iter_batches(columns=["add.path", "add.stats_parsed"]):
        adds = cast(pa.StructArray, batch.column("add"))
        if adds.type.get_field_index("stats_parsed") < 0:
            return files
        parsed = pc.struct_field(adds.filter(adds.is_valid()), "stats_parsed")
        texts += stats.texts_of_parsed(cast(pa.StructArray, parsed))
    filled = pc.coalesce(files["stats"], pa.chunked_array([pa.array(texts, pa.string())]))
    return files.set_column(files.schema.get_field_index("stats"), FILES_SCHEMA.field("stats"), filled)


def _actions_of(
    column: pa.StructArray, kind: type[Protocol | Metadata | Txn | DomainMetadata | Sidecar]
) -> Iterator[Action]:
    rows: pa.Array[Any] = column.filter(column.is_valid())
    for row in rows.to_pylist(maps_as_pydicts="lossy"):
        yield msgspec.convert(_without_nulls(row), kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _files_of(column: pa.StructArray) -> pa.Table:
    adds = column.filter(column.is_valid())
    columns = {_ADD_FIELDS[field.name]: pc.struct_field(adds, field.name) for field in adds.type}
    columns["encoded_path"] = _encoded_paths(columns["path"])
    columns["path"] = _decode_paths(columns["path"])
    if "deletion_vector" in columns:
        columns["deletion_vector"] = _rename(columns["deletion_vector"], _DELETION_VECTOR_FIELDS)
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(adds), field.type)
        for field in FILES_SCHEMA
    ]
    return pa.table(arrays, schema=FILES_SCHEMA)


def _decode_paths(paths: pa.Array[Any]) -> pa.Array[Any]:
    if not pc.any(pc.match_substring(paths, "%")).as_py():
        return paths
    return pa.array([decode_path(str(path)) for path in paths.to_pylist()], pa.string())


def _encoded_paths(paths: pa.Array[Any]) -> pa.Array[Any]:
    if not pc.any(pc.match_substring_regex(paths, "[^A-Za-z0-9/_.=-]")).as_py():
        return pa.nulls(len(paths), pa.string())
    return pa.array([encoded_path(str(path)) for path in paths.to_pylist()], pa.string())


def _rename(vectors: pa.StructArray, names: Mapping[str, str]) -> pa.StructArray:
    type_ = FILES_SCHEMA.field("deletion_vector").type
    present = {
        names[field.name]: pc.struct_field(vectors, field.name)
        for field in vectors.type
        if field.name in names
    }
    children = [
        present[field.name].cast(field.type) if field.name in present else pa.nulls(len(vectors), field.type)
        for field in type_
    ]
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=vectors.is_null())
