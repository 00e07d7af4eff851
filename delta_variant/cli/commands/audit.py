"""The commands `audit` and `repair-statistics`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from ...operations.audit import audit_table
from ...operations.statistics_repair import repair_statistics as repair_statistics_of
from ...reports.audit_page import audit_page
from ...reports.rule_texts import rules
from ..arguments import DryRun, Json, Table, Version
from ..audit_report import Selection, print_findings, print_findings_json, print_summary
from ..common_options import storage_options
from ..exit_codes import FINDINGS
from ..interrupts import all_or_nothing
from ..output import write_page
from ..progress import showing_progress
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
    severity: Annotated[
        Literal["error", "warning", "note"],
        typer.Option("--severity", help="Print only findings of at least this severity."),
    ] = "note",
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="ID", help="Print only findings of this rule; repeatable."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Maximum number of lines of findings.")
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--all", help="Print every finding by file instead of a line per rule.")
    ] = False,
    json: Json = False,
) -> None:
    """Check the log, protocol, schema, files and statistics of a table.

    Prints a line per violated rule, errors first. Exit status 1 means that a finding is an error or a
    warning, whatever is printed.
    """
    selection = Selection("info" if severity == "note" else severity, _known(rule or ()))
    with showing_progress():
        found = audit_table(table, data=data, files=file, version=version, storage_options=storage_options())
    if html is not None:
        write_page(html, audit_page(found))
    if json:
        print_findings_json(found, selection)
    elif list_all:
        print_findings(found, selection, limit)
    else:
        print_summary(found, selection, limit)
    if not found.is_clean:
        raise typer.Exit(FINDINGS)


def _known(names: Sequence[str]) -> frozenset[str]:
    """Return rule ids in upper case. Raise BadParameter for an id that the catalogue does not have."""
    known = rules()
    for name in names:
        if name.upper() not in known:
            raise typer.BadParameter(f"unknown rule {name!r}: expected one of {', '.join(known)}")
    return frozenset(name.upper() for name in names)


def repair_statistics(
    table: Table,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="Repair only this data file; repeatable.")
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Recompute wrong, missing and one-sided statistics from the data.

    Data files are not changed. Exit status 1 means that some statistics still need repair.
    """
    with all_or_nothing(), showing_progress():
        result = repair_statistics_of(table, dry_run=dry_run, files=file, storage_options=storage_options())
    if json:
        print_repair_json(result)
    else:
        print_repair(result)
    if result.unrepairable or (result.repairable and dry_run):
        raise typer.Exit(FINDINGS)
