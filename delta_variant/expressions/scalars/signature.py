"""What a scalar function accepts, the type of its result, and how it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from typing import Literal as OneOf

import msgspec
import pyarrow as pa

from ..._arrow import Array
from ..tree import Call, Expression

Values: TypeAlias = Any
"""An Arrow array, or a scalar that stands for each row."""

Parameter: TypeAlias = OneOf[
    "any",
    "common",
    "number",
    "exact",
    "moment",
    "string",
    "int",
    "bigint",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
]
"""The type to which an argument is cast by the implicit casts of Spark.

`common` is the common type of all arguments of this kind, `number` any numeric type, `exact` an integer or
decimal type, `moment` a date or timestamp, and `any` no cast.
"""

Evaluation: TypeAlias = Callable[..., Values]
"""Called with the bound call, which has the type and the time zone, and the values of its arguments."""

Result: TypeAlias = pa.DataType | Callable[[Sequence[Expression]], pa.DataType]
"""The type of the result, or a rule that returns it for bound arguments and raises ExpressionError."""


class ScalarFunction(msgspec.Struct, frozen=True):
    """A function that is evaluated row by row.

    Attributes:
        parameters: The parameters; a rule returns those of a number of arguments.
        result: The type of the result.
        evaluate: Computes the result.
        optional: How many of the last parameters may be absent.
        repeated: Whether the last parameter may be given several times.
        constant: The positions of arguments that must be constants.
    """

    parameters: tuple[Parameter, ...] | Callable[[int], tuple[Parameter, ...]]
    result: Result
    evaluate: Evaluation
    min_arguments: int
    max_arguments: int | None
    constant: frozenset[int] = frozenset()

    def parameters_of(self, count: int) -> tuple[Parameter, ...]:
        """Return the parameter of each of `count` arguments; the last parameter repeats."""
        if callable(self.parameters):
            return self.parameters(count)
        return self.parameters + self.parameters[-1:] * (count - len(self.parameters))

    def type_of(self, arguments: Sequence[Expression]) -> pa.DataType:
        """Return the type of the result for bound arguments; raises ExpressionError for wrong ones."""
        return self.result(arguments) if callable(self.result) else self.result


class Expansion(msgspec.Struct, frozen=True):
    """A function that stands for another expression of its arguments, which are not bound yet."""

    expand: Callable[..., Expression]
    min_arguments: int
    max_arguments: int | None


def function(
    parameters: Sequence[Parameter],
    result: Result,
    evaluate: Evaluation,
    *,
    optional: int = 0,
    is_repeated: bool = False,
    constant: Sequence[int] = (),
) -> ScalarFunction:
    """Return a function; `optional` of the last parameters may be absent, the last may repeat."""
    most = None if is_repeated else len(parameters)
    least = len(parameters) - optional
    return ScalarFunction(tuple(parameters), result, evaluate, least, most, frozenset(constant))


def over_arrays(evaluate: Callable[..., Array]) -> Evaluation:
    """Return an evaluation by a function of arrays of one length."""

    def over(call: Call, *values: Values) -> Values:
        rows = next((len(each) for each in values if not isinstance(each, pa.Scalar)), None)
        count = 1 if rows is None else rows
        columns = [pa.repeat(each, count) if isinstance(each, pa.Scalar) else each for each in values]
        result = evaluate(*columns)
        return result[0] if rows is None else result

    return over
