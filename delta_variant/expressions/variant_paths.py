"""The grammar of the path after the colon of `event:user.items[0]['first name']`, read from the text.

A step is what stands between the dots: `7d`, `0x1f`, `12`, `not` and `unknown` are names of fields.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from ..variant.paths import MAX_INDEX
from .lexer import Cursor, GrammarError
from .literals import string_value

Step: TypeAlias = "str | int | None"
"""A field by its name, an element by its index, or None for all of them."""

NAME = re.compile(r"(?:\w|[^\x00-\x7f\s])+")
INDEX = re.compile(r"[0-9]+(?=\s*\])")
OTHER = re.compile(r"[^\]]*")
# A name with a special character, such as @type.
SPECIAL_NAME = re.compile(r"[@#$&!?~^%][^\s.\[\](),:']*")


def read_path(cursor: Cursor) -> tuple[Step, ...]:
    """Return the steps of the path at the position, and move past it; raises GrammarError."""
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
