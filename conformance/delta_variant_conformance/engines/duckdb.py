"""DuckDB, whose VARIANT is returned as bytes with `variant_to_parquet_variant`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from ..engine import Cell, Engine, NotOfferedError, Query, table_cells, variant_cells
from ..typed_values import Schema, decimal_of

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
    """Return the engine; it offers Delta tables if its extension for them is installed."""
    return Engine(
        name="duckdb",
        version=duckdb.__version__,
        to_json=_to_json,
        parse_json=_parse_json,
        shred=_shred,
        read=_read,
        read_table=_read_table if _has_delta() else None,
        select=_select,
    )


def _table(query: str, *parameters: str) -> Any:
    # Each query gets its own database, because an internal error makes a database unusable.
    with duckdb.connect(config={"threads": 1}) as connection:
        if "delta_scan" in query:
            connection.execute("LOAD delta")
        return connection.execute(query, parameters).to_arrow_table()


def _has_delta() -> bool:
    try:
        _table("LOAD delta")
    except duckdb.Error:
        return False
    return True


def _to_json(file: Path, column: str) -> str:
    [text] = _table(f"SELECT {_quote(column)}::JSON::VARCHAR FROM {_source(file)}").column(0).to_pylist()
    # DuckDB does not distinguish Variant null from SQL NULL, which has no text.
    return "null" if text is None else str(text)


def _parse_json(text: str) -> Cell:
    [cell] = variant_cells(
        _table(f"SELECT {_to_parquet_variant('v')} FROM (SELECT ?::JSON::VARIANT AS v)", text).column(0)
    )
    return cell


def _read(file: Path, column: str) -> Sequence[Cell]:
    name = _quote(column)
    [column_type] = _table(f"DESCRIBE SELECT {name} FROM {_source(file)}").column(1).to_pylist()
    selected = _to_parquet_variant(name) if column_type == "VARIANT" else name
    return variant_cells(_table(f"SELECT {selected} FROM {_source(file)}").column(0))


def _shred(file: Path, column: str, schema: Schema, out: Path) -> None:
    name = _quote(column)
    given = f"FORMAT parquet, SHREDDING {{{name}: {_literal(_sql_type(schema))}}}"
    _table(f"COPY (SELECT {name} FROM {_source(file)}) TO {_literal(str(out))} ({given})")


def _read_table(folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
    at = "" if version is None else f", version => {version}"
    return table_cells(_table(f"SELECT * FROM delta_scan({_literal(str(folder))}{at})"))


def _select(folder: Path, query: Query) -> Sequence[Mapping[str, Cell]]:
    # Its extension for Delta is not part of the package, and every file in the folder is part of the table.
    files = ", ".join(_literal(str(file)) for file in sorted(folder.glob("*.parquet")))
    path = _quote(query.column)
    for name in query.path:
        path = f"variant_extract({path}, {_literal(name)})"
    found = f"{path}::{_sql_type(query.type)}"
    if not query.where:
        return table_cells(_table(f"SELECT id, {found} AS found FROM read_parquet([{files}])"))
    operator, *literals = query.where
    literal = "".join(_value(query.type, each) for each in literals)
    return table_cells(_table(f"SELECT id FROM read_parquet([{files}]) WHERE {found} {operator} {literal}"))


def _value(kind: str, value: Any) -> str:
    if kind == "binary":
        return f"from_hex({_literal(value)})"
    return f"{_literal(str(value))}::{_sql_type(kind)}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _to_parquet_variant(name: str) -> str:
    # DuckDB does not distinguish Variant null from SQL NULL, which the function would make a Variant.
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
        fields = [f"{_quote(name)} {_sql_type(part)}" for name, part in schema["object"].items()]
        return f"STRUCT({', '.join(fields)})"
    if decimal_of(schema) is None and schema not in TYPES:
        raise NotOfferedError(f"DuckDB cannot shred to the type {schema}")
    return TYPES.get(schema, schema.upper())
