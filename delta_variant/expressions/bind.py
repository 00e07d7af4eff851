"""Bind an expression to a table: resolve names to inputs, and cast the operands of each operator to one type.

Coercion follows Spark's ANSI mode. An operation that Arrow cannot do exactly as Spark does is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import reduce

import msgspec
import pyarrow as pa

from .._arrow import Array
from ..errors import CastError, ExpressionError
from ..variant.moments import UTC
from ..variant.paths import split_pattern
from .cast import can_cast, cast_scalar, cast_values
from .constructors import CONSTRUCTORS, bind_constructor
from .evaluate import ARITHMETIC, call_kernel, constant_of
from .names import NameScope
from .patterns import parse_pattern
from .scalar_functions import SCALAR_FUNCTIONS
from .scalars.signature import Expansion, Parameter, StatementMoment
from .tree import (
    Call,
    Cast,
    Column,
    Expression,
    Extraction,
    Field,
    Literal,
    Name,
    Path,
    VariantCall,
    describe,
    output_type,
)
from .types import MAX_PRECISION, NUMERIC, SIMPLE_TYPES, Kind, as_decimal, kind_of, type_name
from .variant_functions import VARIANT_FUNCTIONS, bind_variant_function

EXTENSION_NAME = b"ARROW:extension:name"
VARIANT_EXTENSION = b"arrow.parquet.variant"

# Functions that return their operands, which have the common type of all of them, even if a literal would fit
# into that of the columns.
VALUE_FUNCTIONS = frozenset({"coalesce", "case", "greatest", "least", *CONSTRUCTORS})

COMPARABLE: frozenset[Kind] = NUMERIC | {"string", "boolean", "binary", "date", "timestamp", "timestamp_ntz"}

# The kinds that Spark casts implicitly to the type of a parameter, in addition to the kind itself and NULL.
CAST_IMPLICITLY: dict[Kind, frozenset[Kind]] = {
    "integer": NUMERIC | {"string"},
    "floating": NUMERIC | {"string"},
    "string": COMPARABLE,
    "boolean": frozenset({"string"}),
    "binary": frozenset({"string"}),
    "date": frozenset({"string", "timestamp", "timestamp_ntz"}),
    "timestamp": frozenset({"string", "date", "timestamp_ntz"}),
}
EXPECTED: dict[Parameter, str] = {
    "number": "a number",
    "integer": "an integer",
    "moment": "a date or a timestamp",
    "clock": "a timestamp",
    "instant": "a timestamp",
    "text": "a string",
    "sized": "a string or binary",
    "characters": "a string",
}
CALLED_WITHOUT_PARENTHESES = frozenset({"current_date", "current_timestamp"})
MOMENTS: frozenset[Kind] = frozenset({"date", "timestamp", "timestamp_ntz"})
STRING: frozenset[Kind] = frozenset({"string"})
COMMON: frozenset[Parameter] = frozenset({"common", "ordered"})
# For each parameter of several types: the kinds that it takes, the type to which it casts, and the kinds of
# which it does.
PARAMETERS: dict[Parameter, tuple[frozenset[Kind], str, frozenset[Kind]]] = {
    "number": (NUMERIC, "double", STRING),
    "integer": (frozenset({"integer"}), "bigint", STRING),
    "moment": (MOMENTS, "date", STRING),
    "clock": (MOMENTS - {"date"}, "timestamp", STRING | {"date"}),
    "instant": (frozenset({"timestamp"}), "timestamp", frozenset()),
    "text": (frozenset(), "string", COMPARABLE - {"binary"}),
    "sized": (frozenset({"binary"}), "string", COMPARABLE),
    "characters": (frozenset(), "string", STRING),
}


def bind_predicate(expression: Expression, scope: NameScope) -> Expression:
    """Return a bound `where`; raises ExpressionError unless it is boolean."""
    bound = bind(expression, scope)
    _require(bound, {"boolean", "null"}, "where: expected a boolean expression")
    return bound


def called_without_parentheses(name: Name) -> Call | None:
    """Return the call that a name stands for if no column has it, such as `current_date`."""
    function = name.parts[0].lower()
    is_call = len(name.parts) == 1 and function in CALLED_WITHOUT_PARENTHESES
    return Call(function, ()) if is_call else None


def bind(expression: Expression, scope: NameScope) -> Expression:
    """Return `expression` over the columns of `scope`.

    Names match without regard to case, the steps of a Variant path exactly. A Variant inside a struct is
    recognized by the extension name of its field. Literals and casts without time zone are local times in
    the time zone of `scope`. Raises ExpressionError, which quotes the invalid part and proposes a cast if
    one helps.
    """
    match expression:
        case Name():
            call = called_without_parentheses(expression)
            if call is not None and not scope.fields(call.function):
                return bind(call, scope)
            return _resolve(expression, scope)
        case Path(operand, path):
            return _bind_path(_require_variant(bind(operand, scope), "`:` and variant_get"), path, scope)
        case Cast():
            return _bind_cast(
                msgspec.structs.replace(expression, operand=bind(expression.operand, scope)), scope.timezone
            )
        case Call(function, arguments):
            if function in SCALAR_FUNCTIONS:
                return _bind_scalar(function, arguments, scope)
            bound = [bind(argument, scope) for argument in arguments]
            if function in VARIANT_FUNCTIONS:
                return bind_variant_function(function, bound)
            if function in CONSTRUCTORS:
                return bind_constructor(
                    function, bound, lambda name, parts: _unify_parts(name, parts, scope.timezone)
                )
            if function in FUNCTIONS_OF_TIME:
                return FUNCTIONS_OF_TIME[function](function, bound, scope.timezone)
            return FUNCTIONS[function](function, bound)
        case _:
            return expression


def _bind_scalar(name: str, arguments: Sequence[Expression], scope: NameScope) -> Expression:
    function = SCALAR_FUNCTIONS[name]
    _check_count(name, len(arguments), function.min_arguments, function.max_arguments)
    if isinstance(function, Expansion):
        return bind(function.expand(*arguments), scope)
    if isinstance(function, StatementMoment):
        if scope.moment is None:
            raise ExpressionError(f"cannot use `{name}` here because its value changes")
        now = Literal(pa.scalar(scope.moment, pa.timestamp("us", "UTC")))
        return _cast(now, function.type, scope.timezone)
    parameters = function.parameters_of(len(arguments))
    bound = [bind(argument, scope) for argument in arguments]
    common = [each for each, parameter in zip(bound, parameters, strict=True) if parameter in COMMON]
    if "ordered" in parameters:
        _check_order(name, common)
    unified = iter(_unify(name, common, scope.timezone) if common else ())
    cast = [
        next(unified) if parameter in COMMON else _cast_implicitly(name, each, parameter, scope.timezone)
        for each, parameter in zip(bound, parameters, strict=True)
    ]
    for position in sorted(function.constant & set(range(len(cast)))):
        cast[position] = _constant(name, cast[position])
    return Call(name, tuple(cast), function.type_of(cast), scope.timezone)


def _check_order(name: str, arguments: Sequence[Expression]) -> None:
    kinds = {_kind(argument) for argument in arguments} - {"null"}
    if ("string" in kinds and len(kinds) > 1) or "nested" in kinds:
        raise ExpressionError(f"`{name}` requires operands of one type that can be compared: cast them")


def _check_count(name: str, count: int, least: int, most: int | None) -> None:
    if least <= count and (most is None or count <= most):
        return
    expected = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
    raise ExpressionError(f"`{name}`: expected {expected} argument(s), got {count}")


def _cast_implicitly(name: str, argument: Expression, parameter: Parameter, timezone: str) -> Expression:
    if parameter == "any":
        _kind(argument)
        return argument
    target = SIMPLE_TYPES.get(parameter)
    if target is not None:
        taken: frozenset[Kind] = frozenset()
        castable = CAST_IMPLICITLY[kind_of(target)] | {kind_of(target)}
    else:
        taken, proposal, castable = PARAMETERS[parameter]
        target = SIMPLE_TYPES[proposal]
    kind = _kind(argument, type_name(target))
    if kind in taken:
        return argument
    if kind not in castable and kind != "null":
        raise ExpressionError(
            f"`{name}`: expected {EXPECTED.get(parameter, parameter)}, got `{describe(argument)}` of type "
            f"{type_name(output_type(argument))}",
            column=_column_of(argument),
        )
    return _cast(argument, target, timezone)


def _constant(name: str, argument: Expression) -> Literal:
    value = constant_of(argument)
    if value is None:
        raise ExpressionError(f"`{name}`: expected a constant, got `{describe(argument)}`")
    return Literal(value)


def _bind_path(
    variant: Expression, pattern: tuple[str | int | None, ...], scope: NameScope
) -> Extraction | VariantCall:
    path, rest = split_pattern(pattern)
    found: Extraction | VariantCall
    if isinstance(variant, Extraction):
        found = msgspec.structs.replace(variant, path=variant.path + path)
    else:
        found = VariantCall("variant_get", (variant,), (path, None, True, scope.timezone), None)
    return VariantCall("matches", (found,), (rest,), None) if rest else found


def _resolve(name: Name, scope: NameScope) -> Expression:
    whole = describe(name)
    first, *rest = name.parts
    field = scope.field(first, whole)
    parents: tuple[str, ...] = ()
    if field.name in scope.variant_names:
        _check_variant_end(rest, name)
        return Extraction(field.name, (), None)
    bound: Expression = Column(field.name, field.type)
    for position, part in enumerate(rest, 1):
        if not pa.types.is_struct(field.type):
            raise ExpressionError(
                f"`{describe(name)}`: `{describe(bound)}` is {type_name(field.type)}, which has no fields",
                column=describe(bound),
            )
        parents = (*parents, field.name)
        field = scope.field(part, whole, parents, field.type)
        bound = Field(bound, field.name, field.type)
        if (field.metadata or {}).get(EXTENSION_NAME) == VARIANT_EXTENSION:
            _check_variant_end(rest[position:], name)
            column, *fields = _field_names(bound)
            return Extraction(column, (), None, fields=tuple(fields))
    return bound


def _check_variant_end(rest: Sequence[str], name: Name) -> None:
    if rest:
        variant = ".".join(name.parts[: len(name.parts) - len(rest)])
        raise ExpressionError(
            f"`{variant}` is a Variant: write its path after a colon, `{variant}:{'.'.join(rest)}`",
            column=variant,
        )


def _field_names(expression: Expression) -> list[str]:
    if isinstance(expression, Field):
        return [*_field_names(expression.operand), expression.name]
    assert isinstance(expression, Column)
    return [expression.name]


def _column_of(expression: Expression) -> str | None:
    """Return the column that an expression reads as a whole or at a path, None for any other expression."""
    if isinstance(expression, Extraction):
        return ".".join((expression.column, *expression.fields))
    return ".".join(_field_names(expression)) if isinstance(expression, Column | Field) else None


def _bind_cast(cast: Cast, timezone: str) -> Expression:
    operand, target = cast.operand, cast.type
    source = output_type(operand)
    if source is not None:
        if target is None:
            return VariantCall("cast", (operand,), (), None)
        return _cast(operand, target, timezone, strict=cast.strict)
    if target is None:
        return operand
    if isinstance(operand, Extraction):
        return msgspec.structs.replace(operand, type=target, strict=cast.strict, timezone=timezone)
    return VariantCall("variant_get", (operand,), ((), target, cast.strict, timezone), target)


def _cast(
    operand: Expression, target: pa.DataType, timezone: str = UTC, *, strict: bool = True
) -> Expression:
    source = output_type(operand)
    if source is None:
        raise _variant_error(operand)
    if source == target:
        return operand
    if not can_cast(source, target):
        raise ExpressionError(
            f"cannot cast `{describe(operand)}` from {type_name(source)} to {type_name(target)}",
            column=_column_of(operand),
        )
    cast = Cast(operand, target, strict, timezone)
    return _fold(operand, cast) if isinstance(operand, Literal) else cast


def _fold(literal: Literal, cast: Cast) -> Literal:
    value, target = literal.value, cast.type
    assert target is not None
    if _is_inexact(value.type, target):
        return Literal(pa.scalar(None if value.as_py() is None else float(value.as_py()), target))
    try:
        return Literal(cast_scalar(value, target, strict=cast.strict, timezone=cast.timezone))
    except pa.ArrowInvalid as error:
        raise ExpressionError(f"cannot cast {describe(literal)} to {type_name(target)}: {error}") from error


def _is_inexact(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Arrow's cast does not return the nearest number."""
    return kind_of(source) == "decimal" and kind_of(target) == "floating"


