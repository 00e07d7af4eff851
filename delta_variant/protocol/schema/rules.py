"""What Delta does not allow in a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...errors import SchemaError
from ..properties import ColumnMappingMode
from ..types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    describe,
    primitives_of,
)

__all__ = ["check_consistent", "check_new", "check_partition_columns", "contradictions", "remove_void"]

FORBIDDEN_CHARACTERS = " ,;{}()\n\t="


def check_new(schema: StructType, *, mode: ColumnMappingMode = "none") -> None:
    """Raise `SchemaError` for a schema that no new table or column may have.

    Names must differ by more than case and, without column mapping, have none of the characters that Parquet
    writers reject; map keys hold no Variant (T6); every type is known; there is at least one column.
    """
    if not schema.fields:
        raise SchemaError("a table needs at least one column")
    _check_map_keys(schema, ())
    _check_type(schema, (), mode)


def check_consistent(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raise `SchemaError` for metadata that contradicts itself.

    A Variant is a map key (T6) or a partition column (T7), a struct has one name twice, or a partition column
    is not a column of the schema, is named twice, or has a nested type (T14). What such a table holds is
    undefined, so it is neither read nor written.
    """
    for field in schema.fields:
        if field.type == VARIANT and field.name in partition_columns:
            raise SchemaError(f"the table is partitioned by the Variant {field.name}, which cannot be")
        _check_map_keys(field.type, (field.name,))
    for contradiction in contradictions(schema, partition_columns):
        raise SchemaError(contradiction)


def contradictions(schema: StructType, partition_columns: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each column name that is not unique, and for each invalid partition column."""
    yield from (f"the schema has several columns {name!r}" for name in _repeated(schema, ()))
    types = {field.name: field.type for field in schema.fields}
    for number, name in enumerate(partition_columns):
        if name in partition_columns[:number]:
            yield f"partitionColumns names {name!r} twice"
        elif name not in types:
            yield f"partitionColumns names {name!r}, which is not a column of the schema"
        elif not isinstance(types[name], PrimitiveType):
            yield f"partitionColumns names {name!r}, whose type is {describe(types[name])}"


def _repeated(data_type: DataType, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of fields whose struct has another field of the same name before them."""
    if isinstance(data_type, StructType):
        names: set[str] = set()
        for field in data_type.fields:
            if field.name in names:
                yield ".".join((*path, field.name))
            names.add(field.name)
            yield from _repeated(field.type, (*path, field.name))
    elif isinstance(data_type, ArrayType):
        yield from _repeated(data_type.element_type, (*path, "element"))
    elif isinstance(data_type, MapType):
        yield from _repeated(data_type.key_type, (*path, "key"))
        yield from _repeated(data_type.value_type, (*path, "value"))


def check_partition_columns(schema: StructType, partition_columns: Sequence[str]) -> tuple[str, ...]:
    """Return the partition columns as the schema spells them; `SchemaError` for one that cannot be (T7)."""
    by_name = {field.name.lower(): field for field in schema.fields}
    names = []
    for name in partition_columns:
        field = by_name.get(name.lower())
        if field is None:
            raise SchemaError(f"there is no column {name} to partition by")
        if not isinstance(field.type, PrimitiveType) or field.type.name in ("variant", "void"):
            raise SchemaError(f"cannot partition by {name}: its type is {describe(field.type)}")
        if field.name in names:
            raise SchemaError(f"the partition column {name} is named twice")
        names.append(field.name)
    if names and len(names) == len(schema.fields):
        raise SchemaError("a table needs a column besides its partition columns")
    return tuple(names)


def remove_void(schema: StructType) -> StructType:
    """Return the schema of data files, which have no `void` columns (PROTOCOL.md, "Void Type").

    Raises SchemaError for a schema of which no data file can be written: one with `void` within an array or a
    map, or with nothing but `void` in a struct or at the top.
    """
    if VOID.name not in primitives_of(schema):
        return schema
    return _without_void(schema, ())


def _without_void(struct: StructType, path: tuple[str, ...]) -> StructType:
    typed = (field for field in struct.fields if field.type != VOID)
    kept = tuple(_field_without_void(field, (*path, field.name)) for field in typed)
    if not kept:
        what = f"the column {'.'.join(path)} is" if path else "all columns are"
        raise SchemaError(f"cannot write data files because {what} void: change the type of one first")
    return replace(struct, fields=kept)


def _field_without_void(field: StructField, path: tuple[str, ...]) -> StructField:
    if isinstance(field.type, StructType):
        return replace(field, type=_without_void(field.type, path))
    if VOID.name in primitives_of(field.type):
        raise SchemaError(
            f"cannot write data files because the column {'.'.join(path)} is {describe(field.type)}: change "
            "the type void first"
        )
    return field


def _check_map_keys(data_type: DataType, path: tuple[str, ...]) -> None:
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            _check_map_keys(field.type, (*path, field.name))
    elif isinstance(data_type, ArrayType):
        _check_map_keys(data_type.element_type, (*path, "element"))
    elif isinstance(data_type, MapType):
        if VARIANT.name in primitives_of(data_type.key_type):
            raise SchemaError(f"the map {'.'.join(path)} has Variant keys: Variants cannot be compared")
        _check_map_keys(data_type.value_type, (*path, "value"))


def _check_type(data_type: DataType, path: tuple[str, ...], mode: ColumnMappingMode) -> None:
    if isinstance(data_type, StructType):
        _check_names(data_type, path, mode)
        for field in data_type.fields:
            _check_type(field.type, (*path, field.name), mode)
    elif isinstance(data_type, ArrayType):
        _check_type(data_type.element_type, (*path, "element"), mode)
    elif isinstance(data_type, MapType):
        _check_type(data_type.key_type, (*path, "key"), mode)
        _check_type(data_type.value_type, (*path, "value"), mode)
    elif data_type == VOID:
        raise SchemaError(f"the column {'.'.join(path)} has nothing but nulls: cast it to a type first")


def _check_names(struct: StructType, path: tuple[str, ...], mode: ColumnMappingMode) -> None:
    seen: dict[str, str] = {}
    for field in struct.fields:
        where = ".".join((*path, field.name))
        twin = seen.get(field.name.lower())
        if twin is not None:
            raise SchemaError(f"the columns {twin} and {where} differ at most by case: rename one")
        seen[field.name.lower()] = where
        if not field.name:
            raise SchemaError("a column has no name")
        if "\0" in field.name:
            raise SchemaError(f"the column name {where!r} has a NUL character: rename the column")
        forbidden = [character for character in FORBIDDEN_CHARACTERS if character in field.name]
        if mode == "none" and forbidden:
            raise SchemaError(
                f"the column name {where!r} has the character {forbidden[0]!r}: rename the column, "
                "or set delta.columnMapping.mode=name when the table is created"
            )
