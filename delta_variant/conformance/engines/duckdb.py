"""DuckDB, whose VARIANT is handed out by `variant_to_parquet_variant`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ..cells import table_cells, variant_cells
from ..engine import Cell, Engine, NotOfferedError, VariantBytes
from ..shredding_schema import Schema, decimal_of

__all__ = ["start"]

TYPES: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp_ntz_nanos": "TIMESTAMP_NS",
    "binary": "BLOB",
    "string": "VARCHAR",
    "uuid": "UUID",
}


def start(scratch: Path) -> Engine:
    """Return the engine; it offers Delta tables where its extension for them is installed."""
    doors = _Doors(duckdb.connect(config={"threads": 1}))
    return Engine(
        name="duckdb",
        version=duckdb.__version__,
        to_json=doors.to_json,
        parse_json=doors.parse_json,
        shred=doors.shred,
        read=doors.read,
        read_table=doors.read_table if doors.has_delta() else None,
    )


@dataclass(frozen=True)
class _Doors:
    """The doors of one connection. There is none for statistics or the log."""

    connection: duckdb.DuckDBPyConnection

    def has_delta(self) -> bool:
        try:
            self.connection.execute("LOAD delta")
        except duckdb.Error:
            return False
        return True

    def to_json(self, file: Path, column: str) -> str:
        query = f"SELECT {_quoted(column)}::JSON::VARCHAR FROM {_source(file)}"
        [(text,)] = self.connection.execute(query).fetchall()
        # DuckDB has one null, and prints none of it.
        return "null" if text is None else str(text)

    def parse_json(self, text: str) -> Cell:
        query = f"SELECT {_handed_out('v')} FROM (SELECT ?::JSON::VARIANT AS v)"
        [(found,)] = self.connection.execute(query, [text]).fetchall()
        return None if found is None else VariantBytes(found["metadata"], found["value"])

    def read(self, file: Path, column: str) -> Sequence[Cell]:
        name = _quoted(column)
        described = self.connection.execute(f"DESCRIBE SELECT {name} FROM {_source(file)}").fetchall()
        selected = _handed_out(name) if described[0][1] == "VARIANT" else name
        return variant_cells(self._table(f"SELECT {selected} FROM {_source(file)}").column(0))

    def _table(self, query: str) -> Any:
        return self.connection.execute(query).to_arrow_table()

    def shred(self, file: Path, column: str, schema: Schema, out: Path) -> None:
        name = _quoted(column)
        given = f"FORMAT parquet, SHREDDING {{{name}: {_literal(_sql_type(schema))}}}"
        query = f"COPY (SELECT {name} FROM {_source(file)}) TO {_literal(str(out))} ({given})"
        self.connection.execute(query)

    def read_table(self, folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
        at = "" if version is None else f", version => {version}"
        return table_cells(self._table(f"SELECT * FROM delta_scan({_literal(str(folder))}{at})"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _handed_out(name: str) -> str:
    # DuckDB has one null for SQL's and Variant's, and the function makes a Variant of it.
    return f"CASE WHEN {name} IS NOT NULL THEN variant_to_parquet_variant({name}) END"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _source(file: Path) -> str:
    return f"read_parquet({_literal(str(file))})"


def _sql_type(schema: Schema) -> str:
    if schema is None:
        return "VARIANT"
    if isinstance(schema, Mapping):
        if "array" in schema:
            return f"{_sql_type(schema['array'])}[]"
        fields = [f"{_quoted(name)} {_sql_type(part)}" for name, part in schema["object"].items()]
        return f"STRUCT({', '.join(fields)})"
    if decimal_of(schema) is None and schema not in TYPES:
        raise NotOfferedError(f"DuckDB has no type {schema} to shred by")
    return TYPES.get(schema, schema.upper())
