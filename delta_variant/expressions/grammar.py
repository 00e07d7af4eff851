"""The grammar of expressions: operators by their precedence in Spark, and the values that they connect.

Every word can be a column, as in Spark. It has its special meaning only where the text goes on as that
requires. `case` is a column only in a text without an `end` after it, so that no text has two meanings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NoReturn, TypeAlias

import pyarrow as pa

from ..variant.paths import MAX_INDEX
from .calls import AGGREGATES, extend, find_function
from .forms import FORMS, PREDICATES, Reader, added_interval, begins_interval, case_form, is_test
from .lexer import Cursor, GrammarError, Token
from .literals import TYPED_LITERALS, number_literal, string_value
from .tree import ELEMENT, Aggregate, Call, Cast, Expression, Field, Literal, Name, Path
from .types import read_type

OR, AND, NOT, PREDICATE, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SUM, PRODUCT, SIGN = range(1, 12)

OPERATORS: dict[str, tuple[int, str]] = {
    "or": (OR, "or"),
    "and": (AND, "and"),
    **{symbol: (COMPARISON, symbol) for symbol in ("=", "<>", "<", "<=", ">", ">=", "<=>")},
    "==": (COMPARISON, "="),
    "!=": (COMPARISON, "<>"),
    "!>": (COMPARISON, "<="),
    "!<": (COMPARISON, ">="),
    "|": (BIT_OR, "|"),
    "^": (BIT_XOR, "^"),
    "&": (BIT_AND, "&"),
    "+": (SUM, "+"),
    "-": (SUM, "-"),
    "||": (SUM, "concat"),
    "*": (PRODUCT, "*"),
    "/": (PRODUCT, "/"),
    "%": (PRODUCT, "%"),
    "div": (PRODUCT, "div"),
}
"""The operators between two values, with their precedence and their function. All are left-associative."""

NAMED_OPERATORS = frozenset({"concat", "div"})
"""The operators that are rows of the table of functions."""

CONSTANTS = {"true": (True, pa.bool_()), "false": (False, pa.bool_()), "null": (None, pa.null())}


class Grammar(Reader):
    """A parser of the expressions in a text; its methods raise GrammarError."""

    @cached_property
    def _last_end(self) -> int:
        """The position of the last word `end`."""
        tokens, found = Cursor(self.text), -1
        while tokens.token.kind != "end":
            token = tokens.take()
            found = token.start if token.word == "end" else found
        return found

    def expression(self, above: int = 0) -> Expression:
        """Return the expression at the position, of operators with a precedence greater than `above`."""
        value, limit = self._prefixed(above), SIGN
        while True:
            token = self.token
            operator = OPERATORS.get(token.word or token.text) if token.kind in ("word", "symbol") else None
            if operator is not None and above < operator[0] <= limit:
                value = self._connected(value, *operator)
            elif above < PREDICATE <= limit and (test := self._predicate(value)) is not None:
                # A value cannot contain a predicate.
                value, limit = test, NOT
            else:
                return value

    def value(self) -> Expression:
        return self.expression(PREDICATE)

    def named(self) -> tuple[Expression, str | None]:
        """Return an expression and its alias, None if it has none. The alias of a path needs `as`."""
        value = self.expression()
        if self.accept("as"):
            return value, self.take_name()
        if self.token.kind in ("word", "quoted") and self.position != self.end_of_path:
            return value, self.take_name()
        return value, None

    def aggregate(self) -> Aggregate:
        name = self.token.word
        if name not in AGGREGATES or self.following.text != "(":
            self._fail_as_aggregate()
        self.take()
        self.take()
        is_count_of_rows = name == "count" and self.accept("*")
        argument = None if is_count_of_rows else self.expression()
        if not self.accept(")"):
            self._fail_as_aggregate()
        return Aggregate(name, argument)  # type: ignore[arg-type]

    def named_aggregate(self) -> tuple[Aggregate, str | None]:
        """Return the aggregate function at the position and its alias, None if it has none."""
        aggregate = self.aggregate()
        if self.token.kind == "symbol":
            self._fail_as_aggregate()
        is_named = self.accept("as") or self.token.kind != "end"
        return aggregate, self.take_name() if is_named else None

    def _fail_as_aggregate(self) -> NoReturn:
        self.fail(
            "count(*), count(expression), min(expression) or max(expression)",
            "pass other aggregates to `dv.sql`",
        )

    def _connected(self, value: Expression, level: int, function: str) -> Expression:
        token = self.take()
        if function in ("+", "-") and begins_interval(self):
            return added_interval(self, value, -1 if function == "-" else 1)
        operands = [value, self.expression(level)]
        while level <= AND and self.accept(token.word):
            operands.append(self.expression(level))
        return (
            self.call(function, operands, token)
            if function in NAMED_OPERATORS
            else Call(function, tuple(operands))
        )

    def _prefixed(self, above: int) -> Expression:
        token = self.token
        if self.accept("-"):
            if self.token.kind == "number":
                return self._postfixed(number_literal(self.take(), "-"))
            return Call("negate", (self.expression(SIGN),))
        if self.accept("+"):
            return Call("positive", (self.expression(SIGN),))
        if self.accept("~"):
            return Call("~", (self.expression(SIGN),))
        if above <= NOT and self.is_next("not", "!") and self.begins_value(self.following):
            self.take()
            return Call("not", (self.expression(NOT),))
        return self._postfixed(self._value(token))

    def stages(self) -> Iterator[tuple[int, Expression]]:
        """Yield a value with each of the paths, casts and fields that follow it, and the end of each."""
        value: Expression | None = self._value(self.token)
        while value is not None:
            yield self.position, value
            value = self._extended(value)

    def _postfixed(self, value: Expression) -> Expression:
        """Return a value with the casts, the path and the fields that follow it."""
        while (longer := self._extended(value)) is not None:
            value = longer
        return value

    def _extended(self, value: Expression) -> Expression | None:
        """Return a value with the cast, the path or the field that follows it, None if nothing does."""
        if self.is_next("::", "?::"):
            is_strict = self.take().text == "::"
            return Cast(value, read_type(self), is_strict)
        if self.accept(":"):
            steps = _read_path(self)
            self.end_of_path, self.last_step = self.position, str(steps[-1])
            return extend(value, steps)
        if self.accept("["):
            index = self.expression()
            self.expect("]")
            return Call(ELEMENT, (value, index))
        if self.is_next("."):
            return self._field(value)
        return None

    def _field(self, value: Expression) -> Expression:
        if isinstance(value, Literal | Path):
            self.fail(
                "an operator or the end",
                "a path within a Variant follows a colon, event:items[0]['a b'], and a field a struct, s.x",
            )
        self.take()
        name = self.take_name()
        return Name((*value.parts, name)) if isinstance(value, Name) else Field(value, name, pa.null())

    def _value(self, token: Token) -> Expression:
        match token.kind:
            case "string":
                return Literal(pa.scalar(self._text(), pa.string()))
            case "number":
                return number_literal(self.take())
            case "quoted":
                return self._called() if self._is_call() else Name((self.take_name(),))
            case "word":
                return self._word(token)
        if not self.accept("("):
            remedy = "omit the columns to read all of them" if self.token.text == "*" else ""
            self.fail("an expression", remedy)
        return self._enclosed()

    def _text(self) -> str:
        """Return the text of one string literal or several, which are one text."""
        parts = [string_value(self.take())]
        while self.token.kind == "string":
            parts.append(string_value(self.take()))
        return "".join(parts)

    def _enclosed(self) -> Expression:
        self.reject_query()
        value = self.expression()
        if self.is_next(",", "as"):
            self.fail("`)`", "write struct(…) for a struct of several values")
        self.expect(")")
        return value

    def _word(self, token: Token) -> Expression:
        if token.word == "case" and (self.following.word == "when" or token.start < self._last_end):
            return case_form(self)
        if self._is_call():
            form = FORMS.get(token.word)
            return self._called() if form is None else form(self)
        if token.word in CONSTANTS:
            self.take()
            return Literal(pa.scalar(*CONSTANTS[token.word]))
        following = self.following
        if following.kind == "string" or (token.word == "interval" and following.kind == "number"):
            return self._typed_literal(token)
        if following.text == "->":
            self.take()
            self.fail(
                "an operator or the end",
                "a path within a Variant follows a colon, event:user.id; lambda functions are not supported",
            )
        return Name((self.take().text,))

    def _typed_literal(self, token: Token) -> Expression:
        literal = TYPED_LITERALS.get(token.word)
        if literal is None:
            known = ", ".join(name for name in TYPED_LITERALS if name != "x")
            self.fail("an expression", f"the literals with a type are those of {known} and x'…'")
        self.take()
        text = self.take()
        return literal(string_value(text), text)

    def _is_call(self) -> bool:
        return self.following.kind == "symbol" and self.following.text == "("

    def _called(self) -> Expression:
        token = self.token
        function = find_function(self.take_name().lower(), token.start)
        return function.call(self.arguments(self.expression), token.start)

    def _predicate(self, value: Expression) -> Expression | None:
        if self.accept("is"):
            return is_test(self, value)
        is_negated = self.is_next("not", "!") and self.following.word in PREDICATES
        word = self.following.word if is_negated else self.token.word
        if word not in PREDICATES:
            return None
        if is_negated:
            self.take()
        self.take()
        return PREDICATES[word](self, value, is_negated)


Step: TypeAlias = "str | int | None"
"""A field by its name, an element by its index, or None for all of them."""

NAME = re.compile(r"(?:\w|[^\x00-\x7f\s])+")
INDEX = re.compile(r"[0-9]+(?=\s*\])")
OTHER = re.compile(r"[^\]]*")
# A name with a special character, such as @type.
SPECIAL_NAME = re.compile(r"[@#$&!?~^%][^\s.\[\](),:']*")


def _read_path(cursor: Cursor) -> tuple[Step, ...]:
    """Return the steps of the path at the position, and move past it; raises GrammarError.

    A step is what stands between the dots: `7d`, `0x1f`, `12`, `not` and `unknown` are names of fields. The
    path is read from the text, because these are other tokens in an expression.
    """
    steps = [_bracket(cursor) if _is_at(cursor, "[") else _name(cursor)]
    while True:
        if _is_at(cursor, "["):
            steps.append(_bracket(cursor))
        elif _is_at(cursor, "."):
            cursor.position = cursor.skip_space(cursor.position) + 1
            steps.append(_name(cursor))
        else:
            return tuple(steps)


def _is_at(cursor: Cursor, character: str) -> bool:
    return cursor.text.startswith(character, cursor.skip_space(cursor.position))


def _name(cursor: Cursor) -> Step:
    start = cursor.position = cursor.skip_space(cursor.position)
    if cursor.text.startswith("`", start):
        return cursor.take_name()
    name = NAME.match(cursor.text, start)
    if name is None:
        special = SPECIAL_NAME.match(cursor.text, start)
        if special is None:
            raise GrammarError(start, "empty path step", "write [''] for an empty name")
        raise GrammarError(start, f"the path step has special characters: quote the name, ['{special[0]}']")
    cursor.position = name.end()
    return name[0]


def _bracket(cursor: Cursor) -> Step:
    start = cursor.skip_space(cursor.position)
    cursor.position = inner = cursor.skip_space(start + 1)
    index = INDEX.match(cursor.text, inner)
    step: Step
    if index is not None:
        # Digits are limited before conversion, because converting thousands of them is slow.
        step = int(index[0]) if len(index[0]) <= len(str(MAX_INDEX)) else MAX_INDEX + 1
        if step > MAX_INDEX:
            raise GrammarError(inner, f"expected an index from 0 to {MAX_INDEX}")
        cursor.position = index.end()
    elif cursor.token.kind == "string":
        step = string_value(cursor.take())
    elif cursor.accept("*"):
        step = None
    elif cursor.is_next("]"):
        raise GrammarError(start, "empty path step", "write [''] for an empty name")
    else:
        other = OTHER.match(cursor.text, inner)
        shown = "" if other is None else other[0].strip()
        raise GrammarError(
            inner, f"invalid path step [{shown}]", "write a quoted name, an index or *: event:items[0]['a b']"
        )
    cursor.expect("]")
    return step
