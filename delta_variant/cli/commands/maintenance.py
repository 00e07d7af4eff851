"""The commands `optimize`, `history`, `restore`, `vacuum` and `clean-up-log`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...data_file.options import FileOptions
from ...execution import Description
from ...operations.history import history as history_of
from ...operations.log_cleanup import LogCleanupResult
from ...operations.log_cleanup import clean_up_log as clean_up_log_of
from ...operations.optimize.optimize import optimize as optimize_table
from ...operations.restore import plan_restore
from ...operations.restore import restore as restore_table
from ...operations.vacuum import plan_vacuum
from ...operations.vacuum import vacuum as vacuum_table
from ...variant.moments import UTC
from ..arguments import (
    DryRun,
    Expanded,
    Json,
    ResidualRows,
    Table,
    TargetFileSize,
    Timestamp,
    TimeZone,
    Wide,
    Yes,
    parse_size,
)
from ..common_options import storage_options
from ..confirmation import confirm
from ..history import (
    print_history,
    print_history_json,
    print_log_cleanup,
    print_log_cleanup_json,
    print_restoration,
    print_restoration_json,
    print_vacuum,
    print_vacuum_json,
)
from ..interrupts import all_or_nothing
from ..plans import describe, plan_log_cleanup
from ..progress import showing_progress
from ..rewrite_summary import print_optimization, print_optimization_json
from ..tables import Layout

__all__ = ["clean_up_log", "history", "optimize", "restore", "vacuum"]


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
    residual_rows: ResidualRows = "separate",
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Combine small files, shred them by their current rows, and optionally sort them."""
    size = parse_size(target_file_size)
    with all_or_nothing(), showing_progress():
        result = optimize_table(
            table,
            where,
            timezone=timezone,
            sort_by=sort_by,
            reshred=reshred,
            files=FileOptions(target_file_size=size, residual_rows=residual_rows),
            dry_run=dry_run,
            storage_options=storage_options(),
        )
    if json:
        print_optimization_json(table, result)
    else:
        print_optimization(table, result)


def history(
    table: Table,
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="Maximum number of commits.")] = None,
    wide: Wide = False,
    expanded: Expanded = False,
    json: Json = False,
) -> None:
    """Print the commits of a table, latest first.

    With --json, one object per commit: its commitInfo, version and timestamp.
    """
    entries = history_of(table, limit, storage_options=storage_options())
    if json:
        print_history_json(entries)
    else:
        print_history(entries, Layout(wide, expanded))


def restore(
    table: Table,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=0, help="The version to restore.")
    ] = None,
    timestamp: Timestamp = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Restore a table to a version or timestamp with a new commit."""
    if (version is None) == (timestamp is None):
        raise typer.BadParameter("pass exactly one of --version and --timestamp")

    def plan() -> Description:
        found = plan_restore(table, version, timestamp=timestamp, storage_options=storage_options())
        return describe(table, found)

    if not confirm("restore", plan, yes=yes, dry_run=dry_run, json=json):
        return
    with all_or_nothing(), showing_progress():
        restoration = restore_table(table, version, timestamp=timestamp, storage_options=storage_options())
    if json:
        print_restoration_json(table, restoration)
    else:
        print_restoration(table, restoration)


def vacuum(
    table: Table,
    retention_hours: Annotated[
        float | None,
        typer.Option(
            metavar="HOURS", min=0, help="Keep files for this long. By default the table's property decides."
        ),
    ] = None,
    enforce: Annotated[
        bool,
        typer.Option(
            "--enforce-retention/--no-enforce-retention", help="Reject hours below the table's retention."
        ),
    ] = True,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Delete files that no version within the retention period references, one week by default."""

    def plan() -> Description:
        with showing_progress():
            found = plan_vacuum(
                table, retention_hours, enforce_retention_duration=enforce, storage_options=storage_options()
            )
            return describe(table, found)

    if not confirm("vacuum", plan, yes=yes, dry_run=dry_run, json=json):
        return
    with all_or_nothing("nothing was deleted"), showing_progress():
        result = vacuum_table(
            table,
            retention_hours,
            dry_run=False,
            enforce_retention_duration=enforce,
            storage_options=storage_options(),
        )
    if json:
        print_vacuum_json(table, result)
    else:
        print_vacuum(table, result)


def clean_up_log(table: Table, yes: Yes = False, dry_run: DryRun = False, json: Json = False) -> None:
    """Delete commits and checkpoints older than the retention of the log, 30 days by default."""

    def run(*, only_plan: bool) -> LogCleanupResult:
        with showing_progress():
            return clean_up_log_of(table, dry_run=only_plan, storage_options=storage_options())

    if not confirm(
        "clean-up-log",
        lambda: plan_log_cleanup(table, run(only_plan=True)),
        yes=yes,
        dry_run=dry_run,
        json=json,
    ):
        return
    with all_or_nothing("the remaining versions can be loaded"):
        result = run(only_plan=False)
    if json:
        print_log_cleanup_json(table, result)
    else:
        print_log_cleanup(table, result)
