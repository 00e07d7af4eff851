"""This library, through its public functions where they can express the case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_variant.data_file import reader
from delta_variant.data_file.options import FileOptions, WriteOptions
from delta_variant.data_file.reader import LegacyMode, Projection, compute_stats, open_file
from delta_variant.data_file.writer import FileSeries
from delta_variant.log.load import load_snapshot
from delta_variant.operations.changes import read_changes
from delta_variant.operations.delete import delete
from delta_variant.operations.optimize.optimize import optimize
from delta_variant.operations.read import read_table
from delta_variant.protocol.schema.arrow import variant_field
from delta_variant.protocol.statistics import decode_bound, encode_bound
from delta_variant.protocol.types import describe
from delta_variant.storage.store import open_store
from delta_variant.variant import values as variant_values
from delta_variant.variant.shredding import ShreddingSchema, Spec

from ..engine import Cell, Engine, Query, VariantBytes, column_cells, table_cells
from ..typed_values import Schema, decimal_of
from .spark_sql import condition, projection


def start(scratch: Path) -> Engine:
    """Return the engine."""
    return Engine(
        name="ours",
        version=version("delta-variant"),
        options=frozenset({"on_conflict", "floats", "duplicate_keys", "draft", "numeric"}),
        to_json=_to_json,
        parse_json=_parse_json,
        shred=_shred,
        read=_read,
        read_table=_read_table,
        read_changes=_read_changes,
        select=_select,
        rewrite=_rewrite,
        decode_stats=_decode_stats,
        encode_stats=_encode_stats,
        collect_stats=_collect_stats,
        load_log=_load_log,
    )


def _to_json(file: Path, column: str, **options: Any) -> str:
    return str(variant_values.to_json(pq.read_table(file).column(column), **options)[0].as_py())


def _parse_json(text: str, **options: Any) -> VariantBytes:
    row: Any = variant_values.parse_json([text], **options)[0].as_py()
    return VariantBytes(row["metadata"], row["value"])


def _batches(
    file: Path, column: str, *, draft: LegacyMode | None = None, **options: Any
) -> list[pa.RecordBatch]:
    projection = Projection(variant_field(column), (column,))
    opened = open_file(open_store(file.parent), file.name)
    return list(reader.read(opened, file.name, [projection], legacy_mode=draft, **options))


def _read(file: Path, column: str, **options: Any) -> Sequence[Cell]:
    return [cell for batch in _batches(file, column, **options) for cell in column_cells(batch.column(0))]


def _shred(file: Path, column: str, schema: Schema, out: Path, **options: Any) -> None:
    shredding = ShreddingSchema.of(_spec(schema))
    files = FileSeries[None](
        open_store(out.parent),
        lambda: out.name,
        WriteOptions(shredding=shredding, files=FileOptions(**options)),
        None,
        [column],
        lambda context, batch, faults: None,
    )
    for batch in _batches(file, column):
        files.add(batch, None)
    files.close()


def _spec(schema: Schema) -> Spec:
    if schema is None:
        return None
    if isinstance(schema, Mapping):
        if "array" in schema:
            return [_spec(schema["array"])]
        return {name: _spec(part) for name, part in schema["object"].items()}
    decimal = decimal_of(schema)
    return LEAVES[schema] if decimal is None else pa.decimal128(*decimal)


LEAVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_nanos": pa.timestamp("ns", "UTC"),
    "timestamp_ntz_nanos": pa.timestamp("ns"),
    "binary": pa.binary(),
    "string": pa.string(),
    "uuid": pa.uuid(),
}


def _read_table(folder: Path, version: int | None, **options: Any) -> Sequence[Mapping[str, Cell]]:
    return table_cells(read_table(str(folder), version=version, **options).to_table())


def _read_changes(folder: Path, first: int, last: int) -> Sequence[Mapping[str, Cell]]:
    return table_cells(read_changes(str(folder), start=first, end=last).to_table())


def _select(folder: Path, query: Query) -> Sequence[Mapping[str, Cell]]:
    if query.where:
        scan = read_table(str(folder), columns=["id"], where=condition(query))
    else:
        scan = read_table(str(folder), columns={"id": "id", "found": projection(query)})
    return table_cells(scan.to_table())


def _rewrite(folder: Path, deleted: int | None) -> None:
    if deleted is None:
        optimize(str(folder))
    else:
        delete(str(folder), f"id = {deleted}")


def _decode_stats(text: str) -> VariantBytes:
    decoded = decode_bound(text)
    return VariantBytes(decoded.metadata, decoded.value)


def _encode_stats(given: VariantBytes) -> str:
    return encode_bound(variant_values.Variant(given.metadata, given.value))


def _collect_stats(file: Path, column: str) -> Mapping[str, Any]:
    found = compute_stats(file)
    sides = {"min": found.min_values.get(column), "max": found.max_values.get(column)}
    bounds = {side: None if text is None else _decode_stats(text) for side, text in sides.items()}
    return {**bounds, "null_count": found.null_count.get(column)}


def _load_log(folder: Path, version: int | None) -> Mapping[str, Any]:
    snapshot = load_snapshot(str(folder), version)
    return {
        "version": snapshot.version,
        "files": snapshot.files["path"].to_pylist(),
        "reader_features": list(snapshot.protocol.reader_features or ()),
        "writer_features": list(snapshot.protocol.writer_features or ()),
        "properties": dict(snapshot.properties),
        "schema": {field.name: describe(field.type) for field in snapshot.schema.fields},
    }
