"""Conditions of a predicate that the kernel tests before it extracts the other values of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from ..expressions import tree
from ..expressions.tree import Call, Column, Expression, Extraction, Input
from ..expressions.types import kind_of
from .predicate import FLIPPED, ORDERED

__all__ = ["RowCondition", "are_conditions", "leading_conditions"]

MAX_OPTIONS = 16
"""The kernel compares each value with all options of `in`."""

# Arrow and SQL compare floating-point numbers differently, and values of other types alike.
COMPARED = ORDERED - {"floating"} | {"binary", "boolean"}


class RowCondition(msgspec.Struct, frozen=True):
    """`input operator value` for any of `values`, which have the input's type; `is not null` has none."""

    input: Input
    operator: str
    values: pa.Array[Any] | None


def leading_conditions(*predicates: Expression | None) -> list[RowCondition]:
    """Return conditions that are true for each row for which the bound `predicates` are true.

    These are the operands of `and` before the first that has another form, because rows that later operands
    exclude can raise an error there.
    """
    found: list[RowCondition] = []
    for operand in _operands(predicates):
        condition = _condition(operand)
        if condition is None:
            break
        found.append(condition)
    return found


def are_conditions(predicate: Expression) -> bool:
    """Return whether a bound `predicate` is true for exactly the rows that meet its leading conditions."""
    return all(_condition(operand) is not None for operand in _operands((predicate,)))


def _operands(predicates: tuple[Expression | None, ...]) -> Iterator[Expression]:
    for each in predicates:
        match each:
            case None:
                pass
            case Call("and", arguments):
                yield from _operands(arguments)
            case _:
                yield each


def _condition(operand: Expression) -> RowCondition | None:
    match operand:
        case Call("not", (Call("is null", (Column() | Extraction() as source,)),)):
            return RowCondition(source, "is not null", None) if _is_scalar(source) else None
        case Call("in", (Column() | Extraction() as source, *options)) if len(options) <= MAX_OPTIONS:
            return _comparison(source, "=", options)
        case Call(operator, (Column() | Extraction() as source, value)) if operator in FLIPPED:
            return _comparison(source, operator, [value])
        case Call(operator, (value, Column() | Extraction() as source)) if operator in FLIPPED:
            return _comparison(source, FLIPPED[operator], [value])
    return None


def _is_scalar(source: Input) -> bool:
    is_text = isinstance(source, Extraction) and source.as_json
    return source.type is not None and not is_text and kind_of(source.type) in COMPARED


def _comparison(source: Input, operator: str, options: list[Expression]) -> RowCondition | None:
    values = [each.value for each in options if isinstance(each, tree.Literal)]
    if not _is_scalar(source) or len(values) < len(options):
        return None
    assert source.type is not None
    kinds = {kind_of(value.type) for value in values} | {kind_of(source.type)}
    if len(kinds) > 1 or not all(value.is_valid for value in values):
        return None
    try:
        same_type = [value.cast(source.type) for value in values]
    except pa.ArrowInvalid:
        # A literal outside the range of the type.
        return None
    return RowCondition(source, operator, pa.array(same_type, source.type))
