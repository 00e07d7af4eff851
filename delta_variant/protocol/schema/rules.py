"""Checks that a schema is valid in Delta."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..._checks import list_names
from ...errors import SchemaError
from ..properties import ColumnMappingMode
from ..types import (
    VARIANT,
    VOID,
    DataType,
    FieldPath,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    describe,
    has_variant,
    parts_of,
    primitives_of,
    types_within,
)

FORBIDDEN_CHARACTERS = " ,;{}()\n\t="


def check_new(schema: StructType, *, mode: ColumnMappingMode = "none") -> None:
    """Raise SchemaError for a schema that a new table or column cannot have.

    There must be at least one column. Names must differ by more than case and, without column mapping, cannot
    contain the characters that Parquet writers reject. Map keys cannot contain a Variant, and no type may be
    `void`.
    """
    if not schema.fields:
        raise SchemaError("a table needs at least one column")
    _check_map_keys(schema)
    _check_types(schema, mode)


def check_consistent(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raise SchemaError for metadata that contradicts itself.

    A Variant cannot be a map key or a partition column. A struct cannot have one name twice. A partition
    column must be a column of the schema with a primitive type, and be named once. The content of a table
    that breaks these rules is undefined, so that it can be neither read nor written.
    """
    for field in schema.fields:
        if field.type == VARIANT and field.name in partition_columns:
            raise SchemaError(
                f"cannot partition by the Variant column {field.name!r}", column=field.name, rule="T7"
            )
    _check_map_keys(schema)
    for column, message in contradictions(schema, partition_columns):
        raise SchemaError(message, column=column, rule="T14")


def contradictions(schema: StructType, partition_columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each column whose name is not unique and each invalid partition column, with the message."""
    for name in _find_repeated(schema, ()):
        yield name, f"the schema has several columns named {name!r}"
    types = {field.name: field.type for field in schema.fields}
    for number, name in enumerate(partition_columns):
        if name in partition_columns[:number]:
            yield name, f"partitionColumns names {name!r} twice"
        elif name not in types:
            yield name, f"partitionColumns names {name!r}, which is not a column of the schema"
        elif not isinstance(types[name], PrimitiveType):
            yield name, f"partitionColumns names {name!r}, whose type is {describe(types[name])}"


def _find_repeated(data_type: DataType, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of fields whose struct has an earlier field of the same name."""
    names: set[str] = set()
    for step, part in parts_of(data_type):
        if step in names:
            yield ".".join((*path, step))
        names.add(step)
        yield from _find_repeated(part, (*path, step))


def check_partition_columns(schema: StructType, partition_columns: Sequence[str]) -> tuple[str, ...]:
    """Return partition columns in the spelling of the schema; raises SchemaError for an invalid one."""
    by_name = {field.name.lower(): field for field in schema.fields}
    names = []
    for name in partition_columns:
        field = by_name.get(name.lower())
        if field is None:
            known = list_names([each.name for each in schema.fields], name)
            problem = f"cannot partition by {name!r}: there is no such column; the columns are {known}"
            if ":" not in name:
                raise SchemaError(problem, column=name)
            raise SchemaError(
                f"{problem}; to partition by a path, add a column of it while JSON or CSV is read",
                column=name,
                remedies=(("columns", {"day": f"{name}::date"}),),
            )
        if not isinstance(field.type, PrimitiveType) or field.type.name in ("variant", "void"):
            raise SchemaError(
                f"cannot partition by {name!r} because its type is {describe(field.type)}: write the part to "
                "partition by as a column of its own",
                column=name,
            )
        if field.name in names:
            raise SchemaError(f"partition_by names the column {name!r} twice: name it once", column=name)
        names.append(field.name)
    if names and len(names) == len(schema.fields):
        raise SchemaError(
            "a table needs a column in addition to its partition columns: partition by fewer columns"
        )
    return tuple(names)


def remove_void(schema: StructType) -> StructType:
    """Return the schema of data files, which have no `void` columns (PROTOCOL.md, "Void Type").

    Raises SchemaError for `void` within an array or a map, and for a struct or schema with only `void`
    fields: no data file can be written for these.
    """
    if VOID.name not in primitives_of(schema):
        return schema
    return _remove_void(schema, ())


def _remove_void(struct: StructType, path: tuple[str, ...]) -> StructType:
    typed = (field for field in struct.fields if field.type != VOID)
    kept = tuple(_remove_void_in(field, (*path, field.name)) for field in typed)
    if not kept:
        column = ".".join(path)
        what = f"all fields of the column {column!r} are" if path else "all columns are"
        raise SchemaError(
            f"cannot write data files because {what} void: change the type of one first",
            column=column or None,
        )
    return replace(struct, fields=kept)


def _remove_void_in(field: StructField, path: tuple[str, ...]) -> StructField:
    if isinstance(field.type, StructType):
        return replace(field, type=_remove_void(field.type, path))
    if VOID.name in primitives_of(field.type):
        column = ".".join(path)
        raise SchemaError(
            f"cannot write data files because the column {column!r} is {describe(field.type)}: change the "
            "type void first",
            column=column,
        )
    return field


def _check_map_keys(schema: StructType) -> None:
    for path in maps_with_variant_keys(schema):
        column = ".".join(path)
        raise SchemaError(
            f"the map {column!r} has Variant keys, which cannot be compared: use another key type",
            column=column,
            rule="T6",
        )


def maps_with_variant_keys(schema: StructType) -> Iterator[FieldPath]:
    """Yield the paths of maps whose keys contain a Variant."""
    for path, part in types_within(schema):
        if isinstance(part, MapType) and has_variant(part.key_type):
            yield path


def _check_types(schema: StructType, mode: ColumnMappingMode) -> None:
    for path, part in types_within(schema):
        if isinstance(part, StructType):
            _check_names(part, path, mode)
        elif part == VOID:
            column = ".".join(path)
            raise SchemaError(
                f"the column {column!r} has no values that show its type: cast it to a type, in a CSV file "
                f"by read_csv(…, columns={{{column!r}: {column + '::string'!r}}}), or create the table first",
                column=column,
            )


def _check_names(struct: StructType, path: tuple[str, ...], mode: ColumnMappingMode) -> None:
    seen: dict[str, str] = {}
    for field in struct.fields:
        where = ".".join((*path, field.name))
        twin = seen.get(field.name.lower())
        if twin is not None:
            raise SchemaError(
                f"the columns {twin!r} and {where!r} differ at most by case: rename one",
                column=where,
                rule="T14" if twin == where else "T16",
            )
        seen[field.name.lower()] = where
        if not field.name:
            raise SchemaError("a column has an empty name: rename it", column=where)
        if "\0" in field.name:
            raise SchemaError(
                f"the column name {where!r} contains a NUL character: rename the column", column=where
            )
        forbidden = [character for character in FORBIDDEN_CHARACTERS if character in field.name]
        if mode == "none" and forbidden:
            raise SchemaError(
                f"the column name {where!r} contains the character {forbidden[0]!r}: rename the column, "
                "or set the table property delta.columnMapping.mode=name",
                column=where,
            )
