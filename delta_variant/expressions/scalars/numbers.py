"""Functions of numbers, and quotients and remainders, with the types and the rounding of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import partial
from math import fmod, inf, nan
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array
from ..cast import cast_values, quantize
from ..tree import Call, Expression, Literal, output_type
from ..types import MAX_PRECISION, kind_of
from .signature import Expansion, ScalarFunction, Values, by_kernel, evaluate_over_arrays, function, kernels

DOUBLE = pa.float64()
NO_DIGITS = Literal(pa.scalar(0, pa.int32()))
INT64 = (-(2**63), 2**63 - 1)
MODES = {"floor": ROUND_FLOOR, "ceil": ROUND_CEILING}


def _same_type(arguments: Sequence[Expression]) -> pa.DataType:
    result: Any = output_type(arguments[0])
    return cast("pa.DataType", result)


def _round_type(arguments: Sequence[Expression]) -> pa.DataType:
    source: Any = output_type(arguments[0])
    digits: Any = arguments[1] if len(arguments) > 1 else NO_DIGITS
    # The type for NULL is that for 0.
    places = digits.value.as_py() or 0
    if kind_of(source) != "decimal":
        return _same_type(arguments)
    whole = source.precision - source.scale + 1
    if places < 0:
        return pa.decimal128(min(max(whole, 1 - places), MAX_PRECISION), 0)
    scale = min(source.scale, places)
    return pa.decimal128(min(whole + scale, MAX_PRECISION), scale)


def _round(call: Call, values: Values, digits: Values = NO_DIGITS.value) -> Values:
    places = digits.as_py()
    if places is None:
        unknown: Any = pa.scalar(None, call.type)
        return kernels.if_else(kernels.is_null(values), unknown, unknown)
    match kind_of(values.type):
        case "floating":
            return by_kernel("round")(call, values, digits)
        case "integer" if places >= 0:
            return values
    return evaluate_over_arrays(lambda _, columns: _rounded(columns, places, call.type), call, values)


def _rounded(values: Array, places: int, target: Any) -> Array:
    """Round integers and decimals half away from zero."""
    if kind_of(values.type) == "integer":
        digits = cast_values(values, pa.decimal128(20, 0), strict=True)
        return cast_values(_rounded(digits, places, pa.decimal128(21, 0)), target, strict=True)
    if places >= 0:
        return cast_values(values, target, strict=True)
    return cast_values(quantize(values.to_pylist(), places), target, strict=True)


def _whole_type(arguments: Sequence[Expression]) -> pa.DataType:
    source: Any = output_type(arguments[0])
    if kind_of(source) != "decimal":
        return pa.int64()
    return pa.decimal128(min(source.precision - source.scale + 1, MAX_PRECISION), 0)


def _whole(name: str) -> Any:
    """Return the evaluation of `floor` or `ceil`, whose result is an integer or a decimal without digits."""

    def whole(call: Call, values: Array) -> Array:
        match kind_of(values.type):
            case "integer":
                return values.cast(pa.int64())
            case "decimal":
                return quantize(values.to_pylist(), 0, MODES[name]).cast(call.type)
        # A double beyond the range becomes the nearest integer, and NaN 0, as in Java.
        found = kernels.call_function(name, [values.cast(pa.float64())])
        least, most = INT64
        is_low, is_high = kernels.less(found, float(least)), kernels.greater_equal(found, float(most))
        is_inside = kernels.invert(kernels.or_(kernels.or_(is_low, is_high), kernels.is_nan(found)))
        inside = kernels.if_else(is_inside, found, 0.0).cast(pa.int64())
        return kernels.if_else(is_low, least, kernels.if_else(is_high, most, inside))

    return partial(evaluate_over_arrays, whole)


def _integral_division(call: Call, left: Values, right: Values) -> Values:
    return kernels.call_function("divide_checked", [left.cast(pa.int64()), right.cast(pa.int64())])


def _sign(values: Values) -> Values:
    # Arrow has no sign of -0.0.
    return kernels.if_else(kernels.equal(values, 0.0), values, kernels.sign(values))


CEIL = function(("number",), _whole_type, _whole("ceil"))

NUMBERS: dict[str, ScalarFunction | Expansion] = {
    "abs": function(("number",), _same_type, lambda _, values: kernels.abs_checked(values)),
    "round": function(("number", "int"), _round_type, _round, optional=1, constant=(1,)),
    "floor": function(("number",), _whole_type, _whole("floor")),
    "ceil": CEIL,
    "ceiling": CEIL,
    "div": function(("integer", "integer"), pa.int64(), _integral_division),
    "sqrt": function(("double",), DOUBLE, lambda _, values: kernels.sqrt(values)),
    **dict.fromkeys(("sign", "signum"), function(("double",), DOUBLE, lambda _, values: _sign(values))),
    "exp": function(("double",), DOUBLE, by_kernel("exp")),
    "log": function(("double", "double"), DOUBLE, by_kernel("log"), optional=1),
    "ln": Expansion(lambda number: Call("log", (number,)), 1, 1),
    "log2": Expansion(lambda number: Call("log", (Literal(pa.scalar(2.0)), number)), 1, 1),
    "log10": function(("double",), DOUBLE, by_kernel("log10")),
    **dict.fromkeys(("power", "pow"), function(("double", "double"), DOUBLE, by_kernel("power"))),
    "mod": Expansion(lambda left, right: Call("%", (left, right)), 2, 2),
}


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