def _require_variant(bound: Expression, what: str) -> Expression:
    if output_type(bound) is None:
        return bound
    raise ExpressionError(
        f"{what}: expected a Variant, got `{describe(bound)}` of type {type_name(output_type(bound))}",
        column=_column_of(bound),
    )


def _require(bound: Expression, kinds: Collection[Kind], expected: str) -> None:
    arrow_type = output_type(bound)
    if arrow_type is None:
        proposal = "boolean" if "boolean" in kinds else "double" if "decimal" in kinds else "string"
        raise _variant_error(bound, proposal)
    if kind_of(arrow_type) not in kinds:
        raise ExpressionError(
            f"{expected}, got `{describe(bound)}` of type {type_name(arrow_type)}", column=_column_of(bound)
        )


def _variant_error(bound: Expression, proposal: str = "string") -> ExpressionError:
    text = describe(bound)
    return ExpressionError(
        f"`{text}` is a Variant, which cannot be compared or computed with: cast it, as in "
        f"`{text}::{proposal}`",
        column=_column_of(bound),
    )


def _proposal(others: list[pa.DataType]) -> str:
    if not others:
        return "string"
    return "bigint" if kind_of(others[0]) == "integer" else type_name(others[0])


def _connect(function: str, arguments: list[Expression]) -> Expression:
    for argument in arguments:
        _require(argument, {"boolean", "null"}, f"`{function}`: expected boolean operands")
    return Call(function, tuple(_cast(argument, pa.bool_()) for argument in arguments), pa.bool_())


