"""The commands that maintain a table: `optimize`, `history`, `restore` and `vacuum`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...operations.history import history as history_of
from ...operations.optimize.optimize import optimize as optimize_table
from ...operations.restore import restore as restore_table
from ...operations.vacuum import vacuum as vacuum_table
from ...variant.moments import UTC
from ..arguments import Json, Table, TargetFileSize, Timestamp, TimeZone, parse_size
from ..interrupts import all_or_nothing
from ..rewriting import print_optimization, print_optimization_json
from ..timeline import (
    print_history,
    print_history_json,
    print_restoration,
    print_restoration_json,
    print_vacuum,
    print_vacuum_json,
)

__all__ = ["history", "optimize", "restore", "vacuum"]


def optimize(
    table: Table,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Only partitions for which this is true.")
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option(metavar="SQL", help="Sort by a column or path: event:user.id::bigint; repeatable."),
    ] = None,
    reshred: Annotated[
        bool, typer.Option("--reshred", help="Also files whose paths have changed since they were written.")
    ] = False,
    target_file_size: TargetFileSize = "128MB",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Write small files as one, shredded by what their rows have become, and sorted if you like."""
    size = parse_size(target_file_size)
    with all_or_nothing():
        result = optimize_table(
            table,
            where,
            timezone=timezone,
            sort_by=sort_by,
            reshred=reshred,
            target_file_size=size,
            dry_run=dry_run,
        )
    if json:
        print_optimization_json(table, result)
    else:
        print_optimization(table, result)


def history(
    table: Table,
    limit: Annotated[int | None, typer.Option(min=0, help="Print so many commits at most.")] = None,
    json: Json = False,
) -> None:
    """Print what happened to a table, the latest commit first.

    With --json, one object a commit: what it says of itself, its version and its time.
    """
    entries = history_of(table, limit)
    if json:
        print_history_json(entries)
    else:
        print_history(entries)


def restore(
    table: Table,
    version: Annotated[int | None, typer.Option("--version", min=0, help="What is to come back.")] = None,
    timestamp: Timestamp = None,
    json: Json = False,
) -> None:
    """Bring a table back to what it was at a version or a time, by a new commit."""
    if (version is None) == (timestamp is None):
        raise typer.BadParameter("give one of --version and --timestamp")
    with all_or_nothing():
        restoration = restore_table(table, version, timestamp=timestamp)
    if json:
        print_restoration_json(table, restoration)
    else:
        print_restoration(table, restoration)


def vacuum(
    table: Table,
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Delete the files; by default they are only named.")
    ] = False,
    retention_hours: Annotated[
        float | None, typer.Option(min=0, help="Keep files for so long; by default what the table says.")
    ] = None,
    enforce: Annotated[
        bool,
        typer.Option("--enforce-retention/--no-enforce-retention", help="Refuse hours below the table's."),
    ] = True,
    json: Json = False,
) -> None:
    """Delete files that no version within the retention needs, a week unless the table says otherwise."""
    result = vacuum_table(table, retention_hours, not yes, enforce)
    if json:
        print_vacuum_json(table, result)
    else:
        print_vacuum(table, result)
