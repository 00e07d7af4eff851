"""Replace parts of the text of a query, such as tables by the fields of DataFrames in `spark.sql`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..._text import quote
from ...expressions.lexer import Cursor, GrammarError, parts_of_name
from ...expressions.literals import literal_text, string_value
from .parts import Query, Span, TableReference, is_within, splice
from .spans import QueryTokens
from .syntax import PARSER_ERRORS, Dialect


def field_name(reference: int) -> str:
    """Return the name of the DataFrame of a table reference."""
    return f"t{reference}"


def field(reference: int) -> str:
    """Return the text for the DataFrame of a table reference."""
    return f"{{{field_name(reference)}}}"


def replace_tables(query: Query, sources: Mapping[int, str], others: Mapping[Span, str]) -> str:
    """Return the text of a query for `spark.sql` with other sources in place of tables.

    `others` are further replacements by their span.
    """
    replacements = dict(others)
    for number, source in sources.items():
        table, qualifiers = query.tables[number], [*_qualifiers(query, query.tables[number])]
        name = ".".join(table.parts) if qualifiers and _is_hidden(query, number) else table.parts[-1]
        alias = f" AS {quote(name)}" if table.takes_alias else ""
        replacements[table.span] = f"{source}{alias}"
        for first, last, end in qualifiers:
            if not is_within(first, others):
                is_last = name == table.parts[-1]
                replacements[first, (last if is_last else end) - 1] = "" if is_last else f"{quote(name)}."
    return splice(query.text, replacements, escape)


def escape(text: str) -> str:
    """Return a text in which no brace begins a field."""
    return text.replace("{", "{{").replace("}", "}}")


def _is_hidden(query: Query, reference: int) -> bool:
    """Return whether another source has the last part of a table's name where columns name the table."""
    name = query.tables[reference].parts[-1].lower()
    own = [number for number, each in enumerate(query.scopes) if reference in each.sources.values()]
    others = [
        number
        for number, each in enumerate(query.scopes)
        if name in each.sources and each.sources[name] != reference
    ]
    if not own:
        return bool(others)
    return any(
        one in _enclosing(query, other) or other in _enclosing(query, one) for one in own for other in others
    )


def _enclosing(query: Query, scope: int | None) -> Iterator[int]:
    while scope is not None:
        yield scope
        scope = query.scopes[scope].parent


def _qualifiers(query: Query, table: TableReference) -> Iterator[tuple[int, int, int]]:
    """Yield where columns name the table with its schema: where that begins, its last part, and the column.

    The longest name wins, as in Spark.
    """
    if table.alias is not None:
        return
    for starts, parts in query.qualifiers:
        for length in range(min(len(table.parts), len(parts) - 1), 1, -1):
            if _lower(parts[:length]) == _lower(table.parts[-length:]):
                yield starts[0], starts[length - 1], starts[length]
                break


def _lower(parts: Sequence[str]) -> list[str]:
    return [part.lower() for part in parts]


def literals_of(args: Any) -> dict[str, str] | list[str]:
    """Return the SQL text of parameters, without those that have none."""
    if isinstance(args, Mapping):
        texts = {name: literal_text(value) for name, value in args.items()}
        return {name: text for name, text in texts.items() if text is not None}
    found = [literal_text(value) for value in args or []]
    # Without one, the positions of the others would change.
    return [] if None in found else [str(each) for each in found]


def with_values(text: str, parameters: Mapping[str, str] | Sequence[str]) -> str | None:
    """Return a text with the values of its parameters in their place, None unless all are known."""
    if not parameters:
        return None
    try:
        found = dict(QueryTokens(text, Dialect().tokenize(text)).parameters((0, len(text)), parameters))
    except PARSER_ERRORS:
        return None
    values = {span: value for span, value in found.items() if value is not None}
    return splice(text, values) if len(values) == len(found) else None


FUNCTION = "table_changes"
NAME = "table changes {}"


class Changes(NamedTuple):
    """A call of `table_changes`: the table, and the first and the last version, or their timestamps."""

    table: tuple[str, ...]
    start: int | str
    end: int | str | None


def name_changes(text: str) -> tuple[str, Mapping[str, Changes]]:
    """Return a query with a name in place of each call of `table_changes`, and the calls by name."""
    cursor, calls, names = Cursor(text), dict[str, Changes](), dict[Span, str]()
    try:
        while (token := cursor.token).kind != "end":
            if token.word != FUNCTION or cursor.following.text != "(":
                cursor.take()
                continue
            name = NAME.format(len(calls))
            calls[name] = _call(cursor)
            names[token.start, cursor.position - 1] = f"`{name}`"
    except GrammarError:
        # Spark has the error for a text that has no tokens, or for a call with other arguments.
        return text, {}
    return splice(text, names), calls


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
