"""The command `alter`, which makes one kind of change per commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from ...operations.alter.columns import add_columns, drop_column, rename_column
from ...operations.alter.constraints import add_constraint, drop_constraint
from ...operations.alter.table_properties import set_properties, unset_properties
from ...operations.alter.type_change import change_type
from ...writer.commit_result import CommitResult
from ..arguments import Json, Table
from ..interrupts import all_or_nothing
from ..terminal import console, print_json, print_lines

__all__ = ["alter"]

Texts = list[str] | None


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
    json: Json = False,
) -> None:
    """Change properties, columns or constraints of a table with one commit."""
    changes: list[tuple[object, Callable[[], CommitResult]]] = [
        (set_property, lambda: set_properties(table, _pairs("--set", set_property))),
        (unset_property, lambda: unset_properties(table, unset_property or ())),
        (column, lambda: add_columns(table, _pairs("--add-column", column))),
        (new_type, lambda: change_type(table, *_pair("--change-type", new_type))),
        (renamed, lambda: rename_column(table, *_pair("--rename-column", renamed))),
        (dropped, lambda: drop_column(table, dropped or "")),
        (constraint, lambda: add_constraint(table, *_pair("--add-constraint", constraint))),
        (dropped_constraint, lambda: drop_constraint(table, dropped_constraint or "")),
    ]
    requested = [change for given, change in changes if given]
    if len(requested) != 1:
        raise typer.BadParameter("pass exactly one kind of change: each one is a separate commit")
    with all_or_nothing():
        version = requested[0]().version
    if json:
        print_json({"table": table, "version": version})
    else:
        done = "nothing to change" if version is None else f"version {version}"
        print_lines(console(), f"{table}: {done}")


def _pairs(option: str, texts: Texts) -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for name, value in (_pair(option, text) for text in texts or ()):
        if name in pairs:
            raise typer.BadParameter(f"{option} sets {name!r} twice: pass it once")
        pairs[name] = value
    return pairs


def _pair(option: str, text: str | None) -> tuple[str, str]:
    name, equals, value = (text or "").partition("=")
    if not equals or not name.strip() or not value.strip():
        raise typer.BadParameter(f"invalid {option} {text!r}: expected NAME=VALUE")
    return name.strip(), value.strip()
