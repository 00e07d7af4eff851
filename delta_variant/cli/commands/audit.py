"""The commands that find and repair faults of a table: `audit` and `repair`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...operations.audit import audit_table
from ...operations.statistics_repair import repair_table
from ..arguments import Json, Table, Version
from ..audit_page import audit_page
from ..audit_text import print_findings, print_findings_json
from ..exit_codes import FINDINGS
from ..interrupts import all_or_nothing
from ..output import write_page
from ..repair_text import print_repair, print_repair_json

__all__ = ["audit", "repair"]


def audit(
    table: Table,
    data: Annotated[bool, typer.Option("--data", help="Look at every row, too.")] = False,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="Look at this data file only; repeatable.")
    ] = None,
    version: Version = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write a page for a browser.")
    ] = None,
    json: Json = False,
) -> None:
    """Find what is wrong with a table: its log, protocol, schema, files and statistics.

    Exit status 1 says that there is an error or a warning among the findings.
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


def repair(
    table: Table,
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Commit the statistics; by default the plan is shown.")
    ] = False,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="Repair this data file only; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Compute statistics that are wrong, absent or one-sided from the data, and commit them.

    No data file is touched. Exit status 1 says that there is something left to repair.
    """
    with all_or_nothing():
        result = repair_table(table, dry_run=not yes, files=file)
    if json:
        print_repair_json(result)
    else:
        print_repair(result)
    if result.unrepairable or (result.repairable and not yes):
        raise typer.Exit(FINDINGS)
