"""Cast ordinary Arrow values by Spark's ANSI rules.

The kernel casts text, dates and timestamps, as it does within Variants. Arrow casts numbers; rules in this
module correct results that differ from Spark's. A pair of types without a rule is an error.

Casts of text intentionally differ from Spark in these cases, for columns and for paths of Variants. The value
is NULL for `try_cast`, and a `CastError` otherwise:

- a time without a date (`01:02:03`, `T01:02:03`) to a timestamp. Spark adds the current date, so that the
  same query would return other rows tomorrow.
- digits of other scripts (`٣`) to a decimal. Spark accepts them for decimal, but not for integer or double.
- a hexadecimal number (`0x1p3`) to a float or double.
- binary that is not UTF-8 to a string. Spark keeps the bytes; an Arrow string cannot hold them.

A decimal beyond the range of timestamps is not cast to one; Spark returns another moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from itertools import permutations
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..variant import values as variant_values
from ..variant.constructors import conform_part, row_numbers
from ..variant.moments import UTC, apply_function
from ..variant.objects import is_variant
from .types import INTEGER_DIGITS, NUMERIC, Kind, fields_of, kind_of, type_name

Scalar: TypeAlias = Any
Rule: TypeAlias = Callable[[Array, Any], Array]

# Arrow rounds some decimals wrongly if it removes more digits than these: 2^32 - 0.5 becomes 2^32 - 2.
ARROW_DIGITS = 9
MICROS = 1_000_000
EXACT = Context(prec=76)
MAX_SHOWN = 60

# The metadata of a Variant without objects.
NO_NAMES = b"\x01\x00\x00"


def can_cast(source: Any, target: Any) -> bool:
    """Return whether `cast_values` has a rule from `source` to `target`."""
    if source == target or pa.types.is_null(source):
        return True
    kinds = (kind_of(source), kind_of(target))
    return kinds in RULES or kinds in BY_KERNEL or _can_cast_parts(source, target)


def _can_cast_parts(source: Any, target: Any) -> bool:
    """Return whether each part has a rule to the part at its position; Variants have none."""
    pairs = [*zip(fields_of(source), fields_of(target), strict=False)]
    if source.id != target.id or not len(pairs) == len(fields_of(source)) == len(fields_of(target)):
        return False
    return all(
        is_variant(one) and is_variant(other)
        if is_variant(one) or is_variant(other)
        else can_cast(one.type, other.type)
        for one, other in pairs
    )


def cast_values(values: Array, target: Any, *, strict: bool, timezone: str = UTC) -> Array:
    """Return `values` cast to `target`.

    A value that cannot be cast raises `pa.ArrowInvalid` if `strict`, and becomes NULL otherwise. Dates, and
    timestamps and text without time zone, are local times in `timezone`.
    """
    if values.type == target:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    kinds = (kind_of(values.type), kind_of(target))
    if kinds == ("nested", "nested"):
        return _cast_parts(values, target, partial(cast_values, strict=strict, timezone=timezone))
    if kinds == ("floating", "decimal"):
        return _finite_to_decimal(values, target, strict=strict)
    if kinds in BY_KERNEL:
        return _cast_by_kernel(values, target, strict=strict, timezone=timezone)
    rule = RULES[kinds]
    return rule(values, target) if strict else _cast_or_null(values, target, rule)


def cast_scalar(value: Scalar, target: Any, *, strict: bool, timezone: str = UTC) -> Scalar:
    """Return one value cast to `target` by the rules of `cast_values`."""
    if value.type == target:
        return value
    return cast_values(pa.repeat(value, 1), target, strict=strict, timezone=timezone)[0]


def _cast_parts(values: Any, target: Any, cast: Callable[..., Array]) -> Array:
    """Return nested values with their parts cast; those of a value that is null do not matter."""
    # Without the parts that null values and slices hide.
    values = values.take(row_numbers(len(values)))

    def part(array: Array, field: pa.Field[Any]) -> Array:
        return conform_part(array, field) if is_variant(field) else cast(array, field.type)

    hidden = values.is_null()
    if pa.types.is_struct(target):
        parts = [part(*pair) for pair in zip(values.flatten(), target, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=hidden)
    if pa.types.is_list(target):
        elements = part(values.values, target.value_field)
        return pa.ListArray.from_arrays(values.offsets, elements, type=target, mask=hidden)
    # A key is never NULL.
    keys, items = cast(values.keys, target.key_type, strict=True), part(values.items, target.item_field)
    return pa.MapArray.from_arrays(values.offsets, keys, items, type=target, mask=hidden)


def _cast_by_kernel(values: Array, target: Any, *, strict: bool, timezone: str) -> Array:
    """Cast text, dates and timestamps by the kernel, as within Variants."""
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
    """Cast in bulk, and split arrays that fail in halves until each invalid value is alone."""
    try:
        return rule(values, target)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, target)
    middle = len(values) // 2
    halves = (values.slice(0, middle), values.slice(middle))
    return pa.concat_arrays([_cast_or_null(half, target, rule) for half in halves])


def _truncate(values: Array, target: Any) -> Array:
    if pa.types.is_decimal(values.type) and values.type.scale > ARROW_DIGITS:
        return pc.cast(quantize(values.to_pylist(), 0, ROUND_DOWN), target)
    if pa.types.is_decimal(values.type) and values.type.precision == values.type.scale:
        # One more digit, for the zero before the decimal point.
        values = pc.cast(values, pa.decimal256(values.type.precision + 1, values.type.scale))
    return pc.cast(pc.trunc(values), target)


def _integer_to_decimal(values: Array, target: Any) -> Array:
    wide = pa.decimal256(INTEGER_DIGITS[values.type.bit_width] + target.scale, target.scale)
    return pc.cast(pc.cast(values, wide), target)


def _decimal_to_decimal(values: Array, target: Any) -> Array:
    source = values.type
    if target.scale >= source.scale:
        # 128 bits would overflow to another number.
        return pc.cast(pc.cast(values, pa.decimal256(76, target.scale)), target)
    if source.scale - target.scale > ARROW_DIGITS:
        return pc.cast(quantize(values.to_pylist(), target.scale), target)
    # One digit more than the source: 9.99 rounds up to 10.0.
    wide = pc.cast(values, pa.decimal256(min(76, source.precision + 1), source.scale))
    return pc.cast(pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity"), target)


def quantize(values: Sequence[Decimal | None], scale: int, rounding: str = ROUND_HALF_UP) -> Array:
    """Return decimals rounded to `scale` digits after the decimal point, or before it if negative."""
    last = Decimal(1).scaleb(-scale)
    try:
        rounded = [None if value is None else value.quantize(last, rounding, EXACT) for value in values]
    except InvalidOperation as error:
        raise pa.ArrowInvalid(f"a value has too many digits for a decimal of scale {scale}") from error
    return pa.array(rounded, pa.decimal256(76, max(scale, 0)))


def _decimal_to_text(values: Array, target: Any) -> Array:
    # Arrow prints decimals below 1e-6 with an exponent.
    narrow = pc.cast(values, pa.decimal128(values.type.precision, values.type.scale))
    return pc.cast(apply_function("decimal_text", [narrow], len(values)), target)


def _integer_to_timestamp(values: Array, target: Any) -> Array:
    # Seconds beyond the range become the first or the last timestamp.
    least, most = -(2**63), 2**63 - 1
    last = most // MICROS
    if_else: Any = pc.if_else
    seconds: Array = values.cast(pa.int64())
    micros: Array = pc.multiply(seconds, MICROS)
    bounded: Array = if_else(pc.greater(seconds, pa.scalar(last)), most, micros)
    return if_else(pc.less(seconds, pa.scalar(-last)), least, bounded).cast(target)


def _finite_to_decimal(values: Array, target: Any, *, strict: bool) -> Array:
    # NaN and the infinities become NULL, in strict casts too.
    finite = pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type))
    return _cast_by_kernel(finite, target, strict=strict, timezone=UTC)


def _as_variants(values: Array) -> pa.StructArray:
    metadata: Array = pa.repeat(pa.scalar(NO_NAMES, pa.binary()), len(values))
    fields = [pa.field("metadata", pa.binary(), False), pa.field("typed_value", values.type)]
    return pa.StructArray.from_arrays([metadata, values], fields=fields, mask=values.is_null())


_cast_plain: Rule = pc.cast
_round: Rule = partial(pc.cast, safe=False)
RULES: dict[tuple[Kind, Kind], Rule] = {
    ("integer", "integer"): _cast_plain,
    ("integer", "decimal"): _integer_to_decimal,
    ("integer", "floating"): _round,
    ("integer", "string"): _cast_plain,
    ("integer", "boolean"): _cast_plain,
    ("integer", "timestamp"): _integer_to_timestamp,
    ("decimal", "integer"): _truncate,
    ("decimal", "decimal"): _decimal_to_decimal,
    # Arrow multiplies by a rounded power of ten and misses the nearest double; parsing is exact.
    ("decimal", "floating"): lambda values, target: pc.cast(pc.cast(values, pa.string()), target),
    ("decimal", "string"): _decimal_to_text,
    ("floating", "integer"): _truncate,
    ("floating", "floating"): _round,
    ("boolean", "integer"): _cast_plain,
    ("boolean", "string"): _cast_plain,
    ("binary", "string"): _cast_plain,
    ("binary", "binary"): _cast_plain,
    ("string", "string"): _cast_plain,
    ("string", "binary"): _cast_plain,
}
MOMENTS: tuple[Kind, ...] = ("date", "timestamp", "timestamp_ntz")
FROM_TEXT: tuple[Kind, ...] = ("integer", "decimal", "floating", "boolean", *MOMENTS)
BY_KERNEL: frozenset[tuple[Kind, Kind]] = frozenset(
    [
        *(("string", kind) for kind in FROM_TEXT),
        *((kind, "string") for kind in MOMENTS),
        *permutations(MOMENTS, 2),
        *((kind, "timestamp") for kind in NUMERIC if kind != "integer"),
        *(("timestamp", kind) for kind in NUMERIC),
        *((kind, "boolean") for kind in NUMERIC if kind != "integer"),
        *(("boolean", kind) for kind in NUMERIC if kind != "integer"),
        ("floating", "string"),
        ("floating", "decimal"),
    ]
)
