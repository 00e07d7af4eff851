"""Parse SQL text to expressions, and to the definitions of columns and constraints in CREATE TABLE.

`bind` resolves names against a table and determines every type. `inputs` lists the columns and the
extractions from Variant columns that a reader has to provide, each under its `input_name`. `evaluate` and
`filter_mask` work on batches with those inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TypeVar

import msgspec
import pyarrow as pa

from .._checks import check_text, is_unicode, list_of
from ..errors import ArgumentTypeError, ExpressionError
from .calls import TABLE_FUNCTIONS
from .grammar import Grammar
from .lexer import Cursor, GrammarError, read_whole_text, too_deep
from .literals import string_value
from .tree import Aggregate, Expression, Name, children
from .types import read_column_type, type_of_text

Parsed = TypeVar("Parsed")

MAX_DEPTH = 100


def parse(text: str) -> Expression:
    """Return the expression in `text`, which is SQL in the dialect of Spark and Databricks.

    Raises ExpressionError, which marks the place in the text that is not understood.
    """
    # Programs repeat a query; to parse it takes longer than to plan it.
    return _known(text) if isinstance(text, str) else _parse(text)


def _parse(text: str) -> Expression:
    return read_whole(text, Grammar.expression)


_known = lru_cache(maxsize=128)(_parse)


def parse_columns(columns: Mapping[str, str] | Sequence[str] | None) -> dict[str, Expression]:
    """Return the expression of each output column, in order.

    The keys of a mapping are the output names. The name of an item of a sequence is its text, or the alias
    of `expression as name`. None means every column, and the result is empty.
    """
    if isinstance(columns, Mapping):
        for name in columns:
            check_text("a column name", name)
        return {name: parse(text) for name, text in columns.items()}
    named: dict[str, Expression] = {}
    kind = "SQL expressions, or a dict of names to expressions"
    for text in () if columns is None else list_of(kind, "columns", columns):
        expression, alias = read_whole(text, Grammar.named)
        column = expression.parts[0] if isinstance(expression, Name) and len(expression.parts) == 1 else None
        name = alias or column or text.strip()
        if name in named:
            raise ExpressionError(
                f"two columns are named {name!r}: write `expression as name` for one of them", column=name
            )
        named[name] = expression
    return named


def parse_lateral(text: str) -> tuple[str, Expression, str]:
    """Return the table function in `variant_explode(variant) as name`, its argument, and the name.

    Raises ExpressionError for any other text.
    """
    return read_whole(text, _lateral)


def _lateral(grammar: Grammar) -> tuple[str, Expression, str]:
    wanted = "`variant_explode(variant) as name`, or the same with variant_explode_outer"
    function = grammar.token.word
    if function not in TABLE_FUNCTIONS or grammar.following.text != "(":
        grammar.fail(wanted)
    grammar.take()
    arguments = grammar.arguments(grammar.expression)
    grammar.accept("as")
    if len(arguments) != 1 or grammar.token.kind not in ("word", "quoted"):
        grammar.fail(wanted)
    return function, arguments[0], grammar.take_name()


def parse_aggregates(aggregates: Mapping[str, str] | Sequence[str]) -> dict[str, Aggregate]:
    """Return the aggregate of each output column, in order; the names are those of `parse_columns`."""
    if isinstance(aggregates, Mapping):
        for name in aggregates:
            check_text("an aggregate name", name)
        return {name: read_whole(text, Grammar.aggregate) for name, text in aggregates.items()}
    named: dict[str, Aggregate] = {}
    for text in list_of("aggregates, or a dict of names to aggregates", "aggregates", aggregates):
        aggregate, alias = read_whole(text, Grammar.named_aggregate)
        name = alias or text.strip()
        if name in named:
            raise ExpressionError(
                f"two aggregates are named {name!r}: write `aggregate as name` for one of them"
            )
        named[name] = aggregate
    return named


def parse_stages(text: str, start: int) -> list[tuple[int, Expression]]:
    """Return the value that begins at a position, with each path and cast that follows it, and their ends.

    The list is empty if no value begins there, and shorter if what follows is not understood.
    """
    grammar = Grammar(text)
    grammar.position = start
    found: list[tuple[int, Expression]] = []
    with suppress(GrammarError, ExpressionError, RecursionError):
        found.extend(grammar.stages())
    return found


def parse_column_type(text: str) -> tuple[pa.DataType | None, str | None]:
    """Return the Arrow type of the SQL type of a column, and the text of `char(n)` or `varchar(n)`."""
    _check(text)
    return read_whole_text(Cursor(text), read_column_type)


def parse_type(text: str, *, of_column: bool = False) -> pa.DataType | None:
    """Return the Arrow type of a SQL type, None for `variant`; raises ExpressionError for another text.

    Only the type `of_column` can have Variants inside.
    """
    _check(text)
    return type_of_text(text, of_column=of_column)


def read_whole(text: str, rule: Callable[[Grammar], Parsed]) -> Parsed:
    """Return what a rule of the grammar reads from a whole text."""
    _check(text)
    parsed = read_whole_text(Grammar(text), rule)
    for part in parsed if isinstance(parsed, tuple) else (parsed,):
        _check_depth(part.argument if isinstance(part, Aggregate) else part, text)
    return parsed


def _check(text: str) -> None:
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f"expected a SQL expression as a string, got {text!r}: write values as SQL literals, such as "
            '"7", "\'text\'" or "parse_json(\'[1]\')"'
        )
    if not is_unicode(text):
        raise ExpressionError("the SQL text contains an unpaired surrogate; pass valid Unicode text")


def _check_depth(expression: object, text: str) -> None:
    level, depth = [expression], 0
    while level:
        level = [child for each in level for child in children(each)]
        depth += 1
        if depth > MAX_DEPTH:
            raise too_deep(text)


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
