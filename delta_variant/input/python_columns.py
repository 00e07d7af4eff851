"""Arrays of the Python objects of a column. A value that pyarrow would change to fit a type is an error."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from numbers import Number
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa

from .._arrow import is_any_binary, is_any_text
from ..errors import ArgumentTypeError, DeltaVariantError
from ..expressions.types import type_name
from ..variant.objects import is_variant
from ..variant.values import Variant

NOT_CONVERTIBLE = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What pyarrow raises for values that do not have the type of a column."""

AMBIGUOUS_TEXT = (
    "cannot tell whether text in a Variant column is JSON or a string: pass Variant.from_json(text) or "
    "Variant.from_python(text)"
)

GREATEST_FLOAT = float.fromhex("0x1.fffffep+127")


def array_of(values: list[Any], arrow_type: pa.DataType | None, name: str) -> Any:
    """Return the values of a column as an array, whose type they decide if it is None.

    Objects within structs, lists and maps become Variants where the type has them. UUIDs become text, or
    bytes where the type is binary. Raises ArgumentTypeError for a value that does not have the type.
    """
    encode = None if arrow_type is None else _encoder(arrow_type, _variant_encoder)
    if encode is not None:
        try:
            values = list(map(encode, values))
        except DeltaVariantError as error:
            error.at(column=name)
            raise
    try:
        array: Any = pa.array(values, arrow_type)
    except NOT_CONVERTIBLE as error:
        if (without := _without_uuids(values, arrow_type)) != values:
            return array_of(without, arrow_type, name)
        found, value = _not_convertible(values, arrow_type)
        reason = _because(found, value) if found is not None else f" ({error})"
        if arrow_type is None and not _is_variant(value):
            raise _error(name, reason, False, "text, or values of another type") from error
        raise _error(name, reason, arrow_type is None) from error
    if arrow_type is None and _is_of_uuids(array.type):
        return array_of(_without_uuids(values, None), None, name)
    check_unchanged(values, array.type, name, is_inferred=arrow_type is None)
    return array


def _is_variant(value: Any) -> bool:
    try:
        Variant.from_python(value)
    except DeltaVariantError:
        return False
    return True


def _is_of_uuids(arrow_type: Any) -> bool:
    parts = (arrow_type.field(number).type for number in range(arrow_type.num_fields))
    return isinstance(arrow_type, pa.UuidType) or any(map(_is_of_uuids, parts))


def _without_uuids(values: list[Any], arrow_type: Any) -> list[Any]:
    """Return values with text, or bytes where a type is binary, in place of UUIDs, which Delta lacks."""
    encode = _uuid_text if arrow_type is None else _field_encoder(pa.field("", arrow_type), _uuid_encoder)
    return values if encode is None else list(map(encode, values))


