"""The data types of a Delta schema as values (PROTOCOL.md, "Schema Serialization Format"), and their parts.

A step of a path is the name of a field, or `element`, `key` or `value` within an array or a map.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .._checks import list_names
from ..errors import SchemaError

DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)", re.ASCII)


GEOSPATIAL = re.compile(r"(?:geometry|geography)(?:\([\w:,\s-]*\))?", re.ASCII)

FieldPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type, by its name in the schema JSON: `long`, `decimal(10,2)`, `variant`."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array of elements of one type."""

    element_type: DataType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    """A map; keys are never null."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class StructField:
    """A column or a field of a struct, with the metadata that Delta stores for it."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StructType:
    """The schema of a table, or a struct within it."""

    fields: tuple[StructField, ...] = ()


DataType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType

VARIANT = PrimitiveType("variant")
VOID = PrimitiveType("void")

# Keys in the metadata of fields.
DEFAULT = "CURRENT_DEFAULT"
COMMENT = "comment"
GENERATION_EXPRESSION = "delta.generationExpression"
IDENTITY = "delta.identity."  # The start of several keys.
INVARIANTS = "delta.invariants"
TYPE_CHANGES = "delta.typeChanges"


def default_of(column: StructField) -> str | None:
    """Return the SQL text of the default of a column, None if it is NULL."""
    text = str(column.metadata.get(DEFAULT, "NULL")).strip()
    return None if text.upper() == "NULL" else text


def decimal_of(data_type: DataType) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type, None for any other type."""
    if not isinstance(data_type, PrimitiveType):
        return None
    found = DECIMAL.fullmatch(data_type.name)
    return (int(found[1]), int(found[2])) if found else None


def is_geospatial(data_type: DataType) -> bool:
    """Return whether a type is `geometry(crs)` or `geography(crs, algorithm)`, whose values are WKB."""
    return isinstance(data_type, PrimitiveType) and GEOSPATIAL.fullmatch(data_type.name) is not None


def parts_of(data_type: DataType) -> list[tuple[str, DataType]]:
    """Return the steps to the parts of a type, each with the type of the part."""
    if isinstance(data_type, StructType):
        return [(child.name, child.type) for child in data_type.fields]
    if isinstance(data_type, ArrayType):
        return [("element", data_type.element_type)]
    if isinstance(data_type, MapType):
        return [("key", data_type.key_type), ("value", data_type.value_type)]
    return []


def map_parts(data_type: DataType, change: Callable[[str, DataType], DataType]) -> DataType:
    """Return a type with each part replaced by the result of `change` for its step and its type."""
    parts = [change(step, part) for step, part in parts_of(data_type)]
    if isinstance(data_type, StructType):
        pairs = zip(data_type.fields, parts, strict=True)
        return StructType(tuple(replace(child, type=part) for child, part in pairs))
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=parts[0])
    if isinstance(data_type, MapType):
        return replace(data_type, key_type=parts[0], value_type=parts[1])
    return data_type


def map_fields(schema: StructType, change: Callable[[StructField], StructField]) -> StructType:
    """Return a schema with each field at any depth replaced by the result of `change`, parents first."""

    def map_type(data_type: DataType) -> DataType:
        if isinstance(data_type, StructType):
            return map_fields(data_type, change)
        return map_parts(data_type, lambda _, part: map_type(part))

    changed = map(change, schema.fields)
    return StructType(tuple(replace(each, type=map_type(each.type)) for each in changed))


def fields_of(
    data_type: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yield every field at any depth with its path, which may have the steps `element`, `key` and `value`."""
    fields = data_type.fields if isinstance(data_type, StructType) else ()
    for number, (step, part) in enumerate(parts_of(data_type)):
        if fields:
            yield (*path, step), fields[number]
        yield from fields_of(part, (*path, step))


def variant_defaults(schema: StructType) -> Iterator[tuple[str, str]]:
    """Yield the Variant columns with a default other than NULL, and the default."""
    for path, column in fields_of(schema):
        default = default_of(column)
        if column.type == VARIANT and default is not None:
            yield ".".join(path), default


def types_within(data_type: DataType, path: FieldPath = ()) -> Iterator[tuple[FieldPath, DataType]]:
    """Yield a type and its parts at any depth, each with its path."""
    yield path, data_type
    for step, part in parts_of(data_type):
        yield from types_within(part, (*path, step))


