"""The commands `inspect`, `stats`, `z85 decode` and `z85 encode`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import bounds, statistics_report
from ..arguments import FileOrTable, Json, Version
from ..exit_codes import FINDINGS
from ..explorer import explore
from ..explorer_page import explorer_page
from ..inspected_file import data_files, undecodable_bounds
from ..output import write_page
from ..shredding_tree import merge, print_tree, shredding_of
from ..terminal import console, print_json, print_lines

__all__ = ["decode", "encode", "inspect", "stats"]


def inspect(
    target: FileOrTable,
    version: Version = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write an HTML page with values and estimates."),
    ] = None,
    json: Json = False,
) -> None:
    """Print how Variant columns are shredded: type, fill rate, bytes and bounds of each path.

    The page of --html also has example values, and estimates of what another shredding or sort order would
    change.
    """
    if html is not None:
        if Path(target).is_file():
            raise typer.BadParameter("--html describes a table: pass a Delta table instead of a file")
        write_page(html, explorer_page(explore(target, version)))
    shredding = merge([shredding_of(file) for file in data_files(target, version)])
    if json:
        print_json(shredding)
    else:
        print_tree(target, shredding)


def stats(
    target: FileOrTable,
    version: Version = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute the statistics of a table from its data.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the statistics in the log of a table, or compute those of a Parquet file.

    With --json, one object per file. Exit status 1 means that some bounds cannot be decoded.
    """
    messages: list[str] = []
    for file in data_files(target, version, exact=exact):
        if json:
            print_json(statistics_report.json_report(file))
        else:
            statistics_report.print_tables(file)
        messages += undecodable_bounds(file)
    if messages:
        print_lines(console(stderr=True), *messages)
        raise typer.Exit(FINDINGS)


def decode(
    text: Annotated[str, typer.Argument(help="The string of a Variant column in minValues or maxValues.")],
) -> None:
    """Print the Variant in a statistics string as JSON: the value and type of each path."""
    print_json(bounds.decode(text), indented=True)


def encode(
    text: Annotated[str, typer.Argument(metavar="JSON", help="An object that maps paths to values.")],
) -> None:
    """Print a JSON object that maps paths to values as a statistics string.

    The type of a value is inferred as by parse_json, or given as in {"type": "bigint", "value": 1}.
    """
    print(bounds.encode(text))