def _compare(function: str, arguments: list[Expression], timezone: str) -> Expression:
    # Statistics are compared with constants.
    return Call(function, tuple(map(_folded, _unify(function, arguments, timezone))), pa.bool_())


def _folded(argument: Expression) -> Expression:
    """Return an expression without inputs as a literal if it has a value."""
    if not isinstance(argument, Call | Cast):
        return argument
    try:
        value = constant_of(argument)
    except CastError:
        return argument
    return argument if value is None else Literal(value)


def _is_null(function: str, arguments: list[Expression]) -> Expression:
    return Call(function, tuple(arguments), pa.bool_())


def _like(function: str, arguments: list[Expression]) -> Expression:
    """Bind a value and a pattern, which may be followed by the escape character of the pattern."""
    value, *constants = arguments
    _require(value, {"string", "null"}, f"`{function}`: expected a string")
    texts = [each.value.as_py() if isinstance(each, Literal) else None for each in constants]
    if not all(isinstance(text, str) for text in texts):
        raise ExpressionError(
            f"`{function}`: expected a string literal as its pattern, got `{describe(constants[0])}`"
        )
    parse_pattern(*texts)
    value = _cast(value, pa.string()) if _kind(value) == "null" else value
    return Call(function, (value, *constants), pa.bool_())


