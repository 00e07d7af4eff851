"""Check whether rows written with one schema can be read with a later schema."""

from __future__ import annotations

from typing import TypeAlias

from ...protocol.properties import ColumnMappingMode
from ...protocol.schema.column_mapping import physical_name
from ...protocol.types import ArrayType, DataType, MapType, StructField, StructType, describe

__all__ = ["describe_incompatibility"]

TYPE_CHANGES = "delta.typeChanges"

Modes = tuple[ColumnMappingMode, ColumnMappingMode]

# The name of a column, and the reason why it cannot be read.
Incompatibility: TypeAlias = tuple[str, str]


def describe_incompatibility(
    before: StructType,
    after: StructType,
    mode_before: ColumnMappingMode,
    mode_after: ColumnMappingMode,
) -> Incompatibility | None:
    """Return why rows with schema `before` cannot be read with schema `after`, None if they can.

    Columns may have been added that are null in earlier rows, and types may have been widened. Columns may
    not have been dropped, renamed or replaced by another column of the same name.
    """
    return _in_struct(before, after, (mode_before, mode_after), ())


def _in_struct(
    before: StructType, after: StructType, modes: Modes, path: tuple[str, ...]
) -> Incompatibility | None:
    later = {field.name: field for field in after.fields}
    for field in before.fields:
        steps = (*path, field.name)
        name = ".".join(steps)
        if (found := later.pop(field.name, None)) is None:
            return name, f"the column {name} was dropped or renamed"
        if physical_name(field, modes[0]) != physical_name(found, modes[1]):
            return name, f"the column {name} was replaced by another column of the same name"
        if field.nullable and not found.nullable:
            return name, f"the column {name} was nullable"
        if (reason := _in_type(field.type, found.type, found, modes, steps)) is not None:
            return reason
    required = next((field.name for field in later.values() if not field.nullable), None)
    if required is None:
        return None
    name = ".".join((*path, required))
    return name, f"the required column {name} did not exist"


def _in_type(
    before: DataType, after: DataType, field: StructField, modes: Modes, path: tuple[str, ...]
) -> Incompatibility | None:
    if isinstance(before, StructType) and isinstance(after, StructType):
        return _in_struct(before, after, modes, path)
    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        return _in_type(before.element_type, after.element_type, field, modes, (*path, "element"))
    if isinstance(before, MapType) and isinstance(after, MapType):
        return _in_type(before.key_type, after.key_type, field, modes, (*path, "key")) or _in_type(
            before.value_type, after.value_type, field, modes, (*path, "value")
        )
    if before == after or TYPE_CHANGES in field.metadata:
        return None
    name = ".".join(path)
    return name, f"the column {name} changed its type from {describe(before)} to {describe(after)}"
