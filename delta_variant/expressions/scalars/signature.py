"""The signature of a scalar function: its parameters, the type of its result, and its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from typing import Literal as OneOf

import msgspec
import pyarrow as pa
import pyarrow.compute

from ..._arrow import Array
from ...errors import CastError
from ...variant.moments import apply_function
from ..tree import Call, Expression, describe

Values: TypeAlias = Any
"""An Arrow array, or a scalar that stands for each row."""

kernels: Any = pyarrow.compute
"""Arrow's compute functions. The stubs of pyarrow do not have the types of all."""

Parameter: TypeAlias = OneOf[
    "any",
    "common",
    "ordered",
    "number",
    "integer",
    "moment",
    "clock",
    "instant",
    "seconds",
    "count",
    "string",
    "text",
    "sized",
    "characters",
    "int",
    "bigint",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
]
"""The type to which an argument is cast by the implicit casts of Spark.

`common` is the common type of all arguments of this kind, `ordered` one to which no string is cast.
`number`, `integer`, `moment` (a date or a timestamp), `clock` (a timestamp) and `instant` (one with a time
zone) take any type of their kinds. `seconds` is a number and `count` an integer to which no string is cast.
`text` is a string not made of binary, `characters` one that is a string already, `sized` a string or binary.
`any` takes values without a cast.
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
        min_arguments: The least number of arguments.
        max_arguments: The greatest number; None permits any, for which the last parameter repeats.
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
        return (self.parameters + self.parameters[-1:] * (count - len(self.parameters)))[:count]

    def type_of(self, arguments: Sequence[Expression]) -> pa.DataType:
        """Return the type of the result for bound arguments; raises ExpressionError for wrong ones."""
        return self.result(arguments) if callable(self.result) else self.result


class StatementMoment(msgspec.Struct, frozen=True):
    """The moment of a statement, cast to a type; it is the same in all expressions of the statement."""

    type: pa.DataType
    min_arguments: int = 0
    max_arguments: int = 0


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


def evaluate_over_arrays(evaluate: Evaluation, call: Call, *values: Values) -> Values:
    """Return the evaluation of arrays of one length, in which scalars are repeated."""
    rows = next((len(each) for each in values if not isinstance(each, pa.Scalar)), None)
    result = evaluate(call, *(_repeated(each, 1 if rows is None else rows) for each in values))
    return result[0] if rows is None else result


def over_first(evaluate: Evaluation) -> Evaluation:
    """Return an evaluation of the first argument as an array; the others are constants."""

    def over(call: Call, values: Values, *constants: Values) -> Values:
        result = evaluate(call, _repeated(values, 1), *constants)
        return result[0] if isinstance(values, pa.Scalar) else result

    return over


def _repeated(values: Any, count: int) -> Array:
    is_constant = isinstance(values, pa.Scalar)
    return pa.repeat(values, count) if is_constant else values


def over_arrays(evaluate: Callable[..., Array]) -> Evaluation:
    """Return an evaluation by a function of arrays of one length."""
    return lambda call, *values: evaluate_over_arrays(lambda _, *columns: evaluate(*columns), call, *values)


def by_kernel(name: str) -> Evaluation:
    """Return an evaluation by the function of the kernel of this name."""

    def evaluate(call: Call, *values: Values) -> Values:
        columns = [_repeated(each, 1) for each in values]
        rows = next((len(each) for each in values if not isinstance(each, pa.Scalar)), None)
        try:
            result = apply_function(name, columns, 1 if rows is None else rows, call.timezone)
        except CastError as error:
            raise CastError(f"`{describe(call)}`: {error.message}") from error
        return result[0] if rows is None else result

    return evaluate
