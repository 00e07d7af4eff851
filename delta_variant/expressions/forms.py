"""Forms with a grammar of their own: tests such as `between`, calls such as `cast(x as int)`, and `case`.

They read values and arguments by the base class of the grammar.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TypeAlias

import pyarrow as pa

from .calls import find_function
from .lexer import Cursor, GrammarError, Token
from .literals import string_value
from .tree import NULL, Call, Cast, Expression, Literal, Name, Path
from .types import read_type

OPENING = frozenset({"(", "-", "+", "!", "~"})
PARTS_OF_CASE = frozenset({"when", "then", "else", "end"})


class Reader(Cursor, ABC):
    """A parser of the expressions in a text; its methods raise GrammarError."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.end_of_path = -1
        self.last_step = ""

    @abstractmethod
    def expression(self) -> Expression:
        """Return the expression at the position."""

    @abstractmethod
    def value(self) -> Expression:
        """Return the expression at the position, without tests and connectives."""

    @abstractmethod
    def named(self) -> tuple[Expression, str | None]:
        """Return an expression and its alias, None if it has none."""

    def arguments(self, read: Callable[[], Expression]) -> list[Expression]:
        """Return the list of values in parentheses at the position; it may be empty."""
        self.expect("(")
        self.reject_query()
        if self.accept(")"):
            return []
        if self.is_next("distinct", "all") and self.begins_value(self.following):
            self.fail("an expression")
        found = self.take_list(read)
        self.expect(")")
        return list(found)

    def call(self, function: str, arguments: Sequence[Expression], token: Token) -> Expression:
        """Return the call of a function that the text has as an operator or a form at a token."""
        return find_function(function, token.start).call(arguments, token.start)

    def reject_query(self) -> None:
        """Raise GrammarError for a subquery."""
        if self.is_next("select", "with") and self.following.kind != "symbol":
            self.fail("an expression", "subqueries need `dv.sql`, and parentheses of their own")

    def begins_value(self, token: Token) -> bool:
        """Return whether a value can begin with a token."""
        if token.kind == "symbol":
            return token.text in OPENING
        return token.kind not in ("end", "unknown") and token.word not in PARTS_OF_CASE

    def fail(self, expected: str, remedy: str = "") -> NoReturn:
        """Raise GrammarError for the token at the position; a word after a path may belong to its name."""
        if self.position == self.end_of_path and self.token.kind == "word":
            name = f"{self.last_step} {self.token.text}"
            remedy = f"quote a name with spaces: ['{name}']; the alias of a path needs `as`"
        super().fail(expected, remedy)


Test: TypeAlias = Callable[[Reader, Expression, bool], Expression]
"""Returns the test of a value by the text after its first word; the flag says whether it is negated."""

CONSTANTS = {
    word: Literal(pa.scalar(value, pa.bool_()))
    for word, value in {"true": True, "false": False, "unknown": None}.items()
}
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


Form: TypeAlias = Callable[[Reader], Expression]

TRIMS = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}
UNITS = {
    "year": ("year", "y", "years", "yr", "yrs"),
    "quarter": ("quarter", "qtr"),
    "month": ("month", "mon", "mons", "months"),
    "weekofyear": ("week", "w", "weeks"),
    "day": ("day", "d", "days"),
    "dayofweek": ("dayofweek", "dow"),
    "dayofyear": ("doy",),
    "hour": ("hour", "h", "hours", "hr", "hrs"),
    "minute": ("minute", "m", "min", "mins", "minutes"),
}
"""The functions of `extract` with the names of their units; its seconds have a fraction, and are missing."""
MONTHS = {"year": 12, "month": 1}
MICROS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
"""The units of intervals."""
WHOLE = {"year", "month", "week", "day"}
"""The units that keep a date a date."""
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
INTERVAL = re.compile(r"([+-]?[0-9]+)\s+([a-z]+)", re.IGNORECASE)
INTERVALS = re.compile(rf"\s*{INTERVAL.pattern}(?:\s+{INTERVAL.pattern})*\s*", re.IGNORECASE)
UNIT_FUNCTIONS = {unit: name for name, units in UNITS.items() for unit in units}


def begins_interval(reader: Reader) -> bool:
    """Return whether an interval is at the position, and not a column of the name `interval`."""
    start, found = reader.position, reader.accept("interval")
    if found and reader.accept("-", "+"):
        found = _unit(reader.following.word) is not None
    found = found and reader.token.kind in ("number", "string")
    reader.position = start
    return found


def added_interval(reader: Reader, moment: Expression, sign: int) -> Expression:
    """Return the sum of a moment and the interval at the position, such as `interval 7 days`."""
    token = reader.take()
    sign = -sign if reader.accept("-") else sign
    reader.accept("+")
    parts = list(_interval_parts(reader))
    units = {unit for _, unit in parts}
    if units & MONTHS.keys() and units & MICROS.keys():
        raise GrammarError(token.start, "expected years and months, or weeks, days and shorter units")
    months = sign * sum(number * MONTHS.get(unit, 0) for number, unit in parts)
    micros = sign * sum(number * MICROS.get(unit, 0) for number, unit in parts)
    if abs(months) >= 1 << 31 or abs(micros) >= 1 << 63:
        raise GrammarError(token.start, "the interval is out of range")
    constants = (
        Literal(pa.scalar(months, pa.int32())),
        Literal(pa.scalar(micros, pa.int64())),
        Literal(pa.scalar(units <= WHOLE)),
    )
    return Call("add interval", (moment, *constants))


