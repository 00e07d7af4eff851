"""Column mapping: the names and ids of columns in data files (PROTOCOL.md, "Column Mapping")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...errors import SchemaError
from ..properties import ColumnMappingMode
from ..types import StructField, StructType, fields_of, map_fields

COLUMN_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"


def physical_name(field: StructField, mode: ColumnMappingMode) -> str:
    """Return the name of `field` in data files, partition values and statistics."""
    if mode == "none":
        return field.name
    name = field.metadata.get(PHYSICAL_NAME)
    if not isinstance(name, str):
        raise SchemaError(
            f"the table maps columns by {mode}, but the column {field.name!r} has no {PHYSICAL_NAME}",
            column=field.name,
        )
    return name


def physical_schema(schema: StructType, mode: ColumnMappingMode) -> StructType:
    """Return `schema` with physical names at every depth; fields inside a Variant are never renamed."""
    if mode == "none":
        return schema
    return _check_unique(map_fields(schema, lambda each: replace(each, name=physical_name(each, mode))))


def stored_paths(schema: StructType, mode: ColumnMappingMode) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the path of each field at any depth in data files, by its path in `schema`."""
    pairs = zip(fields_of(schema), fields_of(physical_schema(schema, mode)), strict=True)
    return {path: stored for (path, _), (stored, _) in pairs}


def _check_unique(physical: StructType) -> StructType:
    """Raise SchemaError if two columns have one physical path (PROTOCOL.md, "Column Mapping")."""
    known: set[tuple[str, ...]] = set()
    for path, _ in fields_of(physical):
        if path in known:
            raise SchemaError(
                f"several columns have the {PHYSICAL_NAME} {'.'.join(path)!r}",
                column=".".join(path),
                rule="T11",
            )
        known.add(path)
    return physical


def assign_column_mapping(
    schema: StructType, max_column_id: int, *, new_uuid: Callable[[], str]
) -> tuple[StructType, int]:
    """Return `schema` with an id and a physical name for every field without them, and the highest id."""
    greatest = max([max_column_id, *(_column_id(field) for _, field in fields_of(schema))])

    def assign(field: StructField) -> StructField:
        nonlocal greatest
        if COLUMN_ID in field.metadata and PHYSICAL_NAME in field.metadata:
            return field
        greatest += 1
        added = {COLUMN_ID: greatest, PHYSICAL_NAME: f"col-{new_uuid()}"}
        return replace(field, metadata={**added, **field.metadata})

    return map_fields(schema, assign), greatest


def keep_names(schema: StructType) -> StructType:
    """Return `schema` with the name of each field as its physical name, for existing files."""

    def keep(field: StructField) -> StructField:
        return replace(field, metadata={**field.metadata, PHYSICAL_NAME: field.name})

    return map_fields(schema, keep)


def _column_id(field: StructField) -> int:
    column_id = field.metadata.get(COLUMN_ID, 0)
    if not isinstance(column_id, int):
        raise SchemaError(
            f"invalid {COLUMN_ID} of the column {field.name!r}: expected an integer, got {column_id!r}",
            column=field.name,
        )
    return column_id
