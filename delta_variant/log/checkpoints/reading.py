"""Read checkpoints: classic, multi-part, and V2 in JSON or Parquet (PROTOCOL.md, "Checkpoints").

The encoded files are in memory. Their rows are decoded in batches of 50,000, so that rows that a caller drops
are never all in memory. The native library decodes them: `ParquetFile` of pyarrow always allocates from the
default memory pool, which is slow on a machine with fragmented memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ... import _native
from ...errors import DeltaVariantError, MalformedLogError
from ...protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    Txn,
    decode_commit,
    decode_path,
)
from ...storage.store import Store, read
from ..listing import LOG, CheckpointFiles, checkpoint_name, list_log
from ..snapshot import (
    FILES_SCHEMA,
    TOMBSTONES_SCHEMA,
    Checkpoint,
    Snapshot,
    decode_paths,
    files_table,
    tombstones_table,
)
from .parsed_statistics import to_text

__all__ = [
    "ADD_FIELDS",
    "DELETION_VECTOR_FIELDS",
    "REMOVE_FIELDS",
    "duplicate_statistics",
    "read_checkpoint",
    "sidecars_of",
]

ADD_FIELDS = {
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
REMOVE_FIELDS = {
    "path": "path",
    "deletionTimestamp": "deletion_timestamp",
    "extendedFileMetadata": "extended_file_metadata",
    "partitionValues": "partition_values",
    "size": "size",
    "deletionVector": "deletion_vector",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
}
DELETION_VECTOR_FIELDS = {
    "storageType": "storage_type",
    "pathOrInlineDv": "path_or_inline_dv",
    "offset": "offset",
    "sizeInBytes": "size_in_bytes",
    "cardinality": "cardinality",
    "maxRowIndex": "max_row_index",
}
STATS_PARSED = "stats_parsed"

_TABLE_ACTIONS: dict[str, type[Protocol | Metadata | Txn | DomainMetadata | Sidecar]] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
    "sidecar": Sidecar,
}
_BATCH_ROWS = 50_000

# Our own errors, and those that pyarrow and msgspec raise for damaged files.
_UNREADABLE = (
    DeltaVariantError,
    pa.ArrowException,
    msgspec.MsgspecError,
    OSError,
    ValueError,
    LookupError,
    OverflowError,
)


def read_checkpoint(store: Store, files: CheckpointFiles) -> Checkpoint:
    """Return the content of a checkpoint; the batches of its files are read lazily.

    Raises MalformedLogError, possibly during the iteration, for a file that is missing or malformed.
    """
    manifest = _join(_read_files(store, files.paths))
    sidecars = [action for action in manifest.actions if isinstance(action, Sidecar)]
    actions = [action for action in manifest.actions if not isinstance(action, Sidecar)]
    if {Protocol, Metadata} - {type(action) for action in actions}:
        raise MalformedLogError("the checkpoint lacks protocol or metaData", version=files.version).at(
            file=f"{store.uri}/{files.paths[0]}"
        )
    with _checkpoint_errors(f"{store.uri}/{files.paths[0]}"):
        paths = _paths_of(sidecars)
    parts = _read_files(store, paths)
    return _join([Checkpoint(actions, manifest.files, manifest.tombstones), *parts])


def sidecars_of(store: Store, files: CheckpointFiles) -> list[str]:
    """Return the paths of the sidecars of a checkpoint; raises MalformedLogError if it cannot be read."""
    actions = [action for part in _read_files(store, files.paths) for action in part.actions]
    with _checkpoint_errors(f"{store.uri}/{files.paths[0]}"):
        return _paths_of(action for action in actions if isinstance(action, Sidecar))


def duplicate_statistics(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield path, `stats` and `stats_parsed` as text of the files for which the newest checkpoint has both.

    Raises MalformedLogError for a checkpoint that cannot be read.
    """
    store = snapshot.store
    checkpoints = list_log(store, None).checkpoints
    newest = next((files.paths for files in checkpoints if files.version <= snapshot.version), ())
    actions = [action for part in _read_files(store, newest) for action in part.actions]
    sidecars = _paths_of(action for action in actions if isinstance(action, Sidecar))
    for path in (*newest, *sidecars):
        if path.endswith(".parquet"):
            with _checkpoint_errors(f"{store.uri}/{path}"):
                yield from _read_duplicate_statistics(_open(read(store, path), path))