def _interval_parts(reader: Reader) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the units in a string, or the numbers at the position with their units."""
    text = string_value(reader.token) if reader.token.kind == "string" else ""
    if INTERVALS.fullmatch(text):
        token = reader.take()
        yield from (_interval_part(token, *part) for part in INTERVAL.findall(text))
        return
    while reader.token.kind in ("number", "string"):
        token = reader.take()
        text = string_value(token) if token.kind == "string" else token.text
        yield _interval_part(token, text.strip(), reader.token.word)
        reader.take()


def _interval_part(token: Token, number: str, unit: str) -> tuple[int, str]:
    name = _unit(unit.lower())
    if name is None or not INTEGER.fullmatch(number):
        units = ", ".join((*MONTHS, *MICROS))
        raise GrammarError(
            token.start, "expected an integer and a unit, such as `interval 7 days`", f"the units are {units}"
        )
    return int(number), name


def _unit(word: str) -> str | None:
    """Return the singular of the unit of an interval, None for another word."""
    name = word.removesuffix("s")
    return name if name in MONTHS or name in MICROS else None


def case_form(reader: Reader) -> Expression:
    """Return `case when … then … else … end`, or the same with a value after `case`."""
    token = reader.take()
    operand = None if reader.is_next("when") else reader.expression()
    arguments: list[Expression] = []
    if not reader.accept("when"):
        reader.fail("`when`", "quote a column of this name: `case`")
    while True:
        condition = reader.expression()
        reader.expect("then")
        condition = condition if operand is None else Call("=", (operand, condition))
        arguments += [condition, reader.expression()]
        if not reader.accept("when"):
            break
    arguments.append(reader.expression() if reader.accept("else") else NULL)
    reader.expect("end")
    return Call(token.word, tuple(arguments))


def _cast(reader: Reader) -> Expression:
    is_strict = reader.take().word == "cast"
    reader.expect("(")
    operand = reader.expression()
    reader.expect("as")
    cast = Cast(operand, read_type(reader), is_strict)
    reader.expect(")")
    return cast


def _struct(reader: Reader) -> Expression:
    """Return a struct, whose fields have the names that Spark gives them."""
    token = reader.take()
    fields: list[Expression] = []

    def read() -> Expression:
        value, alias = reader.named()
        name = alias or _name_of(value) or f"col{len(fields) // 2 + 1}"
        fields.extend([Literal(pa.scalar(name)), value])
        return value

    reader.arguments(read)
    return reader.call("named_struct", fields, token)


def _name_of(value: Expression) -> str | None:
    """Return the last name of a column or a path, None for another expression."""
    match value:
        case Name(parts):
            return parts[-1]
        case Path(_, path):
            return next((step for step in reversed(path) if isinstance(step, str)), None)
    return None


def _substring(reader: Reader) -> Expression:
    token = reader.take()
    reader.expect("(")
    arguments = [reader.expression()]
    for word in ("from", "for"):
        if not reader.accept(word, ","):
            break
        arguments.append(reader.expression())
    reader.expect(")")
    return reader.call(token.word, arguments, token)


def _trim(reader: Reader) -> Expression:
    token = reader.take()
    reader.expect("(")
    has_side = reader.token.word in TRIMS and reader.begins_value(reader.following)
    side = reader.take().word if has_side else "both"
    arguments: list[Expression] = []
    # Before a value, `from` is not a column.
    if not (reader.is_next("from") and reader.begins_value(reader.following)):
        arguments.append(reader.expression())
    if has_side or reader.is_next("from"):
        reader.expect("from")
        arguments.append(reader.expression())
    while not has_side and reader.accept(","):
        arguments.append(reader.expression())
    reader.expect(")")
    return reader.call(TRIMS[side], arguments, token)


def _position(reader: Reader) -> Expression:
    token = reader.take()
    reader.expect("(")
    arguments = [reader.value()]
    while reader.accept(",") or (len(arguments) == 1 and reader.accept("in")):
        arguments.append(reader.expression())
    reader.expect(")")
    return reader.call(token.word, arguments, token)


def _extract(reader: Reader) -> Expression:
    token = reader.take()
    reader.expect("(")
    unit: Token = reader.token
    function = UNIT_FUNCTIONS.get(reader.take_name().lower())
    if function is None:
        reader.position = unit.start
        reader.fail(f"one of {', '.join(sorted(UNIT_FUNCTIONS))}")
    reader.expect("from")
    operand = reader.expression()
    reader.expect(")")
    return reader.call(function, (operand,), token)


FORMS: dict[str, Form] = {
    "cast": _cast,
    "try_cast": _cast,
    "struct": _struct,
    "substring": _substring,
    "substr": _substring,
    "trim": _trim,
    "position": _position,
    "extract": _extract,
}
"""The calls whose arguments are not a list of expressions, by their names."""
