"""Write checkpoints: classic, or V2 in one Parquet file if the table's policy requires it.

Statistics are written as the unchanged `stats` text, as `stats_parsed`, as both or not at all, as the table
properties require (PROTOCOL.md, "Checkpoints"). The encoded file is in memory; rows are encoded in batches of
50,000.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...errors import UnsupportedFeatureError
from ...protocol import features, properties
from ...protocol.actions import (
    Action,
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    Txn,
    encode_path,
)
from ...protocol.schema.arrow import to_arrow_type
from ...protocol.schema.column_mapping import physical_name
from ...protocol.schema.indexed_columns import stats_columns
from ...protocol.schema.partition_values import partition_value_from_string
from ...protocol.types import DataType
from ...storage.store import Store, put
from ..listing import LAST_CHECKPOINT, LOG, checkpoint_hint, list_log
from ..load import load_with_tombstones
from ..snapshot import FILES_SCHEMA, TOMBSTONES_SCHEMA, Snapshot, are_unencoded
from .parsed_statistics import from_text, statistics_type
from .reading import ADD_FIELDS, DELETION_VECTOR_FIELDS, REMOVE_FIELDS
from .variant_annotation import annotate

__all__ = ["write_checkpoint"]

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_TEXTS = pa.list_(pa.string())
_FORMAT = pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])
_TABLE_ACTIONS: dict[type, pa.Field[Any]] = {
    Protocol: pa.field(
        "protocol",
        pa.struct(
            [
                ("minReaderVersion", pa.int32()),
                ("minWriterVersion", pa.int32()),
                ("readerFeatures", _TEXTS),
                ("writerFeatures", _TEXTS),
            ]
        ),
    ),
    Metadata: pa.field(
        "metaData",
        pa.struct(
            [
                ("id", pa.string()),
                ("name", pa.string()),
                ("description", pa.string()),
                ("format", _FORMAT),
                ("schemaString", pa.string()),
                ("partitionColumns", _TEXTS),
                ("configuration", _TEXT_MAP),
                ("createdTime", pa.int64()),
            ]
        ),
    ),
    Txn: pa.field(
        "txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
    ),
    DomainMetadata: pa.field(
        "domainMetadata",
        pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    ),
    CheckpointMetadata: pa.field(
        "checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", _TEXT_MAP)])
    ),
}
_BATCH_ROWS = 50_000


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
    contents = _Contents(state, _unexpired(tombstones, state.configuration, now))
    data = contents.encode()
    put(store, contents.path(unique_id), data)
    if not _has_later_checkpoint(store, version):
        put(store, LAST_CHECKPOINT, _pointer(contents, len(data)))


def _unexpired(tombstones: pa.Table, configuration: Mapping[str, str], now: int) -> pa.Table:
    retention = properties.get(configuration, properties.DELETED_FILE_RETENTION_DURATION)
    return tombstones.filter(pc.greater(tombstones["deletion_timestamp"], pa.scalar(now - retention)))


def _has_later_checkpoint(store: Store, version: int) -> bool:
    """Return whether `_last_checkpoint` refers to a later checkpoint that exists."""
    hint = checkpoint_hint(store)
    return hint is not None and hint > version and bool(list_log(store, hint).checkpoints)


def _pointer(contents: _Contents, size_in_bytes: int) -> bytes:
    fields: dict[str, Any] = {
        "version": contents.state.version,
        "size": contents.num_actions,
        "sizeInBytes": size_in_bytes,
        "numOfAddFiles": contents.state.num_files,
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
        policy = properties.get(self.state.configuration, properties.CHECKPOINT_POLICY)
        return policy == "v2" and features.supports(self.state.protocol, "v2Checkpoint")

    @property
    def table_actions(self) -> Sequence[Action]:
        """Return the actions that are not files."""
        state = self.state
        # PROTOCOL.md, "Well-Known Checkpoint Metadata Tags"; the others describe sidecars.
        tags: dict[str, str | None] = {"numOfAddFiles": str(state.num_files)}
        first = [CheckpointMetadata(version=state.version, tags=tags)] if self.is_v2 else []
        return [*first, state.protocol, state.metadata, *state.txns.values(), *state.domain_metadata.values()]

    @property
    def num_actions(self) -> int:
        """Return the number of actions in the checkpoint."""
        return len(self.table_actions) + self.state.num_files + self.tombstones.num_rows

    def path(self, unique_id: str) -> str:
        """Return the path of the checkpoint, relative to the table's root."""
        unique = f".{UUID(unique_id)}" if self.is_v2 else ""
        return f"{LOG}/{self.state.version:020d}.checkpoint{unique}.parquet"

    def encode(self) -> bytes:
        """Return the checkpoint as a Parquet file."""
        layout = _AddLayout.of(self.state)
        add = pa.field("add", pa.struct(layout.fields))
        remove = pa.field("remove", pa.struct(_REMOVE_LAYOUT))
        kinds = [field for kind, field in _TABLE_ACTIONS.items() if self.is_v2 or kind != CheckpointMetadata]
        schema = pa.schema([add, remove, *kinds])
        sink = io.BytesIO()
        codec = properties.get(self.state.configuration, properties.COMPRESSION_CODEC) or "snappy"
        page_version = properties.get(self.state.configuration, properties.PARQUET_FORMAT_VERSION)
        with pq.ParquetWriter(
            sink,
            schema,
            compression=codec,
            data_page_version="2.0" if page_version == 2 else "1.0",
            use_dictionary=False,
            store_schema=False,
        ) as writer:
            writer.write_batch(_actions(self.table_actions, schema))
            for batch in self.state.files.to_batches(_BATCH_ROWS):
                writer.write_batch(_rows(layout.adds(batch), add, schema))
            for batch in self.tombstones.to_batches(_BATCH_ROWS):
                writer.write_batch(_rows(_removes(batch), remove, schema))
        return annotate(sink.getvalue())


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
        [_nulls(length, part) for part in field.type],
        fields=list(field.type),
        mask=pa.repeat(True, length),
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


