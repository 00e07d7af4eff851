"""The aggregates and the window functions of queries: their types as in Spark, and how DuckDB computes them.

A function that has no row here is an error, because DuckDB may give it another meaning than Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeAlias
from typing import Literal as OneOf

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import CastError, ExpressionError
from ..expressions.coercion import cast_to, kind_or_error
from ..expressions.tree import Expression, Literal, describe, output_type
from ..expressions.types import MAX_PRECISION, NUMERIC, kind_of, type_name
from ..protocol.schema.arrow import variant_field
from ..variant.values import VARIANT_TYPE
from .syntax import AggregateCall

Parameter: TypeAlias = OneOf[
    "any",
    "ordered",
    "exact",
    "number",
    "double",
    "boolean",
    "text",
    "integer",
    "fraction",
    "flag",
    "delimiter",
]
"""What an argument is: `number` casts text to double as Spark does, `double` also other numbers.

`exact` is `ordered`, but not a floating-point number.
"""
Result: TypeAlias = Callable[[Sequence[Any]], pa.DataType]
"""Returns the type of a result, given the types of the arguments, None for Variants."""

INT, BIGINT, DOUBLE, BOOLEAN, TEXT = pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.string()
EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


def _fixed(arrow_type: pa.DataType) -> Result:
    return lambda types: arrow_type


def _first(types: Sequence[pa.DataType | None]) -> pa.DataType:
    return VARIANT_TYPE if types[0] is None else types[0]


def _list(types: Sequence[pa.DataType | None]) -> pa.DataType:
    return pa.list_(variant_field("element") if types[0] is None else types[0])


def _bounded(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def _sum(types: Sequence[Any]) -> pa.DataType:
    kind = kind_of(types[0])
    if kind == "decimal":
        return _bounded(types[0].precision + 10, types[0].scale)
    return BIGINT if kind == "integer" else DOUBLE


def _average(types: Sequence[Any]) -> pa.DataType:
    is_decimal = kind_of(types[0]) == "decimal"
    return _bounded(types[0].precision + 4, types[0].scale + 4) if is_decimal else DOUBLE


class Rule(msgspec.Struct, frozen=True):
    """A function: its parameters, its type, and its SQL in DuckDB, in which `{0}` is the first argument.

    `least` is the number of arguments without the optional ones. `skips_null` leaves out rows in which the
    first argument is NULL, and `otherwise` is the value without any row. `frames` says whether a window can
    have a frame.
    """

    parameters: tuple[Parameter, ...]
    result: Result
    sql: str
    least: int | None = None
    skips_null: bool = False
    otherwise: str | None = None
    distinct: bool = False
    frames: bool = True


AGGREGATES: dict[str, Rule] = {
    "count": Rule(("any",) * 8, _fixed(BIGINT), "count({0})", least=0, distinct=True),
    "count_if": Rule(("boolean",), _fixed(BIGINT), "count(nullif({0}, false))"),
    "sum": Rule(("number",), _sum, "sum({0})", distinct=True),
    **dict.fromkeys(("avg", "mean"), Rule(("number",), _average, "avg(cast({0} as double))", distinct=True)),
    "min": Rule(("ordered",), _first, "min({0})", distinct=True),
    "max": Rule(("ordered",), _first, "max({0})", distinct=True),
    "min_by": Rule(("any", "ordered"), _first, "arg_min_null({0}, {1})"),
    "max_by": Rule(("any", "ordered"), _first, "arg_max_null({0}, {1})"),
    **dict.fromkeys(("any_value", "first", "first_value"), Rule(("any",), _first, "first({0})")),
    **dict.fromkeys(("last", "last_value"), Rule(("any",), _first, "last({0})")),
    **dict.fromkeys(("bool_and", "every"), Rule(("boolean",), _fixed(BOOLEAN), "bool_and({0})")),
    **dict.fromkeys(("bool_or", "some", "any"), Rule(("boolean",), _fixed(BOOLEAN), "bool_or({0})")),
    **dict.fromkeys(
        ("collect_list", "array_agg"),
        Rule(("any",), _list, "list({0})", skips_null=True, otherwise="[]", distinct=True),
    ),
    **dict.fromkeys(
        ("listagg", "string_agg"),
        Rule(("text", "delimiter"), _fixed(TEXT), "string_agg({0}, {1})", least=1, distinct=True),
    ),
    # Of several values, the lowest one is any of them.
    "mode": Rule(("exact", "flag"), _first, "mode({0} order by {0})", least=1),
    "collect_set": Rule(("any",), _list, "list(distinct {0})", skips_null=True, otherwise="[]"),
    **dict.fromkeys(("stddev", "std", "stddev_samp"), Rule(("double",), _fixed(DOUBLE), "stddev_samp({0})")),
    "stddev_pop": Rule(("double",), _fixed(DOUBLE), "stddev_pop({0})"),
    **dict.fromkeys(("variance", "var_samp"), Rule(("double",), _fixed(DOUBLE), "var_samp({0})")),
    "var_pop": Rule(("double",), _fixed(DOUBLE), "var_pop({0})"),
    "median": Rule(("double",), _fixed(DOUBLE), "quantile_cont({0}, 0.5)"),
    # `percentile_cont` has its first argument in WITHIN GROUP.
    **dict.fromkeys(
        ("percentile", "percentile_cont"),
        Rule(("double", "fraction"), _fixed(DOUBLE), "quantile_cont({0}, {1})"),
    ),
    "grouping": Rule(("any",), _fixed(pa.int8()), "grouping"),
    "grouping_id": Rule(("any",) * 8, _fixed(BIGINT), "grouping", least=0),
    # The exact number is an approximation of any accuracy.
    "approx_count_distinct": Rule(("any",), _fixed(BIGINT), "count(distinct {0})"),
}
"""The aggregates. All but those of grouping sets can be functions of a window."""
GROUPING = frozenset({"grouping", "grouping_id"})
"""The functions whose arguments are keys of grouping sets."""
DEVIATIONS = (AGGREGATES["stddev_pop"], AGGREGATES["var_pop"])

WINDOW_FUNCTIONS: dict[str, Rule] = {
    "row_number": Rule((), _fixed(INT), "row_number()", frames=False),
    "rank": Rule((), _fixed(INT), "rank()", frames=False),
    "dense_rank": Rule((), _fixed(INT), "dense_rank()", frames=False),
    "percent_rank": Rule((), _fixed(DOUBLE), "percent_rank()", frames=False),
    "cume_dist": Rule((), _fixed(DOUBLE), "cume_dist()", frames=False),
    "ntile": Rule(("integer",), _fixed(INT), "ntile({0})", frames=False),
    "lag": Rule(("any", "integer", "any"), _first, "lag", least=1, frames=False),
    "lead": Rule(("any", "integer", "any"), _first, "lead", least=1, frames=False),
    "first_value": Rule(("any",), _first, "first_value({0})"),
    "last_value": Rule(("any",), _first, "last_value({0})"),
    "nth_value": Rule(("any", "integer"), _first, "nth_value({0}, {1})"),
}
"""The functions that only a window has, and those that have other SQL there."""
TAKES_NULLS = frozenset(
    {"any_value", "first", "first_value", "last", "last_value", "nth_value", "lag", "lead"}
)
"""The functions that can return NULLs of the rows, and that IGNORE NULLS is for."""


TAKES_VARIANTS = TAKES_NULLS | {"min_by", "max_by", "collect_list", "array_agg"}
"""The functions that return Variants as they are; no function compares them."""


class Aggregate(msgspec.Struct, frozen=True):
    """A call of a function: its arguments, its type, and its SQL without those of its arguments."""

    name: str
    rule: Rule
    arguments: tuple[Expression, ...]
    type: pa.DataType
    distinct: bool
    ignores_nulls: bool = False

    def field(self, name: str) -> pa.Field[Any]:
        """Return the column of the results."""
        is_variant = self.rule.result is _first and output_type(self.arguments[0]) is None
        return variant_field(name) if is_variant else pa.field(name, self.type)

    @property
    def finish(self) -> Callable[[Any, Any, Any], Any] | None:
        """Return what computes the result from two columns; None if DuckDB computes it."""
        is_average = self.rule.result is _average and kind_of(self.type) == "decimal"
        return _exact_average if is_average else _deviation if self.rule in DEVIATIONS else None

    def columns(
        self, arguments: Sequence[str], where: str | None, *, over: str = "", order: str = ""
    ) -> list[str]:
        """Return the SQL of the result, or of the two columns that `finish` takes."""
        if self.finish is None:
            return [self._column(arguments, where, over, order)]
        (value,) = arguments
        parts = (
            ("count({0})", "sum({0})") if self.finish is _exact_average else (self.rule.sql, "sum({0} * {0})")
        )
        calls = (each.format(value).replace("(", f"({self._distinct}", 1) for each in parts)
        return [self._with(each, [where], over) for each in calls]

    @property
    def _distinct(self) -> str:
        return "distinct " if self.distinct else ""

    def _column(self, arguments: Sequence[str], where: str | None, over: str, order: str) -> str:
        conditions = [where]
        if self.name == "count":
            call, known = self._count(arguments)
            conditions += known
        elif self.name in GROUPING or self.name in ("lag", "lead"):
            call = f"{self.rule.sql}({', '.join(arguments)})"
        else:
            call = self.rule.sql.format(*arguments)
            call = call.replace("(", f"({self._distinct}", 1)
        call = f"{call[:-1]} {order})" if order else call
        if self.ignores_nulls and over:
            call = f"{call[:-1]} ignore nulls)"
        elif self.rule.skips_null or self.ignores_nulls:
            conditions.append(f"{arguments[0]} is not null")
        value = self._with(call, conditions, over)
        value = value if self.rule.otherwise is None else f"coalesce({value}, {self.rule.otherwise})"
        # DuckDB computes with wider numbers, and fails if the result does not fit, as Spark does.
        is_number = kind_of(self.type) in NUMERIC
        return f"cast({value} as {type_name(self.type)})" if is_number else value

    def _count(self, arguments: Sequence[str]) -> tuple[str, list[str]]:
        if len(arguments) == 1:
            return f"count({self._distinct}{arguments[0]})", []
        known = [f"{each} is not null" for each in arguments]
        values = f"distinct ({', '.join(arguments)})" if self.distinct else "*"
        return f"count({values})", known

    def _with(self, call: str, conditions: Sequence[str | None], over: str) -> str:
        condition = " and ".join(each for each in conditions if each)
        return f"{call}{f' filter (where {condition})' if condition else ''}{over}"


def _exact_average(counts: Any, sums: Any, arrow_type: Any) -> Any:
    """Return the quotients of decimals and counts, rounded half away from zero; DuckDB has doubles."""
    step = Decimal(1).scaleb(-arrow_type.scale)
    values = [
        None if total is None else EXACT.divide(total, Decimal(count)).quantize(step, context=EXACT)
        for total, count in zip(sums.to_pylist(), counts.to_pylist(), strict=True)
    ]
    try:
        return pa.array(values, arrow_type)
    except pa.ArrowInvalid as error:
        raise CastError(f"an average does not fit {type_name(arrow_type)}: {error}") from error


def _deviation(values: Any, squares: Any, arrow_type: Any) -> Any:
    """Return NaN where a number or its square is not finite; DuckDB has zero for a single one."""
    return pc.if_else(pc.is_finite(squares), values, float("nan"))


def bind_aggregate(
    tree: AggregateCall, arguments: Sequence[Expression], timezone: str, *, is_window: bool
) -> Aggregate:
    """Return a call of a function with bound arguments, cast as in Spark; raises ExpressionError."""
    name, distinct = tree.function, tree.distinct
    rule = WINDOW_FUNCTIONS.get(name) if is_window else None
    rule = AGGREGATES[name] if rule is None else rule
    least = len(rule.parameters) if rule.least is None else rule.least
    if not least <= len(arguments) <= len(rule.parameters):
        most = len(rule.parameters)
        expected = str(least) if least == most else f"{least} to {most}"
        raise ExpressionError(f"`{name}`: expected {expected} argument(s), got {len(arguments)}")
    if name in GROUPING and (is_window or tree.where is not None):
        raise ExpressionError(f"`{name}` has no window and no `filter`")
    if tree.order and (is_window or "delimiter" not in rule.parameters):
        raise ExpressionError(f"`{name}` has no `within group`{' over a window' if is_window else ''}")
    if tree.ignores_nulls and name not in TAKES_NULLS:
        raise ExpressionError(f"`{name}` has no `ignore nulls`")
    if tree.where is not None and is_window and (name in TAKES_NULLS or name in WINDOW_FUNCTIONS):
        raise ExpressionError(f"`{name}` over a window has no `filter`: use a CASE as its argument")
    if distinct and (is_window or not rule.distinct):
        where = "over a window" if is_window and rule.distinct else ""
        raise ExpressionError(f"`{name}(distinct …)` is not supported {where}".rstrip())
    is_variant_taken = not distinct and (name == "count" or name in TAKES_VARIANTS)
    bound = [
        each
        if is_variant_taken and parameter == "any" and output_type(each) is None
        else _cast(name, each, parameter, timezone)
        for each, parameter in zip(arguments, rule.parameters, strict=False)
    ]
    if "delimiter" in rule.parameters and len(bound) == 1:
        bound.append(Literal(pa.scalar("")))
    if name in ("lag", "lead") and len(bound) == 3:
        bound[2:] = _default(name, bound, timezone)
    arrow_type = rule.result(list(map(output_type, bound)))
    return Aggregate(name, rule, tuple(bound), arrow_type, distinct, tree.ignores_nulls)


def _default(name: str, arguments: Sequence[Expression], timezone: str) -> list[Expression]:
    """Return the value of `lag` and `lead` without a row, none for NULL."""
    value, _, default = arguments
    types = [output_type(value), output_type(default)]
    if types == [None, None]:
        return [default]
    if types[0] is None and types[1] == pa.null():
        return []
    return [cast_to(default, _type_of(name, value), timezone)]


def _type_of(name: str, argument: Expression) -> pa.DataType:
    arrow_type = output_type(argument)
    if arrow_type is None:
        raise ExpressionError(f"`{name}`: cast the Variant `{describe(argument)}`")
    return arrow_type


def _cast(name: str, argument: Expression, parameter: Parameter, timezone: str) -> Expression:
    if parameter in CONSTANT:
        return _constant(name, argument, parameter)
    kind = kind_or_error(argument, "double" if parameter in ("number", "double") else "string")
    if pa.types.is_decimal256(_type_of(name, argument)):
        raise ExpressionError(f"`{name}`: `{describe(argument)}` has more than {MAX_PRECISION} digits")
    is_exact = parameter == "exact" and kind != "floating"
    if parameter == "any" or ((parameter == "ordered" or is_exact) and kind != "nested"):
        return argument
    if parameter == "number" and kind in ("integer", "decimal"):
        return argument
    if parameter in ("number", "double") and kind in NUMERIC | {"string", "null"}:
        return cast_to(argument, DOUBLE, timezone)
    if parameter == "boolean" and kind in ("boolean", "null"):
        return cast_to(argument, BOOLEAN, timezone)
    if parameter == "text" and kind not in ("binary", "nested"):
        return cast_to(argument, TEXT, timezone)
    raise ExpressionError(
        f"`{name}`: expected {EXPECTED[parameter]}, got `{describe(argument)}` of type "
        f"{type_name(output_type(argument))}"
    )


def _constant(name: str, argument: Expression, parameter: Parameter) -> Expression:
    value = argument.value.as_py() if isinstance(argument, Literal) else None
    if CONSTANT[parameter](value):
        return argument
    raise ExpressionError(f"`{name}`: expected {EXPECTED[parameter]}, got `{describe(argument)}`")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


CONSTANT: dict[Parameter, Callable[[Any], bool]] = {
    "integer": lambda value: isinstance(value, int) and _is_number(value),
    "fraction": lambda value: _is_number(value) and 0 <= value <= 1,
    "flag": lambda value: isinstance(value, bool),
    "delimiter": lambda value: isinstance(value, str),
}
"""The parameters that are constants, and whether they can have a value."""
EXPECTED: dict[Parameter, str] = {
    "ordered": "values that can be compared",
    "exact": "values that can be compared, and are not floating-point numbers",
    "text": "text",
    "flag": "a constant boolean",
    "delimiter": "constant text",
    "number": "a number",
    "double": "a number",
    "fraction": "a constant from 0 to 1",
    "boolean": "a boolean",
    "integer": "a constant integer",
    "any": "a value",
}
