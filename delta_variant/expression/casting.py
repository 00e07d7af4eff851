"""Casts of ordinary Arrow values by Spark's ANSI rules.

Where Arrow's own cast prints, rounds or parses otherwise than Spark, a rule here corrects it; a pair of types
without a rule is refused rather than guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_variant import variant

from .types import INTEGER_DIGITS, Kind, kind_of

# The stubs of pyarrow do not narrow an array by its type, as the rules do.
Array: TypeAlias = Any
Scalar: TypeAlias = Any
Rule: TypeAlias = Callable[[Array, Any], Array]

# Spark trims blanks and control characters around text that it casts.
BLANKS = "".join(map(chr, (*range(0x21), 0x7F)))
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

# By more digits than these, Arrow divides some decimals wrongly: 2^32 - 2 is what it makes of 2^32 - 0.5.
ARROW_DIGITS = 9
ARROW_TEXT = 64
EXACT = Context(prec=76)

MOMENTS: tuple[Kind, ...] = ("date", "timestamp", "timestamp_ntz")
# The metadata of a Variant that has no object in it.
NO_NAMES = b"\x01\x00\x00"

# The text that each kind is read from, whole and after trimming.
TEXT_PATTERNS: dict[Kind, str] = {
    "integer": r"[+-]?[0-9]+",
    "decimal": NUMBER,
    "floating": rf"{NUMBER}|(?i:[+-]?inf(inity)?|nan)",
    "boolean": r"(?i:t|true|y|yes|1|f|false|n|no|0)",
}


def can_cast(source: Any, target: Any) -> bool:
    """Whether `cast_values` has a rule from `source` to `target`."""
    if source == target or pa.types.is_null(source):
        return True
    kinds = (kind_of(source), kind_of(target))
    # Arrow prints decimals below 1e-6 with an exponent; Spark never does.
    return kinds in RULES and not (kinds == ("decimal", "string") and source.scale > 6)


def cast_values(values: Array, target: Any, *, strict: bool) -> Array:
    """Return `values` as `target`; what does not fit is `pa.ArrowInvalid` when `strict`, else NULL."""
    if values.type == target:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    rule = RULES[kind_of(values.type), kind_of(target)]
    if kind_of(values.type) == "string" and kind_of(target) in MOMENTS:
        return _read_moments(values, target, strict=strict)
    if kind_of(values.type) == "string" and kind_of(target) in TEXT_PATTERNS:
        values = _readable_text(values, kind_of(target), strict=strict)
    return rule(values, target) if strict else _cast_or_null(values, target, rule)


def cast_scalar(value: Scalar, target: Any, *, strict: bool) -> Scalar:
    """Return one value as `target`, as `cast_values` does."""
    if value.type == target:
        return value
    return cast_values(pa.repeat(value, 1), target, strict=strict)[0]


def _readable_text(values: Array, kind: Kind, *, strict: bool) -> Array:
    text = pc.utf8_trim(values, characters=BLANKS)
    readable = pc.match_substring_regex(text, pattern=f"^({TEXT_PATTERNS[kind]})$")
    if strict and pc.all(readable).as_py() is False:
        first = values.filter(pc.invert(readable))[0].as_py()
        raise pa.ArrowInvalid(f"{first!r} is no {kind}")
    return pc.if_else(readable, text, pa.scalar(None, text.type))


def _cast_or_null(values: Array, target: Any, rule: Rule) -> Array:
    """Halve what does not cast until the values at fault stand alone: values that fit are cast in bulk."""
    try:
        return rule(values, target)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, target)
    middle = len(values) // 2
    halves = (values.slice(0, middle), values.slice(middle))
    return pa.concat_arrays([_cast_or_null(half, target, rule) for half in halves])


def _plain(values: Array, target: Any) -> Array:
    return pc.cast(values, target)


def _rounded(values: Array, target: Any) -> Array:
    return pc.cast(values, target, safe=False)


def _truncated(values: Array, target: Any) -> Array:
    if pa.types.is_decimal(values.type) and values.type.scale > ARROW_DIGITS:
        return pc.cast(_shortened(values.to_pylist(), 0, ROUND_DOWN), target)
    if pa.types.is_decimal(values.type) and values.type.precision == values.type.scale:
        # A digit for the zero before the point.
        values = pc.cast(values, pa.decimal256(values.type.precision + 1, values.type.scale))
    return pc.cast(pc.trunc(values), target)


def _integer_to_decimal(values: Array, target: Any) -> Array:
    wide = pa.decimal256(INTEGER_DIGITS[values.type.bit_width] + target.scale, target.scale)
    return pc.cast(pc.cast(values, wide), target)


def _decimal_to_decimal(values: Array, target: Any) -> Array:
    source = values.type
    if target.scale >= source.scale:
        # In 128 bits what becomes too large is another number.
        return pc.cast(pc.cast(values, pa.decimal256(76, target.scale)), target)
    if source.scale - target.scale > ARROW_DIGITS:
        return pc.cast(_shortened(values.to_pylist(), target.scale, ROUND_HALF_UP), target)
    # One digit more than the source has: rounding 9.99 up to 10.0 needs it.
    wide = pc.cast(values, pa.decimal256(min(76, source.precision + 1), source.scale))
    return pc.cast(pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity"), target)


def _shortened(values: Sequence[Decimal | None], scale: int, rounding: str) -> Array:
    """Return decimals with fewer digits behind the point."""
    last = Decimal(1).scaleb(-scale)
    try:
        rounded = [None if value is None else value.quantize(last, rounding, EXACT) for value in values]
    except InvalidOperation as error:
        raise pa.ArrowInvalid(f"a value has too many digits for a decimal with {scale} of them") from error
    return pa.array(rounded, pa.decimal256(76, scale))


def _decimal_to_floating(values: Array, target: Any) -> Array:
    # Arrow multiplies by a rounded power of ten, which misses the nearest double; parsing does not.
    return pc.cast(pc.cast(values, pa.string()), target)


def _moment_to_string(values: Array, target: Any) -> Array:
    return pc.cast(variant.extract(_as_variants(values), (), pa.string(), strict=True), target)


def _read_moments(texts: Array, target: Any, *, strict: bool) -> Array:
    """Read text as the kernel reads that of Variants: in UTC unless it names its zone."""
    moments = variant.extract(_as_variants(pc.cast(texts, pa.string())), (), target, strict=False)
    if strict and moments.null_count > texts.null_count:
        unread = pc.and_not(pc.is_valid(texts), pc.is_valid(moments))
        raise pa.ArrowInvalid(f"{texts.filter(unread)[0].as_py()!r} is no {kind_of(target)}")
    return moments


def _as_variants(values: Array) -> pa.StructArray:
    metadata: Array = pa.repeat(pa.scalar(NO_NAMES, pa.binary()), len(values))
    fields = [pa.field("metadata", pa.binary(), False), pa.field("typed_value", values.type)]
    return pa.StructArray.from_arrays([metadata, values], fields=fields, mask=values.is_null())


def _string_to_integer(values: Array, target: Any) -> Array:
    return pc.cast(pc.utf8_ltrim(values, characters="+"), target)


def _string_to_decimal(values: Array, target: Any) -> Array:
    return pc.cast(_exact(values, target.scale), target)


def _exact(texts: Array, scale: int) -> Array:
    # Arrow gives other numbers for long text, and reads beyond its powers of ten for some exponents.
    is_long = pc.greater(pc.binary_length(texts), pa.scalar(ARROW_TEXT, pa.int32()))
    is_hard = pc.or_(is_long, pc.match_substring(texts, "e", ignore_case=True))
    if not pc.any(is_hard).as_py():
        # It does not round, and one value with more digits is enough.
        with suppress(pa.ArrowInvalid):
            return pc.cast(texts, pa.decimal256(76, scale))
    decimals = [None if text is None else _decimal(text) for text in texts.to_pylist()]
    return _shortened(decimals, scale, ROUND_HALF_UP)


def _decimal(text: str) -> Decimal:
    """Return the number in a text, or one that is as much too large or too small for any decimal."""
    mantissa, _, exponent = text.lower().partition("e")
    sign, digits, behind_point = Decimal(mantissa).as_tuple()
    assert isinstance(behind_point, int)
    far = len(text) + 2 * EXACT.prec
    magnitude = exponent.lstrip("+-0")
    power = min(int(magnitude or 0), far) if len(magnitude) < 10 else far
    return Decimal((sign, digits, behind_point + (-power if exponent.startswith("-") else power)))


def _string_to_boolean(values: Array, target: Any) -> Array:
    true = pc.is_in(pc.utf8_lower(values), value_set=pa.array(["t", "true", "y", "yes", "1"], values.type))
    return pc.if_else(pc.is_valid(values), true, pa.scalar(None, target))


RULES: dict[tuple[Kind, Kind], Rule] = {
    ("integer", "integer"): _plain,
    ("integer", "decimal"): _integer_to_decimal,
    ("integer", "floating"): _rounded,
    ("integer", "string"): _plain,
    ("integer", "boolean"): _plain,
    ("decimal", "integer"): _truncated,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("decimal", "floating"): _decimal_to_floating,
    ("decimal", "string"): _plain,
    ("floating", "integer"): _truncated,
    ("floating", "floating"): _rounded,
    ("boolean", "integer"): _plain,
    ("boolean", "string"): _plain,
    ("date", "timestamp"): _plain,
    ("date", "timestamp_ntz"): _plain,
    ("date", "string"): _moment_to_string,
    ("timestamp", "date"): _plain,
    ("timestamp", "timestamp_ntz"): _plain,
    ("timestamp", "string"): _moment_to_string,
    ("timestamp_ntz", "date"): _plain,
    ("timestamp_ntz", "timestamp"): _plain,
    ("timestamp_ntz", "string"): _moment_to_string,
    ("binary", "string"): _plain,
    ("binary", "binary"): _plain,
    ("string", "string"): _plain,
    ("string", "binary"): _plain,
    ("string", "integer"): _string_to_integer,
    ("string", "decimal"): _string_to_decimal,
    ("string", "floating"): _plain,
    ("string", "boolean"): _string_to_boolean,
    # By `_read_moments`, which needs to know whether it is strict.
    **{("string", kind): _plain for kind in MOMENTS},
}
