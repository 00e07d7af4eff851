"""Decode and encode the Variants in statistics as JSON with the types of their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from .._text import path_text
from ..errors import InvalidStatisticsError
from ..expressions.parse import parse_type
from ..expressions.types import type_name
from ..protocol.statistics import decode_bound, describe_bound, encode_bound
from ..variant import paths as variant_paths
from ..variant.shredding import infer_shredding_schema, unshred
from ..variant.values import Variant, extract, parse_json

SQL_TYPES = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "bigint"),
    **{name: name for name in ("boolean", "float", "double", "date", "string", "binary")},
}
"""The SQL types of most bounds by their names in VariantEncoding.md. Inferring the others is slow."""


class TypedValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value as JSON and its SQL type. Integers are `bigint`."""

    type: str
    value: msgspec.Raw


class Bounds(msgspec.Struct, frozen=True):
    """The minimum and the maximum of a path as JSON, and the SQL type of both."""

    type: str
    min: msgspec.Raw | None = None
    max: msgspec.Raw | None = None


def key_text(column: str, path_key: str) -> str:
    """Return the path of a bound in SQL syntax, or its key if that is invalid."""
    try:
        return path_text(column, variant_paths.parse(path_key))
    except InvalidStatisticsError:
        return f"{column} {path_key}"


def decode(text: str) -> dict[str, TypedValue]:
    """Return the values in the z85 text of a bound by path key, or raise InvalidStatisticsError."""
    return {
        path_key: TypedValue(each.type, each.min)
        for path_key, each in decode_sides(text, None).items()
        if each.min is not None
    }


def decode_sides(least: object, greatest: object) -> dict[str, Bounds]:
    """Return the bounds in an entry of minValues and an entry of maxValues, by path key.

    An entry that is not a string has no bounds. Raise InvalidStatisticsError for invalid z85.
    """
    texts = [side if isinstance(side, str) else None for side in (least, greatest)]
    variants = [decode_bound(text) if text is not None else None for text in texts]
    low, high = (_members(variant) if variant else {} for variant in variants)
    types = [(describe_bound(text).bounds or {}) if text is not None else {} for text in texts]
    return {
        path_key: Bounds(
            _common_type([each[path_key].type for each in types if path_key in each])
            or _type_of(path_key, variants),
            low.get(path_key),
            high.get(path_key),
        )
        for path_key in {**low, **high}
    }


def _common_type(types: Sequence[str]) -> str | None:
    """Return the SQL type of bounds of one type that has no parameters, otherwise None."""
    return SQL_TYPES.get(types[0]) if len(set(types)) == 1 else None


def _members(variant: Variant) -> dict[str, msgspec.Raw]:
    text = variant.to_json()
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as error:
        raise InvalidStatisticsError(
            f"invalid bound: expected an object that maps paths to values, got {text}"
        ) from error


def _type_of(path_key: str, variants: Iterable[Variant | None]) -> str:
    values = [extract(_array(variant), [path_key], None, strict=True) for variant in variants if variant]
    arrow_type = infer_shredding_schema(values, spark_compatible=False).field.type
    return "void" if pa.types.is_null(arrow_type) else type_name(arrow_type)


def _array(variant: Variant) -> pa.StructArray:
    parts = [pa.array([variant.metadata], pa.binary()), pa.array([variant.value], pa.binary())]
    return pa.StructArray.from_arrays(parts, ["metadata", "value"])


def encode(text: str) -> str:
    """Return a JSON object that maps path keys to values as the z85 text of a bound.

    A value has the type that `parse_json` infers, or the type in `{"type": …, "value": …}`, the format of
    `decode`. Raise InvalidStatisticsError for any other text, ExpressionError for an unknown type, and
    CastError for a value that is not of its type.
    """
    try:
        values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        columns = [_column(value) for value in values.values()]
    except msgspec.DecodeError as error:
        raise InvalidStatisticsError(
            f"invalid bound: expected a JSON object that maps paths to values ({error})"
        ) from error
    objects = pa.StructArray.from_buffers(pa.struct([]), 1, [None])
    if columns:
        objects = pa.StructArray.from_arrays(columns, list(values))
    names = parse_json([msgspec.json.encode(dict.fromkeys(values)).decode()]).field("metadata")
    parts = [names, pa.nulls(1, pa.binary()), objects]
    shredded = pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])
    return encode_bound(Variant(*(part[0].as_py() for part in unshred(shredded).flatten())))


def _column(value: msgspec.Raw) -> pa.StructArray:
    """Return a shredded column of one row. Unshredding it creates a Variant of any Arrow type."""
    text = bytes(value).decode()
    if text.startswith("["):
        raise msgspec.ValidationError("a list cannot be a bound")
    if not text.startswith("{"):
        return pa.StructArray.from_arrays([parse_json([text]).field("value")], ["value"])
    typed = msgspec.json.decode(text, type=TypedValue)
    arrow_type = parse_type(typed.type)
    if arrow_type is None or pa.types.is_nested(arrow_type):
        raise msgspec.ValidationError(f"{typed.type} cannot be a bound")
    cast: Any = extract(parse_json([bytes(typed.value).decode()]), [], arrow_type, strict=True)
    if cast.null_count:
        raise msgspec.ValidationError("null cannot be a bound")
    return pa.StructArray.from_arrays([pa.nulls(1, pa.binary()), cast], ["value", "typed_value"])
