"""OPTIMIZE, REORG, VACUUM, RESTORE, and the statements that show a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from ..expressions.types import type_name
from ..log.load import load_latest
from ..log.timestamps import from_milliseconds, to_instant
from ..operations.alter.alteration import clustering_columns
from ..operations.history import history
from ..operations.optimize.optimize import optimize
from ..operations.restore import restore
from ..operations.vacuum import vacuum
from ..protocol import features
from ..protocol.properties import FEATURE, column_names_text
from ..protocol.schema.arrow import is_variant, to_arrow
from ..protocol.types import COMMENT
from ..storage.store import TableLocation, open_latest, uri_of
from .session import Session

TEXTS: Any = pa.map_(pa.string(), pa.string())
HISTORY: Mapping[str, pa.DataType] = {
    "version": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "userId": pa.string(),
    "userName": pa.string(),
    "operation": pa.string(),
    "operationParameters": TEXTS,
    "readVersion": pa.int64(),
    "isolationLevel": pa.string(),
    "isBlindAppend": pa.bool_(),
    "operationMetrics": TEXTS,
    "userMetadata": pa.string(),
    "engineInfo": pa.string(),
}
"""The columns of DESCRIBE HISTORY that are facts of a commit, of those that Delta on Spark has."""
OPTIMIZED = pa.schema(
    {
        "path": pa.string(),
        "metrics": pa.struct([("numFilesAdded", pa.int64()), ("numFilesRemoved", pa.int64())]),
    }
)
COLUMNS = pa.schema(dict.fromkeys(("col_name", "data_type", "comment"), pa.string()))
PARTITION_TITLES = (("# Partition Information", "", ""), ("# col_name", "data_type", "comment"))


def optimize_table(
    table: TableLocation,
    session: Session,
    *,
    where: str | None,
    z_order_by: tuple[str, ...] = (),
    purge: bool = False,
) -> pa.Table:
    """Combine small files, and return the numbers of files."""
    result = optimize(table, where, z_order_by=z_order_by or None, purge=purge, timezone=session.timezone)
    metrics = {"numFilesAdded": len(result.files), "numFilesRemoved": result.files_before}
    row = {"path": open_latest(table).uri, "metrics": metrics}
    return pa.Table.from_pylist([row], schema=OPTIMIZED)


def vacuum_table(
    table: TableLocation, session: Session, *, hours: float | None, is_dry_run: bool
) -> pa.Table:
    """Delete unused files, and return the location of the table, those of the files for DRY RUN."""
    store, result = open_latest(table), vacuum(table, hours, dry_run=is_dry_run)
    paths = [uri_of(store, path) for path in result.files] if is_dry_run else [store.uri]
    return pa.table({"path": pa.array(paths, pa.string())})


def restore_table(
    table: TableLocation, session: Session, *, version: int | None = None, timestamp: str | None = None
) -> pa.Table:
    """Restore an earlier version, and return the numbers and sizes of files."""
    moment = None if timestamp is None else to_instant(timestamp, session.timezone)
    result = restore(table, version, timestamp=moment)
    after = load_latest(table)
    numbers = {
        "table_size_after_restore": after.num_bytes,
        "num_of_files_after_restore": after.num_files,
        "num_removed_files": result.files_removed,
        "num_restored_files": result.files_added,
        "removed_files_size": result.bytes_removed,
        "restored_files_size": result.bytes_added,
    }
    return pa.table({name: pa.array([number], pa.int64()) for name, number in numbers.items()})


def show_history(table: TableLocation, session: Session, *, limit: int | None) -> pa.Table:
    """Return the commits of a table, newest first."""
    rows = []
    for entry in history(table, limit):
        info = {name: entry.commit_info.get(name) for name in HISTORY}
        texts = {name: _texts(info[name]) for name in ("operationParameters", "operationMetrics")}
        rows.append({**info, **texts, "version": entry.version, "timestamp": entry.timestamp})
    return pa.Table.from_pylist(rows, schema=pa.schema(HISTORY))


def _texts(values: Any) -> list[tuple[str, str | None]] | None:
    """Return the entries of a mapping as text, as a commit has them or would have them."""
    if not isinstance(values, Mapping):
        return None
    return [
        (name, value if isinstance(value, str | None) else msgspec.json.encode(value).decode())
        for name, value in values.items()
    ]


def show_columns(table: TableLocation, session: Session) -> pa.Table:
    """Return the columns of a table, and those of its partitions again, after two rows of titles."""
    snapshot = load_latest(table)
    types = (type_name(None if is_variant(each) else each.type, "") for each in to_arrow(snapshot.schema))
    rows = {
        field.name: (field.name, text, field.metadata.get(COMMENT))
        for field, text in zip(snapshot.schema.fields, types, strict=True)
    }
    partitions = [rows[name] for name in snapshot.partition_columns]
    titles = PARTITION_TITLES if partitions else ()
    shown = [dict(zip(COLUMNS.names, row, strict=True)) for row in (*rows.values(), *titles, *partitions)]
    return pa.Table.from_pylist(shown, schema=COLUMNS)


def show_detail(table: TableLocation, session: Session) -> pa.Table:
    snapshot = load_latest(table)
    metadata, protocol = snapshot.metadata, snapshot.protocol
    created = metadata.created_time
    moment, names = pa.timestamp("us", "UTC"), pa.list_(pa.string())
    facts: dict[str, tuple[pa.DataType, Any]] = {
        "format": (pa.string(), "delta"),
        "id": (pa.string(), metadata.id),
        "name": (pa.string(), metadata.name),
        "description": (pa.string(), metadata.description),
        "location": (pa.string(), snapshot.uri),
        "createdAt": (moment, None if created is None else from_milliseconds(created)),
        "lastModified": (moment, history(table, 1)[0].timestamp),
        "partitionColumns": (names, snapshot.partition_columns),
        "clusteringColumns": (names, [column_names_text((path,)) for path in clustering_columns(snapshot)]),
        "numFiles": (pa.int64(), snapshot.num_files),
        "sizeInBytes": (pa.int64(), snapshot.num_bytes),
        "properties": (TEXTS, list(snapshot.properties.items())),
        "minReaderVersion": (pa.int32(), protocol.min_reader_version),
        "minWriterVersion": (pa.int32(), protocol.min_writer_version),
        "tableFeatures": (names, sorted(features.supported_features(protocol))),
    }
    return pa.table({name: pa.array([value], kind) for name, (kind, value) in facts.items()})


def show_properties(table: TableLocation, session: Session, *, key: str | None) -> pa.Table:
    """Return the properties of a table, or one of them, with the versions and features of its protocol."""
    snapshot = load_latest(table)
    protocol = snapshot.protocol
    values = {
        **snapshot.properties,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"{FEATURE}{name}": "supported" for name in features.supported_features(protocol)},
    }
    if key is not None:
        missing = f"Table {snapshot.uri} does not have property: {key}"
        values = {key: values.get(key, missing)}
    keys = sorted(values)
    columns = {"key": keys, "value": [values[each] for each in keys]}
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})
