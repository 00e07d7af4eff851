"""The command `migrate`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ...operations.legacy.migration import migrate_legacy
from ..arguments import Json
from ..interrupts import all_or_nothing
from ..migration_summary import MigrationSummary
from ..progress import showing_progress

__all__ = ["migrate"]


def migrate(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A Parquet file in the older Spark layout, or a folder.")
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="A new file or folder, or an empty folder."),
    ],
    shredding: Annotated[
        Literal["same", "infer", "none"],
        typer.Option(help="Keep the shredded paths, infer new ones, or shred nothing."),
    ] = "same",
    compat: Annotated[
        bool,
        typer.Option("--compat", help="Read contradictory columns as the legacy algorithm does."),
    ] = False,
    json: Json = False,
) -> None:
    """Rewrite files of the older Spark Variant layout in the current layout.

    Values, other columns, rows and file names stay the same. The source is not modified.
    """
    with all_or_nothing(), showing_progress():
        result = migrate_legacy(
            source, target, shredding=None if shredding == "none" else shredding, compat=compat
        )
    summary = MigrationSummary(source, target, result)
    if json:
        summary.print_json()
    else:
        summary.print_text()
