"""The interface of an adapter: an engine's name, version, capabilities, and the cells that it returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import pyarrow as pa


@dataclass(frozen=True)
class VariantBytes:
    """A Variant that an engine returns."""

    metadata: bytes
    value: bytes


Cell: TypeAlias = Any
"""A value of a column: VariantBytes, None for SQL NULL, a Python value, or lists and dicts of them."""


@dataclass(frozen=True)
class Query:
    """A query of the kind `select`: a path of a Variant column, cast to a type.

    Without a condition it returns `id` and `found`, the value of each row. With one, an operator and its
    literal, it returns the `id` of each row for which the condition is true. An empty path is the column
    itself.
    """

    column: str
    path: tuple[str, ...]
    type: str
    where: tuple[Any, ...] = ()


class NotOfferedError(Exception):
    """The engine's public API cannot express this case. This says nothing about the engine's internals."""


@dataclass(frozen=True)
class Engine:
    """The public API of an engine; a function is None if the engine does not have the capability.

    A function raises the errors of the engine, and NotOfferedError if the engine's API cannot express the
    case. `options` are the options of cases that the engine supports, which are passed as keyword arguments.
    """

    name: str
    version: str
    options: frozenset[str] = frozenset()
    to_json: Callable[..., str] | None = None
    """`(file, column)`: the JSON text of the one Variant in an unshredded Parquet file."""
    decode: Callable[..., Mapping[str, Any]] | None = None
    """`(variant)`: the typed value, by the accessors of an engine that has no JSON text."""
    parse_json: Callable[..., VariantBytes] | None = None
    """`(text)`"""
    shred: Callable[..., None] | None = None
    """`(file, column, schema, out)`: write the column of an unshredded file, shredded, to the file `out`."""
    read: Callable[..., Sequence[Cell]] | None = None
    """`(file, column)`: the rows of a Variant column of a Parquet file."""
    read_table: Callable[..., Sequence[Mapping[str, Cell]]] | None = None
    """`(folder, version)`: all rows of a Delta table; version None is the latest."""
    read_changes: Callable[..., Sequence[Mapping[str, Cell]]] | None = None
    """`(folder, first, last)`: the rows that commits changed, with `_change_type` and `_commit_version`."""
    select: Callable[..., Sequence[Mapping[str, Cell]]] | None = None
    """`(folder, query)`: the rows of a Query on a Delta table of all Parquet files in the folder."""
    rewrite: Callable[..., None] | None = None
    """`(folder, delete)`: delete the row with this `id` from a Delta table, or compact it if None."""
    decode_stats: Callable[..., VariantBytes] | None = None
    """`(text)`: the Variant in the z85 text of statistics."""
    encode_stats: Callable[..., str] | None = None
    """`(variant)`: the z85 text for statistics."""
    collect_stats: Callable[..., Mapping[str, Any]] | None = None
    """`(file, column)`: `min` and `max` as VariantBytes or None, and `null_count` if it is counted."""
    load_log: Callable[..., Mapping[str, Any]] | None = None
    """`(folder, version)`: the answer of kind `log`, with the keys in the README of the cases."""

    @classmethod
    def of(cls, name: str, version: str, adapter: object) -> Engine:
        """Return an engine whose capabilities are the methods of an adapter with their names."""
        capabilities = [each.name for each in fields(cls) if each.default is None]
        functions: dict[str, Any] = {each: getattr(adapter, each, None) for each in capabilities}
        return cls(name, version, **functions)


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
