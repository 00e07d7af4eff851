"""Literals of SQL: the values of strings with escapes, numbers with suffixes and typed strings, and back."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import isfinite

import pyarrow as pa

from .._arrow import SIMPLE_TYPES
from .lexer import GrammarError, Token
from .tree import Cast, Expression, Literal
from .types import MAX_PRECISION

ESCAPES = {
    quote: re.compile(
        rf"\\u([0-9A-Fa-f]{{4}})|\\U([0-9A-Fa-f]{{8}})|\\([01][0-7]{{2}})|\\(.)|({quote}){quote}", re.DOTALL
    )
    for quote in "'\""
}
ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
NUMBER = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)(bd|[dflsy])?", re.IGNORECASE)
HEXADECIMAL = re.compile(r"[0-9A-Fa-f]*")

INTEGERS = {"y": pa.int8(), "s": pa.int16(), "l": pa.int64()}
FLOATS = {"d": (pa.float64(), sys.float_info.max), "f": (pa.float32(), float.fromhex("0x1.fffffep+127"))}
"""The types of the suffixes, and the greatest number of each."""


def string_value(token: Token) -> str:
    """Return the text of a string literal; raises GrammarError for escapes that are not Unicode text."""
    if token.text[0] in "rR":
        return token.text[2:-1]
    try:
        value = ESCAPES[token.text[0]].sub(_unescape, token.text[1:-1])
        # Two escapes of four digits can be the halves of one character.
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except (ValueError, OverflowError):
        raise GrammarError(token.start, "the escapes \\u and \\U are not Unicode text") from None


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, character, quote = match.groups()
    if character is not None:
        return ESCAPED.get(character, character)
    return quote or chr(int(octal, 8) if octal else int(short or long, 16))


def number_literal(token: Token, sign: str = "") -> Literal:
    """Return a number with the type of Spark: int, bigint or decimal by size; 1.0 is decimal, 1e0 double.

    Raises GrammarError for one that is not of the type of its suffix.
    """
    match = NUMBER.fullmatch(token.text)
    assert match is not None
    digits, suffix = sign + match[1], (match[2] or "").lower()
    if suffix in INTEGERS:
        _check(_fits(digits, INTEGERS[suffix]), token, str(INTEGERS[suffix]))
        return Literal(pa.scalar(int(digits), INTEGERS[suffix]))
    if suffix in FLOATS or (not suffix and "e" in digits.lower()):
        arrow_type, greatest = FLOATS[suffix or "d"]
        _check(abs(float(digits)) <= greatest, token, str(arrow_type))
        return Literal(pa.scalar(float(digits), arrow_type))
    if not suffix and "." not in digits:
        for integer in (pa.int32(), pa.int64()):
            if _fits(digits, integer):
                return Literal(pa.scalar(int(digits), integer))
    return _decimal(digits, token)


def _fits(digits: str, arrow_type: pa.DataType) -> bool:
    # Decimal reads thousands of digits, which int does not.
    limit = Decimal(2) ** (arrow_type.bit_width - 1)
    return -limit <= Decimal(digits) < limit


def _decimal(text: str, token: Token) -> Literal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        # The exponent has more digits than Python accepts.
        value = Decimal("1e99")
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale)
    _check(precision <= MAX_PRECISION, token, f"decimal, which has at most {MAX_PRECISION} digits")
    return Literal(pa.scalar(value, pa.decimal128(precision, scale)))


def _check(is_in_range: bool, token: Token, name: str) -> None:
    if not is_in_range:
        raise GrammarError(token.start, f"the number is out of the range of {name}")


def _cast_to(name: str) -> Callable[[str, Token], Expression]:
    return lambda text, _: Cast(Literal(pa.scalar(text, pa.string())), SIMPLE_TYPES[name], strict=True)


def _binary(text: str, token: Token) -> Expression:
    if HEXADECIMAL.fullmatch(text) is None:
        raise GrammarError(token.start, "expected hexadecimal digits")
    return Literal(pa.scalar(bytes.fromhex("0" * (len(text) % 2) + text), pa.binary()))


TYPED_LITERALS: dict[str, Callable[[str, Token], Expression]] = {
    "date": _cast_to("date"),
    "timestamp": _cast_to("timestamp"),
    "timestamp_ltz": _cast_to("timestamp"),
    "timestamp_ntz": _cast_to("timestamp_ntz"),
    "x": _binary,
}
"""The literals of a word and a string, called with the text and the token of the string."""


def literal_text(value: object) -> str | None:
    """Return a value as a literal of Spark SQL, None for a type that has none."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if -(1 << 63) <= value < 1 << 63 else None
        case float():
            return f"{value!r}D" if isfinite(value) else f"double('{value}')"
        case Decimal():
            return f"{value:f}BD" if value.is_finite() else None
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case bytes():
            return f"x'{value.hex()}'"
        case dt.datetime():
            # Python has no type for a time that is local to a place or to none.
            return None if value.tzinfo is None else f"timestamp'{value.isoformat(' ')}'"
        case dt.date():
            return f"date'{value.isoformat()}'"
    return None