def _read_duplicate_statistics(file: _ParquetCheckpoint) -> Iterator[tuple[str, str, str]]:
    fields = ("path", "stats", STATS_PARSED)
    for adds in _raw_adds(file, fields):
        if set(fields) <= set(adds.type.names):
            paths, texts, parsed = (pc.struct_field(adds, name) for name in fields)
            rows = zip(paths.to_pylist(), texts.to_pylist(), to_text(parsed).to_pylist(), strict=True)
            yield from ((decode_path(path), *both) for path, *both in rows if None not in both)


def _paths_of(sidecars: Iterable[Sidecar]) -> list[str]:
    return [f"{LOG}/_sidecars/{decode_path(sidecar.path)}" for sidecar in sidecars]


def _join(parts: Iterable[Checkpoint]) -> Checkpoint:
    parts = list(parts)
    return Checkpoint(
        [action for part in parts for action in part.actions],
        chain.from_iterable(part.files for part in parts),
        chain.from_iterable(part.tombstones for part in parts),
    )


def _read_files(store: Store, paths: Iterable[str]) -> list[Checkpoint]:
    with ThreadPoolExecutor(max_workers=8) as threads:
        return list(threads.map(lambda path: _read_file(store, path), paths))


def _read_file(store: Store, path: str) -> Checkpoint:
    name = f"{store.uri}/{path}"
    with _checkpoint_errors(name):
        data = read(store, path)
        return _decode_json(data, name) if path.endswith(".json") else _decode_parquet(data, name)


@contextmanager
def _checkpoint_errors(name: str) -> Iterator[None]:
    """Raise errors about the file `name` of a checkpoint as MalformedLogError."""
    try:
        yield
    except _UNREADABLE as error:
        reason, line = (error.message, error.line) if isinstance(error, DeltaVariantError) else (error, None)
        found = checkpoint_name(name.rpartition("/")[2])
        version = None if found is None else found.version
        malformed = MalformedLogError(f"cannot read the checkpoint: {reason}", version=version)
        raise malformed.at(file=name, line=line) from error


def _decode_json(data: bytes, name: str) -> Checkpoint:
    actions = decode_commit(data, name)
    return Checkpoint(
        [action for action in actions if not isinstance(action, (AddFile, RemoveFile))],
        files_table([action for action in actions if isinstance(action, AddFile)]).to_batches(),
        tombstones_table([action for action in actions if isinstance(action, RemoveFile)]).to_batches(),
    )


@dataclass(frozen=True)
class _ParquetCheckpoint:
    """An open Parquet file of a checkpoint: `columns` are the paths of its leaf columns, in order."""

    metadata: pq.FileMetaData
    columns: list[str]
    data: _native.DataFile


def _open(data: bytes, name: str) -> _ParquetCheckpoint:
    metadata = pq.read_metadata(pa.BufferReader(data))
    columns = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    return _ParquetCheckpoint(metadata, columns, _native.DataFile(data, name))


def _decode_parquet(data: bytes, name: str) -> Checkpoint:
    file = _open(data, name)
    return Checkpoint(
        [action for kind in _TABLE_ACTIONS for action in _read_actions(file, kind)],
        _read_adds(file, name),
        _read_removes(file, name),
    )


def _read_actions(file: _ParquetCheckpoint, kind: str) -> Iterator[Action]:
    for column in _read_column(file, kind, [kind]):
        rows: Any = column
        for row in rows.to_pylist(maps_as_pydicts="lossy"):
            yield msgspec.convert(_without_nulls(row), _TABLE_ACTIONS[kind])


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _read_adds(file: _ParquetCheckpoint, name: str) -> Iterator[pa.RecordBatch]:
    fields = [*ADD_FIELDS, *([STATS_PARSED] if _lacks_text(file) else [])]
    with _checkpoint_errors(name):
        for adds in _raw_adds(file, fields):
            columns = _columns(adds, ADD_FIELDS)
            if STATS_PARSED in adds.type.names:
                columns["stats"] = _with_parsed(columns.get("stats"), pc.struct_field(adds, STATS_PARSED))
            yield _batch(columns, len(adds), FILES_SCHEMA)