def _kind(bound: Expression, proposal: str = "string") -> Kind:
    """Return the kind of a bound expression; raises ExpressionError for a Variant."""
    arrow_type = output_type(bound)
    if arrow_type is None:
        raise _variant_error(bound, proposal)
    return kind_of(arrow_type)


def _coalesce(function: str, arguments: list[Expression], timezone: str) -> Expression:
    unified = _unify(function, arguments, timezone)
    result = output_type(unified[0])
    if result is not None and pa.types.is_decimal256(result):
        raise ExpressionError(
            f"`coalesce` requires {type_name(result)}, but a decimal has at most {MAX_PRECISION} digits"
        )
    return Call(function, tuple(unified), result)


def _to_json(function: str, arguments: list[Expression], timezone: str) -> Expression:
    variant = _require_variant(arguments[0], f"`{function}`")
    if isinstance(variant, Extraction):
        return msgspec.structs.replace(variant, type=pa.string(), as_json=True, timezone=timezone)
    return VariantCall("to_json", (variant,), (timezone,), pa.string())


def _typeof(function: str, arguments: list[Expression]) -> Expression:
    return Literal(pa.scalar(type_name(output_type(arguments[0]), quote="")))


def _is_variant_null(function: str, arguments: list[Expression], timezone: str) -> Expression:
    """Compare JSON text: only a Variant null prints as `null`, and SQL NULL is not one."""
    text = _to_json(function, arguments, timezone)
    equals = Call("=", (text, Literal(pa.scalar("null"))), pa.bool_())
    return Call("coalesce", (equals, Literal(pa.scalar(False))), pa.bool_())


