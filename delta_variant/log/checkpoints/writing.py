"""Write checkpoints: classic, or V2 if the table's policy requires it, with sidecars for many files.

Statistics are written as the unchanged `stats` text, as `stats_parsed`, as both or not at all, as the table
properties require (PROTOCOL.md, "Checkpoints"). Rows are encoded in row groups of 50,000, so that memory does
not grow with the number of files. The protocol discourages multi-part checkpoints, which are not written.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal
from uuid import UUID, uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import inspect

from ... import _native
from ...errors import MalformedLogError, StoreError, UnsupportedFeatureError, VersionExistsError
from ...protocol import features, properties
from ...protocol.actions import (
    Action,
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    Sidecar,
    Txn,
    encode_path,
)
from ...protocol.schema.arrow import from_arrow, to_arrow_type
from ...protocol.schema.json_text import to_json
from ...protocol.schema.partition_values import partition_value_from_string
from ...protocol.types import DataType
from ...storage.store import Store, Upload, delete_all, put, put_if_absent
from ..file_set import FileSet, Summary
from ..file_tables import BATCH_ROWS, FILES_SCHEMA, TOMBSTONES_SCHEMA, are_unencoded
from ..listing import LAST_CHECKPOINT, LOG, checkpoint_hint, list_log
from ..load import load_with_tombstones
from ..replay import as_checkpoint
from ..snapshot import Snapshot
from .ordering import Kept, Layout, keep_sidecars
from .parsed_statistics import from_text, statistics_type
from .reading import ADD_FIELDS, DELETION_VECTOR_FIELDS, REMOVE_FIELDS, SIDECARS, sidecars_of
from .summaries import tags_of


def _arrow_type(kind: inspect.Type) -> pa.DataType:
    """Return the type of a field of an action in a checkpoint."""
    match kind:
        case inspect.UnionType(types=(present, inspect.NoneType())):
            return _arrow_type(present)
        case inspect.StructType(fields=fields):
            return pa.struct([(each.encode_name, _arrow_type(each.type)) for each in fields])
        case inspect.DictType():
            return pa.map_(pa.string(), pa.string())
        case inspect.VarTupleType(item_type=item):
            return pa.list_(_arrow_type(item))
        case inspect.IntType(le=greatest):
            return pa.int32() if greatest == 2**31 - 1 else pa.int64()
    return pa.bool_() if isinstance(kind, inspect.BoolType) else pa.string()


_TABLE_ACTIONS: dict[type, pa.Field[Any]] = {
    kind: pa.field(name, _arrow_type(inspect.type_info(kind)))
    for kind, name in (
        (Protocol, "protocol"),
        (Metadata, "metaData"),
        (Txn, "txn"),
        (DomainMetadata, "domainMetadata"),
        (CheckpointMetadata, "checkpointMetadata"),
        (Sidecar, "sidecar"),
    )
}
SIDECAR_FILES = 50_000
"""The number of files or tombstones of a sidecar at most. A V2 checkpoint with no more has no sidecars."""


def write_checkpoint(store: Store, version: int, *, now: int, unique_id: str) -> None:
    """Write the checkpoint of a committed version, then point `_last_checkpoint` to it.

    Tombstones that have expired at `now`, in milliseconds since 1970, are omitted. `unique_id` is a UUID for
    the name of a V2 checkpoint. Raises what `load_snapshot` raises, StoreError, and UnsupportedFeatureError
    for a table with unknown features, because their actions would be lost.
    """
    state, tombstones = load_with_tombstones(store, version)
    unknown = sorted(features.supported_features(state.protocol) - features.FEATURES.keys())
    if unknown:
        raise UnsupportedFeatureError(
            f"cannot write a checkpoint of {store.uri} because it uses unknown table features: "
            f"{', '.join(unknown)}; write it with an engine that supports them",
            table=store.uri,
            version=version,
        )
    contents = _Contents(state, _unexpired(tombstones, state.properties, now))
    try:
        written = _write(contents, unique_id, now)
    except MalformedLogError:
        if state.file_set.listed is None:
            raise
        # The last checkpoint is damaged. Other files of the log may have the same actions.
        contents = replace(contents, state=replace(state, file_set=FileSet(state.files)))
        written = _write(contents, unique_id, now)
    if not _has_later_checkpoint(store, version):
        put(store, LAST_CHECKPOINT, _pointer(version, written))


def _unexpired(tombstones: pa.Table, configuration: Mapping[str, str], now: int) -> pa.Table:
    retention = properties.get(configuration, properties.DELETED_FILE_RETENTION_DURATION)
    return tombstones.filter(pc.greater(tombstones["deletion_timestamp"], pa.scalar(now - retention)))


def _has_later_checkpoint(store: Store, version: int) -> bool:
    """Return whether `_last_checkpoint` refers to a later checkpoint that exists."""
    hint = checkpoint_hint(store)
    return hint is not None and hint > version and bool(list_log(store, hint).checkpoints)


class _Written(msgspec.Struct, frozen=True):
    """The number of actions and of files in a checkpoint, and its size with sidecars."""

    num_actions: int
    num_files: int
    size_in_bytes: int


def _pointer(version: int, written: _Written) -> bytes:
    fields: dict[str, Any] = {
        "version": version,
        "size": written.num_actions,
        "sizeInBytes": written.size_in_bytes,
        "numOfAddFiles": written.num_files,
    }
    # Names and integers need no escapes in the canonical form (PROTOCOL.md, "JSON checksum").
    canonical = ",".join(f'"{name}"={value}' for name, value in sorted(fields.items()))
    return msgspec.json.encode({**fields, "checksum": hashlib.md5(canonical.encode()).hexdigest()})


@dataclass(frozen=True)
class _Contents:
    """The content of a checkpoint: a state, and the tombstones that VACUUM still needs."""

    state: Snapshot
    tombstones: pa.Table

    @property
    def is_v2(self) -> bool:
        """Return whether the table's policy requires a V2 checkpoint; a classic one is always allowed."""
        policy = self.state.configuration.get(properties.CHECKPOINT_POLICY)
        return policy == "v2" and self.state.configuration.supports("v2Checkpoint")

    @property
    def has_sidecars(self) -> bool:
        """Return whether the files are in sidecars, because they exceed those of one."""
        is_large = (
            self.state.file_set.listed is not None
            or self.state.num_files + self.tombstones.num_rows > SIDECAR_FILES
        )
        return self.is_v2 and is_large

    def path(self, unique_id: str) -> str:
        """Return the path of the checkpoint, relative to the table's root."""
        unique = f".{UUID(unique_id)}" if self.is_v2 else ""
        return f"{LOG}/{self.state.version:020d}.checkpoint{unique}.parquet"

    def files(self, columns: Collection[str]) -> Iterable[pa.RecordBatch]:
        """Return batches of all files, of which only some columns may be read."""
        return self.state.file_set.stream(columns)


