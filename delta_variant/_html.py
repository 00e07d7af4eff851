"""Small HTML tables for notebooks: escaped, without scripts or styles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["MAX_ROWS", "html_table", "html_text"]

MAX_ROWS = 10
"""The most rows that a table of values shows."""

MAX_CHARACTERS = 120

# Control characters, and those that reverse or hide text, such as U+202E.
_HIDDEN = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0xAD], "\ufffd") | dict.fromkeys(
    [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF], "\ufffd"
)


def html_text(value: object) -> str:
    """Return the text of a value, shortened and escaped for HTML."""
    text = str(value)
    if len(text) > MAX_CHARACTERS:
        text = f"{text[: MAX_CHARACTERS - 1]}…"
    plain = text.translate(_HIDDEN).encode("utf-8", "replace").decode("utf-8")
    return escape(plain)


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; caption, headings and cells are text, not HTML."""
    head = "".join(f"<th>{html_text(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{html_text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    return f"<td>{'' if value is None else html_text(value)}</td>"
