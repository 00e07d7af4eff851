"""The command `alter`, which makes one kind of change per commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ...log.commit_result import CommitResult
from ...operations.alter.columns import add_columns, drop_column, rename_column
from ...operations.alter.constraints import add_constraint, drop_constraint
from ...operations.alter.table_properties import set_properties, unset_properties
from ...operations.alter.type_change import change_type
from ..arguments import DryRun, Json, Table, Texts, Yes, parse_pair, parse_pairs
from ..common_options import storage_options
from ..confirmation import confirm
from ..interrupts import all_or_nothing
from ..plans import plan_drop
from ..progress import showing_progress
from ..terminal import console, print_json, print_lines

__all__ = ["alter"]


def alter(
    table: Table,
    set_property: Annotated[
        Texts, typer.Option("--set", metavar="KEY=VALUE", help="Set a table property; repeatable.")
    ] = None,
    unset_property: Annotated[
        Texts, typer.Option("--unset", metavar="KEY", help="Remove a table property; repeatable.")
    ] = None,
    column: Annotated[
        Texts,
        typer.Option(
            "--add-column", metavar="NAME=TYPE", help="Add a column, such as event=variant; repeatable."
        ),
    ] = None,
    new_type: Annotated[
        str | None,
        typer.Option("--change-type", metavar="NAME=TYPE", help="Widen a column type, such as id=bigint."),
    ] = None,
    renamed: Annotated[
        str | None,
        typer.Option("--rename-column", metavar="NAME=NEW", help="Rename a column or struct field."),
    ] = None,
    dropped: Annotated[
        str | None, typer.Option("--drop-column", metavar="NAME", help="Drop a column or struct field.")
    ] = None,
    constraint: Annotated[
        str | None,
        typer.Option(
            "--add-constraint", metavar="NAME=SQL", help="Add a CHECK constraint, such as paid=amount>0."
        ),
    ] = None,
    dropped_constraint: Annotated[
        str | None, typer.Option("--drop-constraint", metavar="NAME", help="Drop a CHECK constraint.")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Change properties, columns or constraints of a table with one commit."""
    options = storage_options()
    changes: list[tuple[object, Callable[[], CommitResult]]] = [
        (
            set_property,
            lambda: set_properties(table, parse_pairs("--set", set_property), storage_options=options),
        ),
        (unset_property, lambda: unset_properties(table, unset_property or (), storage_options=options)),
        (column, lambda: add_columns(table, parse_pairs("--add-column", column), storage_options=options)),
        (
            new_type,
            lambda: change_type(table, *parse_pair("--change-type", new_type), storage_options=options),
        ),
        (
            renamed,
            lambda: rename_column(table, *parse_pair("--rename-column", renamed), storage_options=options),
        ),
        (dropped, lambda: drop_column(table, dropped or "", storage_options=options)),
        (
            constraint,
            lambda: add_constraint(
                table, *parse_pair("--add-constraint", constraint), storage_options=options
            ),
        ),
        (
            dropped_constraint,
            lambda: drop_constraint(table, dropped_constraint or "", storage_options=options),
        ),
    ]
    requested = [change for given, change in changes if given]
    if len(requested) != 1:
        raise typer.BadParameter("pass exactly one kind of change: each one is a separate commit")
    if dropped is None and dry_run:
        raise typer.BadParameter("--dry-run requires --drop-column")
    if dropped is not None and not confirm(
        "alter --drop-column", lambda: plan_drop(table, dropped), yes=yes, dry_run=dry_run, json=json
    ):
        return
    with all_or_nothing(), showing_progress():
        version = requested[0]().version
    if json:
        print_json({"table": table, "version": version})
    else:
        done = "nothing to change" if version is None else f"version {version}"
        print_lines(console(), f"{table}: {done}")
