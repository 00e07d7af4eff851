"""The commands that print shredding and statistics: `inspect`, `stats` and the two of `z85`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import bounds, statistics
from ..arguments import FileOrTable, Json, Version
from ..exit_codes import FINDINGS
from ..shredding_tree import merge, print_tree, shredding_of
from ..target import data_files, undecodable
from ..terminal import console, print_json, print_lines

__all__ = ["decode", "encode", "inspect", "stats"]


def inspect(target: FileOrTable, version: Version = None, json: Json = False) -> None:
    """Print how Variant columns are shredded: each path, its type, how full it is, its bytes and bounds."""
    shredding = merge([shredding_of(file) for file in data_files(target, version)])
    if json:
        print_json(shredding)
    else:
        print_tree(target, shredding)


def stats(
    target: FileOrTable,
    version: Version = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute those of a table from its data, as a Parquet file's are.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the statistics of data files: those in a table's log, or those computed from a Parquet file.

    With --json, one object a file. Exit status 1 says that bounds cannot be decoded.
    """
    faults: list[str] = []
    for file in data_files(target, version, exact=exact):
        if json:
            print_json(statistics.json_report(file))
        else:
            statistics.print_tables(file)
        faults += undecodable(file)
    if faults:
        print_lines(console(stderr=True), *faults)
        raise typer.Exit(FINDINGS)


def decode(
    text: Annotated[
        str, typer.Argument(help="What minValues or maxValues of AddFile.stats have for a Variant column.")
    ],
) -> None:
    """Print the Variant in a statistics string as JSON: each path's value, and the type that holds it."""
    print_json(bounds.decode(text), indented=True)


def encode(
    text: Annotated[str, typer.Argument(metavar="JSON", help="An object from paths to values.")],
) -> None:
    """Print a JSON object from paths to values as a statistics string.

    A value gets the type that parse_json gives it, or the one that {"type": "bigint", "value": 1} says.
    """
    print(bounds.encode(text))