def _sign(function: str, arguments: list[Expression]) -> Expression:
    _require(arguments[0], NUMERIC, f"unary {'minus' if function == 'negate' else 'plus'}: expected a number")
    return Call(function, tuple(arguments), output_type(arguments[0]))


def _calculate(function: str, arguments: list[Expression]) -> Expression:
    for argument in arguments:
        _require(argument, NUMERIC | {"null"}, f"`{function}`: expected numbers")
    kinds = {_kind(argument) for argument in arguments} - {"null"}
    if "decimal" in kinds and "floating" not in kinds:
        return _calculate_decimals(function, arguments)
    if function == "%" and "floating" in kinds:
        raise ExpressionError("`%` supports only integers: cast its operands to bigint")
    types = [pa.float64()] if function == "/" else _known_types(arguments)
    target = reduce(_common_number_type, types or [pa.int32()])
    return Call(function, tuple(_cast(argument, target) for argument in arguments), target)


def _calculate_decimals(function: str, arguments: list[Expression]) -> Expression:
    if function in "/%":
        raise ExpressionError(
            f"`{function}` does not support decimals: cast its operands to double or bigint"
        )
    operands = [_exact_operand(argument) for argument in arguments]
    samples = [pa.array([], output_type(operand)) for operand in operands]
    text = describe(Call(function, tuple(operands)))
    try:
        result = call_kernel(ARITHMETIC[function], *samples).type
    except pa.ArrowInvalid:
        result = pa.null()
    if not pa.types.is_decimal128(result):
        raise ExpressionError(
            f"`{text}` requires more than {MAX_PRECISION} digits: cast its operands to fewer, or to double"
        )
    return Call(function, tuple(operands), result)


def _exact_operand(operand: Expression) -> Expression:
    """Return `operand` as a decimal: a literal with its own digits, a column with those of its type."""
    arrow_type = output_type(operand)
    if isinstance(operand, Literal) and kind_of(operand.value.type) == "integer" and operand.value.is_valid:
        return _cast(operand, pa.decimal128(len(str(abs(operand.value.as_py()))), 0))
    if arrow_type is None or pa.types.is_null(arrow_type):
        return _cast(operand, pa.decimal128(1, 0))
    return _cast(operand, as_decimal(arrow_type))


def _known_types(arguments: Sequence[Expression]) -> list[pa.DataType]:
    types = [output_type(argument) for argument in arguments]
    return [arrow_type for arrow_type in types if arrow_type is not None and not pa.types.is_null(arrow_type)]


def _unify(function: str, arguments: list[Expression], timezone: str) -> list[Expression]:
    """Return `arguments` cast to the type in which Spark compares them."""
    for argument in arguments:
        if output_type(argument) is None:
            known = _known_types(arguments)
            raise _variant_error(argument, _proposal(known))
        if _kind(argument) == "nested" and function not in VALUE_FUNCTIONS:
            raise ExpressionError(
                f"cannot compare `{describe(argument)}` of type {type_name(output_type(argument))}",
                column=_column_of(argument),
            )
    return _cast_all(arguments, _common_type(function, arguments), timezone)


def _unify_parts(function: str, parts: list[Expression], timezone: str) -> list[Expression]:
    """Return the elements, keys or values that a constructor joins, cast to one type; it may be Variant."""
    if any(output_type(part) is None for part in parts):
        known = _known_types(parts)
        if known:
            raise ExpressionError(
                f"`{function}` requires operands of one type, got Variants and {type_name(known[0])}: "
                "cast them"
            )
        return [_bind_cast(Cast(part, None, True), timezone) for part in parts]
    return _unify(function, parts, timezone) if _known_types(parts) else parts


def _common_type(function: str, arguments: list[Expression]) -> pa.DataType:
    variable = _known_types([argument for argument in arguments if not isinstance(argument, Literal)])
    if function not in VALUE_FUNCTIONS and len(set(variable)) == 1 and _literals_fit(arguments, variable[0]):
        return variable[0]
    types = _known_types(arguments)
    if not types:
        return pa.null() if function in VALUE_FUNCTIONS else pa.bool_()
    target: pa.DataType | None = types[0]
    for arrow_type in types[1:]:
        target = None if target is None else common_type(target, arrow_type)
    if target is None:
        found = " and ".join(
            f"`{describe(argument)}` ({type_name(output_type(argument))})" for argument in arguments[:3]
        )
        raise ExpressionError(f"`{function}` requires operands of one type, got {found}: cast them")
    return target


