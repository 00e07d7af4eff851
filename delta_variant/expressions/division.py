"""Quotients of decimals, and remainders of decimals and doubles, with the types and the rounding of Spark."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from math import fmod, inf, nan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .cast import cast_values, quantize
from .types import MAX_PRECISION

MIN_SCALE = 6
"""The digits after the point that a quotient keeps, if it has as many."""

MAX_DIGITS = 76
"""The greatest precision of Arrow."""

EXACT = Context(prec=200)
"""Enough digits for the whole part of any quotient, and for what rounds it."""

WHOLE_DIGITS = MAX_PRECISION + 1
"""The digits that the whole part of a quotient may have without zeros at its end, for Spark's remainder."""


def quotient_type(left: Any, right: Any) -> Any:
    """Return the decimal type of a quotient: one of too many digits loses some after the point."""
    whole = left.precision - left.scale + right.scale
    scale = max(MIN_SCALE, left.scale + right.precision + 1)
    if whole + scale <= MAX_PRECISION:
        return pa.decimal128(whole + scale, scale)
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - whole, MIN_SCALE))


def remainder_type(left: Any, right: Any) -> Any:
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    return pa.decimal128(whole + scale, scale)


def divide_decimals(left: Array, right: Array) -> Array:
    """Return quotients, rounded half away from zero; raises ArrowInvalid for a divisor of zero."""
    target, one, other = quotient_type(left.type, right.type), left.type, right.type
    # Arrow cuts off the digits after those of this scale, of which at least one rounds the quotient.
    scale = max(one.scale, target.scale - other.precision + other.scale)
    digits = one.precision - one.scale + scale
    if digits + other.precision + 1 <= MAX_DIGITS:
        wide = pc.cast(left, pa.decimal256(digits, scale))
        narrow = pc.cast(right, pa.decimal256(other.precision, other.scale))
        quotients: Array = pc.divide_checked(wide, narrow)
    else:
        quotients = quantize(_each(EXACT.divide, left, right), target.scale)
    return cast_values(quotients, target, strict=True)


def remainders(left: Array, right: Array) -> Array:
    """Return remainders with the sign of the dividend; raises ArrowInvalid for a divisor of zero."""
    if pa.types.is_floating(left.type):
        return pa.array(_each(_floating_remainder, left, right), left.type)
    return pa.array(_each(_decimal_remainder, left, right), remainder_type(left.type, right.type))


def _decimal_remainder(left: Decimal, right: Decimal) -> Decimal:
    whole, rest = EXACT.divmod(left, right)
    if len(EXACT.normalize(whole).as_tuple().digits) > WHOLE_DIGITS:
        raise pa.ArrowInvalid(f"the quotient of {left} and {right} has more than {WHOLE_DIGITS} digits")
    return rest


def positive_remainders(left: Array, right: Array) -> Array:
    """Return remainders of decimals, to which the divisor is added where they are negative."""
    return pa.array(_each(_positive_remainder, left, right), remainder_type(left.type, right.type))


def _positive_remainder(left: Decimal, right: Decimal) -> Decimal:
    rest = _decimal_remainder(left, right)
    return _decimal_remainder(EXACT.add(rest, right), right) if rest < 0 else rest


def _floating_remainder(left: float, right: float) -> float:
    return nan if left in (inf, -inf) else fmod(left, right)


def _each(calculate: Callable[[Any, Any], Any], left: Array, right: Array) -> list[Any]:
    results: list[Any] = []
    for one, other in zip(left.to_pylist(), right.to_pylist(), strict=True):
        if one is None or other is None:
            results.append(None)
        elif other == 0:
            raise pa.ArrowInvalid("divide by zero")
        else:
            results.append(calculate(one, other))
    return results
