"""The commands `inspect`, `stats`, `z85 decode` and `z85 encode`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from ..._text import count
from ...reports import bounds
from ...reports.explorer import explore
from ...reports.explorer_page import explorer_page
from ...reports.inspected_file import data_files, undecodable_bounds
from ...reports.shredding_tree import merge, shredding_of
from .. import statistics_report
from ..arguments import Expanded, FileOrTable, Json, Version, Wide
from ..common_options import storage_options
from ..examples import EXAMPLES
from ..exit_codes import FINDINGS
from ..help import Command, Group, examples_text
from ..output import write_page
from ..progress import showing_progress
from ..shredding_report import print_tree
from ..tables import Layout
from ..terminal import console, print_hint, print_json, print_lines

__all__ = ["inspect", "stats", "z85"]

SHOWN_FILES = 10


def inspect(
    target: FileOrTable,
    version: Version = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write an HTML page with values and estimates."),
    ] = None,
    wide: Wide = False,
    expanded: Expanded = False,
    json: Json = False,
) -> None:
    """Print how Variant columns are shredded: type, fill rate, bytes and bounds of each path.

    The page of --html also has example values, and estimates of what another shredding or sort order would
    change.
    """
    if html is not None:
        if Path(target).is_file():
            raise typer.BadParameter("--html describes a table: pass a Delta table instead of a file")
        with showing_progress():
            page = explorer_page(explore(target, version, storage_options()))
        write_page(html, page)
    with showing_progress():
        shredding = merge([shredding_of(file) for file in data_files(target, version, storage_options())])
    if json:
        print_json(shredding)
    else:
        print_tree(target, shredding, Layout(wide, expanded))


def stats(
    target: FileOrTable,
    version: Version = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute the statistics of a table from its data.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help=f"Maximum number of files; {SHOWN_FILES} by default, all with --json."
        ),
    ] = None,
    wide: Wide = False,
    expanded: Expanded = False,
    json: Json = False,
) -> None:
    """Print the statistics in the log of a table, or compute those of a Parquet file.

    With --json, one object per file. Exit status 1 means that bounds of these files cannot be decoded.
    """
    messages: list[str] = []
    shown = SHOWN_FILES if limit is None and not json else limit
    with showing_progress(if_redirected=True):
        files = data_files(target, version, storage_options(), exact=exact)
        for file in islice(files, shown):
            if json:
                print_json(statistics_report.json_report(file))
            else:
                statistics_report.print_tables(file, Layout(wide, expanded))
            messages += undecodable_bounds(file)
        is_rest = next(files, None) is not None
    if is_rest and not json:
        print_hint(f"the first {count(shown or 0, 'file')}: --limit shows more")
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


z85 = typer.Typer(
    cls=Group,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Decode and encode the Variants in statistics.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for each in (decode, encode):
    z85.command(cls=Command, epilog=examples_text(EXAMPLES[each.__name__]))(each)
