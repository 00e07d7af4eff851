"""Type widening, and its record in the schema (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...errors import SchemaError, UnsupportedFeatureError
from ..types import (
    TYPE_CHANGES,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    decimal_of,
    describe,
    fields_of,
    map_fields,
    parts_of,
)
from .paths import FieldPath, edit_fields, edit_type, path_text, split_at_field, type_at

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
    for path, before in _leaves(table, ()):
        after = _type_in(data, path)
        if after is not None and is_widening(before, after) and _kind(before) == _kind(after):
            yield path, after


def _leaves(data_type: DataType, path: FieldPath) -> Iterator[tuple[FieldPath, PrimitiveType]]:
    if isinstance(data_type, PrimitiveType):
        yield path, data_type
    for step, part in parts_of(data_type):
        yield from _leaves(part, (*path, step))


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