def _literals_fit(arguments: list[Expression], target: pa.DataType) -> bool:
    """Return whether `target` can hold every literal exactly, so that no column needs a cast."""
    return kind_of(target) in ("integer", "decimal") and all(
        _holds(target, values) for values, _ in _literals_by_type(arguments)
    )


def _literals_by_type(arguments: Sequence[Expression]) -> list[tuple[Array, list[int]]]:
    """Return the values of the literals of each type, and their positions. A list may have thousands."""
    positions: dict[pa.DataType, list[int]] = {}
    for position, argument in enumerate(arguments):
        if isinstance(argument, Literal):
            positions.setdefault(argument.value.type, []).append(position)
    return [
        (pa.array([arguments[position].value for position in found], arrow_type), found)  # type: ignore[union-attr]
        for arrow_type, found in positions.items()
    ]


def _holds(target: pa.DataType, values: Array) -> bool:
    known = values.drop_null()
    if not len(known):
        return True
    if kind_of(values.type) not in ("integer", "decimal"):
        return False
    try:
        cast = cast_values(known, target, strict=True)
    except pa.ArrowInvalid:
        return False
    return list(map(Decimal, cast.to_pylist())) == list(map(Decimal, known.to_pylist()))


def _cast_all(arguments: list[Expression], target: pa.DataType, timezone: str) -> list[Expression]:
    """Return `arguments` cast to one type, with the literals of a type cast together."""
    cast: list[Expression] = list(arguments)
    for values, positions in _literals_by_type(arguments):
        # A literal that cannot be cast is cast alone below, where it has its error.
        with suppress(pa.ArrowInvalid):
            if len(positions) > 1 and can_cast(values.type, target) and not _is_inexact(values.type, target):
                literals = map(Literal, cast_values(values, target, strict=True, timezone=timezone))
                for position, literal in zip(positions, literals, strict=True):
                    cast[position] = literal
    return [_cast(argument, target, timezone) for argument in cast]


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which Spark compares two types; None if they cannot be compared, or not exactly."""
    if left == right:
        return left
    kinds = {kind_of(left), kind_of(right)}
    if kinds <= NUMERIC:
        return _common_number_type(left, right)
    if kinds == {"string"}:
        return pa.large_string()
    if kinds == {"binary"}:
        return pa.large_binary()
    if kinds <= {"date", "timestamp", "timestamp_ntz"}:
        return pa.timestamp("us", "UTC") if "timestamp" in kinds else pa.timestamp("us")
    if "string" in kinds:
        return _common_type_with_text(right if kind_of(left) == "string" else left)
    return None


def _common_number_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right:
        return left
    kinds = {kind_of(left), kind_of(right)}
    if "floating" in kinds:
        # A float holds each integer of 16 bits.
        is_exact = all(each == pa.float32() or each in (pa.int8(), pa.int16()) for each in (left, right))
        return pa.float32() if is_exact else pa.float64()
    if kinds == {"integer"}:
        return max(left, right, key=lambda arrow_type: arrow_type.bit_width)
    one, other = as_decimal(left), as_decimal(right)
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.decimal256(precision, scale)


def _common_type_with_text(other: pa.DataType) -> pa.DataType | None:
    kind = kind_of(other)
    if kind == "integer":
        return pa.int64()
    if kind in ("decimal", "floating"):
        return pa.float64()
    return other if kind in ("date", "timestamp", "timestamp_ntz") else None


FUNCTIONS: dict[str, Callable[[str, list[Expression]], Expression]] = {
    **dict.fromkeys(("and", "or", "not"), _connect),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _calculate),
    "negate": _sign,
    "positive": _sign,
    "is null": _is_null,
    "like": _like,
    "typeof": _typeof,
}
FUNCTIONS_OF_TIME: dict[str, Callable[[str, list[Expression], str], Expression]] = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "in"), _compare),
    "coalesce": _coalesce,
    "to_json": _to_json,
    "is_variant_null": _is_variant_null,
}
"""Functions whose result depends on the time zone of local times, which is their last argument."""
