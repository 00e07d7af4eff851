"""Print the result of a command: sentences, tables and a hint, or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .tables import FIT, Heading, Layout, print_table
from .terminal import console, print_hint, print_json, print_lines

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