def _write(contents: _Contents, unique_id: str, now: int) -> _Written:
    """Write a checkpoint: its sidecars, if it has some, before the file that refers to them."""
    encoder = _Encoder.of(contents.state)
    store, path, tombstones = contents.state.store, contents.path(unique_id), contents.tombstones
    if contents.has_sidecars:
        return _write_with_sidecars(contents, encoder, path, now)
    actions = list(as_checkpoint(contents.state).actions)
    if contents.is_v2:
        # PROTOCOL.md, "Checkpoint Metadata Tags"; the others describe sidecars.
        tags: dict[str, str | None] = {"numOfAddFiles": str(contents.state.num_files)}
        actions = [CheckpointMetadata(version=contents.state.version, tags=tags), *actions]
    counts: list[int] = []

    def files() -> Iterator[pa.RecordBatch]:
        for batch in contents.files(FILES_SCHEMA.names):
            counts.append(batch.num_rows)
            yield batch

    excluded = {Sidecar} if contents.is_v2 else {Sidecar, CheckpointMetadata}
    kinds = [kind for kind in _TABLE_ACTIONS if kind not in excluded]
    rows = encoder.rows(files(), tombstones.to_batches(BATCH_ROWS), actions, kinds)
    if contents.state.file_set.listed is None:
        data = encoder.content(rows)
        put(store, path, data)
        size = len(data)
    else:
        with Upload(store, path) as upload:
            size = encoder.encode(upload.write, rows)
    return _Written(len(actions) + sum(counts) + tombstones.num_rows, sum(counts), size)


