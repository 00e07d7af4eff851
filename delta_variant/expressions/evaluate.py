"""Evaluate bound expressions over batches with Arrow's compute kernels, in SQL's three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..errors import CastError, DeltaVariantError, ExpressionError
from ..variant import values as variant_values
from ..variant.constructors import conform_part, part_field
from ..variant.moments import UTC
from ..variant.paths import normalize
from .cast import cast_scalar, cast_values
from .char_padding import pad_values
from .patterns import match_pattern
from .scalars import SCALAR_FUNCTIONS
from .scalars.numbers import divide_decimals, positive_remainders, remainders
from .scalars.signature import ScalarFunction, over_arrays
from .tree import (
    PAD,
    TRIED,
    Call,
    Cast,
    Column,
    Expression,
    Extraction,
    Field,
    Input,
    Literal,
    VariantCall,
    describe,
    input_name,
    inputs,
    output_type,
)
from .types import kind_of
from .variant_calls import apply

Values: TypeAlias = Any

ONE_ROW = pa.record_batch([pa.array([0])], names=[""])
ROWS = "\0rows"
VARIANT = part_field("", None)
ROW_NUMBERS = "\0row"
"""The column of a batch with the row numbers in the file, for `error.row`."""


def evaluate(expression: Expression, batch: pa.RecordBatch) -> Array:
    """Return the value of a bound `expression` for each row of `batch`.

    `batch` has the inputs of the expression under their `input_name`. For a strict cast of a path, it may
    have the Variant at the path (`without_cast`) instead, which is cast here.

    Raises CastError, which quotes the part of the expression, if a value cannot be cast, overflows or is
    divided by zero, as in Spark's ANSI mode, or if a function of Variants fails. An operand of `and` or `or`
    is not evaluated for rows that the operands to its left decide.
    """
    try:
        values = _evaluate(expression, batch, is_guarded=False)
    except CastError:
        # Usually no row fails, and evaluating all operands for all rows is faster.
        values = _evaluate(expression, batch, is_guarded=True)
    return _repeat(values, batch.num_rows) if isinstance(values, pa.Scalar) else values


def constant_of(expression: Expression) -> pa.Scalar[Any] | None:
    """Return the value of a bound expression without inputs; None if it has inputs. Raises CastError."""
    if inputs([expression]):
        return None
    value: pa.Scalar[Any] = evaluate(expression, ONE_ROW)[0]
    return value


def _nulls(count: int, arrow_type: Any) -> Array:
    return pa.nulls(count, arrow_type)


def _repeat(value: Values, count: int) -> Array:
    return pa.repeat(value, count)


def filter_mask(where: Expression, batch: pa.RecordBatch) -> Array:
    """Return whether `where` is true for each row, without nulls: NULL counts as false."""
    mask = evaluate(where, batch)
    if pa.types.is_null(mask.type):
        return pa.repeat(pa.scalar(False), len(mask))
    return pc.fill_null(mask, False) if mask.null_count else mask


def call_kernel(kernel: str, *arguments: Values, options: pc.FunctionOptions | None = None) -> Any:
    """Return the result of Arrow's compute function named `kernel` on `arguments`."""
    return pc.call_function(kernel, list(arguments), options)


def without_cast(source: Input) -> Input:
    """Return the Variant input of a strict cast, which may fail, and any other input itself."""
    is_strict = isinstance(source, Extraction) and source.strict and not source.as_json
    return (
        msgspec.structs.replace(source, type=None, timezone=UTC)
        if isinstance(source, Extraction) and is_strict
        else source
    )


def inputs_of(batch: pa.RecordBatch, inputs: Sequence[Input]) -> pa.RecordBatch:
    """Return the inputs of expressions as a batch, read from a batch of whole columns.

    Variant columns must hold Variants, not JSON text. Raises CastError for a value that cannot be cast.
    """
    arrays = [_input(batch, each) for each in inputs]
    # An extra column gives the batch its length if there are no inputs.
    rows: Any = pa.nulls(batch.num_rows)
    names = [input_name(each) for each in inputs]
    return pa.record_batch([rows, *arrays], names=[ROWS, *names])


