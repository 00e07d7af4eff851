"""What a table's schema becomes when data is appended to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ...errors import SchemaError
from ..types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    decimal_of,
    describe,
)

__all__ = ["merge"]

# To the right of a type stand the types that hold each of its values.
WIDENING = {
    "byte": ("short", "integer", "long"),
    "short": ("integer", "long"),
    "integer": ("long",),
    "float": ("double",),
}
INTEGER_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
VARIANT_PARTS = {"metadata": PrimitiveType("binary"), "value": PrimitiveType("binary")}
DEFAULT_VALUE = "CURRENT_DEFAULT"
GENERATION_EXPRESSION = "delta.generationExpression"

Path = tuple[str, ...]


def merge(table: StructType, data: StructType, *, mode: Literal["strict", "merge"]) -> StructType:
    """Return the schema of the table after data of the schema `data` is appended to it.

    Columns meet by name without regard to case, and keep the table's spelling, type and nullability; data of
    a narrower type fits a wider one. Nullable columns may be absent, and so may those at the top that the
    table has a default or a generation expression for. A column that the table does not have is added at the
    end of its struct when `mode` is `merge`, and then nullable. Everything else is a `SchemaError` that names
    the column and both types (T10).
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
        extra = ", ".join(".".join((*path, field.name)) for field in by_name.values())
        raise SchemaError(
            f'the table has no column {extra}: leave it out of the data, or add it with schema_mode="merge"'
        )
    return StructType((*merged, *(replace(field, nullable=True) for field in by_name.values())))


def _by_name(data: StructType, path: Path) -> dict[str, StructField]:
    by_name: dict[str, StructField] = {}
    for field in data.fields:
        if field.name.lower() in by_name:
            twin = by_name[field.name.lower()].name
            raise SchemaError(
                f"the data has the columns {'.'.join((*path, twin))} and {'.'.join((*path, field.name))}, "
                "which differ at most by case"
            )
        by_name[field.name.lower()] = field
    return by_name


def _check_absent(field: StructField, path: Path) -> None:
    where = ".".join((*path, field.name))
    default = str(field.metadata.get(DEFAULT_VALUE, "NULL")).strip()
    has_default = default.upper() != "NULL"
    if not path and (has_default or GENERATION_EXPRESSION in field.metadata):
        return
    if not field.nullable:
        raise SchemaError(f"the data has no column {where}, which is NOT NULL")
    if has_default:
        raise SchemaError(
            f"the data has no column {where}: give it, its default {default} cannot be computed here"
        )


def _merge_type(table: DataType, data: DataType, path: Path, mode: str) -> DataType:
    if _fits(table, data):
        return table
    if isinstance(table, StructType) and isinstance(data, StructType):
        return _merge_struct(table, data, path, mode)
    if isinstance(table, ArrayType) and isinstance(data, ArrayType):
        element = _merge_type(table.element_type, data.element_type, (*path, "element"), mode)
        return replace(table, element_type=element)
    if isinstance(table, MapType) and isinstance(data, MapType):
        key = _merge_type(table.key_type, data.key_type, (*path, "key"), mode)
        value = _merge_type(table.value_type, data.value_type, (*path, "value"), mode)
        return replace(table, key_type=key, value_type=value)
    raise SchemaError(
        f"the column {'.'.join(path)} is {describe(table)} in the table and {describe(data)} in the data: "
        f"{'name JSON text in variant_columns' if table == VARIANT else 'cast the data'}"
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
    return table.name in WIDENING.get(data.name, ()) or _fits_decimal(table, data)


def _fits_decimal(table: PrimitiveType, data: PrimitiveType) -> bool:
    decimal = decimal_of(table)
    if decimal is None:
        return False
    precision, scale = decimal_of(data) or (INTEGER_DIGITS.get(data.name, 99), 0)
    return decimal[1] >= scale and decimal[0] - decimal[1] >= precision - scale
