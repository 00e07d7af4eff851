"""Writing a table: create and append, one commit each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from os import PathLike
from typing import Any, Literal, TypeAlias, get_args
from uuid import uuid4

import msgspec
import pyarrow as pa

from .. import commit, data_file, features, log, properties, schema
from ..actions import AddFile, encode_path
from ..data_file import WriteOptions, WrittenFile, check_option
from ..errors import CommitConflictError, ShreddingNotEnabledError, TableExistsError, TableNotFoundError
from ..json_lines import JsonLines
from ..shredding import ShreddingSchema
from ..snapshot import Snapshot
from ..store import Store, TableLocation, open_store
from .faults import Faults
from .partitions import Batches, PartitionFile, discard, write_files
from .target import Target, appended, new_table, now

__all__ = ["WriteResult", "write_table"]

Mode: TypeAlias = Literal["error", "append", "ignore"]


@dataclass(frozen=True)
class WriteResult:
    """What a write did.

    `version` is None when nothing was committed. `invalid` counts the values of JSON text that were left out
    or became SQL NULL.
    """

    version: int | None
    rows: int = 0
    invalid: int = 0
    files: tuple[WrittenFile, ...] = ()


def write_table(
    table: TableLocation,
    data: Any,
    *,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = None,
    schema_mode: Literal["merge"] | None = None,
    shredding: data_file.Shredding = "infer",
    variant_columns: Sequence[str] = (),
    on_invalid: data_file.OnInvalid = "error",
    rejects: str | PathLike[str] | None = None,
    numeric: Literal["value", "strict"] = "value",
    floats: Literal["decimal", "double"] = "decimal",
    duplicate_keys: Literal["error", "last"] = "error",
    target_file_size: int = 128 << 20,
    compression: data_file.Compression = "zstd",
    annotate: bool = True,
    spark_compatible: bool = True,
    max_variant_stats_paths: int = data_file.MAX_STATS_PATHS,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write `data` to a Delta table as one commit.

    `data` is any object with `__arrow_c_stream__` or `__arrow_c_array__`, or what `read_json_lines` gives.
    Columns that become Variant: JSON text of the extension type `arrow.json`, Variants marked
    `arrow.parquet.variant`, `struct<metadata, value>` where the table has a Variant, and any column in
    `variant_columns`.

    `mode` says what happens when the table exists: `error` raises TableExistsError, `append` adds rows,
    `ignore` does nothing. `schema_mode="merge"` adds columns that the table does not have. New tables with a
    Variant column enable `delta.enableVariantShredding`, unless `shredding` is None or `configuration` says
    otherwise; `shredding="infer"` finds a shredding schema for each file where the table allows shredding.
    `numeric="strict"` shreds only the numbers of Variants that have the column's own type, so that all come
    back with the type that they had; numbers in JSON text have none to keep.

    Text that is not JSON raises InvalidJsonError with file, line and column, and nothing is committed;
    `on_invalid="reject"` leaves the row out and appends it with the reason to the file `rejects`, and
    `on_invalid="null"` stores SQL NULL. `target_file_size` is in bytes.

    Raises SchemaError for data that does not fit, UnsupportedFeatureError for what the table demands and this
    version cannot honour, ShreddingNotEnabledError, and CommitConflictError.
    """
    options = WriteOptions(
        shredding=shredding,
        spark_compatible=spark_compatible,
        target_file_size=target_file_size,
        compression=compression,
        annotate=annotate,
        numeric=numeric,
        floats=floats,
        duplicate_keys=duplicate_keys,
        on_invalid=on_invalid,
        max_stats_paths=max_variant_stats_paths,
    )
    check_option("mode", mode, get_args(Mode))
    check_option("schema_mode", schema_mode, ("merge", None))
    if (on_invalid == "reject") != (rejects is not None):
        raise ValueError("rejects= names the file of on_invalid='reject': give both or none")
    place = open_store(table, storage_options)
    snapshot = _existing(place, mode)
    if snapshot is not None and mode == "ignore":
        return WriteResult(None)
    source = _Source.of(data)
    columns = schema.from_arrow(source.schema, _names_of_variants(source.schema, variant_columns))
    if snapshot is None:
        target = new_table(
            columns, _as_tuple(partition_by), configuration, name, description, shredding, place.uri
        )
    else:
        target = appended(snapshot, columns, _as_tuple(partition_by), configuration, schema_mode)
    with Faults(on_invalid, rejects) as faults:
        files = write_files(place, source.batches, target, _allowed(options, target, place.uri), faults)
    committed = _commit_or_discard(place, snapshot, target, files)
    rows = sum(file.written.rows for file in files)
    return WriteResult(committed, rows, faults.count, tuple(file.written for file in files))


