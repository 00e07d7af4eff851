"""The commands `delete` and `update`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...operations.delete import delete as delete_rows
from ...operations.delete import delete_all
from ...operations.update import update as update_rows
from ...variant.moments import UTC
from ...write.rewrite_result import RewriteResult
from ..arguments import DryRun, Json, Table, TimeZone, Yes
from ..common_options import storage_options
from ..confirmation import confirm
from ..interrupts import all_or_nothing
from ..plans import plan_rewrite
from ..progress import showing_progress
from ..rewrite_summary import RewriteSummary

__all__ = ["delete", "parse_assignment", "print_rewrite", "update"]


def delete(
    table: Table,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Delete rows that match.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete all rows.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Delete rows of a table with one commit."""
    if (where is None) != everything:
        raise typer.BadParameter("pass exactly one of --where and --all")
    if not confirm(
        "delete",
        lambda: plan_rewrite(table, where, timezone, "delete"),
        yes=yes,
        dry_run=dry_run,
        json=json,
    ):
        return
    with all_or_nothing(), showing_progress():
        if where is None:
            result = delete_all(table, storage_options=storage_options())
        else:
            result = delete_rows(table, where, timezone=timezone, storage_options=storage_options())
    print_rewrite(table, result, json)


def update(
    table: Table,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="TARGET=SQL", help="An assignment, such as event:user.email='x'; repeatable."
        ),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="Remove a path; repeatable.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Update rows that match.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Update all rows.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Update columns and paths within Variants with one commit."""
    if (where is None) != everything:
        raise typer.BadParameter("pass exactly one of --where and --all")
    updates: dict[str, str | None] = {}
    for name, text in (*map(parse_assignment, assignments or ()), *((path, None) for path in unset or ())):
        if name in updates:
            raise typer.BadParameter(f"{name!r} is assigned twice: pass one --set or --unset for it")
        updates[name] = text
    if not confirm(
        "update",
        lambda: plan_rewrite(table, where, timezone, "update"),
        yes=yes,
        dry_run=dry_run,
        json=json,
    ):
        return
    with all_or_nothing(), showing_progress():
        result = update_rows(table, updates, where, timezone=timezone, storage_options=storage_options())
    print_rewrite(table, result, json)


def parse_assignment(text: str) -> tuple[str, str]:
    """Return target and expression of TARGET=SQL. Raise BadParameter for another text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"invalid --set {text!r}: expected TARGET=SQL")
    return name.strip(), value


def print_rewrite(table: str, result: RewriteResult, json: bool) -> None:
    """Print the result of a command that changes rows."""
    summary = RewriteSummary(table, result)
    if json:
        summary.print_json()
    else:
        summary.print_text()