def _write_with_sidecars(contents: _Contents, encoder: _Encoder, path: str, now: int) -> _Written:
    state = contents.state
    kept = _keep_sidecars(contents, encoder)
    files = contents.files if kept is None else kept.others.stream
    written: list[Sidecar] = []
    counts = [0 if kept is None else kept.num_files, 0]
    try:
        layout = Layout.of(state, files)
        for table in layout.tables(files, SIDECAR_FILES):
            rows = encoder.rows(table.to_batches(BATCH_ROWS), ())
            name, size = _write_sidecar(state.store, encoder, rows)
            summary = layout.summary(table, name, size)
            tags = tags_of(msgspec.structs.replace(summary, is_ordered=kept is None))
            written.append(Sidecar(path=name, size_in_bytes=size, modification_time=now, tags=tags))
            counts[0] += table.num_rows
        for batch in contents.tombstones.to_batches(SIDECAR_FILES):
            name, size = _write_sidecar(state.store, encoder, encoder.rows((), [batch]))
            tags = tags_of(Summary(name, size, 0, 0, "{}"))
            written.append(Sidecar(path=name, size_in_bytes=size, modification_time=now, tags=tags))
            counts[1] += batch.num_rows
        sidecars = [*(() if kept is None else kept.sidecars), *written]
        total = sum(each.size_in_bytes for each in sidecars)
        # PROTOCOL.md, "Checkpoint Metadata Tags".
        counted: dict[str, str | None] = {
            "sidecarNumActions": str(sum(counts)),
            "sidecarSizeInBytes": str(total),
            "numOfAddFiles": str(counts[0]),
            **encoder.schema_tag(),
        }
        metadata = CheckpointMetadata(version=state.version, tags=counted)
        actions = [metadata, *as_checkpoint(state).actions, *sidecars]
        data = encoder.content(encoder.rows((), (), actions, _TABLE_ACTIONS))
    except BaseException:
        delete_all(state.store, [f"{SIDECARS}/{each.path}" for each in written])
        raise
    _put_referring(state.store, path, data, written)
    return _Written(len(actions) + sum(counts), counts[0], total + len(data))


def _put_referring(store: Store, path: str, data: bytes, sidecars: Sequence[Sidecar]) -> None:
    """Write a checkpoint with a unique name. Delete its sidecars only if it certainly does not exist."""
    try:
        put_if_absent(store, path, data)
    except VersionExistsError:
        # An earlier request whose answer was lost has written it.
        return
    except StoreError:
        delete_all(store, [f"{SIDECARS}/{each.path}" for each in sidecars])
        raise


def _keep_sidecars(contents: _Contents, encoder: _Encoder) -> Kept | None:
    """Return the sidecars that a checkpoint keeps, None if all of them are written again."""
    store, listed = contents.state.store, contents.state.file_set.listed
    hint = None if listed is None else checkpoint_hint(store)
    newest = next(iter(list_log(store, hint).checkpoints), None) if hint is not None else None
    if listed is None or newest is None:
        return None
    # Log cleanup keeps what the newest checkpoint refers to. The state may be of one that is about to expire.
    safe = frozenset(sidecars_of(store, newest))
    return keep_sidecars(listed, safe, encoder.sidecar_layout(), SIDECAR_FILES)


def _write_sidecar(store: Store, encoder: _Encoder, rows: Iterable[pa.RecordBatch]) -> tuple[str, int]:
    name, data = f"{uuid4()}.parquet", encoder.content(rows)
    put(store, f"{SIDECARS}/{name}", data)
    return name, len(data)