def _input(batch: pa.RecordBatch, source: Input) -> Any:
    if isinstance(source, Column):
        return batch.column(source.name)
    variants = batch.column(source.column)
    for name in source.fields:
        variants = pc.struct_field(variants, name)
    if source.as_json:
        found = variant_values.extract(variants, source.path, None, strict=True)
        return variant_values.to_json(found, timezone=source.timezone)
    try:
        return variant_values.extract(
            variants, source.path, source.type, strict=source.strict, timezone=source.timezone
        )
    except CastError as error:
        error.at(column=".".join((source.column, *source.fields)))
        raise


def _evaluate(expression: Expression, batch: pa.RecordBatch, *, is_guarded: bool) -> Values:
    match expression:
        case Literal(value):
            return value
        case Column() | Extraction():
            return _read(expression, batch)
        case Field(operand, name, _):
            return _field(_evaluate(operand, batch, is_guarded=is_guarded), name)
        case Cast(operand):
            return _cast(expression, _evaluate(operand, batch, is_guarded=is_guarded))
        case Call("and" | "or", arguments) if is_guarded and batch.num_columns:
            return _evaluate_connective(expression, arguments, batch)
        case Call("case", arguments) if is_guarded and batch.num_columns:
            return _evaluate_case(expression, arguments, batch)
        case Call("coalesce", arguments) if is_guarded and batch.num_columns:
            return _evaluate_coalesce(expression, arguments, batch)
        case VariantCall("case", arguments):
            return _evaluate_case(expression, arguments, batch)
        case VariantCall("coalesce", arguments):
            return _evaluate_coalesce(expression, arguments, batch)
        case Call(function, arguments):
            values = [_evaluate(argument, batch, is_guarded=is_guarded) for argument in arguments]
            return _call(expression, function, values)
        case VariantCall(_, arguments):
            values = [_evaluate(argument, batch, is_guarded=is_guarded) for argument in arguments]
            return _call_variant_function(expression, values, batch)
        case _:
            raise ExpressionError(
                f"cannot evaluate `{describe(expression)}` because it is not bound to a table"
            )


def _evaluate_connective(call: Call, arguments: Sequence[Expression], batch: pa.RecordBatch) -> Array:
    """Evaluate each operand only for the rows that the operands before it do not decide."""
    decisive: Array = pa.repeat(pa.scalar(call.function == "or"), batch.num_rows)
    result = call_kernel("invert", decisive)
    for argument in arguments:
        is_open = pc.fill_null(call_kernel("not_equal", result, decisive), True)
        values = _evaluate_where(is_open, argument, batch).cast(pa.bool_())
        found = pc.if_else(is_open, values, decisive)
        result = _call(call, call.function, [result, found])
    return result


def _evaluate_case(call: Call | VariantCall, arguments: Sequence[Expression], batch: pa.RecordBatch) -> Array:
    """Evaluate each condition for the rows that those before it leave, and each value for its own rows."""
    result, is_open = (
        _nulls(batch.num_rows, call.type or VARIANT.type),
        _repeat(pa.scalar(True), batch.num_rows),
    )
    branches: list[Any] = [*zip(arguments[::2], arguments[1::2], strict=False)]
    otherwise = [(Literal(pa.scalar(True)), each) for each in arguments[2 * len(branches) :]]
    for condition, value in [*branches, *otherwise]:
        holds = pc.fill_null(_evaluate_where(is_open, condition, batch), False)
        result = pc.if_else(holds, _evaluate_where(holds, value, batch), result)
        is_open = pc.and_not(is_open, holds)
    return result


def _evaluate_coalesce(
    call: Call | VariantCall, arguments: Sequence[Expression], batch: pa.RecordBatch
) -> Array:
    """Evaluate each operand only for the rows in which those before it are NULL."""
    result = _nulls(batch.num_rows, call.type or VARIANT.type)
    for argument in arguments:
        is_open = result.is_null()
        result = pc.if_else(is_open, _evaluate_where(is_open, argument, batch), result)
    return result


