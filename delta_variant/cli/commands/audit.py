"""The commands `audit` and `repair-statistics`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...operations.audit import audit_table
from ...operations.statistics_repair import repair_statistics as repair_statistics_of
from ..arguments import Json, Table, Version
from ..audit_page import audit_page
from ..audit_report import print_findings, print_findings_json
from ..exit_codes import FINDINGS
from ..interrupts import all_or_nothing
from ..output import write_page
from ..repair_report import print_repair, print_repair_json

__all__ = ["audit", "repair_statistics"]


def audit(
    table: Table,
    data: Annotated[bool, typer.Option("--data", help="Check every row, too.")] = False,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="Check only this data file; repeatable.")
    ] = None,
    version: Version = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write an HTML page.")
    ] = None,
    json: Json = False,
) -> None:
    """Check the log, protocol, schema, files and statistics of a table.

    Exit status 1 means that a finding is an error or a warning.
    """
    found = audit_table(table, data=data, files=file, version=version)
    if html is not None:
        write_page(html, audit_page(found))
    if json:
        print_findings_json(found)
    else:
        print_findings(found)
    if not found.is_clean:
        raise typer.Exit(FINDINGS)


def repair_statistics(
    table: Table,
    yes: Annotated[
        bool,
        typer.Option("--yes/--dry-run", help="Commit the statistics. By default only the plan is printed."),
    ] = False,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="Repair only this data file; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Recompute wrong, missing and one-sided statistics from the data.

    Data files are not changed. Exit status 1 means that some statistics still need repair.
    """
    with all_or_nothing():
        result = repair_statistics_of(table, dry_run=not yes, files=file)
    if json:
        print_repair_json(result)
    else:
        print_repair(result)
    if result.unrepairable or (result.repairable and not yes):
        raise typer.Exit(FINDINGS)