@dataclass(frozen=True)
class _Encoder:
    """Encodes rows of a checkpoint as Parquet files, as the table properties require."""

    layout: _AddLayout
    codec: Any
    page_version: Literal["1.0", "2.0"]

    @classmethod
    def of(cls, state: Snapshot) -> _Encoder:
        codec = state.configuration.get(properties.COMPRESSION_CODEC) or "snappy"
        page_version = state.configuration.get(properties.PARQUET_FORMAT_VERSION)
        return cls(_AddLayout.of(state), codec, "2.0" if page_version == 2 else "1.0")

    @property
    def _add(self) -> pa.Field[Any]:
        return pa.field("add", pa.struct(self.layout.fields))

    def rows(
        self,
        files: Iterable[pa.RecordBatch],
        tombstones: Iterable[pa.RecordBatch],
        actions: Sequence[Action] = (),
        kinds: Iterable[type] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file with the columns of some kinds of other actions, which a sidecar lacks."""
        schema = pa.schema([self._add, _REMOVE, *(_TABLE_ACTIONS[kind] for kind in kinds)])
        if actions:
            yield _actions(actions, schema)
        yield from (_rows(self.layout.adds(batch), self._add, schema) for batch in files)
        yield from (_rows(_removes(batch), _REMOVE, schema) for batch in tombstones)

    def sidecar_layout(self) -> _native.DataFile:
        """Return a sidecar without files."""
        rows = self.rows([pa.RecordBatch.from_pylist([], FILES_SCHEMA)], ())
        return _native.DataFile(self.content(rows), SIDECARS)

    def schema_tag(self) -> dict[str, str | None]:
        """Return the tag with the schema of sidecars, none if it depends on the columns of the table."""
        if self.layout.is_parsed:
            return {}
        return {"sidecarFileSchema": to_json(from_arrow(pa.schema([self._add, _REMOVE])))}

    def content(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        sink = io.BytesIO()
        self.encode(sink.write, batches)
        return sink.getvalue()

    def encode(self, write: Callable[[bytes], object], batches: Iterable[pa.RecordBatch]) -> int:
        """Write the file of batches, at least one, each as a row group, in pieces; return its size."""
        remaining = iter(batches)
        first = next(remaining)
        target = _HeldEnd(write)
        sink: Any = target
        with pq.ParquetWriter(
            sink,
            first.schema,
            compression=self.codec,
            data_page_version=self.page_version,
            use_dictionary=False,
            store_schema=False,
            write_page_checksum=True,
        ) as writer:
            for batch in chain([first], remaining):
                writer.write_table(pa.Table.from_batches([batch]))
            size = target.hold()
        end = _native.annotate_variants(target.held.getvalue())
        write(end)
        return size + len(end)


class _HeldEnd(io.RawIOBase):
    """A file that passes its content on, except for its end: the footer, which is held."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.held = io.BytesIO()
        self._write = write
        self._size = 0

    def hold(self) -> int:
        """Hold all that follows; return the size of the rest."""
        self._write = self.held.write
        return self._size

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        self._write(bytes(data))
        self._size += len(data)
        return len(data)


def _actions(actions: Sequence[Action], schema: pa.Schema) -> pa.RecordBatch:
    rows = [{_TABLE_ACTIONS[type(action)].name: msgspec.to_builtins(action)} for action in actions]
    arrays = [
        pa.array([_with_pairs(row.get(field.name), field.type) for row in rows], field.type)
        if any(field.name in row for row in rows)
        else _nulls(len(rows), field)
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema)


def _with_pairs(value: Any, arrow_type: pa.DataType) -> Any:
    """Return a value with maps converted to lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(arrow_type):
        return list(value.items())
    if pa.types.is_struct(arrow_type):
        return {field.name: _with_pairs(value.get(field.name), field.type) for field in arrow_type}
    return value


def _rows(values: pa.StructArray, kind: pa.Field[Any], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [values if field.name == kind.name else _nulls(len(values), field) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def _nulls(length: int, field: pa.Field[Any]) -> Any:
    """Return nulls; the required parts of a null Variant are empty, because Parquet allows no null there."""
    if not field.nullable:
        return pa.repeat(pa.scalar(b"", field.type), length)
    if not pa.types.is_struct(field.type):
        return pa.nulls(length, field.type)
    return pa.StructArray.from_arrays(
        [_nulls(length, part) for part in field.type], fields=list(field.type), mask=pa.repeat(True, length)
    )


_VECTOR_NAMES = {ours: name for name, ours in DELETION_VECTOR_FIELDS.items()}
_VECTOR = pa.struct(
    [field.with_name(_VECTOR_NAMES[field.name]) for field in FILES_SCHEMA.field("deletion_vector").type]
)


def _log_fields(names: Mapping[str, str], schema: pa.Schema) -> list[pa.Field[Any]]:
    """Return the fields of file actions under their names in the log."""
    types = {"deletionVector": _VECTOR}
    return [pa.field(name, types.get(name, schema.field(ours).type)) for name, ours in names.items()]


_DATA_CHANGE = pa.field("dataChange", pa.bool_())
_ADD_LAYOUT = [*_log_fields(ADD_FIELDS, FILES_SCHEMA), _DATA_CHANGE]
_REMOVE_LAYOUT = [*_log_fields(REMOVE_FIELDS, TOMBSTONES_SCHEMA), _DATA_CHANGE]
_REMOVE = pa.field("remove", pa.struct(_REMOVE_LAYOUT))


def _removes(batch: pa.RecordBatch) -> pa.StructArray:
    arrays = [_array(batch, field, REMOVE_FIELDS) for field in _REMOVE_LAYOUT]
    return pa.StructArray.from_arrays(arrays, fields=_REMOVE_LAYOUT)


def _array(batch: pa.RecordBatch, field: pa.Field[Any], names: Mapping[str, str]) -> Any:
    if field.name == _DATA_CHANGE.name:
        return pa.repeat(False, batch.num_rows)
    array: Any = batch[names[field.name]]
    if field.name == "path":
        paths = array if are_unencoded(array) else pa.array(map(encode_path, array.to_pylist()), array.type)
        return pc.coalesce(batch["encoded_path"], paths)
    if field.name == "deletionVector":
        return pa.StructArray.from_arrays(array.flatten(), fields=list(_VECTOR), mask=array.is_null())
    return array


_NEED_STATISTICS = ("deletionVectors", "rowTracking", "clustering")
"""The features by which files must have a number of rows, or bounds of the clustering columns."""


@dataclass(frozen=True)
class _AddLayout:
    """The fields of `add` that the table properties require."""

    fields: Sequence[pa.Field[Any]]
    partitions: Mapping[str, DataType]
    is_parsed: bool = False

    @classmethod
    def of(cls, state: Snapshot) -> _AddLayout:
        table, fields = state.configuration, list(_ADD_LAYOUT)
        is_parsed = table.get(properties.WRITE_STATS_AS_STRUCT)
        needs_text = not is_parsed and any(map(table.supports, _NEED_STATISTICS))
        if not needs_text and not table.get(properties.WRITE_STATS_AS_JSON):
            fields = [field for field in fields if field.name != "stats"]
        if not is_parsed:
            return cls(fields, {})
        partitions = table.stored_partition_columns
        if partitions:
            parsed = [(name, to_arrow_type(data_type)) for name, data_type in partitions.items()]
            fields.append(pa.field("partitionValues_parsed", pa.struct(parsed)))
        columns = table.stored_stats_columns
        fields.append(pa.field("stats_parsed", statistics_type(list(columns.items()))))
        return cls(fields, partitions, is_parsed=True)

    def adds(self, batch: pa.RecordBatch) -> pa.StructArray:
        """Return the files of a batch as `add` actions of a checkpoint."""
        return pa.StructArray.from_arrays(
            [self._array(batch, field) for field in self.fields], fields=list(self.fields)
        )

    def _array(self, batch: pa.RecordBatch, field: pa.Field[Any]) -> Any:
        if field.name == "stats_parsed":
            return from_text(batch["stats"], field.type)
        if field.name == "partitionValues_parsed":
            return pa.StructArray.from_arrays(list(self._partition_values(batch)), fields=list(field.type))
        return _array(batch, field, ADD_FIELDS)

    def _partition_values(self, batch: pa.RecordBatch) -> Iterator[Any]:
        for name, data_type in self.partitions.items():
            texts = pc.map_lookup(batch["partition_values"], name, "first").dictionary_encode()
            values = [partition_value_from_string(text, data_type) for text in texts.dictionary.to_pylist()]
            yield pa.array(values, to_arrow_type(data_type)).take(texts.indices)
