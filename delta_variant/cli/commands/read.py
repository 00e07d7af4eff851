"""The commands `read` and `changes`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from ...operations.changes import read_changes
from ...operations.read import read_table
from ...variant.moments import UTC
from ..arguments import Expanded, Table, Timestamp, TimeZone, Version, Wide
from ..common_options import storage_options
from ..progress import showing_progress
from ..rows import OutputFormat, print_rows
from ..tables import Layout
from ..terminal import console, print_json, print_lines

__all__ = ["changes", "read"]

NAMED_EXPRESSION = re.compile(r"(?P<name>\w+)\s*=(?!=)(?P<expression>.+)", re.DOTALL)

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", "-c", metavar="SQL", help="A column, such as user=event:user.id::bigint; repeatable."
    ),
]
Where = Annotated[str | None, typer.Option(metavar="SQL", help="Print only rows that match.")]
RowLimit = Annotated[int | None, typer.Option(min=0, metavar="N", help="Maximum number of rows.")]
Format = Annotated[
    OutputFormat, typer.Option("--format", help="Output format; json prints one object per line.")
]
JsonFormat = Annotated[bool, typer.Option("--json", help="Short for --format json.")]


def read(
    table: Table,
    column: Columns = None,
    where: Where = None,
    lateral: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="A row per part: variant_explode(event:items) as item."),
    ] = None,
    timezone: TimeZone = UTC,
    limit: RowLimit = None,
    output_format: Format = "table",
    json: JsonFormat = False,
    wide: Wide = False,
    expanded: Expanded = False,
    version: Version = None,
    timestamp: Timestamp = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what is read and skipped instead of the rows.")
    ] = False,
) -> None:
    """Print rows of a table, or columns and Variant paths."""
    columns = [_select_item(text) for text in column] if column else None
    with showing_progress(if_redirected=True):
        scan = read_table(
            table,
            columns=columns,
            where=where,
            lateral=lateral,
            timezone=timezone,
            version=version,
            timestamp=timestamp,
            storage_options=storage_options(),
        )
        if not explain:
            print_rows(scan.to_reader(), "json" if json else output_format, limit, Layout(wide, expanded))
        elif json:
            print_json(scan.explain())
        else:
            print_lines(console(), *str(scan.explain()).splitlines())


def changes(
    table: Table,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION|TIME",
            help="The first version, or the first one at or after a time; 0 by default.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION|TIME",
            help="The last version, or the last one at or before a time; latest by default.",
        ),
    ] = None,
    column: Columns = None,
    where: Where = None,
    timezone: TimeZone = UTC,
    limit: RowLimit = None,
    output_format: Format = "table",
    json: JsonFormat = False,
    wide: Wide = False,
    expanded: Expanded = False,
) -> None:
    """Print inserted, deleted and updated rows from the change data feed of a table."""
    with showing_progress(if_redirected=True):
        scan = read_changes(
            table,
            start=_version_or_time(start),
            end=_version_or_time(end),
            columns=[_select_item(text) for text in column] if column else None,
            where=where,
            timezone=timezone,
            storage_options=storage_options(),
        )
        print_rows(scan.to_reader(), "json" if json else output_format, limit, Layout(wide, expanded))


def _version_or_time(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text


def _select_item(text: str) -> str:
    found = NAMED_EXPRESSION.fullmatch(text)
    return f"{found['expression']} as `{found['name']}`" if found else text
