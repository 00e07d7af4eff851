"""The commands that write values: `write` and `migrate`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ...operations.legacy.migration import migrate_draft
from ...operations.write import write_table
from ...variant.moments import UTC
from ..arguments import Json, Table, TargetFileSize, TimeZone, parse_size
from ..exit_codes import FINDINGS
from ..inputs import open_inputs
from ..interrupts import all_or_nothing
from ..migration import MigrationSummary
from ..progress import Intake
from ..summary import WriteSummary

__all__ = ["migrate", "write"]


def write(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="JSON files, globs, or - for standard input.")
    ],
    table: Table,
    column: Annotated[str, typer.Option(help="The Variant column that takes the values.")] = "value",
    mode: Annotated[
        Literal["error", "append", "overwrite", "ignore"],
        typer.Option(help="What to do when the table exists."),
    ] = "error",
    predicate: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="With --mode overwrite: replace only rows for which this is true."),
    ] = None,
    shredding: Annotated[
        bool, typer.Option("--shredding/--no-shredding", help="Give common paths columns of their own.")
    ] = True,
    schema_mode: Annotated[
        Literal["merge", "overwrite"] | None,
        typer.Option(help="Add the column to a table that lacks it, or make it the table's only one."),
    ] = None,
    on_invalid: Annotated[
        Literal["error", "reject", "null"],
        typer.Option(help="For a line that is not valid: stop, write it to --rejects, or store NULL."),
    ] = "error",
    rejects: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where rejected lines go, with their reasons.")
    ] = None,
    floats: Annotated[
        Literal["decimal", "double"], typer.Option(help="What numbers with a fraction become.")
    ] = "decimal",
    duplicate_keys: Annotated[
        Literal["error", "last"],
        typer.Option(help="For an object that has a name twice: it is invalid, or the last counts."),
    ] = "error",
    target_file_size: TargetFileSize = "128MB",
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Accept input without any value; by default it is an error.")
    ] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Write JSON lines, or arrays of JSON, to a Delta table as one commit.

    .gz, .zst, .xz and .bz2 are decompressed. Exit status 1 says that lines were rejected or stored as NULL.
    """
    if (on_invalid == "reject") != (rejects is not None):
        raise typer.BadParameter("--on-invalid reject and --rejects FILE go together")
    intake = Intake()
    lines = open_inputs(inputs, column, allow_empty=allow_empty, progress=intake.update)
    with all_or_nothing(), intake.shown(lines.size):
        result = write_table(
            table,
            lines,
            mode=mode,
            schema_mode=schema_mode,
            predicate=predicate,
            timezone=timezone,
            shredding="infer" if shredding else None,
            on_invalid=on_invalid,
            rejects=rejects,
            floats=floats,
            duplicate_keys=duplicate_keys,
            target_file_size=parse_size(target_file_size),
        )
    summary = WriteSummary(table, result, intake, rejects)
    if json:
        summary.print_json()
    else:
        summary.print_text()
    if result.invalid:
        raise typer.Exit(FINDINGS)


def migrate(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A Parquet file of the older Spark draft, or a folder.")
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="A file or folder that does not exist, or an empty folder."),
    ],
    shredding: Annotated[
        Literal["same", "infer", "none"],
        typer.Option(help="Which paths get columns of their own: the same, those that pay, or none."),
    ] = "same",
    compat: Annotated[
        bool,
        typer.Option("--compat", help="Read columns that contradict each other as the draft's algorithm."),
    ] = False,
    json: Json = False,
) -> None:
    """Write files in the Variant layout of the older Spark draft anew in the present layout.

    Values, other columns, rows and file names stay. The source is only read.
    """
    with all_or_nothing():
        result = migrate_draft(
            source, target, shredding=None if shredding == "none" else shredding, compat=compat
        )
    summary = MigrationSummary(source, target, result)
    if json:
        summary.print_json()
    else:
        summary.print_text()
