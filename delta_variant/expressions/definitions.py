"""Parse the definitions of the columns and constraints of a table, as in CREATE TABLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
import pyarrow as pa

from .grammar import Grammar
from .lexer import GrammarError
from .literals import string_value
from .parse import read_whole
from .tree import Expression
from .types import read_column_type

Value = TypeVar("Value")


class IdentityDefinition(msgspec.Struct):
    """The values of an identity column: GENERATED ALWAYS, or BY DEFAULT, AS IDENTITY."""

    is_always: bool
    start: int = 1
    step: int = 1


class ColumnDefinition(msgspec.Struct):
    """A column: its Arrow type, None for `variant`, and the SQL text of its expressions.

    `text_type` is `char(n)` or `varchar(n)` for a string of limited width.
    """

    name: str
    type: pa.DataType | None
    text_type: str | None = None
    nullable: bool = True
    default: str | None = None
    generated: str | None = None
    identity: IdentityDefinition | None = None
    comment: str | None = None


class ConstraintDefinition(msgspec.Struct):
    """A CHECK constraint, with its SQL text."""

    name: str
    check: str


def parse_definition(text: str) -> ColumnDefinition | ConstraintDefinition:
    """Return the column or the constraint in `name type [NOT NULL] …` or `CONSTRAINT name CHECK (…)`.

    Raises ExpressionError, which marks the place in the text that is not understood.
    """
    return read_whole(text, _definition)


def _definition(grammar: Grammar) -> ColumnDefinition | ConstraintDefinition:
    if grammar.is_next("constraint") and grammar.following.kind in ("word", "quoted"):
        start = grammar.position
        grammar.take()
        name = grammar.take_name()
        if grammar.accept("check"):
            return ConstraintDefinition(name, _enclosed(grammar))
        # A column may be named `constraint`.
        grammar.position = start
    column = ColumnDefinition(grammar.take_name(), *read_column_type(grammar))
    while grammar.token.kind != "end":
        _read_option(grammar, column)
    return column


def _read_option(grammar: Grammar, column: ColumnDefinition) -> None:
    if grammar.accept("not"):
        grammar.expect("null")
        column.nullable = False
    elif grammar.accept("default"):
        column.default = _source(grammar, grammar.value)
    elif grammar.accept("generated"):
        _read_generation(grammar, column)
    elif grammar.accept("comment"):
        if grammar.token.kind != "string":
            grammar.fail("a string")
        column.comment = string_value(grammar.take())
    else:
        grammar.fail(
            "NOT NULL, DEFAULT value, GENERATED ALWAYS AS (expression) or AS IDENTITY, COMMENT 'text' or the "
            "end"
        )


def _read_generation(grammar: Grammar, column: ColumnDefinition) -> None:
    is_always = not grammar.accept("by")
    grammar.expect("always" if is_always else "default")
    grammar.expect("as")
    if not is_always or grammar.is_next("identity"):
        column.identity = _identity(grammar, is_always)
    else:
        column.generated = _enclosed(grammar)


def _identity(grammar: Grammar, is_always: bool) -> IdentityDefinition:
    """Return the definition in `IDENTITY [(START WITH number INCREMENT BY number)]`, in any order."""
    grammar.expect("identity")
    numbers: dict[str, int] = {}
    if grammar.accept("("):
        while not grammar.accept(")"):
            start = grammar.token.start
            name, preposition = ("start", "with") if grammar.accept("start") else ("step", "by")
            if name == "step":
                grammar.expect("increment")
            grammar.expect(preposition)
            if name in numbers:
                raise GrammarError(start, f"the {name} of an identity column is given twice", "remove one")
            numbers[name] = _integer(grammar)
            grammar.accept(",")
    return IdentityDefinition(is_always, **numbers)


def _integer(grammar: Grammar) -> int:
    sign = "-" if grammar.accept("-") else ""
    if grammar.token.kind != "number" or not grammar.token.text.isdecimal():
        grammar.fail("an integer")
    return int(sign + grammar.take().text)


def _enclosed(grammar: Grammar) -> str:
    return grammar.enclosed(lambda: _source(grammar, grammar.expression))


def _source(grammar: Grammar, read: Callable[[], Expression]) -> str:
    """Return the text of the expression at the position, and move past it."""
    start = grammar.token.start
    read()
    return grammar.text[start : grammar.position]