def _evaluate_where(is_wanted: Array, expression: Expression, batch: pa.RecordBatch) -> Array:
    """Return the values of an expression where `is_wanted`, which has no nulls, is true, else null."""
    if not is_wanted.true_count:
        return _nulls(len(is_wanted), output_type(expression) or VARIANT.type)
    values = _evaluate(expression, batch.filter(is_wanted), is_guarded=True)
    if isinstance(values, pa.Scalar):
        values = _repeat(values, is_wanted.true_count)
    if output_type(expression) is None:
        values = conform_part(values, VARIANT)
    positions = pc.subtract(pc.cumulative_sum(is_wanted.cast(pa.int64())), 1)
    return values.take(pc.if_else(is_wanted, positions, pa.scalar(None, pa.int64())))


def _read(source: Column | Extraction, batch: pa.RecordBatch) -> Array:
    position = batch.schema.get_field_index(input_name(source))
    if position >= 0:
        values = batch.column(position)
        # A reader may return a dictionary or a view of the same values.
        return values if source.type is None or values.type == source.type else pc.cast(values, source.type)
    position = batch.schema.get_field_index(input_name(without_cast(source)))
    if position < 0:
        raise ExpressionError(
            f"cannot evaluate `{describe(source)}` because the batch has no column {input_name(source)!r}"
        )
    assert isinstance(source, Extraction)
    variants = batch.column(position)
    if source.type is not None and (
        pa.types.is_dictionary(source.type) or pa.types.is_string_view(source.type)
    ):
        plain = msgspec.structs.replace(source, type=pa.string())
        return _read(plain, batch).cast(source.type)
    try:
        return variant_values.extract(variants, (), source.type, strict=True, timezone=source.timezone)
    except CastError as error:
        if error.row is not None and ROW_NUMBERS in batch.schema.names:
            error.row = batch.column(ROW_NUMBERS)[error.row].as_py()
        error.at(column=".".join((source.column, *source.fields)), path=normalize(source.path))
        raise


def _field(values: Values, name: str) -> Values:
    options = pc.StructFieldOptions([values.type.get_field_index(name)])
    return call_kernel("struct_field", values, options=options)


def _cast(cast: Cast, values: Values) -> Values:
    try:
        if isinstance(values, pa.Scalar):
            return cast_scalar(values, cast.type, strict=cast.strict, timezone=cast.timezone)
        return cast_values(values, cast.type, strict=cast.strict, timezone=cast.timezone)
    except pa.ArrowInvalid as error:
        raise CastError(f"`{describe(cast)}`: {error}; use try_cast to get null instead") from error


def _call(call: Call, function: str, arguments: Sequence[Values]) -> Values:
    if call.type is None:
        raise ExpressionError(f"cannot evaluate `{describe(call)}` because it is not bound to a table")
    scalar = SCALAR_FUNCTIONS.get(function)
    try:
        if isinstance(scalar, ScalarFunction):
            return scalar.evaluate(call, *arguments)
        return FUNCTIONS[function](*arguments)
    except pa.ArrowInvalid as error:
        raise CastError(f"`{describe(call)}`: {error}") from error


def _call_variant_function(call: VariantCall, values: Sequence[Values], batch: pa.RecordBatch) -> Array:
    columns = [_repeat(each, batch.num_rows) if isinstance(each, pa.Scalar) else each for each in values]
    try:
        return apply(call, columns)
    except DeltaVariantError as error:
        # The row of a batch would be taken for one of its file.
        row, error.row = error.row, None
        if row is not None and ROW_NUMBERS in batch.schema.names:
            error.row = batch.column(ROW_NUMBERS)[row].as_py()
        raise


def _kernel(kernel: str) -> Callable[..., Values]:
    return lambda *arguments: call_kernel(kernel, *arguments)


def _chain(kernel: str) -> Callable[..., Values]:
    return lambda *arguments: reduce(_kernel(kernel), arguments)


def _comparison(kernel: str) -> Callable[[Values, Values], Values]:
    """Return a comparison with the order of Spark: NaN equals NaN and is greater than every other number."""

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
    """Return whether `values` is a scalar that is not NaN."""
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
    return call_kernel("coalesce", _comparison("equal")(left, right), both_null)