def leaf_columns(
    schema: StructType, parents: tuple[StructField, ...] = ()
) -> Iterator[tuple[StructField, ...]]:
    """Yield the columns and fields of structs that are not structs, each as its chain of fields."""
    for leaf in schema.fields:
        chain = (*parents, leaf)
        if isinstance(leaf.type, StructType):
            yield from leaf_columns(leaf.type, chain)
        else:
            yield chain


def primitives_of(data_type: DataType) -> frozenset[str]:
    """Return the names of the primitive types at any depth."""
    return frozenset(part.name for _, part in types_within(data_type) if isinstance(part, PrimitiveType))


def has_variant(data_type: DataType) -> bool:
    """Return whether a type is Variant or has one at any depth."""
    return VARIANT.name in primitives_of(data_type)


def primitive_kinds_of(data_type: DataType) -> frozenset[str]:
    """Return the names of the primitive types at any depth, without parameters: `decimal`, `geometry`."""
    return frozenset(name.partition("(")[0] for name in primitives_of(data_type))


NO_OTHER_NAMES: Mapping[str, str] = {}
SQL_NAMES: Mapping[str, str] = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def describe(data_type: DataType, names: Mapping[str, str] = NO_OTHER_NAMES) -> str:
    """Return the type for messages: `struct<a: long, b: array<string>>`.

    `names` maps names of primitive types to the names to print instead.
    """
    if isinstance(data_type, PrimitiveType):
        return names.get(data_type.name, data_type.name)
    if isinstance(data_type, ArrayType):
        return f"array<{describe(data_type.element_type, names)}>"
    if isinstance(data_type, MapType):
        return f"map<{describe(data_type.key_type, names)}, {describe(data_type.value_type, names)}>"
    fields = (f"{child.name}: {describe(child.type, names)}" for child in data_type.fields)
    return f"struct<{', '.join(fields)}>"


def sql_type(data_type: DataType) -> str:
    """Return the type with the names of SQL: `struct<a: bigint, b: array<string>>`."""
    return describe(data_type, SQL_NAMES)


def path_text(path: FieldPath) -> str:
    """Return a path as text for messages."""
    return ".".join(path)


def resolve(schema: StructType, path: FieldPath) -> FieldPath:
    """Return a path in the spelling of the schema: names match exactly, or else without regard to case.

    Raises SchemaError for a path that does not exist.
    """
    found: FieldPath = ()
    data_type: DataType = schema
    for step in path:
        found = (*found, _spelling(data_type, step, found))
        data_type = _part(data_type, found[-1])
    return found


def type_at(data_type: DataType, path: FieldPath) -> DataType:
    for step in path:
        data_type = _part(data_type, step)
    return data_type


def split_at_field(schema: StructType, path: FieldPath) -> tuple[FieldPath, FieldPath]:
    """Return the path of the nearest field, and the steps from there into arrays and maps."""
    length = len(path)
    while length and not isinstance(type_at(schema, path[: length - 1]), StructType):
        length -= 1
    return path[:length], path[length:]


def edit_type(data_type: DataType, path: FieldPath, edit: Callable[[DataType], DataType]) -> DataType:
    """Return a type with the part at a resolved path replaced by the result of `edit`."""
    if not path:
        return edit(data_type)
    return map_parts(
        data_type, lambda step, part: edit_type(part, path[1:], edit) if step == path[0] else part
    )


def edit_fields(
    schema: StructType, path: FieldPath, edit: Callable[[tuple[StructField, ...]], tuple[StructField, ...]]
) -> StructType:
    """Return a schema with the fields of the struct at a resolved path replaced by the result of `edit`.

    Raises SchemaError if the type at the path is not a struct.
    """

    def edit_struct(data_type: DataType) -> DataType:
        if not isinstance(data_type, StructType):
            column = path_text(path)
            raise SchemaError(
                f"the column {column!r} is {describe(data_type)}, which has no fields", column=column
            )
        return StructType(edit(data_type.fields))

    edited = edit_type(schema, path, edit_struct)
    assert isinstance(edited, StructType)
    return edited


def _spelling(data_type: DataType, step: str, parent: FieldPath) -> str:
    names = [name for name, _ in parts_of(data_type)]
    matching = [name for name in names if name.lower() == step.lower()]
    if not matching:
        column = path_text((*parent, step))
        if names:
            known = f"expected one of {list_names(names, step)}"
        else:
            known = f"{path_text(parent)!r} is {describe(data_type)}"
        raise SchemaError(f"there is no column {column!r}: {known}", column=column)
    return step if step in matching else matching[0]


def _part(data_type: DataType, step: str) -> DataType:
    return dict(parts_of(data_type))[step]
