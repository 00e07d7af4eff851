"""The commands `write` and `migrate`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ...data_file.options import FileOptions, JsonOptions
from ...operations.legacy.migration import migrate_legacy
from ...operations.write import write_table
from ...variant.moments import UTC
from ..arguments import Json, Table, TargetFileSize, TimeZone, parse_size
from ..exit_codes import FINDINGS
from ..inputs import open_inputs
from ..interrupts import all_or_nothing
from ..migration_summary import MigrationSummary
from ..progress import Intake
from ..write_summary import WriteSummary

__all__ = ["migrate", "write"]


def write(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="JSON files, globs, or - for standard input.")
    ],
    table: Table,
    column: Annotated[str, typer.Option(help="The Variant column for the values.")] = "value",
    mode: Annotated[
        Literal["error", "append", "overwrite", "ignore"],
        typer.Option(help="What to do if the table exists."),
    ] = "error",
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="With --mode overwrite, replace only rows that match."),
    ] = None,
    shredding: Annotated[
        bool, typer.Option("--shredding/--no-shredding", help="Shred common paths into typed columns.")
    ] = True,
    schema_mode: Annotated[
        Literal["merge", "overwrite"] | None,
        typer.Option(help="Add the column to the schema, or replace the schema with it."),
    ] = None,
    on_invalid: Annotated[
        Literal["error", "reject", "null"],
        typer.Option(help="For invalid lines: stop, write them to --rejects, or store NULL."),
    ] = "error",
    rejects: Annotated[
        str | None, typer.Option(metavar="FILE", help="The file for rejected lines and their reasons.")
    ] = None,
    floats: Annotated[
        Literal["decimal", "double"], typer.Option(help="The type of numbers with a fraction.")
    ] = "decimal",
    duplicate_keys: Annotated[
        Literal["error", "last"],
        typer.Option(help="For duplicate names in an object: reject it, or use the last value."),
    ] = "error",
    target_file_size: TargetFileSize = "128MB",
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Accept input without any value, which is an error by default."),
    ] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Write JSON lines or JSON arrays to a Delta table with one commit.

    .gz, .zst, .xz and .bz2 are decompressed. Exit status 1 means that lines were rejected or stored as NULL.
    """
    if (on_invalid == "reject") != (rejects is not None):
        raise typer.BadParameter("--on-invalid reject requires --rejects FILE, and the reverse")
    options = JsonOptions(on_invalid, rejects, floats, duplicate_keys)
    intake = Intake()
    lines = open_inputs(inputs, column, allow_empty=allow_empty, progress=intake.update)
    with all_or_nothing(), intake.show(lines.size):
        result = write_table(
            table,
            lines,
            mode=mode,
            schema_mode=schema_mode,
            where=where,
            timezone=timezone,
            shredding="infer" if shredding else None,
            files=FileOptions(target_file_size=parse_size(target_file_size)),
            json=options,
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
    with all_or_nothing():
        result = migrate_legacy(
            source, target, shredding=None if shredding == "none" else shredding, compat=compat
        )
    summary = MigrationSummary(source, target, result)
    if json:
        summary.print_json()
    else:
        summary.print_text()
