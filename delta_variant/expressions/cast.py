"""Cast ordinary Arrow values by Spark's ANSI rules.

Text, dates and timestamps are cast by the kernel, as those within Variants are. Numbers are cast by Arrow;
where Arrow prints or rounds otherwise than Spark, a rule here corrects it. A pair of types without a rule is
an error.

A cast of text differs from Spark on purpose in these cases, for a column and for a path of a Variant alike.
The value is NULL where the cast is `try_cast`, else a `CastError`:

- a time without a date (`01:02:03`, `T01:02:03`) to a timestamp. Spark adds the current date, so that the
  same query would return other rows tomorrow.
- digits of other scripts (`٣`) to a decimal. Spark reads them as decimal, and not as integer or double.
- a hexadecimal number (`0x1p3`) to a float or double.
- binary that is not UTF-8 to a string. Spark keeps the bytes; an Arrow string cannot hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from itertools import permutations
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..variant import values as variant_values
from ..variant.moments import UTC
from .types import INTEGER_DIGITS, Kind, kind_of, type_name

Scalar: TypeAlias = Any
Rule: TypeAlias = Callable[[Array, Any], Array]

# By more digits than these, Arrow divides some decimals wrongly: 2^32 - 2 is what it makes of 2^32 - 0.5.
ARROW_DIGITS = 9
EXACT = Context(prec=76)
MAX_SHOWN = 60

# The metadata of a Variant that has no object in it.
NO_NAMES = b"\x01\x00\x00"


def can_cast(source: Any, target: Any) -> bool:
    """Whether `cast_values` has a rule from `source` to `target`."""
    if source == target or pa.types.is_null(source):
        return True
    kinds = (kind_of(source), kind_of(target))
    if kinds == ("decimal", "string"):
        # Arrow prints decimals below 1e-6 with an exponent; Spark never does.
        return bool(source.scale <= 6)
    return kinds in RULES or kinds in BY_KERNEL


def cast_values(values: Array, target: Any, *, strict: bool, timezone: str = UTC) -> Array:
    """Return `values` as `target`; a value that does not fit is `pa.ArrowInvalid` when `strict`, else NULL.

    Dates, timestamps without time zone and text without one are local times in `timezone`.
    """
    if values.type == target:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    kinds = (kind_of(values.type), kind_of(target))
    if kinds in BY_KERNEL:
        return _cast_by_kernel(values, target, strict=strict, timezone=timezone)
    rule = RULES[kinds]
    return rule(values, target) if strict else _cast_or_null(values, target, rule)


def cast_scalar(value: Scalar, target: Any, *, strict: bool, timezone: str = UTC) -> Scalar:
    """Return one value as `target`, as `cast_values` does."""
    if value.type == target:
        return value
    return cast_values(pa.repeat(value, 1), target, strict=strict, timezone=timezone)[0]


def _cast_by_kernel(values: Array, target: Any, *, strict: bool, timezone: str) -> Array:
    """Cast text, dates and timestamps as the kernel casts those within Variants."""
    if kind_of(values.type) == "string":
        values = pc.cast(values, pa.string())
    variants = _as_variants(values)
    wanted = pa.string() if kind_of(target) == "string" else target
    cast = variant_values.extract(variants, (), wanted, strict=False, timezone=timezone)
    if strict and cast.null_count > values.null_count:
        failed = pc.and_(values.is_valid(), cast.is_null())
        (text,) = variant_values.extract(variants.filter(failed).slice(0, 1), (), pa.string(), strict=False)
        shown = text.as_py() if len(text.as_py()) <= MAX_SHOWN else f"{text.as_py()[:MAX_SHOWN]}…"
        raise pa.ArrowInvalid(f"cannot cast {shown!r} to {type_name(target)}")
    return pc.cast(cast, target)


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


def _as_variants(values: Array) -> pa.StructArray:
    metadata: Array = pa.repeat(pa.scalar(NO_NAMES, pa.binary()), len(values))
    fields = [pa.field("metadata", pa.binary(), False), pa.field("typed_value", values.type)]
    return pa.StructArray.from_arrays([metadata, values], fields=fields, mask=values.is_null())


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
    ("binary", "string"): _plain,
    ("binary", "binary"): _plain,
    ("string", "string"): _plain,
    ("string", "binary"): _plain,
}
MOMENTS: tuple[Kind, ...] = ("date", "timestamp", "timestamp_ntz")
FROM_TEXT: tuple[Kind, ...] = ("integer", "decimal", "floating", "boolean", *MOMENTS)
BY_KERNEL: frozenset[tuple[Kind, Kind]] = frozenset(
    [
        *(("string", kind) for kind in FROM_TEXT),
        *((kind, "string") for kind in MOMENTS),
        *permutations(MOMENTS, 2),
    ]
)
