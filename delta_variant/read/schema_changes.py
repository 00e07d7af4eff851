"""Check whether rows written with one schema can be read with a later schema."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..protocol import properties
from ..protocol.actions import Metadata
from ..protocol.properties import ColumnMappingMode
from ..protocol.schema.column_mapping import physical_name
from ..protocol.schema.json_text import parse as parse_schema
from ..protocol.types import (
    TYPE_CHANGES,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    describe,
    parts_of,
)


class Modes(NamedTuple):
    """The column mapping before and after, and whether to follow a column that it renames or drops."""

    before: ColumnMappingMode
    after: ColumnMappingMode
    follows: bool = False

    def key(self, field: StructField, mode: ColumnMappingMode) -> str:
        """Return by what a field is found in the other schema."""
        return physical_name(field, mode) if self.follows else field.name


# The name of a column, and the reason why it cannot be read.
Incompatibility: TypeAlias = tuple[str, str]


def describe_incompatibility(
    before: StructType, after: StructType, mode_before: ColumnMappingMode, mode_after: ColumnMappingMode
) -> Incompatibility | None:
    """Return why rows with schema `before` cannot be read with schema `after`, None if they can.

    Columns may have been added that are null in earlier rows, and types may have been widened. Columns may
    not have been dropped, renamed or replaced by another column of the same name.
    """
    return _in_struct(before, after, Modes(mode_before, mode_after), ())


def describe_unreadable(before: Metadata, after: Metadata) -> Incompatibility | None:
    """Return why files written with the metadata `before` cannot be read with `after`, None if they can.

    With column mapping, columns may also have been renamed and dropped: files have physical names.
    """
    first, last = (
        properties.get(each.configuration, properties.COLUMN_MAPPING_MODE) for each in (before, after)
    )
    modes = Modes(first, last, follows=last != "none")
    earlier, later = (parse_schema(each.schema_string) for each in (before, after))
    if found := _in_struct(earlier, later, modes, ()):
        return found
    if _partition_names(before, earlier, first) != _partition_names(after, later, last):
        return ", ".join(before.partition_columns), "the partition columns changed"
    return None


def _partition_names(metadata: Metadata, schema: StructType, mode: ColumnMappingMode) -> list[str]:
    fields = {field.name: field for field in schema.fields}
    return [physical_name(fields[name], mode) for name in metadata.partition_columns]


def _in_struct(
    before: StructType, after: StructType, modes: Modes, path: tuple[str, ...]
) -> Incompatibility | None:
    later = {modes.key(field, modes.after): field for field in after.fields}
    for field in before.fields:
        steps = (*path, field.name)
        name = ".".join(steps)
        if (found := later.pop(modes.key(field, modes.before), None)) is None:
            if modes.follows:
                continue
            return name, f"the column {name} was dropped or renamed"
        if physical_name(field, modes.before) != physical_name(found, modes.after):
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
    if type(before) is type(after) and not isinstance(before, PrimitiveType):
        pairs = zip(parts_of(before), parts_of(after), strict=True)
        found = (_in_type(part, other, field, modes, (*path, step)) for (step, part), (_, other) in pairs)
        return next(filter(None, found), None)
    if before == after or TYPE_CHANGES in field.metadata:
        return None
    name = ".".join(path)
    return name, f"the column {name} changed its type from {describe(before)} to {describe(after)}"