def _uuid_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _uuid_text(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = map(_uuid_text, value)
        return tuple(parts) if isinstance(value, tuple) else list(parts)
    return str(value) if isinstance(value, UUID) else value


_Encode: TypeAlias = Callable[[Any], Any]
_Encoder: TypeAlias = "Callable[[pa.Field[Any]], _Encode | None]"
"""Returns what encodes the values of a field; None if their parts are encoded, or nothing is."""


def _encoder(arrow_type: Any, encoder: _Encoder) -> _Encode | None:
    """Return what encodes the parts of an object of a type; None if nothing does."""
    if pa.types.is_struct(arrow_type):
        found = {field.name: _field_encoder(field, encoder) for field in arrow_type}
        encoders = {name: encode for name, encode in found.items() if encode is not None}
        return partial(_encode_pairs, encoders.get) if encoders else None
    if pa.types.is_map(arrow_type):
        encode = _field_encoder(arrow_type.item_field, encoder)
        return encode and partial(_encode_pairs, lambda _: encode)
    encode = _field_encoder(arrow_type.value_field, encoder) if pa.types.is_list(arrow_type) else None
    return encode and partial(_encode_elements, encode)


def _field_encoder(field: pa.Field[Any], encoder: _Encoder) -> _Encode | None:
    return encoder(field) or _encoder(field.type, encoder)


def _variant_encoder(field: pa.Field[Any]) -> _Encode | None:
    return _encode_variant if is_variant(field) else None


def _uuid_encoder(field: pa.Field[Any]) -> _Encode | None:
    if is_any_text(field.type):
        return _uuid_text
    if is_any_binary(field.type):
        return lambda value: value.bytes if isinstance(value, UUID) else value
    return None


def _encode_pairs(encoder: Callable[[Any], Callable[[Any], Any] | None], value: Any) -> Any:
    pairs = list(_pairs([value]))
    # pyarrow rejects the other values.
    if not pairs or len(pairs) != len(value):
        return value
    return [(key, part if (encode := encoder(key)) is None else encode(part)) for key, part in pairs]


def _encode_elements(encode: Callable[[Any], Any], value: Any) -> Any:
    return list(map(encode, value)) if isinstance(value, list | tuple) else value


def _encode_variant(value: Any) -> dict[str, bytes] | None:
    if value is None:
        return None
    if isinstance(value, str):
        raise ArgumentTypeError(AMBIGUOUS_TEXT)
    if (
        isinstance(value, Mapping)
        and set(value) == {"metadata", "value"}
        and isinstance(value["value"], bytes)
    ):
        return dict(value)
    variant = Variant.from_python(value)
    return {"metadata": variant.metadata, "value": variant.value}


def check_unchanged(values: Iterable[Any], arrow_type: Any, name: str, is_inferred: bool = True) -> None:
    """Raise ArgumentTypeError for the first value that pyarrow changes to fit the type of a column."""
    for value, part_type, expected in _changed(values, arrow_type):
        raise _error(name, _because(part_type, value), is_inferred, expected)


def _not_convertible(values: list[Any], arrow_type: pa.DataType | None) -> tuple[pa.DataType | None, Any]:
    """Return the type of the column, or else of the values before, and the first value without the type."""
    for value in values:
        try:
            found: Any = pa.array([value], arrow_type)
        except NOT_CONVERTIBLE:
            return arrow_type or pa.null(), value
        if value is not None:
            arrow_type = found.type
    return None, None


def _because(arrow_type: pa.DataType, value: Any) -> str:
    expected = "" if pa.types.is_null(arrow_type) else f" to {type_name(arrow_type)}"
    return f"{expected} because of the value {repr(value)[:100]}"


def _error(
    name: str, reason: str, is_inferred: bool, expected: str = "values of this type"
) -> ArgumentTypeError:
    remedy = f"pass {expected}"
    if is_inferred:
        remedy = "name the column in variant_columns, or pass values of one type"
    return ArgumentTypeError(f"cannot convert the column {name!r}{reason}: {remedy}", column=name)


def _is_date(value: Any) -> bool:
    if isinstance(value, dt.datetime):
        return value.tzinfo is None and value.time() == dt.time.min
    return not isinstance(value, Number)


def _is_timestamp(value: Any, *, is_local: bool) -> bool:
    # Timestamps of pandas can have nanoseconds.
    is_exact = not isinstance(value, Number) and not getattr(value, "nanosecond", 0)
    return is_exact and (not isinstance(value, dt.datetime) or (value.tzinfo is None) == is_local)


RULES: tuple[tuple[Callable[[Any], bool], type, Callable[[Any], bool], str], ...] = (
    (pa.types.is_integer, int, lambda value: value == int(value), "whole numbers"),
    (
        pa.types.is_floating,
        float,
        lambda value: isinstance(value, Number) and not isinstance(value, bool),
        "numbers",
    ),
    (
        pa.types.is_float32,
        int,
        lambda value: not isfinite(value) or abs(value) <= GREATEST_FLOAT,
        "numbers below 3.41e38",
    ),
    (pa.types.is_list, list, lambda value: not isinstance(value, (bytes, bytearray, memoryview)), "lists"),
    (pa.types.is_date, dt.date, _is_date, "dates"),
    (
        lambda each: pa.types.is_timestamp(each) and each.tz is not None,
        type(None),
        partial(_is_timestamp, is_local=False),
        "datetimes with a time zone and without nanoseconds",
    ),
    (
        lambda each: pa.types.is_timestamp(each) and each.tz is None,
        type(None),
        partial(_is_timestamp, is_local=True),
        "datetimes without a time zone and nanoseconds",
    ),
)
"""Types of Arrow, the type of Python whose values all fit, which of the other values fit, and their name."""


def _changed(values: Iterable[Any], arrow_type: Any) -> Iterator[tuple[Any, pa.DataType, str]]:
    """Yield the values that pyarrow changes to fit a type, each with the type and what the type holds."""
    if pa.types.is_struct(arrow_type):
        parts = _parts(values)
        for field in arrow_type:
            yield from _changed(parts.get(field.name, ()), field.type)
    elif pa.types.is_map(arrow_type):
        items = list(_pairs(values))
        yield from _changed((key for key, _ in items), arrow_type.key_type)
        yield from _changed((item for _, item in items), arrow_type.item_type)
    elif pa.types.is_list(arrow_type):
        yield from _changed(_elements(values), arrow_type.value_type)
    for is_type, exact, fits, expected in RULES:
        if is_type(arrow_type):
            values = list(values)
            if set(map(type, values)) - {exact, type(None)}:
                others = (each for each in values if each is not None and not fits(each))
                yield from ((each, arrow_type, expected) for each in others)


def with_all_fields(arrow_type: Any, values: Iterable[Any], name: str) -> Any:
    """Return a type with the fields of dicts that it lacks, which pyarrow leaves out without an error."""
    if pa.types.is_struct(arrow_type):
        found = _parts(values)
        known = [(field, found.pop(field.name, [])) for field in arrow_type]
        fields = [_with_all_fields(field, parts, name) for field, parts in known]
        new = [pa.field(key, array_of(parts, None, name).type) for key, parts in found.items()]
        return pa.struct([*fields, *new])
    if pa.types.is_list(arrow_type):
        return pa.list_(_with_all_fields(arrow_type.value_field, _elements(values), name))
    if pa.types.is_map(arrow_type):
        items = (item for _, item in _pairs(values))
        return pa.map_(arrow_type.key_field, _with_all_fields(arrow_type.item_field, items, name))
    return arrow_type


def _with_all_fields(field: pa.Field[Any], values: Iterable[Any], name: str) -> pa.Field[Any]:
    return field if is_variant(field) else field.with_type(with_all_fields(field.type, values, name))


def _parts(values: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, part in _pairs(values):
        found.setdefault(key, []).append(part)
    return found


def _pairs(values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values of dicts, and of lists of pairs, which pyarrow takes for dicts."""
    for value in values:
        if isinstance(value, Mapping):
            yield from value.items()
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, tuple) and len(item) == 2)


def _elements(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
            yield from value