def _removes(batch: pa.RecordBatch) -> pa.StructArray:
    return pa.StructArray.from_arrays(_arrays(batch, _REMOVE_LAYOUT, REMOVE_FIELDS), fields=_REMOVE_LAYOUT)


def _arrays(batch: pa.RecordBatch, fields: Sequence[pa.Field[Any]], names: Mapping[str, str]) -> list[Any]:
    return [_array(batch, field, names) for field in fields]


def _array(batch: pa.RecordBatch, field: pa.Field[Any], names: Mapping[str, str]) -> Any:
    if field.name == _DATA_CHANGE.name:
        return pa.repeat(False, batch.num_rows)
    array: Any = batch[names[field.name]]
    if field.name == "path":
        return pc.coalesce(batch["encoded_path"], _encode_paths(array))
    if field.name == "deletionVector":
        return pa.StructArray.from_arrays(array.flatten(), fields=list(_VECTOR), mask=array.is_null())
    return array


def _encode_paths(paths: Any) -> Any:
    return paths if are_unencoded(paths) else pa.array(map(encode_path, paths.to_pylist()), paths.type)


@dataclass(frozen=True)
class _AddLayout:
    """The fields of `add` that the table properties require."""

    fields: Sequence[pa.Field[Any]]
    partitions: Mapping[str, DataType]

    @classmethod
    def of(cls, state: Snapshot) -> _AddLayout:
        fields = list(_ADD_LAYOUT)
        if not properties.get(state.configuration, properties.WRITE_STATS_AS_JSON):
            fields = [field for field in fields if field.name != "stats"]
        if not properties.get(state.configuration, properties.WRITE_STATS_AS_STRUCT):
            return cls(fields, {})
        mode = properties.get(state.configuration, properties.COLUMN_MAPPING_MODE)
        by_name = {field.name: field for field in state.schema.fields}
        partitions = {
            physical_name(by_name[name], mode): by_name[name].type for name in state.partition_columns
        }
        if partitions:
            parsed = [(name, to_arrow_type(data_type)) for name, data_type in partitions.items()]
            fields.append(pa.field("partitionValues_parsed", pa.struct(parsed)))
        columns = stats_columns(state.schema, state.configuration, state.partition_columns)
        named = [(tuple(physical_name(step, mode) for step in path), path[-1].type) for path in columns]
        return cls([*fields, pa.field("stats_parsed", statistics_type(named))], partitions)

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
