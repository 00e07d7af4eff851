"""Cast the operands of an operator to the type in which Spark computes or compares them, in ANSI mode."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa

from .._arrow import Array
from ..errors import ExpressionError
from ..variant.moments import UTC
from .cast import can_cast, cast_scalar, cast_values
from .tree import Cast, Column, Expression, Extraction, Field, Literal, describe, output_type
from .types import MAX_PRECISION, NUMERIC, Kind, as_decimal, fields_of, kind_of, type_name, with_fields
from .variant_calls import CONSTRUCTORS

# Functions that return their operands, which have the common type of all of them, even if a literal would fit
# into that of the columns.
VALUE_FUNCTIONS = frozenset({"coalesce", "case", "greatest", "least", *CONSTRUCTORS})


def field_names(expression: Expression) -> list[str]:
    if isinstance(expression, Field):
        return [*field_names(expression.operand), expression.name]
    assert isinstance(expression, Column)
    return [expression.name]


def column_of(expression: Expression) -> str | None:
    """Return the column that an expression reads as a whole or at a path, None for any other expression."""
    if isinstance(expression, Extraction):
        return ".".join((expression.column, *expression.fields))
    return ".".join(field_names(expression)) if isinstance(expression, Column | Field) else None


def cast_to(
    operand: Expression, target: pa.DataType, timezone: str = UTC, *, strict: bool = True
) -> Expression:
    source = output_type(operand)
    if source is None:
        raise variant_error(operand)
    if source == target:
        return operand
    if not can_cast(source, target):
        raise ExpressionError(
            f"cannot cast `{describe(operand)}` from {type_name(source)} to {type_name(target)}",
            column=column_of(operand),
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
        message = f"cannot cast {describe(literal)} to {type_name(target)}"
        # Casts of text have no reason.
        reason = "" if str(error).startswith("cannot cast") else f": {error}"
        raise ExpressionError(message + reason) from error


def _is_inexact(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Arrow's cast does not return the nearest number."""
    return kind_of(source) == "decimal" and kind_of(target) == "floating"


def variant_error(bound: Expression, proposal: str = "string") -> ExpressionError:
    text = describe(bound)
    return ExpressionError(
        f"`{text}` is a Variant, which cannot be compared or computed with: cast it, as in "
        f"`{text}::{proposal}`",
        column=column_of(bound),
    )


def proposed_type(others: list[pa.DataType]) -> str:
    if not others:
        return "string"
    return "bigint" if kind_of(others[0]) == "integer" else type_name(others[0])


def kind_or_error(bound: Expression, proposal: str = "string") -> Kind:
    """Return the kind of a bound expression; raises ExpressionError for a Variant."""
    arrow_type = output_type(bound)
    if arrow_type is None:
        raise variant_error(bound, proposal)
    return kind_of(arrow_type)


def known_types(arguments: Sequence[Expression]) -> list[pa.DataType]:
    types = [output_type(argument) for argument in arguments]
    return [arrow_type for arrow_type in types if arrow_type is not None and not pa.types.is_null(arrow_type)]


def unify(function: str, arguments: list[Expression], timezone: str) -> list[Expression]:
    """Return `arguments` cast to the type in which Spark compares them."""
    for argument in arguments:
        if output_type(argument) is None:
            known = known_types(arguments)
            raise variant_error(argument, proposed_type(known))
        if kind_or_error(argument) == "nested" and function not in VALUE_FUNCTIONS:
            raise ExpressionError(
                f"cannot compare `{describe(argument)}` of type {type_name(output_type(argument))}",
                column=column_of(argument),
            )
    return _cast_all(arguments, _common_type(function, arguments), timezone)


def _common_type(function: str, arguments: list[Expression]) -> pa.DataType:
    variable = known_types([argument for argument in arguments if not isinstance(argument, Literal)])
    if function not in VALUE_FUNCTIONS and len(set(variable)) == 1 and _literals_fit(arguments, variable[0]):
        return variable[0]
    types = known_types(arguments)
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
    return [cast_to(argument, target, timezone) for argument in cast]


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which Spark compares two types; None if they cannot be compared, or not exactly."""
    if left == right:
        return left
    kinds = {kind_of(left), kind_of(right)}
    if kinds <= NUMERIC:
        return common_number_type(left, right)
    if kinds == {"string"}:
        return pa.large_string()
    if kinds == {"binary"}:
        return pa.large_binary()
    if kinds <= {"date", "timestamp", "timestamp_ntz"}:
        return pa.timestamp("us", "UTC") if "timestamp" in kinds else pa.timestamp("us")
    if "string" in kinds:
        return _common_type_with_text(right if kind_of(left) == "string" else left)
    return _common_nested(left, right) if kinds == {"nested"} else None


def _common_nested(left: Any, right: Any) -> pa.DataType | None:
    """Return the type of arrays, maps or structs whose parts are of equal types, numbers, or NULL."""
    pairs = [*zip(fields_of(left), fields_of(right), strict=False)]
    if left.id != right.id or not len(pairs) == len(fields_of(left)) == len(fields_of(right)):
        return None
    parts: list[Any] = []
    for one, other in pairs:
        found = _common_part(one, other)
        if found is None or (pa.types.is_struct(left) and one.name.lower() != other.name.lower()):
            return None
        parts.append(found)
    return with_fields(left, parts)


def _common_part(one: pa.Field[Any], other: pa.Field[Any]) -> pa.Field[Any] | None:
    if pa.types.is_null(one.type):
        return other.with_name(one.name)
    if pa.types.is_null(other.type) or one.type == other.type:
        return one
    kinds = {kind_of(one.type), kind_of(other.type)}
    found = common_type(one.type, other.type) if kinds <= NUMERIC or kinds == {"nested"} else None
    return None if found is None or pa.types.is_decimal256(found) else one.with_type(found)


def common_number_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right:
        return left
    kinds = {kind_of(left), kind_of(right)}
    if "floating" in kinds:
        return pa.float64()
    if kinds == {"integer"}:
        return max(left, right, key=lambda arrow_type: arrow_type.bit_width)
    one, other = as_decimal(left), as_decimal(right)
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.decimal256(precision, scale)


def _common_type_with_text(other: pa.DataType) -> pa.DataType | None:
    """Return the type to which Spark casts text for another type, None for nested types."""
    kind = kind_of(other)
    if kind == "integer":
        return pa.int64()
    if kind in ("decimal", "floating"):
        return pa.float64()
    return None if kind == "nested" else other
