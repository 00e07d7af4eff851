"""The command `merge`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ...data_file.options import FileOptions
from ...operations.merge.builder import merge as merge_into
from ...variant.moments import UTC
from ..arguments import DryRun, Json, ResidualRows, Table, TargetFileSize, Texts, TimeZone, Yes, parse_size
from ..common_options import storage_options
from ..confirmation import confirm
from ..help import ARGUMENTS
from ..inputs import open_inputs
from ..interrupts import all_or_nothing
from ..merge_clauses import add_clauses, parse_clauses
from ..plans import plan_merge
from ..progress import Intake, showing_progress
from .rows import print_rewrite

__all__ = ["merge"]


def _clause(name: str, text: str) -> Any:
    return typer.Option(name, show_default=False, count=True, help=text, rich_help_panel="Clauses")


def merge(
    context: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Files of JSON, Parquet or CSV, as for write."),
    ],
    table: Table,
    on: Annotated[str, typer.Option(metavar="SQL", help="When rows match, such as target.id = source.id.")],
    matched_update: Annotated[int, _clause("--when-matched-update", "Update matching rows.")] = 0,
    matched_delete: Annotated[int, _clause("--when-matched-delete", "Delete matching rows.")] = 0,
    insert: Annotated[
        int, _clause("--when-not-matched-insert", "Insert source rows that match no row of the table.")
    ] = 0,
    unmatched_update: Annotated[
        int, _clause("--when-not-matched-by-source-update", "Update rows that match no source row.")
    ] = 0,
    unmatched_delete: Annotated[
        int, _clause("--when-not-matched-by-source-delete", "Delete rows that match no source row.")
    ] = 0,
    assignments: Annotated[
        Texts,
        typer.Option(
            "--set",
            metavar="TARGET=SQL",
            help="An assignment of the clause before it; without any, all columns of the source.",
            rich_help_panel="Clauses",
        ),
    ] = None,
    where: Annotated[
        Texts,
        typer.Option(
            metavar="SQL",
            help="The rows to which the clause before it applies.",
            rich_help_panel="Clauses",
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column for the values of JSON files; value by default."),
    ] = None,
    variant_column: Annotated[
        Texts,
        typer.Option(
            "--variant-column",
            metavar="NAME",
            help="A column of JSON text in Parquet or CSV that becomes a Variant; repeatable.",
        ),
    ] = None,
    target_file_size: TargetFileSize = "128MB",
    residual_rows: ResidualRows = "separate",
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Merge files into a table with one commit: update, delete and insert rows.

    The first clause of a kind whose --where is true applies to a row. --set and --where belong to the clause
    before them. SQL names the table target and the files source.
    """
    clauses = parse_clauses(context.meta[ARGUMENTS])
    if any(each.is_destructive for each in clauses) or dry_run:
        sentences = [each.describe() for each in clauses]
        if not confirm(
            "merge", lambda: plan_merge(table, source, sentences), yes=yes, dry_run=dry_run, json=json
        ):
            return
    with all_or_nothing(), showing_progress() as meter:
        rows = open_inputs(source, column, variant_column or (), allow_empty=True, intake=Intake(meter))
        started = merge_into(
            table,
            rows,
            on,
            variant_columns=variant_column or (),
            timezone=timezone,
            files=FileOptions(target_file_size=parse_size(target_file_size), residual_rows=residual_rows),
            storage_options=storage_options(),
        )
        result = add_clauses(started, clauses).execute()
    print_rewrite(table, result, json)
