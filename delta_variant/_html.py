"""Small HTML tables for notebooks: escaped, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape

MAX_ROWS = 10
"""The most rows that a table of values shows."""

MAX_CHARACTERS = 120

# Notebooks align cells to the right, which suits numbers alone.
LEFT = ' style="text-align: left"'
CAPTION = ' style="text-align: left; white-space: nowrap"'

# Control characters, and those that reverse or hide text, such as U+202E.
_HIDDEN = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0xAD], "\ufffd") | dict.fromkeys(
    [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF], "\ufffd"
)


def html_text(value: object, longest: int = MAX_CHARACTERS) -> str:
    """Return the text of a value, shortened and escaped for HTML."""
    text = str(value)
    if len(text) > longest:
        text = f"{text[: longest - 1]}…"
    plain = text.translate(_HIDDEN).encode("utf-8", "replace").decode("utf-8")
    return escape(plain)


def html_table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    types: Sequence[str] = (),
    longest: int = MAX_CHARACTERS,
) -> str:
    """Return a table, whose texts are not HTML, but for bars.

    Args:
        caption: The text above the table.
        headings: The names of the columns.
        rows: The cells. None is shown as null.
        types: The types of the columns, shown below their names.
        longest: The number of characters after which texts of cells are cut.
    """
    names = [html_text(heading) for heading in headings]
    if types:
        names = [
            f"{name}<br><small>{html_text(each)}</small>" for name, each in zip(names, types, strict=True)
        ]
    head = "".join(f"<th{LEFT}>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(cell, longest) for cell in row)}</tr>" for row in rows)
    return (
        f"<table><caption{CAPTION}>{html_text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


class Html(str):
    """A text that is HTML, as a cell."""


def html_bar(share: float) -> Html:
    """Return a bar that is filled to a share of its width."""
    filled = f"height: 0.8em; width: {100 * share:.1f}%; min-width: 1px; background: #2f81f7"
    return Html(f'<div style="width: 16em; background: #8884"><div style="{filled}"></div></div>')


def _cell(value: object, longest: int) -> str:
    if value is None:
        return f"<td{LEFT}><i>null</i></td>"
    if isinstance(value, Html):
        return f"<td>{value}</td>"
    alignment = "" if isinstance(value, (int, float, Decimal)) else LEFT
    return f"<td{alignment}>{html_text(value, longest)}</td>"
