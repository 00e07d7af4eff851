"""Calls of `table_changes` in a query, which is a function of Delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...expressions.lexer import Cursor, GrammarError, parts_of_name
from ...expressions.literals import string_value

FUNCTION = "table_changes"
NAME = "table changes {}"


class Changes(NamedTuple):
    """A call of `table_changes`: the table, and the first and the last version, or their timestamps."""

    table: tuple[str, ...]
    start: int | str
    end: int | str | None


def without_changes(text: str) -> tuple[str, Mapping[str, Changes]]:
    """Return a query with a name in place of each call of `table_changes`, and the calls by name."""
    cursor, calls, parts, done = Cursor(text), dict[str, Changes](), list[str](), 0
    try:
        while (token := cursor.token).kind != "end":
            if token.word != FUNCTION or cursor.following.text != "(":
                cursor.take()
                continue
            name = NAME.format(len(calls))
            calls[name] = _call(cursor)
            parts += [text[done : token.start], f"`{name}`"]
            done = cursor.position
    except GrammarError:
        # Spark has the error for a text that has no tokens, or for a call with other arguments.
        return text, {}
    return "".join([*parts, text[done:]]), calls


def _call(cursor: Cursor) -> Changes:
    cursor.take()
    cursor.expect("(")
    if cursor.token.kind != "string":
        cursor.fail("a string")
    table = parts_of_name(string_value(cursor.take()))
    cursor.expect(",")
    start = _version(cursor)
    end = _version(cursor) if cursor.accept(",") else None
    cursor.expect(")")
    return Changes(table, start, end)


def _version(cursor: Cursor) -> int | str:
    if cursor.token.kind == "string":
        return string_value(cursor.take())
    if not cursor.token.text.isdecimal():
        cursor.fail("a version or a timestamp")
    return int(cursor.take().text)
