"""The values of the parameters of a query as SQL text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...statements.parameters import literal_text
from .spans import QueryTokens
from .syntax import PARSER_ERRORS, Dialect


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
        found = [*QueryTokens(text, Dialect().tokenize(text)).parameters((0, len(text)), parameters)]
    except PARSER_ERRORS:
        return None
    for (start, end), value in reversed(found):
        if value is None:
            return None
        text = f"{text[:start]}{value}{text[end + 1 :]}"
    return text
