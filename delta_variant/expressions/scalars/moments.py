"""Functions of dates and timestamps; local times are those of the time zone of the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

import pyarrow as pa

from ..._arrow import SIMPLE_TYPES, Array
from ...errors import ExpressionError, SchemaError
from ...variant.moments import DatePart, apply_function, date_part
from ..cast import cast_values
from ..tree import Call, Cast, Expression, Literal, describe, output_type
from ..types import kind_of, type_name
from .signature import (
    Evaluation,
    Expansion,
    ScalarFunction,
    StatementMoment,
    Values,
    by_kernel,
    evaluate_over_arrays,
    function,
    kernels,
    over_arrays,
    over_first,
)

DATE, TIMESTAMP = SIMPLE_TYPES["date"], SIMPLE_TYPES["timestamp"]
LOCAL = SIMPLE_TYPES["timestamp_ntz"]
DAY = 86_400_000_000
DEFAULT_PATTERN = pa.scalar("yyyy-MM-dd HH:mm:ss")
MICROS = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1000, "timestamp_micros": 1}
TRUE = pa.scalar(True)
PARTS_OF_DATES = {"hour", "minute", "second"}.isdisjoint


def _part(name: Any) -> ScalarFunction:
    def part(call: Call, values: Array) -> Array:
        return date_part(values, name, call.timezone)

    # A date has no time, so that its hour is that of a timestamp.
    parameter: Any = "moment" if PARTS_OF_DATES({name}) else "clock"
    return function((parameter,), pa.int32(), partial(evaluate_over_arrays, part))


def _pattern_type(kernel: str, result: pa.DataType) -> Callable[..., pa.DataType]:
    """Return a rule that checks the pattern after the first argument, which is a constant."""
    sample: Any = pa.array([], TIMESTAMP if kernel == "date_format" else pa.string())

    def type_of(arguments: Sequence[Any]) -> pa.DataType:
        for pattern in arguments[1:]:
            try:
                apply_function(kernel, [sample, pa.repeat(pattern.value, 1)], 0)
            except SchemaError as error:
                raise ExpressionError(error.message) from error
        return result

    return type_of


def _days(kernel: str, result: pa.DataType) -> Evaluation:
    """Return a calculation with two numbers of days, those of dates from the epoch on."""

    def calculate(left: Array, right: Array) -> Array:
        return kernels.call_function(kernel, [left.cast(pa.int32()), right.cast(pa.int32())]).cast(result)

    return over_arrays(calculate)


def _instant(micros: int) -> ScalarFunction:
    def instant(values: Array) -> Array:
        scale = pa.scalar(micros)
        if kind_of(values.type) == "floating":
            values = kernels.if_else(kernels.is_finite(values), values.cast(pa.float64()), None)
            scaled = kernels.trunc(kernels.multiply(values, scale.cast(pa.float64())))
        elif kind_of(values.type) == "decimal":
            # Without a digit after those of microseconds, which cannot be kept.
            scaled = kernels.multiply(values.cast(pa.decimal256(44, 6)), scale)
        else:
            scaled = kernels.multiply_checked(values.cast(pa.int64()), scale)
        return scaled.cast(pa.int64()).cast(TIMESTAMP)

    # Only seconds have a fraction.
    return function(("seconds" if micros == 1_000_000 else "count",), TIMESTAMP, over_arrays(instant))


def _from_unixtime(call: Call, seconds: Values, pattern: Values = DEFAULT_PATTERN) -> Values:
    return by_kernel("date_format")(call, seconds.cast(pa.timestamp("s", "UTC")).cast(TIMESTAMP), pattern)


def _unix_timestamp_type(arguments: Sequence[Any]) -> pa.DataType:
    kind = kind_of(output_type(arguments[0]) or pa.null())
    if kind not in ("string", "date", "timestamp", "timestamp_ntz", "null"):
        got = f"`{describe(arguments[0])}` of type {type_name(output_type(arguments[0]))}"
        raise ExpressionError(f"`unix_timestamp`: expected a string, a date or a timestamp, got {got}")
    return _pattern_type("to_timestamp", pa.int64())(arguments)


def _unix_timestamp(call: Call, values: Array, pattern: Values = DEFAULT_PATTERN) -> Array:
    if kind_of(values.type) in ("string", "null"):
        values = by_kernel("to_timestamp")(call, values.cast(pa.string()), pattern)
    elif kind_of(values.type) == "date":
        values = cast_values(values, TIMESTAMP, strict=True, timezone=call.timezone)
    # Unlike `unix_seconds`, Spark rounds to zero, and takes a local time as one of UTC.
    return kernels.call_function("divide", [values.cast(pa.int64()), pa.scalar(1_000_000)])


def _unix_timestamp_of(*arguments: Expression) -> Expression:
    if not arguments:
        return Cast(Call("current_timestamp", ()), pa.int64(), strict=True)
    return Call("to_unix_timestamp", arguments)


def _shifted_type(arguments: Sequence[Any]) -> pa.DataType:
    moment, _, _, is_whole = arguments
    arrow_type = output_type(moment) or pa.null()
    kind = kind_of(arrow_type)
    if kind not in ("date", "timestamp", "timestamp_ntz"):
        raise ExpressionError(
            f"interval: expected a date or a timestamp, got `{describe(moment)}` of type "
            f"{type_name(output_type(moment))}: cast it"
        )
    # A date with a time is a timestamp.
    return DATE if kind == "date" and is_whole.value.as_py() else TIMESTAMP if kind == "date" else arrow_type


def _shifted(call: Call, values: Array, months: Any, micros: Any, _: Any) -> Array:
    """Return moments after an interval: its months and days in local time, and the rest in exact time."""
    days = int(micros.as_py() / DAY)
    arrow_type: Any = call.type
    if kind_of(arrow_type) == "date":
        shifted = by_kernel("add_months")(call, values, months)
        return kernels.add_checked(shifted.cast(pa.int32()), pa.scalar(days, pa.int32())).cast(DATE)
    cast = partial(cast_values, strict=True, timezone=call.timezone)
    is_local = kind_of(values.type) == "timestamp_ntz"
    start = values if is_local else cast(values, TIMESTAMP)
    local = start if is_local else cast(start, LOCAL)
    dates = local.cast(DATE, safe=False)
    times = kernels.subtract(local.cast(pa.int64()), dates.cast(LOCAL).cast(pa.int64()))
    dates = by_kernel("add_months")(call, dates, months).cast(LOCAL).cast(pa.int64())
    moved = kernels.add_checked(kernels.add_checked(dates, times), pa.scalar(days * DAY))
    if not is_local:
        # Of two moments with one local time, the one with the time zone's offset of the start is the result.
        same = kernels.subtract(moved, kernels.subtract(local.cast(pa.int64()), start.cast(pa.int64())))
        is_same = kernels.equal(cast(same.cast(TIMESTAMP), LOCAL).cast(pa.int64()), moved)
        moved = kernels.if_else(is_same, same, cast(moved.cast(LOCAL), TIMESTAMP).cast(pa.int64()))
    return kernels.add_checked(moved, pa.scalar(micros.as_py() - days * DAY)).cast(arrow_type)


def _cast_or_parse(target: pa.DataType) -> Expansion:
    """Return a function that casts one argument, and reads text by a pattern."""

    def expand(value: Expression, *pattern: Expression) -> Expression:
        parsed = Call("to timestamp", (value, *pattern)) if pattern else value
        return Cast(parsed, target, strict=True)

    return Expansion(expand, 1, 2)


def _last_day(value: Expression) -> Expression:
    month = Call("trunc", (value, Literal(pa.scalar("MONTH"))))
    next_month = Call("add_months", (month, Literal(pa.scalar(1, pa.int32()))))
    return Call("date_sub", (next_month, Literal(pa.scalar(1, pa.int32()))))


def _months_between(call: Call, end: Array, start: Array, is_rounded: Values = TRUE) -> Values:
    months = by_kernel("months_between")(call, end, start)
    scale = pa.scalar(1e8)
    rounded = kernels.floor(kernels.add(kernels.multiply(months, scale), pa.scalar(0.5)))
    return kernels.if_else(is_rounded, kernels.divide(rounded, scale), months)


PARSED = function(
    ("characters", "string"),
    _pattern_type("to_timestamp", TIMESTAMP),
    by_kernel("to_timestamp"),
    constant=(1,),
)
DIFFERENCE = function(("date", "date"), pa.int32(), _days("subtract", pa.int32()))
ADDITION = function(("date", "int"), DATE, _days("add", DATE))
FORMAT = _pattern_type("date_format", pa.string())

MOMENTS: dict[str, ScalarFunction | Expansion | StatementMoment] = {
    **dict.fromkeys(("current_date", "curdate"), StatementMoment(DATE)),
    **dict.fromkeys(("current_timestamp", "now"), StatementMoment(TIMESTAMP)),
    **{name: _part(name) for name in get_args(DatePart)},
    "dayofmonth": Expansion(lambda value: Call("day", (value,)), 1, 1),
    **dict.fromkeys(("date_add", "dateadd"), ADDITION),
    "date_sub": function(("date", "int"), DATE, _days("subtract", DATE)),
    **dict.fromkeys(("datediff", "date_diff"), DIFFERENCE),
    "add_months": function(("date", "int"), DATE, by_kernel("add_months")),
    "months_between": function(
        ("timestamp", "timestamp", "boolean"),
        pa.float64(),
        partial(evaluate_over_arrays, _months_between),
        optional=1,
    ),
    "add interval": function(
        ("any", "int", "bigint", "boolean"), _shifted_type, over_first(_shifted), constant=(1, 2, 3)
    ),
    "last_day": Expansion(_last_day, 1, 1),
    "date_trunc": function(("string", "timestamp"), TIMESTAMP, by_kernel("date_trunc")),
    "trunc": function(("date", "string"), DATE, by_kernel("trunc")),
    "date_format": function(("timestamp", "string"), FORMAT, by_kernel("date_format"), constant=(1,)),
    "to_date": _cast_or_parse(DATE),
    "to_timestamp": _cast_or_parse(TIMESTAMP),
    "to timestamp": PARSED,
    "unix_timestamp": Expansion(_unix_timestamp_of, 0, 2),
    "to_unix_timestamp": function(
        ("any", "string"), _unix_timestamp_type, over_first(_unix_timestamp), optional=1, constant=(1,)
    ),
    "from_unixtime": function(("bigint", "string"), FORMAT, _from_unixtime, optional=1, constant=(1,)),
    **{name: _instant(micros) for name, micros in MICROS.items()},
    "unix_seconds": function(
        ("instant",), pa.int64(), over_arrays(partial(cast_values, target=pa.int64(), strict=True))
    ),
    "unix_millis": function(("instant",), pa.int64(), by_kernel("unix_millis")),
    "unix_micros": function(("instant",), pa.int64(), over_arrays(lambda values: values.cast(pa.int64()))),
    "unix_date": function(("date",), pa.int32(), over_arrays(lambda values: values.cast(pa.int32()))),
}