def _as_tuple(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (names,) if isinstance(names, str) else None if names is None else tuple(names)


def _existing(place: Store, mode: Mode) -> Snapshot | None:
    try:
        snapshot = log.load_snapshot(place)
    except TableNotFoundError:
        return None
    if mode == "error":
        raise TableExistsError(f"there is a Delta table at {place.uri} already: write with mode='append'")
    return snapshot


@dataclass(frozen=True)
class _Source:
    """Arrow batches to write, each with its origin where it comes from a file of JSON."""

    schema: pa.Schema
    batches: Batches

    @classmethod
    def of(cls, data: Any) -> _Source:
        if isinstance(data, JsonLines):
            return cls(data.schema, data.batches())
        if hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
            return cls(reader.schema, ((batch, None) for batch in reader))
        batch = pa.record_batch(data)
        return cls(batch.schema, [(batch, None)])


def _names_of_variants(arrow_schema: pa.Schema, variant_columns: Sequence[str]) -> tuple[str, ...]:
    missing = [name for name in variant_columns if name not in arrow_schema.names]
    if missing:
        raise ValueError(f"variant_columns names {missing[0]!r}, and the data has no such column")
    return tuple(variant_columns)


def _allowed(options: WriteOptions, target: Target, where: str) -> WriteOptions:
    """Return the options with no more shredding and statistics than the table allows (T8, H3)."""
    if not features.shredding_supported(target.protocol):
        options = replace(options, max_stats_paths=0)
    if features.shredding_enabled(target.protocol, target.metadata.configuration):
        return options
    if isinstance(options.shredding, ShreddingSchema):
        raise ShreddingNotEnabledError(
            f"{where} does not enable variantShredding: set {properties.ENABLE_VARIANT_SHREDDING.name}=true "
            "or write with shredding=None"
        )
    return replace(options, shredding=None)


def _commit_or_discard(
    place: Store, snapshot: Snapshot | None, target: Target, files: Sequence[PartitionFile]
) -> int | None:
    try:
        return _commit(place, snapshot, target, files)
    except (CommitConflictError, TableExistsError):
        # The commit is known not to have happened; after other errors it may have.
        discard(place, [file.written.path for file in files])
        raise


def _commit(
    place: Store, snapshot: Snapshot | None, target: Target, files: Sequence[PartitionFile]
) -> int | None:
    if snapshot is not None and not files and target.new_metadata is None:
        return None
    tight = True if features.supports(target.protocol, "deletionVectors") else None
    adds = [_add_file(file, tight) for file in files]
    partitions = msgspec.json.encode(target.metadata.partition_columns).decode()
    common: dict[str, Any] = {
        "operation": "WRITE",
        "operation_metrics": {
            "numFiles": len(files),
            "numOutputRows": sum(file.written.rows for file in files),
            "numOutputBytes": sum(file.written.bytes for file in files),
        },
        "clock": now,
        "engine_info": _engine_info(),
        "txn_id": str(uuid4()),
    }
    if snapshot is None:
        parameters = {"mode": "ErrorIfExists", "partitionBy": partitions}
        return commit.create_table(
            place, target.protocol, target.metadata, adds, operation_parameters=parameters, **common
        )
    return commit.add_files(
        snapshot,
        adds,
        new_metadata=target.new_metadata,
        new_protocol=target.new_protocol,
        operation_parameters={"mode": "Append", "partitionBy": partitions},
        **common,
    )


def _add_file(file: PartitionFile, tight_bounds: bool | None) -> AddFile:
    return AddFile(
        path=encode_path(file.written.path),
        partition_values=dict(file.partition_values),
        size=file.written.bytes,
        modification_time=now(),
        data_change=True,
        stats=replace(file.written.stats, tight_bounds=tight_bounds).to_json(),
    )


def _engine_info() -> str:
    return f"delta-variant/{version('delta-variant')}"
