"""Schema evolution: by appended data, and by wider types and their record (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from ..._checks import nearest
from ...errors import SchemaError, UnsupportedFeatureError
from ..types import (
    GENERATION_EXPRESSION,
    IDENTITY,
    TYPE_CHANGES,
    VARIANT,
    VOID,
    DataType,
    FieldPath,
    PrimitiveType,
    StructField,
    StructType,
    decimal_of,
    default_of,
    describe,
    edit_fields,
    edit_type,
    fields_of,
    map_fields,
    map_parts,
    parts_of,
    path_text,
    split_at_field,
    type_at,
    types_within,
)

INTEGERS = ("byte", "short", "integer", "long")
MAX_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
ALL_DIGITS = {"byte": 2, "short": 4, "integer": 9, "long": 18, "float": 7, "double": 15}
"""The most digits of a value of each type, and the most digits up to which it has all integers."""
OTHERS_WITHOUT_LOSS = {("byte", "float"), ("short", "float"), ("string", "binary")}
INTEGER_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
OTHERS = {
    ("float", "double"),
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("date", "timestamp_ntz"),
}


def is_widening(before: DataType, after: DataType) -> bool:
    """Return whether the protocol allows a column to change from one type to the other."""
    if not (isinstance(before, PrimitiveType) and isinstance(after, PrimitiveType)):
        return False
    if before.name in INTEGERS and after.name in INTEGERS:
        return INTEGERS.index(before.name) < INTEGERS.index(after.name)
    wider = decimal_of(after)
    if wider is None:
        return (before.name, after.name) in OTHERS
    precision, scale = decimal_of(before) or (INTEGER_DIGITS.get(before.name, 99), 0)
    return before != after and precision - scale <= wider[0] - wider[1] and scale <= wider[1]


def is_lossless(before: DataType, after: DataType) -> bool:
    """Return whether every value of one type is a value of the other, also where no writer may change it."""
    if not (isinstance(before, PrimitiveType) and isinstance(after, PrimitiveType)):
        return False
    if is_widening(before, after) or (before.name, after.name) in OTHERS_WITHOUT_LOSS:
        return True
    narrower, wider = decimal_of(before), decimal_of(after)
    if wider is not None:
        return MAX_DIGITS.get(before.name, 99) <= wider[0] - wider[1]
    return narrower is not None and narrower[1] == 0 and narrower[0] <= ALL_DIGITS.get(after.name, -1)


def widen_type(schema: StructType, path: FieldPath, after: PrimitiveType) -> StructType:
    """Return a schema with the type at a resolved path changed to `after`, and the change recorded."""
    before = type_at(schema, path)
    field_path, inner = split_at_field(schema, path)
    change = {"fromType": describe(before), "toType": after.name}
    if inner:
        change["fieldPath"] = path_text(inner)

    def record(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        return tuple(_record(field, change) if field.name == field_path[-1] else field for field in fields)

    edited = edit_type(schema, path, lambda _: after)
    assert isinstance(edited, StructType)
    return edit_fields(edited, field_path[:-1], record)


def find_widenings(table: StructType, data: StructType) -> Iterator[tuple[FieldPath, PrimitiveType]]:
    """Yield the paths in a table for which data has a wider type of the same kind, with that type.

    As in delta-spark, an integer does not become a decimal or `double` by schema evolution.
    """
    for path, before in types_within(table):
        if not isinstance(before, PrimitiveType):
            continue
        after = _type_in(data, path)
        if after is not None and is_widening(before, after) and _kind(before) == _kind(after):
            yield path, after


def _type_in(data_type: DataType, path: FieldPath) -> PrimitiveType | None:
    for step in path:
        found = [part for name, part in parts_of(data_type) if name.lower() == step.lower()]
        if not found:
            return None
        data_type = found[0]
    return data_type if isinstance(data_type, PrimitiveType) else None


def _kind(data_type: PrimitiveType) -> str:
    kinds = {**dict.fromkeys(INTEGERS, "integer"), "float": "floating", "double": "floating"}
    kinds |= {"date": "date", "timestamp_ntz": "date"}
    return "decimal" if decimal_of(data_type) else kinds.get(data_type.name, data_type.name)


def _record(field: StructField, change: Mapping[str, str]) -> StructField:
    changes = [*field.metadata.get(TYPE_CHANGES, ()), change]
    return replace(field, metadata={**field.metadata, TYPE_CHANGES: changes})


def without_type_changes(schema: StructType) -> StructType:
    """Return a schema without the record of type changes, for a table whose files have the new types."""

    def forget(field: StructField) -> StructField:
        kept = {key: value for key, value in field.metadata.items() if key != TYPE_CHANGES}
        return replace(field, metadata=kept)

    return map_fields(schema, forget)


def check_type_changes(schema: StructType) -> None:
    """Raise UnsupportedFeatureError for a recorded change that can lose something.

    Readers must fail if they cannot convert (PROTOCOL.md, "Reader Requirements for Type Widening"). Changes
    that lose nothing are read even if the protocol does not define them.
    """
    for path, field in fields_of(schema):
        for before, after, _ in _changes(field):
            if before != after and not is_lossless(before, after):
                column = path_text(path)
                raise UnsupportedFeatureError(
                    f"cannot read the column {column!r} because its type was changed from {describe(before)} "
                    f"to {describe(after)}, which does not have all of its values; rewrite the table with "
                    "the engine that changed the type",
                    column=column,
                )


def types_before(field: StructField) -> frozenset[str]:
    """Return the names of the types that a field had in earlier versions of the table."""
    return frozenset(before.name for before, _, path in _changes(field) if not path)


def _changes(field: StructField) -> Iterator[tuple[PrimitiveType, PrimitiveType, str]]:
    recorded: Any = field.metadata.get(TYPE_CHANGES, [])
    try:
        for change in recorded:
            yield _type(change["fromType"]), _type(change["toType"]), change.get("fieldPath") or ""
    except (TypeError, KeyError, AttributeError) as error:
        raise SchemaError(
            f"invalid {TYPE_CHANGES} of the column {field.name!r}: {str(recorded)[:100]}", column=field.name
        ) from error


def _type(name: str) -> PrimitiveType:
    """Return a type by its recorded name; Spark writes `decimal(6,2)`, PROTOCOL.md has `decimal(6, 2)`."""
    decimal = decimal_of(PrimitiveType(name))
    return PrimitiveType(f"decimal({decimal[0]},{decimal[1]})" if decimal else name)


# For each type, the types that can hold all of its values.
WIDENING = {
    "byte": ("short", "integer", "long"),
    "short": ("integer", "long"),
    "integer": ("long",),
    "float": ("double",),
}
VARIANT_PARTS = {"metadata": PrimitiveType("binary"), "value": PrimitiveType("binary")}


def merge(table: StructType, data: StructType, *, mode: Literal["strict", "merge"]) -> StructType:
    """Return the schema of the table after an append of data with the schema `data`.

    Columns match by name without regard to case, and keep the table's spelling, type and nullability. Data of
    a narrower type fits a wider column. Nullable columns may be absent, and so may top-level columns with a
    default or a generation expression. A column that the table does not have is added as nullable at the end
    of its struct if `mode` is `merge`. Raises SchemaError, which has the column, for any other difference.
    """
    return _merge_struct(table, data, (), mode)


def _merge_struct(table: StructType, data: StructType, path: FieldPath, mode: str) -> StructType:
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


def _by_name(data: StructType, path: FieldPath) -> dict[str, StructField]:
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


def _check_absent(field: StructField, path: FieldPath) -> None:
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


def _merge_type(table: DataType, data: DataType, path: FieldPath, mode: str) -> DataType:
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
