"""Variants in statistics, with the types of their values."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from delta_variant.errors import InvalidStatisticsError
from delta_variant.expression import parse_type
from delta_variant.expression.types import type_name
from delta_variant.shredding import infer_shredding_schema, unshred
from delta_variant.stats import decode_bound, encode_bound
from delta_variant.variant import Variant, extract, parse_json

__all__ = ["TypedValue", "decode", "encode"]


class TypedValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value as JSON, and the SQL type that holds it: integers are `bigint`."""

    type: str
    value: msgspec.Raw


def decode(text: str) -> dict[str, TypedValue]:
    """Return the values in the z85 text of a bound, by path key; raises InvalidStatisticsError."""
    variant = decode_bound(text)
    try:
        values = msgspec.json.decode(variant.to_json(), type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as error:
        raise InvalidStatisticsError(
            f"{text!r} holds {variant.to_json()}, and a bound is an object"
        ) from error
    return {path_key: TypedValue(_type_of(variant, path_key), value) for path_key, value in values.items()}


def _type_of(variant: Variant, path_key: str) -> str:
    schema = infer_shredding_schema(
        extract(_array(variant), [path_key], None, strict=True), spark_compatible=False
    )
    return "void" if pa.types.is_null(schema.field.type) else type_name(schema.field.type)


def _array(variant: Variant) -> pa.StructArray:
    parts = [pa.array([variant.metadata], pa.binary()), pa.array([variant.value], pa.binary())]
    return pa.StructArray.from_arrays(parts, ["metadata", "value"])


def encode(text: str) -> str:
    """Return a JSON object from path keys to values as the z85 text of a bound (requirements Z2).

    A value gets the type that `parse_json` gives it, or the one of `{"type": …, "value": …}`, which is what
    `decode` returns. Raises InvalidStatisticsError for text that is no such object, ExpressionError for an
    unknown type, CastError for a value that is not of its type.
    """
    try:
        values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        columns = [_column(value) for value in values.values()]
    except msgspec.DecodeError as error:
        raise InvalidStatisticsError(f"a bound is a JSON object from paths to values: {error}") from error
    objects = pa.StructArray.from_buffers(pa.struct([]), 1, [None])
    if columns:
        objects = pa.StructArray.from_arrays(columns, list(values))
    names = parse_json([msgspec.json.encode(dict.fromkeys(values)).decode()]).field("metadata")
    parts = [names, pa.nulls(1, pa.binary()), objects]
    shredded = pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])
    metadata, value = (part[0].as_py() for part in unshred(shredded).flatten())
    return encode_bound(metadata + value)


def _column(value: msgspec.Raw) -> pa.StructArray:
    """Return a shredded column of one row: what makes a Variant of any type out of Arrow."""
    text = bytes(value).decode()
    if text.startswith("["):
        raise msgspec.ValidationError("a list has no bounds")
    if not text.startswith("{"):
        return pa.StructArray.from_arrays([parse_json([text]).field("value")], ["value"])
    typed = msgspec.json.decode(text, type=TypedValue)
    cast: Any = extract(parse_json([bytes(typed.value).decode()]), [], parse_type(typed.type), strict=True)
    return pa.StructArray.from_arrays([pa.nulls(1, pa.binary()), cast], ["value", "typed_value"])
