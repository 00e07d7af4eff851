"""Parse the SQL text that other writers store in a table: constraints and generated columns.

Text in double quotes is a string for Spark, and a name for deltalake, which quotes each name that has a
capital letter or a special character. A table does not say which of them wrote the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..errors import ExpressionError
from ..expressions.parse import parse
from ..expressions.tree import Expression

__all__ = ["parse_stored"]

TOKEN = re.compile(
    r"""
    ' (?: [^'\\] | \\. | '' )* '  |  ` (?: [^`] | `` )* `  |  --[^\n]*  |  /\* .*? \*/
    |  (?: : | \[ ) \s* " (?: [^"\\] | \\. )* "
    |  (?P<part> \. \s* )? " (?P<quoted> (?: [^"\\] | \\. | "" )* ) "
    """,
    re.DOTALL | re.VERBOSE,
)


def parse_stored(text: str, columns: Collection[str]) -> Expression:
    """Return the expression in `text`, in which the name of a column in double quotes is this column.

    Steps of Variant paths stay text. Raises ExpressionError for text that cannot be parsed, or that has both
    a column and something else in double quotes.
    """
    quoted = list(_quoted(text))
    if not quoted:
        return parse(text)
    are_names = {is_part or name in columns for name, is_part in quoted}
    if are_names == {False}:
        return parse(text)
    if are_names != {True}:
        names = ", ".join(f'"{name}"' for name, _ in quoted)
        raise ExpressionError(
            f"text in double quotes is a name for deltalake and a string for Spark, and only some of {names} "
            "are columns: quote names with backquotes and strings with apostrophes"
        )
    return parse(TOKEN.sub(_with_backquotes, text))


def _quoted(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each text in double quotes, and whether it is a field of the name before it."""
    for token in TOKEN.finditer(text):
        if token["quoted"] is not None:
            yield token["quoted"].replace('""', '"'), token["part"] is not None


def _with_backquotes(token: re.Match[str]) -> str:
    if token["quoted"] is None:
        return token[0]
    name = token["quoted"].replace('""', '"').replace("`", "``")
    return f"{token['part'] or ''}`{name}`"