def _raw_adds(file: _ParquetCheckpoint, fields: Iterable[str]) -> Iterator[Any]:
    return _read_column(file, "add", [f"add.{field}" for field in fields])


def _read_removes(file: _ParquetCheckpoint, name: str) -> Iterator[pa.RecordBatch]:
    with _checkpoint_errors(name):
        for removes in _read_column(file, "remove", [f"remove.{field}" for field in REMOVE_FIELDS]):
            yield _batch(_columns(removes, REMOVE_FIELDS), len(removes), TOMBSTONES_SCHEMA)


def _read_column(file: _ParquetCheckpoint, name: str, paths: Iterable[str]) -> Iterator[pa.StructArray]:
    """Yield the rows of one kind of action with the columns at `paths`, in batches."""
    if not _leaves(file, name):
        return
    leaves = sorted({leaf for path in paths for leaf in _leaves(file, path)})
    groups = [number for number, is_null in enumerate(_are_null(file, name)) if not is_null]
    for batch in file.data.read_leaves(leaves, groups, _BATCH_ROWS):
        is_action: Any = batch.column(name).is_valid()
        if is_action.true_count:
            actions = batch if is_action.true_count == len(batch) else _native.filter_rows(batch, is_action)
            yield cast(pa.StructArray, actions.column(name))


def _are_null(file: _ParquetCheckpoint, name: str) -> Iterator[bool]:
    """Yield for each row group whether all leaves of a column are null by its statistics."""
    leaves = _leaves(file, name)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        yield all(_chunk_nulls(group.column(leaf)) == group.column(leaf).num_values for leaf in leaves)


def _leaves(file: _ParquetCheckpoint, name: str) -> list[int]:
    return [number for number, path in enumerate(file.columns) if path == name or path.startswith(f"{name}.")]


def _lacks_text(file: _ParquetCheckpoint) -> bool:
    """Return whether some file may have statistics in `stats_parsed` only."""
    if not _leaves(file, f"add.{STATS_PARSED}"):
        return False
    without_text = _null_count(file, "add.stats")
    return without_text is None or without_text != _null_count(file, "add.path")


def _null_count(file: _ParquetCheckpoint, leaf_path: str) -> int | None:
    """Return the null count of a leaf, None if statistics lack it or there is no such leaf."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    counts = [_chunk_nulls(group.column(leaf)) for leaf in _leaves(file, leaf_path) for group in groups]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _chunk_nulls(chunk: pq.ColumnChunkMetaData) -> int | None:
    return None if chunk.statistics is None else chunk.statistics.null_count


def _with_parsed(text: Any, parsed: Any) -> Any:
    """Return the statistics as text, converted from `stats_parsed` where the text is missing."""
    if text is None:
        return to_text(parsed)
    lacking = pc.and_(text.is_null(), parsed.is_valid())
    return pc.replace_with_mask(text, lacking, to_text(parsed.filter(lacking)))


def _columns(rows: pa.StructArray, names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: pc.struct_field(rows, name) for name in rows.type.names if name in names}


def _batch(columns: dict[str, Any], length: int, schema: pa.Schema) -> pa.RecordBatch:
    if columns["path"].null_count:
        raise MalformedLogError("a file action lacks its path")
    columns["path"], columns["encoded_path"] = decode_paths(columns["path"].cast(pa.string()))
    if "deletion_vector" in columns:
        vectors = columns["deletion_vector"]
        columns["deletion_vector"] = pa.StructArray.from_arrays(
            [
                _cast(_columns(vectors, DELETION_VECTOR_FIELDS).get(field.name), field, length)
                for field in schema.field("deletion_vector").type
            ],
            fields=list(schema.field("deletion_vector").type),
            mask=vectors.is_null(),
        )
    arrays = [_cast(columns.get(field.name), field, length) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def _cast(array: pa.Array[Any] | None, field: pa.Field[Any], length: int) -> pa.Array[Any]:
    return _nulls(field.type)[:length] if array is None else array.cast(field.type)


@cache
def _nulls(arrow_type: pa.DataType) -> pa.Array[Any]:
    """Return nulls for a batch: the batches of large tables share their columns that the checkpoint lacks."""
    nulls: pa.Array[Any] = pa.nulls(_BATCH_ROWS, arrow_type)  # type: ignore[call-overload]
    return nulls
