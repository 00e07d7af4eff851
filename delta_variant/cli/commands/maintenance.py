"""The commands `optimize`, `history`, `restore` and `vacuum`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...data_file.options import FileOptions
from ...operations.history import history as history_of
from ...operations.optimize.optimize import optimize as optimize_table
from ...operations.restore import restore as restore_table
from ...operations.vacuum import vacuum as vacuum_table
from ...variant.moments import UTC
from ..arguments import Json, Table, TargetFileSize, Timestamp, TimeZone, parse_size
from ..history import (
    print_history,
    print_history_json,
    print_restoration,
    print_restoration_json,
    print_vacuum,
    print_vacuum_json,
)
from ..interrupts import all_or_nothing
from ..rewrite_summary import print_optimization, print_optimization_json

__all__ = ["history", "optimize", "restore", "vacuum"]


def optimize(
    table: Table,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Optimize only partitions that match.")
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SQL", help="Sort by a column or path, such as event:user.id::bigint; repeatable."
        ),
    ] = None,
    reshred: Annotated[
        bool, typer.Option("--reshred", help="Infer new shredding schemas for all files.")
    ] = False,
    target_file_size: TargetFileSize = "128MB",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan only.")] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Combine small files, shred them by their current rows, and optionally sort them."""
    size = parse_size(target_file_size)
    with all_or_nothing():
        result = optimize_table(
            table,
            where,
            timezone=timezone,
            sort_by=sort_by,
            reshred=reshred,
            files=FileOptions(target_file_size=size),
            dry_run=dry_run,
        )
    if json:
        print_optimization_json(table, result)
    else:
        print_optimization(table, result)


def history(
    table: Table,
    limit: Annotated[int | None, typer.Option(min=0, help="Maximum number of commits.")] = None,
    json: Json = False,
) -> None:
    """Print the commits of a table, latest first.

    With --json, one object per commit: its commitInfo, version and timestamp.
    """
    entries = history_of(table, limit)
    if json:
        print_history_json(entries)
    else:
        print_history(entries)


def restore(
    table: Table,
    version: Annotated[int | None, typer.Option("--version", min=0, help="The version to restore.")] = None,
    timestamp: Timestamp = None,
    json: Json = False,
) -> None:
    """Restore a table to a version or timestamp with a new commit."""
    if (version is None) == (timestamp is None):
        raise typer.BadParameter("pass exactly one of --version and --timestamp")
    with all_or_nothing():
        restoration = restore_table(table, version, timestamp=timestamp)
    if json:
        print_restoration_json(table, restoration)
    else:
        print_restoration(table, restoration)


def vacuum(
    table: Table,
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Delete the files. By default they are only listed.")
    ] = False,
    retention_hours: Annotated[
        float | None,
        typer.Option(min=0, help="Keep files for this long. By default the table's property decides."),
    ] = None,
    enforce: Annotated[
        bool,
        typer.Option(
            "--enforce-retention/--no-enforce-retention", help="Reject hours below the table's retention."
        ),
    ] = True,
    json: Json = False,
) -> None:
    """Delete files that no version within the retention period references, one week by default."""
    result = vacuum_table(table, retention_hours, dry_run=not yes, enforce_retention_duration=enforce)
    if json:
        print_vacuum_json(table, result)
    else:
        print_vacuum(table, result)
