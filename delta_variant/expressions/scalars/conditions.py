"""Conditional functions and tests for NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, cast

import pyarrow as pa

from ..._arrow import Array
from ...errors import ExpressionError
from ..tree import NULL, Call, Expression, output_type
from ..types import MAX_PRECISION, Kind, kind_of, type_name
from .signature import Expansion, Parameter, ScalarFunction, function, kernels, over_arrays

INTEGERS: dict[Kind, pa.DataType] = {"boolean": pa.int8(), "timestamp": pa.int64()}


def _common_result(arguments: Sequence[Expression], first: int = 0) -> pa.DataType:
    """Return the type to which the arguments from `first` on were cast; raises ExpressionError."""
    result: Any = output_type(arguments[first])
    if pa.types.is_decimal256(result):
        raise ExpressionError(
            f"the operands require {type_name(result)}, but a decimal has at most {MAX_PRECISION} digits: "
            "cast them"
        )
    return cast("pa.DataType", result)


def _case_parameters(count: int) -> tuple[Parameter, ...]:
    branches: tuple[Parameter, ...] = ("boolean", "common") * (count // 2)
    return (*branches, "common") if count % 2 else branches


def _case(*arguments: Array) -> Array:
    branches = len(arguments) // 2
    conditions = pa.StructArray.from_arrays(arguments[: 2 * branches : 2], names=[""] * branches)
    values = [*arguments[1::2], *arguments[2 * branches :]]
    return kernels.call_function("case_when", [conditions, *values])


def _is_not_null(value: Expression) -> Expression:
    return Call("not", (Call("is null", (value,)),))


def _extreme(kernel: str, *, is_nan_extreme: bool) -> Callable[..., Array]:
    """Return the greatest or the least of columns without NULLs; NaN is greater than every number."""

    def pair(left: Array, right: Array) -> Array:
        if pa.types.is_null(left.type):
            return left
        integer = INTEGERS.get(kind_of(left.type))
        if integer is not None:
            # Arrow compares neither booleans nor timestamps with a time zone.
            return pair(left.cast(integer), right.cast(integer)).cast(left.type)
        found = kernels.call_function(
            kernel, [left, right], kernels.ElementWiseAggregateOptions(skip_nulls=True)
        )
        if kind_of(left.type) != "floating":
            return found
        # Arrow prefers the other number to NaN.
        nan = pa.scalar(float("nan"), left.type)
        is_left, is_right = (kernels.fill_null(kernels.is_nan(each), False) for each in (left, right))
        one, both = kernels.or_(is_left, is_right), kernels.and_(is_left, is_right)
        return kernels.if_else(one if is_nan_extreme else both, nan, found)

    return lambda *columns: reduce(pair, columns)


GREATEST = over_arrays(_extreme("max_element_wise", is_nan_extreme=True))
LEAST = over_arrays(_extreme("min_element_wise", is_nan_extreme=False))

CONDITIONS: dict[str, ScalarFunction | Expansion] = {
    "case": ScalarFunction(_case_parameters, partial(_common_result, first=1), over_arrays(_case), 2, None),
    "if": Expansion(lambda *arguments: Call("case", arguments), 3, 3),
    "nullif": Expansion(lambda value, other: Call("case", (Call("=", (value, other)), NULL, value)), 2, 2),
    **dict.fromkeys(("nvl", "ifnull"), Expansion(lambda *arguments: Call("coalesce", arguments), 2, 2)),
    "nvl2": Expansion(lambda tested, *values: Call("case", (_is_not_null(tested), *values)), 3, 3),
    "isnull": Expansion(lambda value: Call("is null", (value,)), 1, 1),
    "isnotnull": Expansion(_is_not_null, 1, 1),
    "isnan": function(
        ("double",), pa.bool_(), over_arrays(lambda values: kernels.fill_null(kernels.is_nan(values), False))
    ),
    "greatest": function(("ordered", "ordered"), _common_result, GREATEST, is_repeated=True),
    "least": function(("ordered", "ordered"), _common_result, LEAST, is_repeated=True),
}
