"""Find fields by their paths, and change one part of a type (PROTOCOL.md, "Field Path").

A step of a path is the name of a field, or `element`, `key` or `value` within an array or a map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..._checks import list_names
from ...errors import SchemaError
from ..types import DataType, StructField, StructType, describe, map_parts, parts_of

FieldPath: TypeAlias = tuple[str, ...]


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
