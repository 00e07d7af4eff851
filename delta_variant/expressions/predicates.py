"""The tests that follow a value: `between`, `in`, `like`, `rlike` and `is`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from .literals import string_value
from .reader import Reader
from .tree import Call, Expression, Literal

Test: TypeAlias = Callable[[Reader, Expression, bool], Expression]
"""Returns the test of a value by the text after its first word; the flag says whether it is negated."""

NULL = Literal(pa.scalar(None, pa.bool_()))
CONSTANTS = {"true": Literal(pa.scalar(True)), "false": Literal(pa.scalar(False)), "unknown": NULL}
QUANTIFIERS = {"any": "or", "some": "or", "all": "and"}


def _unless(test: Expression, is_negated: bool) -> Expression:
    return Call("not", (test,)) if is_negated else test


def _between(reader: Reader, value: Expression, is_negated: bool) -> Expression:
    low = reader.value()
    reader.expect("and")
    return _unless(Call("and", (Call(">=", (value, low)), Call("<=", (value, reader.value())))), is_negated)


def _in(reader: Reader, value: Expression, is_negated: bool) -> Expression:
    options = reader.arguments(reader.expression)
    if not options:
        reader.fail("at least one value in `in (…)`")
    return _unless(Call("in", (value, *options)), is_negated)


def _like(function: str) -> Test:
    def like(reader: Reader, value: Expression, is_negated: bool) -> Expression:
        token = reader.token
        if token.word in QUANTIFIERS and reader.following.text == "(":
            reader.take()
            patterns = reader.arguments(reader.expression)
            if not patterns:
                reader.fail("at least one pattern")
            # `not like any` is true if any of the patterns does not match.
            tests = [_unless(reader.call(function, (value, each), token), is_negated) for each in patterns]
            return tests[0] if len(tests) == 1 else Call(QUANTIFIERS[token.word], tuple(tests))
        arguments = [value, reader.value()]
        if reader.accept("escape"):
            if reader.token.kind != "string":
                reader.fail("a string literal")
            arguments.append(Literal(pa.scalar(string_value(reader.take()))))
        return _unless(reader.call(function, arguments, token), is_negated)

    return like


def _rlike(reader: Reader, value: Expression, is_negated: bool) -> Expression:
    token = reader.token
    return _unless(reader.call("rlike", (value, reader.value()), token), is_negated)


def is_test(reader: Reader, value: Expression) -> Expression:
    """Return the test of a value after `is`."""
    is_negated = reader.accept("not", "!")
    token = reader.token
    if reader.accept("null"):
        test = Call("is null", (value,))
    elif token.word in CONSTANTS:
        reader.take()
        test = Call("<=>", (value, CONSTANTS[token.word]))
    elif reader.accept("distinct"):
        reader.expect("from")
        return _unless(Call("<=>", (value, reader.value())), not is_negated)
    else:
        reader.fail("null, true, false, unknown or distinct from")
    return _unless(test, is_negated)


PREDICATES: dict[str, Test] = {
    "between": _between,
    "in": _in,
    "like": _like("like"),
    "ilike": _like("ilike"),
    "rlike": _rlike,
    "regexp": _rlike,
}
"""The tests that `not` can precede, by their first word."""
