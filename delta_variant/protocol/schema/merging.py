"""Merge the schema of appended data into the schema of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ..._checks import nearest
from ...errors import SchemaError
from ..types import (
    GENERATION_EXPRESSION,
    IDENTITY,
    VARIANT,
    VOID,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    decimal_of,
    default_of,
    describe,
    map_parts,
    parts_of,
)
from .widening import is_lossless

# For each type, the types that can hold all of its values.
WIDENING = {
    "byte": ("short", "integer", "long"),
    "short": ("integer", "long"),
    "integer": ("long",),
    "float": ("double",),
}
VARIANT_PARTS = {"metadata": PrimitiveType("binary"), "value": PrimitiveType("binary")}

Path = tuple[str, ...]


def merge(table: StructType, data: StructType, *, mode: Literal["strict", "merge"]) -> StructType:
    """Return the schema of the table after an append of data with the schema `data`.

    Columns match by name without regard to case, and keep the table's spelling, type and nullability. Data of
    a narrower type fits a wider column. Nullable columns may be absent, and so may top-level columns with a
    default or a generation expression. A column that the table does not have is added as nullable at the end
    of its struct if `mode` is `merge`. Raises SchemaError, which has the column, for any other difference.
    """
    return _merge_struct(table, data, (), mode)


def _merge_struct(table: StructType, data: StructType, path: Path, mode: str) -> StructType:
    by_name = _by_name(data, path)
    merged = []
    for field in table.fields:
        found = by_name.pop(field.name.lower(), None)
        if found is None:
            _check_absent(field, path)
            merged.append(field)
        else:
            merged_type = _merge_type(field.type, found.type, (*path, field.name), mode)
            merged.append(replace(field, type=merged_type))
    if by_name and mode == "strict":
        extra = [".".join((*path, field.name)) for field in by_name.values()]
        close = nearest(extra[-1].split(".")[-1], [field.name for field in table.fields])
        hint = "" if close is None else f", or name it {close!r} if it is this column"
        raise SchemaError(
            f"the table has no column {', '.join(map(repr, extra))}: remove it from the data{hint}, or add "
            "it to the table",
            column=extra[0],
            remedies=(("schema_mode", "merge"),),
        )
    return StructType((*merged, *(replace(field, nullable=True) for field in by_name.values())))


def _by_name(data: StructType, path: Path) -> dict[str, StructField]:
    by_name: dict[str, StructField] = {}
    for field in data.fields:
        if field.name.lower() in by_name:
            twin = by_name[field.name.lower()].name
            names = ".".join((*path, twin)), ".".join((*path, field.name))
            raise SchemaError(
                f"the data has the columns {names[0]!r} and {names[1]!r}, which differ at most by case",
                column=names[1],
            )
        by_name[field.name.lower()] = field
    return by_name


def _check_absent(field: StructField, path: Path) -> None:
    where = ".".join((*path, field.name))
    default = default_of(field)
    filling = (GENERATION_EXPRESSION, IDENTITY)
    if not path and (default is not None or any(key.startswith(filling) for key in field.metadata)):
        return
    if not field.nullable:
        raise SchemaError(f"the data has no column {where!r}, which is NOT NULL: add it", column=where)
    if default is not None:
        raise SchemaError(
            f"the data has no column {where!r}: add it, because this version computes defaults such as "
            f"{default} only for top-level columns",
            column=where,
        )


def _merge_type(table: DataType, data: DataType, path: Path, mode: str) -> DataType:
    if _fits(table, data):
        return table
    if isinstance(table, StructType) and isinstance(data, StructType):
        return _merge_struct(table, data, path, mode)
    if type(table) is type(data) and not isinstance(table, PrimitiveType):
        given = dict(parts_of(data))
        return map_parts(table, lambda step, part: _merge_type(part, given[step], (*path, step), mode))
    column = ".".join(path)
    raise SchemaError(
        f"the column {column!r} is {describe(table)} in the table, but {describe(data)} in the data: "
        f"{'name JSON text in variant_columns' if table == VARIANT else 'cast the data'}",
        column=column,
    )


def _fits(table: DataType, data: DataType) -> bool:
    if data in (table, VOID):
        return True
    if table == VARIANT:
        return (
            isinstance(data, StructType) and {part.name: part.type for part in data.fields} == VARIANT_PARTS
        )
    if not (isinstance(table, PrimitiveType) and isinstance(data, PrimitiveType)):
        return False
    is_decimal = decimal_of(table) is not None
    return table.name in WIDENING.get(data.name, ()) or (is_decimal and is_lossless(data, table))
