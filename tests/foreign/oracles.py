"""Rows and log state of a table according to other readers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from support.tables import read_actions

MANY_ROWS = 10_000
"""The number of rows from which tables without nested columns are compared with Arrow."""


def expected(table: Path) -> pa.Table:
    """Return the rows that delta-spark wrote to `expected` next to the table."""
    files = sorted((table.parent / "expected").rglob("*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files])


def deltalake(table: Path, version: int | None = None) -> pa.Table:
    """Return the rows that deltalake reads, of the latest version or an earlier one."""
    query = QueryBuilder().register("t", DeltaTable(table, version=version)).execute("select * from t")
    return pa.table(query.read_all())


def pyarrow(table: Path) -> pa.Table:
    """Return the rows that pyarrow reads in the files that are active according to deltalake."""
    return pa.concat_tables([pq.read_table(table / path) for path in active_files(DeltaTable(table))])


def no_rows(table: Path) -> pa.Table:
    """Return an empty table with the columns of the only metaData in the log."""
    [metadata] = read_actions(table, "metaData")
    return pa.table({field["name"]: [] for field in json.loads(metadata["schemaString"])["fields"]})


ORACLES: Mapping[str, Callable[[Path], pa.Table]] = {
    "expected": expected,
    "deltalake": deltalake,
    "pyarrow": pyarrow,
    "no_rows": no_rows,
}


def active_files(table: DeltaTable) -> list[str]:
    """Return the paths of the active files below the root, decoded, in order."""
    root = unquote(urlsplit(table.table_uri).path).rstrip("/") + "/"
    return sorted(uri.removeprefix(root) for uri in table.file_uris())


def log_of(table: Path) -> dict[str, Any]:
    """Return the state of the log according to deltalake."""
    found = DeltaTable(table)
    protocol, metadata = found.protocol(), found.metadata()
    return {
        "version": found.version(),
        "files": active_files(found),
        "versions": (protocol.min_reader_version, protocol.min_writer_version),
        "reader features": sorted(protocol.reader_features or ()),
        "writer features": sorted(protocol.writer_features or ()),
        "id": metadata.id,
        "partitions": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "schema": json.loads(found.schema().to_json()),
    }


def comparable(table: pa.Table) -> list[str]:
    """Return the rows of a table in a canonical order, so that equal tables are equal lists.

    Values of different Python types differ, and so do 0.0 and -0.0; NaN is equal to itself.
    """
    return sorted(repr(_comparable(row)) for row in table.to_pylist())


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((name, _comparable(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return [_comparable(each) for each in value]
    return type(value).__name__, repr(value)


def sorted_rows(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a large table cast to a schema, with its rows sorted."""
    cast = table.cast(schema)
    return cast.sort_by([(name, "ascending") for name in cast.column_names])
