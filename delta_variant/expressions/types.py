"""SQL types and the Arrow types of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from typing import Literal as OneOf

import pyarrow as pa

from .._arrow import SIMPLE_TYPES
from ..variant.objects import is_variant

Kind: TypeAlias = OneOf[
    "integer",
    "decimal",
    "floating",
    "string",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "null",
    "nested",
]

NUMERIC: frozenset[Kind] = frozenset({"integer", "decimal", "floating"})
MAX_PRECISION = 38

NAMES = {pa.null(): "void", **{arrow_type: name for name, arrow_type in SIMPLE_TYPES.items()}}

# The decimal digits that Spark uses for each integer type.
INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def kind_of(arrow_type: pa.DataType) -> Kind:
    """Return the kind of a type. Types of one kind share their rules of coercion."""
    if pa.types.is_timestamp(arrow_type):
        return "timestamp" if arrow_type.tz else "timestamp_ntz"
    for kind, belongs in KINDS.items():
        if belongs(arrow_type):
            return kind
    return "nested"


def _is_string(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(arrow_type)
        or pa.types.is_large_string(arrow_type)
        or pa.types.is_string_view(arrow_type)
    )


def _is_binary(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_binary_view(arrow_type)
    )


KINDS: dict[Kind, Callable[[pa.DataType], bool]] = {
    "integer": pa.types.is_signed_integer,
    "decimal": pa.types.is_decimal,
    "floating": pa.types.is_floating,
    "string": _is_string,
    "boolean": pa.types.is_boolean,
    "binary": _is_binary,
    "date": pa.types.is_date,
    "null": pa.types.is_null,
}


def as_decimal(arrow_type: pa.DataType) -> Any:
    """Return the decimal type that can hold every value of an integer type, or a decimal type itself."""
    if pa.types.is_decimal(arrow_type):
        return arrow_type
    return pa.decimal128(INTEGER_DIGITS[arrow_type.bit_width], 0)


def type_name(arrow_type: pa.DataType | None, quote: str = "`") -> str:
    """Return the SQL name of a type, `variant` for None; `quote` encloses the names of fields."""
    if arrow_type is None:
        return "variant"
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_map(arrow_type):
        value = _name_within(arrow_type.item_field, quote)
        return f"map<{type_name(arrow_type.key_type, quote)},{value}>"
    if pa.types.is_list(arrow_type):
        return f"array<{_name_within(arrow_type.value_field, quote)}>"
    if pa.types.is_dictionary(arrow_type):
        return f"dictionary<{type_name(arrow_type.value_type, quote)}>"
    if pa.types.is_struct(arrow_type):
        fields = (f"{quote}{each.name}{quote}:{_name_within(each, quote)}" for each in arrow_type)
        return f"struct<{','.join(fields)}>"
    return NAMES.get(arrow_type, str(arrow_type))


def _name_within(field: pa.Field[Any], quote: str) -> str:
    return type_name(None if is_variant(field) else field.type, quote)