def _in(value: Values, *options: Values) -> Values:
    if not all(isinstance(option, pa.Scalar) for option in options):
        return _chain("or_kleene")(*(_comparison("equal")(value, option) for option in options))
    known: Array = pa.array([option for option in options if option.is_valid], value.type)
    if kind_of(value.type) == "floating":
        # Arrow's set lookup distinguishes 0.0 from -0.0: adding zero makes both the same.
        zero = pa.scalar(0.0, value.type)
        value, known = (call_kernel("add", each, zero) for each in (value, known))
    found = call_kernel("is_in", value, options=pc.SetLookupOptions(known, skip_nulls=True))
    unknown = pa.scalar(None, pa.bool_())
    if len(known) < len(options):
        found = call_kernel("if_else", found, pa.scalar(True), unknown)
    return call_kernel("if_else", call_kernel("is_valid", value), found, unknown)


def _divide(left: Values, right: Values) -> Values:
    if kind_of(left.type) == "decimal":
        return over_arrays(divide_decimals)(None, left, right)
    return call_kernel("divide_checked", left, right)


def _remainder(left: Values, right: Values) -> Values:
    """Return the remainder with the sign of the dividend, as in Java and Spark."""
    if kind_of(left.type) != "integer":
        return over_arrays(remainders)(None, left, right)
    # The quotient of the lowest integer by -1 overflows. The remainder by 1 is the same.
    is_minus_one = call_kernel("equal", right, pa.scalar(-1, right.type))
    right = call_kernel("if_else", is_minus_one, pa.scalar(1, right.type), right)
    quotient = call_kernel("divide_checked", left, right)
    return call_kernel("subtract", left, call_kernel("multiply", quotient, right))


def _positive_remainder(left: Values, right: Values) -> Values:
    """Return the remainder, to which the divisor is added where it is negative."""
    if kind_of(left.type) == "decimal":
        return over_arrays(positive_remainders)(None, left, right)
    rest = _remainder(left, right)
    # Java adds integers of 32 bits at least, and wraps around.
    wide = pa.int32() if rest.type.bit_width < 32 else rest.type
    divisor = right.cast(wide)
    moved = _remainder(call_kernel("add", rest.cast(wide), divisor), divisor).cast(rest.type)
    return call_kernel("if_else", call_kernel("less", rest, pa.scalar(0, rest.type)), moved, rest)


def _try(function: str) -> Callable[..., Values]:
    """Return the calculation of an operator that is NULL for the rows in which it fails."""
    calculate = FUNCTIONS[function]

    def over(left: Array, right: Array) -> Array:
        try:
            return calculate(left, right)
        except pa.ArrowInvalid:
            middle = len(left) // 2
            if not middle:
                return _nulls(1, calculate(left[:0], right[:0]).type)
            halves = (slice(middle), slice(middle, None))
            return pa.concat_arrays([over(left[half], right[half]) for half in halves])

    def without_zeros(left: Values, right: Values) -> Values:
        # Many rows can have them, while few overflow.
        is_zero = call_kernel("equal", right, pa.scalar(0, right.type))
        divisors = call_kernel("if_else", is_zero, pa.scalar(None, right.type), right)
        return over_arrays(over)(None, left, divisors)

    return (
        without_zeros if function in ("/", "%") else lambda left, right: over_arrays(over)(None, left, right)
    )


ARITHMETIC = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}
BITS = {"&": "bit_wise_and", "|": "bit_wise_or", "^": "bit_wise_xor", "~": "bit_wise_not"}
COMPARISONS = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
FUNCTIONS: dict[str, Callable[..., Values]] = {
    **{function: _kernel(kernel) for function, kernel in {**ARITHMETIC, **BITS}.items()},
    **{function: _comparison(kernel) for function, kernel in COMPARISONS.items()},
    "/": _divide,
    "%": _remainder,
    "pmod": _positive_remainder,
    "negate": _kernel("negate_checked"),
    "positive": lambda value: value,
    "and": _chain("and_kleene"),
    "or": _chain("or_kleene"),
    "not": _invert,
    "<=>": _null_safe_equal,
    "in": _in,
    "like": lambda value, *constants: match_pattern(value, *(each.as_py() for each in constants)),
    "is null": _kernel("is_null"),
    "coalesce": _kernel("coalesce"),
    PAD: pad_values,
}
FUNCTIONS.update({name: _try(function) for name, function in TRIED.items()})
