"""Convert what an engine returns: Arrow data to cells, and a `schemaString` to the types of cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from .engine import Cell, VariantBytes

__all__ = ["column_cells", "column_types", "table_cells", "variant_cells"]


def table_cells(table: pa.Table) -> list[dict[str, Cell]]:
    """Return the rows of a table; a struct of exactly `metadata` and `value` is a Variant."""
    columns = {name: list(column_cells(table.column(name))) for name in table.column_names}
    return [{name: cells[row] for name, cells in columns.items()} for row in range(table.num_rows)]


def column_cells(column: Any) -> Iterator[Cell]:
    """Yield the cells of an array or a chunked array."""
    for scalar in column:
        yield _cell(column.type, scalar.as_py())


def variant_cells(column: Any) -> list[Cell]:
    """Return the Variants of a column of structs of bytes; ValueError for any other type.

    A shredded struct, as stored in a file, is not a Variant value.
    """
    if not pa.types.is_struct(column.type) or {field.name for field in column.type} != MEMBERS:
        raise ValueError(f"expected a Variant column, got {column.type}")
    return list(column_cells(column))


MEMBERS = {"metadata", "value"}


def _cell(arrow_type: Any, value: Any) -> Cell:
    if value is None or not pa.types.is_nested(arrow_type):
        return value
    if pa.types.is_struct(arrow_type):
        if {field.name for field in arrow_type} == MEMBERS:
            return _variant(value)
        return {field.name: _cell(field.type, value[field.name]) for field in arrow_type}
    if pa.types.is_map(arrow_type):
        return {key: _cell(arrow_type.item_type, part) for key, part in value}
    element_type = arrow_type.field(0).type
    return [_cell(element_type, part) for part in value]


def _variant(value: Mapping[str, Any]) -> Cell:
    metadata, content = value["metadata"], value["value"]
    if not isinstance(metadata, bytes) or not isinstance(content, bytes):
        raise ValueError("invalid Variant: expected bytes in metadata and value")
    return VariantBytes(metadata, content)


def column_types(schema_string: str) -> dict[str, str]:
    """Return the type of each column of a `schemaString`: `long`, `array<variant>`, `struct<a: long>`."""
    return {field["name"]: _type_text(field["type"]) for field in json.loads(schema_string)["fields"]}


def _type_text(data_type: Any) -> str:
    if isinstance(data_type, str):
        return data_type
    if data_type["type"] == "array":
        return f"array<{_type_text(data_type['elementType'])}>"
    if data_type["type"] == "map":
        return f"map<{_type_text(data_type['keyType'])}, {_type_text(data_type['valueType'])}>"
    if data_type["type"] == "struct":
        fields = (f"{field['name']}: {_type_text(field['type'])}" for field in data_type["fields"])
        return f"struct<{', '.join(fields)}>"
    return _type_text(data_type["type"])
