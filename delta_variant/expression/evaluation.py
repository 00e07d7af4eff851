"""Evaluate bound expressions over Arrow batches by Arrow's compute kernels, in SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_variant.errors import CastError, ExpressionError

from .casting import cast_scalar, cast_values
from .tree import Call, Cast, Column, Expression, Extraction, Field, Literal, describe, input_name
from .types import kind_of

# The stubs of pyarrow do not narrow values by their type.
Array: TypeAlias = Any
Values: TypeAlias = Any


def evaluate(expression: Expression, batch: pa.RecordBatch) -> Array:
    """Return a bound `expression` for each row of `batch`, which holds its inputs under their `input_name`.

    `CastError` names the piece when a value cannot be cast, overflows or is divided by zero, as in Spark's
    ANSI mode. Every operand is evaluated for every row: `and` does not guard what stands to its right.
    """
    values = _evaluate(expression, batch)
    is_scalar = isinstance(values, pa.Scalar)
    return pa.repeat(values, batch.num_rows) if is_scalar else values


def filter_mask(where: Expression, batch: pa.RecordBatch) -> Array:
    """Return, without nulls, whether `where` is true for each row: a row where it is NULL is not kept."""
    mask = evaluate(where, batch)
    if pa.types.is_null(mask.type):
        return pa.repeat(pa.scalar(False), len(mask))
    return pc.fill_null(mask, False) if mask.null_count else mask


def call_kernel(kernel: str, *arguments: Values, options: pc.FunctionOptions | None = None) -> Any:
    """Return what Arrow's compute function named `kernel` makes of `arguments`."""
    return pc.call_function(kernel, list(arguments), options)


def _evaluate(expression: Expression, batch: pa.RecordBatch) -> Values:
    match expression:
        case Literal(value):
            return value
        case Column() | Extraction():
            return _read(expression, batch)
        case Field(operand, name, _):
            return _field(_evaluate(operand, batch), name)
        case Cast(operand, _, _):
            return _cast(expression, _evaluate(operand, batch))
        case Call(function, arguments, _):
            return _call(expression, function, [_evaluate(argument, batch) for argument in arguments])
        case _:
            raise ExpressionError(f"`{describe(expression)}` is not bound to a table yet")


def _read(source: Column | Extraction, batch: pa.RecordBatch) -> Array:
    position = batch.schema.get_field_index(input_name(source))
    if position < 0:
        raise ExpressionError(
            f"the batch has no column {input_name(source)!r}, which `{describe(source)}` reads"
        )
    values = batch.column(position)
    # A reader may hand out a dictionary or a view of the same values.
    return values if source.type is None or values.type == source.type else pc.cast(values, source.type)


def _field(values: Values, name: str) -> Values:
    options = pc.StructFieldOptions([values.type.get_field_index(name)])
    return call_kernel("struct_field", values, options=options)


def _cast(cast: Cast, values: Values) -> Values:
    try:
        if isinstance(values, pa.Scalar):
            return cast_scalar(values, cast.type, strict=cast.strict)
        return cast_values(values, cast.type, strict=cast.strict)
    except pa.ArrowInvalid as error:
        raise CastError(f"`{describe(cast)}`: {error}; try_cast gives null instead") from error


def _call(call: Call, function: str, arguments: Sequence[Values]) -> Values:
    if call.type is None:
        raise ExpressionError(f"`{describe(call)}` is not bound to a table yet")
    try:
        return FUNCTIONS[function](*arguments)
    except pa.ArrowInvalid as error:
        raise CastError(f"`{describe(call)}`: {error}") from error


def _kernel(kernel: str) -> Callable[..., Values]:
    return lambda *arguments: call_kernel(kernel, *arguments)


def _count(kernel: str) -> Callable[[Values], Values]:
    """Return what a kernel makes of values as the `int` that it is in SQL."""
    return lambda values: call_kernel(kernel, values).cast(pa.int32())


