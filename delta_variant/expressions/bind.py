"""Bind an expression to a table: resolve names to inputs, and check the operands of each operator.

Types follow Spark's ANSI mode. An operation that Arrow cannot do exactly as Spark does is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa

from .._arrow import SIMPLE_TYPES
from ..errors import CastError, ExpressionError
from ..variant.objects import is_variant
from ..variant.paths import split_pattern
from .coercion import (
    cast_to,
    column_of,
    common_number_type,
    field_names,
    kind_or_error,
    known_types,
    proposed_type,
    unify,
    variant_error,
)
from .evaluate import ARITHMETIC, call_kernel, constant_of
from .names import NameScope
from .patterns import parse_pattern
from .scalars import SCALAR_FUNCTIONS
from .scalars.numbers import quotient_type, remainder_type
from .scalars.signature import Expansion, Parameter, StatementMoment
from .tree import (
    ELEMENT,
    TRIED,
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
    children,
    describe,
    output_type,
)
from .types import MAX_PRECISION, NUMERIC, Kind, as_decimal, kind_of, type_name
from .variant_calls import CONSTRUCTORS, VARIANT_FUNCTIONS, bind_constructor, bind_variant_function

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
    "seconds": "a number",
    "count": "an integer",
    "text": "a string",
    "sized": "a string or binary",
    "characters": "a string",
}
CALLED_WITHOUT_PARENTHESES = frozenset({"current_date", "current_timestamp"})
MOMENTS: frozenset[Kind] = frozenset({"date", "timestamp", "timestamp_ntz"})
STRING: frozenset[Kind] = frozenset({"string"})
WRITTEN_DIGITS = frozenset({pa.int16(), pa.int32(), pa.int64()})
COMMON: frozenset[Parameter] = frozenset({"common", "ordered"})
# For each parameter of several types: the kinds that it takes, the type to which it casts, and the kinds of
# which it does.
PARAMETERS: dict[Parameter, tuple[frozenset[Kind], str, frozenset[Kind]]] = {
    "number": (NUMERIC, "double", STRING),
    "integer": (frozenset({"integer"}), "bigint", STRING),
    "moment": (MOMENTS, "date", STRING),
    "clock": (MOMENTS - {"date"}, "timestamp", STRING | {"date"}),
    "instant": (frozenset({"timestamp"}), "timestamp", frozenset()),
    "seconds": (NUMERIC, "bigint", frozenset()),
    "count": (frozenset({"integer"}), "bigint", frozenset()),
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
        case Field(operand, name):
            return _bind_field(bind(operand, scope), name, scope)
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
    if isinstance(function, Expansion):
        return bind(function.expand(*arguments), scope)
    if isinstance(function, StatementMoment):
        if scope.moment is None:
            raise ExpressionError(f"cannot use `{name}` here because its value changes")
        now = Literal(pa.scalar(scope.moment, pa.timestamp("us", "UTC")))
        return cast_to(now, function.type, scope.timezone)
    parameters = function.parameters_of(len(arguments))
    bound = [bind(argument, scope) for argument in arguments]
    if name == ELEMENT and output_type(bound[0]) is None:
        raise _without_colon(describe(bound[0]), f"[{describe(bound[1])}]")
    common = [each for each, parameter in zip(bound, parameters, strict=True) if parameter in COMMON]
    if "ordered" in parameters:
        _check_order(name, common)
    unified = _unify_parts(name, common, scope.timezone)
    rest = iter(unified)
    cast = [
        next(rest) if parameter in COMMON else _cast_implicitly(name, each, parameter, scope.timezone)
        for each, parameter in zip(bound, parameters, strict=True)
    ]
    for position in sorted(function.constant & set(range(len(cast)))):
        cast[position] = _constant(name, cast[position])
    if unified and output_type(unified[0]) is None:
        return VariantCall(name, tuple(cast), (), None)
    return Call(name, tuple(cast), function.type_of(cast), scope.timezone)


def _check_order(name: str, arguments: Sequence[Expression]) -> None:
    kinds = {kind_or_error(argument) for argument in arguments} - {"null"}
    if ("string" in kinds and len(kinds) > 1) or "nested" in kinds:
        raise ExpressionError(f"`{name}` requires operands of one type that can be compared: cast them")


def _cast_implicitly(name: str, argument: Expression, parameter: Parameter, timezone: str) -> Expression:
    if parameter == "any":
        kind_or_error(argument)
        return argument
    target = SIMPLE_TYPES.get(parameter)
    if target is not None:
        taken: frozenset[Kind] = frozenset()
        castable = CAST_IMPLICITLY[kind_of(target)] | {kind_of(target)}
    else:
        taken, proposal, castable = PARAMETERS[parameter]
        target = SIMPLE_TYPES[proposal]
    kind = kind_or_error(argument, type_name(target))
    if kind in taken:
        return argument
    if kind not in castable and kind != "null":
        raise ExpressionError(
            f"`{name}`: expected {EXPECTED.get(parameter, parameter)}, got `{describe(argument)}` of type "
            f"{type_name(output_type(argument))}",
            column=column_of(argument),
        )
    return cast_to(argument, target, timezone)


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
            operand = describe(Name(name.parts[:position]))
            raise ExpressionError(
                f"`{whole}`: `{operand}` is {type_name(field.type)}, which has no fields", column=operand
            )
        parents = (*parents, field.name)
        field = scope.field(part, whole, parents, field.type)
        bound = Field(bound, field.name, field.type)
        if is_variant(field):
            _check_variant_end(rest[position:], name)
            column, *fields = field_names(bound)
            return Extraction(column, (), None, fields=tuple(fields))
    return bound


def _bind_field(operand: Expression, name: str, scope: NameScope) -> Expression:
    """Bind a field of a struct that is not a column."""
    whole, struct = describe(operand), output_type(operand)
    if struct is None:
        raise _without_colon(whole, name)
    if not pa.types.is_struct(struct):
        raise ExpressionError(f"`{whole}.{name}`: `{whole}` is {type_name(struct)}, which has no fields")
    field = scope.field(name, f"{whole}.{name}", ("", whole), struct)
    if is_variant(field):
        raise ExpressionError(f"`{whole}.{name}` is a Variant in a value that is not a column")
    return Field(operand, field.name, field.type)


def _check_variant_end(rest: Sequence[str], name: Name) -> None:
    if rest:
        raise _without_colon(".".join(name.parts[: len(name.parts) - len(rest)]), ".".join(rest))


def _without_colon(variant: str, path: str) -> ExpressionError:
    return ExpressionError(
        f"`{variant}` is a Variant: write its path after a colon, `{variant}:{path}`", column=variant
    )


def _bind_cast(cast: Cast, timezone: str) -> Expression:
    operand, target = cast.operand, cast.type
    source = output_type(operand)
    if source is not None:
        if target is None:
            return VariantCall("cast", (operand,), (), None)
        bound = cast_to(operand, target, timezone, strict=cast.strict)
        return msgspec.structs.replace(bound, is_cast=True) if isinstance(bound, Literal) else bound
    if target is None:
        return operand
    if isinstance(operand, Extraction):
        return msgspec.structs.replace(operand, type=target, strict=cast.strict, timezone=timezone)
    return VariantCall("variant_get", (operand,), ((), target, cast.strict, timezone), target)


def _require_variant(bound: Expression, what: str) -> Expression:
    if output_type(bound) is None:
        return bound
    raise ExpressionError(
        f"{what}: expected a Variant, got `{describe(bound)}` of type {type_name(output_type(bound))}",
        column=column_of(bound),
    )


def _require(bound: Expression, kinds: Collection[Kind], expected: str) -> None:
    arrow_type = output_type(bound)
    if arrow_type is None:
        proposals = {"boolean": "boolean", "decimal": "double", "integer": "bigint"}
        proposal = next((type_ for kind, type_ in proposals.items() if kind in kinds), "string")
        raise variant_error(bound, proposal)
    if kind_of(arrow_type) not in kinds:
        raise ExpressionError(
            f"{expected}, got `{describe(bound)}` of type {type_name(arrow_type)}", column=column_of(bound)
        )


def _connect(function: str, arguments: list[Expression]) -> Expression:
    for argument in arguments:
        _require(argument, {"boolean", "null"}, f"`{function}`: expected boolean operands")
    return Call(function, tuple(cast_to(argument, pa.bool_()) for argument in arguments), pa.bool_())


def _compare(function: str, arguments: list[Expression], timezone: str) -> Expression:
    # Statistics are compared with constants.
    return Call(function, tuple(map(_folded, unify(function, arguments, timezone))), pa.bool_())


def _folded(argument: Expression) -> Expression:
    """Return an expression without inputs as a literal if it has a value."""
    if not isinstance(argument, Call | Cast):
        return argument
    try:
        value = constant_of(argument)
    except CastError:
        return argument
    return argument if value is None else Literal(value)


def _like(function: str, arguments: list[Expression], timezone: str) -> Expression:
    """Bind a value and a pattern, which may be followed by the escape character of the pattern."""
    value = _cast_implicitly(function, arguments[0], "string", timezone)
    constants = arguments[1:]
    texts = [each.value.as_py() if isinstance(each, Literal) else None for each in constants]
    if not all(isinstance(text, str) for text in texts):
        raise ExpressionError(
            f"`{function}`: expected a string literal as its pattern, got `{describe(constants[0])}`"
        )
    parse_pattern(*texts)
    return Call(function, (value, *constants), pa.bool_())


def _coalesce(function: str, arguments: list[Expression], timezone: str) -> Expression:
    unified = _unify_parts(function, arguments, timezone)
    result = output_type(unified[0])
    if result is None:
        return VariantCall(function, tuple(unified), (), None)
    if pa.types.is_decimal256(result):
        raise ExpressionError(
            f"`coalesce` requires {type_name(result)}, but a decimal has at most {MAX_PRECISION} digits"
        )
    return Call(function, tuple(unified), result)


def _to_json(function: str, arguments: list[Expression], timezone: str) -> Expression:
    variant = _require_variant(arguments[0], f"`{function}`")
    if isinstance(variant, Extraction):
        return msgspec.structs.replace(variant, type=pa.string(), as_json=True, timezone=timezone)
    return VariantCall("to_json", (variant,), (timezone,), pa.string())


def _is_variant_null(function: str, arguments: list[Expression], timezone: str) -> Expression:
    """Compare JSON text: only a Variant null prints as `null`, and SQL NULL is not one."""
    text = _to_json(function, arguments, timezone)
    equals = Call("=", (text, Literal(pa.scalar("null"))), pa.bool_())
    return Call("coalesce", (equals, Literal(pa.scalar(False))), pa.bool_())


def _sign(function: str, arguments: list[Expression]) -> Expression:
    _require(arguments[0], NUMERIC, f"unary {'minus' if function == 'negate' else 'plus'}: expected a number")
    return Call(function, tuple(arguments), output_type(arguments[0]))


def _calculate(function: str, arguments: list[Expression]) -> Expression:
    operands = arguments[::-1] if function == "+" and output_type(arguments[1]) == pa.date32() else arguments
    if function in ("+", "-") and output_type(operands[0]) == pa.date32() and _is_number_of_days(operands[1]):
        name = "date_add" if function == "+" else "date_sub"
        return Call(name, (operands[0], cast_to(operands[1], pa.int32())), pa.date32())
    for argument in arguments:
        _require(argument, NUMERIC | {"null"}, f"`{function}`: expected numbers")
    kinds = {kind_or_error(argument) for argument in arguments} - {"null"}
    if "decimal" in kinds and "floating" not in kinds:
        return _calculate_decimals(function, arguments)
    types = [pa.float64()] if function == "/" else known_types(arguments)
    target = reduce(common_number_type, types or [pa.int32()])
    return Call(function, tuple(cast_to(argument, target) for argument in arguments), target)


def _try(function: str, arguments: list[Expression]) -> Expression:
    for argument in arguments:
        _require(argument, NUMERIC | {"null"}, f"`{function}`: expected numbers")
    call = _calculate(TRIED[function], arguments)
    return Call(function, children(call), output_type(call))


def _calculate_bits(function: str, arguments: list[Expression]) -> Expression:
    for argument in arguments:
        _require(argument, {"integer", "null"}, f"`{function}`: expected integers")
    target = reduce(common_number_type, known_types(arguments) or [pa.int32()])
    return Call(function, tuple(cast_to(argument, target) for argument in arguments), target)


def _is_number_of_days(operand: Expression) -> bool:
    """Return whether an operand is an integer that Spark adds to a date, which is not a bigint."""
    arrow_type = output_type(operand)
    return arrow_type in (pa.int8(), pa.int16(), pa.int32())


def _calculate_decimals(function: str, arguments: list[Expression]) -> Expression:
    (known, *_) = known_types(arguments)
    # NULL has the digits of the other operand.
    operands = [
        cast_to(each, as_decimal(known)) if kind_or_error(each) == "null" else _exact_operand(each)
        for each in arguments
    ]
    if function in ("/", "%", "pmod"):
        find_type = quotient_type if function == "/" else remainder_type
        return Call(function, tuple(operands), find_type(*map(output_type, operands)))
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
    """Return `operand` as a decimal: a literal with its own digits, all else with those of its type.

    As in Spark, a literal of type tinyint has those of its type, too.
    """
    arrow_type: Any = output_type(operand)
    if arrow_type in WRITTEN_DIGITS and isinstance(operand, Literal) and not operand.is_cast:
        return cast_to(operand, pa.decimal128(len(str(abs(operand.value.as_py()))), 0))
    return cast_to(operand, as_decimal(arrow_type))


def _unify_parts(function: str, parts: list[Expression], timezone: str) -> list[Expression]:
    """Return the values that a function joins or selects, cast to one type, which may be Variant."""
    variant = next((part for part in parts if output_type(part) is None), None)
    if variant is not None:
        if known := known_types(parts):
            text = describe(variant)
            raise ExpressionError(
                f"`{function}` requires operands of one type, got the Variant `{text}` and "
                f"{type_name(known[0])}: cast it, as in `{text}::{proposed_type(known)}`, or the others, as "
                "in `cast(… as variant)`",
                column=column_of(variant),
            )
        return [_bind_cast(Cast(part, None, True), timezone) for part in parts]
    return unify(function, parts, timezone) if known_types(parts) else parts


FUNCTIONS: dict[str, Callable[[str, list[Expression]], Expression]] = {
    **dict.fromkeys(("and", "or", "not"), _connect),
    **dict.fromkeys(("+", "-", "*", "/", "%", "pmod"), _calculate),
    **dict.fromkeys(TRIED, _try),
    **dict.fromkeys(("&", "|", "^", "~"), _calculate_bits),
    "negate": _sign,
    "positive": _sign,
    "is null": lambda function, arguments: Call(function, tuple(arguments), pa.bool_()),
    "typeof": lambda _, arguments: Literal(pa.scalar(type_name(output_type(arguments[0]), quote=""))),
}
FUNCTIONS_OF_TIME: dict[str, Callable[[str, list[Expression], str], Expression]] = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "in"), _compare),
    "coalesce": _coalesce,
    "like": _like,
    "to_json": _to_json,
    "is_variant_null": _is_variant_null,
}
"""Functions whose result depends on the time zone of local times, which is their last argument."""
