r"""Patterns of LIKE: `%` is any text, `_` any character, and the escape makes one of these a character.

Arrow's `match_like` compares the escapes of patterns that begin or end with `%` as they are written, so that
`like '%\\cmd.exe'` would match nothing. It is not used.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ExpressionError

ESCAPE = "\\"


class Wildcard(Enum):
    """The wildcards of a pattern, with their regular expressions."""

    ANY = ".*"
    ONE = "."


Part: TypeAlias = "str | Wildcard"

WILDCARDS = {"%": Wildcard.ANY, "_": Wildcard.ONE}
# RE2 takes a backslash before these characters only.
PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


@lru_cache(maxsize=128)
def parse_pattern(pattern: str, escape: str = ESCAPE) -> tuple[Part, ...]:
    """Return the parts of a pattern: texts without escapes, and wildcards.

    Raises ExpressionError for an escape that is not one character, and, as Spark does, for one in the pattern
    that does not precede a wildcard or itself.
    """
    if len(escape) != 1:
        raise ExpressionError(f"`like`: expected one character after `escape`, got {escape!r}")
    found: list[Part] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if character not in (*WILDCARDS, escape):
                raise ExpressionError(
                    f"`like`: expected %, _ or {escape} after each {escape} of the pattern, got {pattern!r}; "
                    f"write {2 * escape} for the character itself, in a raw string (r'…')"
                )
            found.append(character)
        else:
            found.append(WILDCARDS.get(character, character))
    parts: list[Part] = []
    for part in found:
        last = parts[-1] if parts else None
        if isinstance(part, str) and isinstance(last, str):
            parts[-1] = last + part
        else:
            parts.append(part)
    return tuple(parts)


def literal_prefix(pattern: str, escape: str = ESCAPE) -> str:
    """Return the text with which each match of a pattern begins."""
    first = next(iter(parse_pattern(pattern, escape)), "")
    return first if isinstance(first, str) else ""


def match_pattern(values: Any, pattern: str, escape: str = ESCAPE) -> Any:
    """Return whether each string of an Arrow array or a scalar matches a pattern; null stays null."""
    match parse_pattern(pattern, escape):
        case ():
            return pc.equal(values, pa.scalar("", values.type))
        case (str(text),):
            return pc.equal(values, pa.scalar(text, values.type))
        case (str(text), Wildcard.ANY):
            return pc.starts_with(values, text)
        case (Wildcard.ANY, str(text)):
            return pc.ends_with(values, text)
        case (Wildcard.ANY, str(text), Wildcard.ANY):
            return pc.match_substring(values, text)
        case parts:
            return pc.match_substring_regex(values, f"(?s)^{''.join(map(_expression, parts))}$")


def _expression(part: Part) -> str:
    return part.value if isinstance(part, Wildcard) else PUNCTUATION.sub(r"\\\g<0>", part)