def _chain(kernel: str) -> Callable[..., Values]:
    return lambda *arguments: reduce(_kernel(kernel), arguments)


def _ordered(kernel: str) -> Callable[[Values, Values], Values]:
    """Compare as Spark does: NaN equals NaN and is above every other number."""

    def compare(left: Values, right: Values) -> Values:
        if kind_of(left.type) != "floating":
            return call_kernel(kernel, left, right)
        return FLOATING_COMPARISONS[kernel](left, right)

    return compare


def _floating_equal(left: Values, right: Values) -> Values:
    equal = call_kernel("equal", left, right)
    if _is_ordinary(left) or _is_ordinary(right):
        return equal
    both = call_kernel("and", call_kernel("is_nan", left), call_kernel("is_nan", right))
    return call_kernel("or", equal, both)


def _floating_less(left: Values, right: Values) -> Values:
    less = call_kernel("less", left, right)
    if _is_ordinary(right):
        return less
    only_right = call_kernel("and_not", call_kernel("is_nan", right), call_kernel("is_nan", left))
    return call_kernel("or", less, only_right)


def _is_ordinary(values: Values) -> bool:
    """Whether `values` is one number that is not NaN, or NULL."""
    return isinstance(values, pa.Scalar) and values.as_py() == values.as_py()


def _invert(values: Values) -> Values:
    return call_kernel("invert", values)


FLOATING_COMPARISONS: dict[str, Callable[[Values, Values], Values]] = {
    "equal": _floating_equal,
    "not_equal": lambda left, right: _invert(_floating_equal(left, right)),
    "less": _floating_less,
    "less_equal": lambda left, right: _invert(_floating_less(right, left)),
    "greater": lambda left, right: _floating_less(right, left),
    "greater_equal": lambda left, right: _invert(_floating_less(left, right)),
}


def _null_safe_equal(left: Values, right: Values) -> Values:
    both_null = call_kernel("and", call_kernel("is_null", left), call_kernel("is_null", right))
    return call_kernel("coalesce", _ordered("equal")(left, right), both_null)


def _in(value: Values, *options: Values) -> Values:
    # Arrow's set lookup tells 0.0 from -0.0.
    if kind_of(value.type) == "floating" or not all(isinstance(option, pa.Scalar) for option in options):
        return _chain("or_kleene")(*(_ordered("equal")(value, option) for option in options))
    known: Array = pa.array([option for option in options if option.is_valid], value.type)
    found = call_kernel("is_in", value, options=pc.SetLookupOptions(known, skip_nulls=True))
    unknown = pa.scalar(None, pa.bool_())
    if len(known) < len(options):
        found = call_kernel("if_else", found, pa.scalar(True), unknown)
    return call_kernel("if_else", call_kernel("is_valid", value), found, unknown)


def _like(value: Values, pattern: pa.Scalar[Any]) -> Values:
    return call_kernel("match_like", value, options=pc.MatchSubstringOptions(pattern.as_py()))


def _remainder(left: Values, right: Values) -> Values:
    """The remainder with the sign of the dividend, as in Java and Spark."""
    quotient = call_kernel("divide_checked", left, right)
    return call_kernel("subtract", left, call_kernel("multiply", quotient, right))


ARITHMETIC = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked", "/": "divide_checked"}
COMPARISONS = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
FUNCTIONS: dict[str, Callable[..., Values]] = {
    **{function: _kernel(kernel) for function, kernel in ARITHMETIC.items()},
    **{function: _ordered(kernel) for function, kernel in COMPARISONS.items()},
    "%": _remainder,
    "negate": _kernel("negate_checked"),
    "and": _chain("and_kleene"),
    "or": _chain("or_kleene"),
    "not": _invert,
    "<=>": _null_safe_equal,
    "in": _in,
    "like": _like,
    "is null": _kernel("is_null"),
    "coalesce": _kernel("coalesce"),
    "length": _count("utf8_length"),
    **{part: _count(part) for part in ("year", "month", "day", "hour")},
}
