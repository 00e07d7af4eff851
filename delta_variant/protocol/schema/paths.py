"""Fields by their paths, and types with one part changed (PROTOCOL.md, "Field Path").

A step of a path is the name of a field, or `element`, `key` or `value` within an array or a map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from ...errors import SchemaError
from ..types import ArrayType, DataType, MapType, StructField, StructType, describe

__all__ = [
    "FieldPath",
    "edit_fields",
    "edit_type",
    "parts_of",
    "path_text",
    "resolve",
    "split_at_field",
    "type_at",
]

FieldPath: TypeAlias = tuple[str, ...]
Part: TypeAlias = Literal["element", "key", "value"]

MAX_SHOWN = 10


def path_text(path: FieldPath) -> str:
    """Return a path for messages."""
    return ".".join(path)


def parts_of(data_type: DataType) -> list[tuple[str, DataType]]:
    """Return the steps that lead on from a type, and where to."""
    if isinstance(data_type, StructType):
        return [(field.name, field.type) for field in data_type.fields]
    if isinstance(data_type, ArrayType):
        return [("element", data_type.element_type)]
    if isinstance(data_type, MapType):
        return [("key", data_type.key_type), ("value", data_type.value_type)]
    return []


def resolve(schema: StructType, path: FieldPath) -> FieldPath:
    """Return a path as the schema spells it: names match without regard to case, an exact one first.

    Raises SchemaError where the path leads to nothing.
    """
    found: FieldPath = ()
    data_type: DataType = schema
    for step in path:
        found = (*found, _spelling(data_type, step, found))
        data_type = _part(data_type, found[-1])
    return found


def type_at(data_type: DataType, path: FieldPath) -> DataType:
    """Return the type at a resolved path."""
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
    """Return a type whose part at a resolved path is what `edit` makes of it."""
    if not path:
        return edit(data_type)
    step, rest = path[0], path[1:]
    if isinstance(data_type, StructType):
        return StructType(
            tuple(
                replace(field, type=edit_type(field.type, rest, edit)) if field.name == step else field
                for field in data_type.fields
            )
        )
    edited = edit_type(_part(data_type, step), rest, edit)
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=edited)
    assert isinstance(data_type, MapType)
    return replace(data_type, key_type=edited) if step == "key" else replace(data_type, value_type=edited)


def edit_fields(
    schema: StructType, path: FieldPath, edit: Callable[[tuple[StructField, ...]], tuple[StructField, ...]]
) -> StructType:
    """Return a schema in which `edit` has changed the fields of the struct at a resolved path.

    Raises SchemaError where there is no struct.
    """

    def edit_struct(data_type: DataType) -> DataType:
        if not isinstance(data_type, StructType):
            raise SchemaError(f"the column {path_text(path)} is {describe(data_type)}, which has no fields")
        return StructType(edit(data_type.fields))

    edited = edit_type(schema, path, edit_struct)
    assert isinstance(edited, StructType)
    return edited


def _spelling(data_type: DataType, step: str, parent: FieldPath) -> str:
    names = [name for name, _ in parts_of(data_type)]
    matching = [name for name in names if name.lower() == step.lower()]
    if not matching:
        shown = ", ".join(names[:MAX_SHOWN]) + (", …" if len(names) > MAX_SHOWN else "")
        known = f"there are {shown}" if names else f"{path_text(parent)} is {describe(data_type)}"
        raise SchemaError(f"there is no column {path_text((*parent, step))}: {known}")
    return step if step in matching else matching[0]


def _part(data_type: DataType, step: str) -> DataType:
    return dict(parts_of(data_type))[step]
