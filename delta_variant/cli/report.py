"""Print the result of a command: sentences, tables and a hint, or JSON.

Tables have aligned columns that fit a terminal, tab-separated lines in a pipe, or a line for each field.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from ..errors import printable
from .terminal import console, print_hint, print_json, print_lines

Heading: TypeAlias = tuple[str, Literal["left", "right", "key", "detail"]]
"""The title of a table column, and how it is shown.

Numbers are on the right, and are not truncated. A key, which says what a row is about, is truncated last.
Details are hidden first.
"""


def headings(text: str) -> tuple[Heading, ...]:
    """Return the headings that a text lists, such as `path: key, type, rows: right`; others are `left`."""
    parts = (part.partition(": ") for part in text.split(", "))
    return tuple((title, side or "left") for title, _, side in parts)  # type: ignore[misc]


GAP = 2
ELLIPSIS = "…"
LEAST_WIDTH = 12
"""Columns of text shrink to this width, or to the width of their title, before a column is hidden."""
MAX_LEAST_WIDTH = 24
"""Titles and numbers that are wider than this shrink, too."""
MAX_KEY_WIDTH = 40


@dataclass(frozen=True)
class Layout:
    """How a table is printed: fitted to the terminal, with all columns, or with one field per line."""

    wide: bool = False
    expanded: bool = False


FIT = Layout()


def print_table(
    out: Console, headings: Sequence[Heading], rows: Iterable[Sequence[Any]], layout: Layout = FIT
) -> None:
    """Print rows of cells with headings, one line for each row.

    On a terminal, long cells are truncated, and columns in the middle are hidden if the others do not fit. In
    a pipe, cells are complete and separated by tabs, which cells cannot contain.
    """
    titles = [printable(title) for title, _ in headings]
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if layout.expanded:
        _print_expanded(out, titles, cells)
    elif not out.is_terminal:
        _print_raw(out, "\t".join(titles), *("\t".join(row) for row in cells))
    else:
        _print_aligned(out, headings, [titles, *cells], sys.maxsize if layout.wide else out.width)


def _print_raw(out: Console, *lines: str) -> None:
    for line in lines:
        out.file.write(f"{line}\n")


def _print_aligned(
    out: Console, headings: Sequence[Heading], lines: Sequence[Sequence[str]], space: int
) -> None:
    natural = [max(map(cell_len, texts)) for texts in zip(*lines, strict=True)]
    sides = [side for _, side in headings]
    least = [_least(*each) for each in zip(natural, map(cell_len, lines[0]), sides, strict=True)]
    shown = _columns_that_fit(least, sides, space)
    hidden = len(natural) - len(shown)
    preferred = [min(natural[each], MAX_KEY_WIDTH) if sides[each] == "key" else 0 for each in shown]
    widths = _widths([(least[each], natural[each]) for each in shown], space, hidden, preferred)
    first_hidden = next((place for place, column in enumerate(shown) if place != column), len(shown))
    for number, line in enumerate(lines):
        parts = [
            _fitted(line[column], width, sides[column]) for column, width in zip(shown, widths, strict=True)
        ]
        if hidden:
            parts.insert(first_hidden, ELLIPSIS)
        style = "bold" if number == 0 else ""
        out.print(Text((" " * GAP).join(parts).rstrip(), style=style), soft_wrap=True)
    if hidden:
        columns = f"{hidden:,} of {len(natural):,} columns are hidden"
        print_hint(f"{columns}: --wide shows all, -x prints one column per line")


def _least(natural: int, title: int, side: str) -> int:
    """Return the width to which a column can shrink."""
    readable = natural if side in ("right", "key") else max(LEAST_WIDTH, title)
    return min(natural, readable, MAX_LEAST_WIDTH)


def _columns_that_fit(least: Sequence[int], sides: Sequence[str], space: int) -> list[int]:
    """Return the positions of the columns to show. Details are hidden first, then those in the middle."""
    shown = list(range(len(least)))
    while len(shown) > 1 and _total([least[each] for each in shown], len(least) - len(shown)) > space:
        details = [place for place, column in enumerate(shown) if sides[column] == "detail"]
        del shown[details[-1] if details else len(shown) // 2]
    return shown


def _total(widths: Sequence[int], hidden: int) -> int:
    return sum(widths) + GAP * (len(widths) - 1) + (GAP + len(ELLIPSIS) if hidden else 0)


def _widths(
    columns: Sequence[tuple[int, int]], space: int, hidden: int, preferred: Sequence[int]
) -> list[int]:
    """Return the widths of columns that fit in a line, given the least and the natural width of each.

    The widest columns are truncated to the same width, but not below their preferred width if that fits.
    """
    wanted = [max(least, width) for (least, _), width in zip(columns, preferred, strict=True)]
    if _total(wanted, hidden) <= space:
        columns = [(width, natural) for width, (_, natural) in zip(wanted, columns, strict=True)]

    def limited(limit: int) -> list[int]:
        return [max(least, min(natural, limit)) for least, natural in columns]

    low, high = 0, max((natural for _, natural in columns), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if _total(limited(middle), hidden) <= space:
            low = middle
        else:
            high = middle - 1
    return [min(width, space) for width in limited(low)]


def _fitted(text: str, width: int, side: str) -> str:
    used = cell_len(text)
    if used > width:
        return set_cell_size(text, width - 1) + ELLIPSIS
    padding = " " * (width - used)
    return padding + text if side == "right" else text + padding


def _print_expanded(out: Console, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(cell_len, titles), default=0)
    for number, row in enumerate(rows, 1):
        heading = f"-[ record {number} ]".ljust(width + GAP + 1, "-")
        fields = (
            f"{_fitted(title, width, 'left')} | {cell}" for title, cell in zip(titles, row, strict=True)
        )
        _print_raw(out, heading, *(field.rstrip() for field in fields))


Rows: TypeAlias = tuple[Sequence[Heading], Iterable[Sequence[Any]]]
"""A table: its headings and its rows."""


@dataclass(frozen=True)
class Report:
    """A result as a command prints it.

    `json` is an object, or a list of objects for one line each. `hint` explains on standard error what the
    text omits.
    """

    json: object
    lines: Iterable[str] = ()
    tables: Iterable[Rows] = ()
    hint: str | None = None


def facts(value: object, names: str) -> dict[str, Any]:
    """Return attributes of a value, whose names are separated by spaces, for an object of JSON."""
    return {name: getattr(value, name) for name in names.split()}


def render(report: Report, *, json: bool, layout: Layout = FIT) -> None:
    """Print a report: an empty line precedes each table that follows something."""
    if json:
        for each in report.json if isinstance(report.json, list) else [report.json]:
            print_json(each)
        return
    out, is_first = console(), True
    for line in report.lines:
        print_lines(out, line)
        is_first = False
    for headings, rows in report.tables:
        if not is_first:
            print_lines(out, "")
        print_table(out, headings, rows, layout)
        is_first = False
    if report.hint is not None:
        print_hint(report.hint)
