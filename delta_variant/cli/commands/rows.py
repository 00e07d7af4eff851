"""The commands `delete`, `update` and `merge`, which change rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Annotated, Any, Literal

import typer

from ..._text import count, size_text
from ...data_file.options import FileOptions
from ...operations.delete import plan_delete
from ...operations.merge.builder import Merge, plan_of
from ...operations.merge.builder import merge as merge_into
from ...operations.rewrite import RewritePlan, run_rewrite
from ...operations.update import plan_update
from ...variant.moments import UTC
from ...write.rewrite import RewriteResult
from ..confirmation import confirm
from ..help import ARGUMENTS
from ..inputs import Intake, open_inputs
from ..interrupts import all_or_nothing
from ..options import (
    DryRun,
    Json,
    ResidualRows,
    Table,
    TargetFileSize,
    Text,
    Texts,
    TimeZone,
    VariantColumns,
    Yes,
    argument,
    handle,
    option,
    parse_size,
)
from ..output import showing_progress
from ..report import Report, facts, render


def delete(
    table: Table,
    where: Annotated[Text, option("Delete rows that match.", "SQL")] = None,
    everything: Annotated[bool, option("Delete all rows.", names="--all")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Delete rows of a table with one commit."""
    _check_scope(where, everything)
    make = partial(plan_delete, handle(table), where, timezone=timezone)
    _run(table, confirm("delete", table, make, yes=yes, dry_run=dry_run, json=json), json=json)


def _run(table: str, plan: RewritePlan, *, json: bool) -> None:
    with all_or_nothing(), showing_progress():
        result = run_rewrite(plan, table)
    render(_report(table, result), json=json)


def update(
    table: Table,
    assignments: Annotated[
        Texts, option("An assignment, such as event:user.email='x'; repeatable.", "TARGET=SQL", "--set")
    ] = None,
    unset: Annotated[Texts, option("Remove a path; repeatable.", "PATH")] = None,
    where: Annotated[Text, option("Update rows that match.", "SQL")] = None,
    everything: Annotated[bool, option("Update all rows.", names="--all")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
    timezone: TimeZone = UTC,
) -> None:
    """Update columns and paths within Variants with one commit."""
    _check_scope(where, everything)
    updates: dict[str, str | None] = {}
    for name, text in (*map(_parse_assignment, assignments or ()), *((path, None) for path in unset or ())):
        if name in updates:
            raise typer.BadParameter(f"{name!r} is assigned twice: pass one --set or --unset for it")
        updates[name] = text
    if not updates:
        raise typer.BadParameter("pass at least one --set or --unset")
    make = partial(plan_update, handle(table), updates, where, timezone=timezone)
    _run(table, confirm("update", table, make, yes=yes, dry_run=dry_run, json=json), json=json)


def _check_scope(where: str | None, everything: bool) -> None:
    if (where is None) != everything:
        raise typer.BadParameter("pass exactly one of --where and --all")


def _parse_assignment(text: str) -> tuple[str, str]:
    """Return target and expression of TARGET=SQL. Raise BadParameter for another text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"invalid --set {text!r}: expected TARGET=SQL")
    return name.strip(), value


CLAUSES = "Clauses"


def _clause(kind: str, text: str) -> Any:
    return option(text, names=f"--when-{kind}", show_default=False, count=True, rich_help_panel=CLAUSES)


def merge(
    context: typer.Context,
    source: Annotated[list[str], argument("SOURCE...", "Files of JSON, Parquet or CSV, as for write.")],
    table: Table,
    on: Annotated[str, option("When rows match, such as target.id = source.id.", "SQL")],
    matched_update: Annotated[int, _clause("matched-update", "Update matching rows.")] = 0,
    matched_delete: Annotated[int, _clause("matched-delete", "Delete matching rows.")] = 0,
    insert: Annotated[
        int, _clause("not-matched-insert", "Insert source rows that match no row of the table.")
    ] = 0,
    unmatched_update: Annotated[
        int, _clause("not-matched-by-source-update", "Update rows that match no source row.")
    ] = 0,
    unmatched_delete: Annotated[
        int, _clause("not-matched-by-source-delete", "Delete rows that match no source row.")
    ] = 0,
    assignments: Annotated[
        Texts,
        option(
            "An assignment of the clause before it; without any, all columns of the source.",
            "TARGET=SQL",
            "--set",
            rich_help_panel=CLAUSES,
        ),
    ] = None,
    where: Annotated[
        Texts, option("The rows to which the clause before it applies.", "SQL", rich_help_panel=CLAUSES)
    ] = None,
    column: Annotated[
        Text, option("The column for the values of JSON files; value by default.", "NAME")
    ] = None,
    variant_column: VariantColumns = None,
    schema_mode: Annotated[
        Literal["merge"] | None,
        option("Add columns of the source, and accept a source without some columns.", "merge"),
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
    clauses = _parse_clauses(context.meta[ARGUMENTS])

    @cache
    def merging() -> Merge:
        target, variants = handle(table), variant_column or ()
        rows = open_inputs(source, column, variants, allow_empty=True, intake=Intake(), table=target)
        merge = merge_into(
            target,
            rows,
            on,
            schema_mode=schema_mode,
            variant_columns=variants,
            timezone=timezone,
            files=FileOptions(target_file_size=parse_size(target_file_size), residual_rows=residual_rows),
        )
        for clause in clauses:
            merge = clause.add(merge)
        return merge

    # Only an insert removes neither rows nor values.
    yes = yes or all(each.option.endswith("insert") for each in clauses)
    confirm("merge", table, lambda: plan_of(merging()), yes=yes, dry_run=dry_run, json=json)
    with all_or_nothing(), showing_progress():
        result = merging().execute()
    render(_report(table, result), json=json)


@dataclass(frozen=True)
class Kind:
    """How a merge gets a clause of a kind with assignments, and with all columns instead."""

    assign: Callable[[Merge, Mapping[str, str | None], str | None], Merge] | None = None
    apply: Callable[[Merge, str | None], Merge] | None = None


KINDS: Mapping[str, Kind] = {
    "--when-matched-update": Kind(Merge.when_matched_update, Merge.when_matched_update_all),
    "--when-matched-delete": Kind(None, Merge.when_matched_delete),
    "--when-not-matched-insert": Kind(Merge.when_not_matched_insert, Merge.when_not_matched_insert_all),
    "--when-not-matched-by-source-update": Kind(Merge.when_not_matched_by_source_update),
    "--when-not-matched-by-source-delete": Kind(None, Merge.when_not_matched_by_source_delete),
}
"""The clauses of `merge`: options whose order counts, each with the --set and --where after it."""


@dataclass(frozen=True)
class Clause:
    """A clause: its kind, its assignments, none for all columns, and the rows to which it applies."""

    option: str
    updates: Mapping[str, str | None] = field(default_factory=dict)
    where: str | None = None

    def extend(self, option: str, value: str) -> Clause:
        """Return the clause with a --where or a --set. Raise BadParameter if it cannot have that."""
        if option == "--where":
            if self.where is not None:
                raise typer.BadParameter(f"{self.option} has two --where: combine them with AND")
            return replace(self, where=value)
        name, text = _parse_assignment(value)
        if KINDS[self.option].assign is None:
            raise typer.BadParameter(f"{self.option} takes no --set")
        if name in self.updates:
            raise typer.BadParameter(f"{name!r} is assigned twice: pass one --set for it")
        return replace(self, updates={**self.updates, name: text})

    def check(self) -> None:
        """Raise BadParameter if the clause requires a --set and has none."""
        if KINDS[self.option].apply is None and not self.updates:
            raise typer.BadParameter(f"{self.option} requires --set, because there is no source row")

    def add(self, merging: Merge) -> Merge:
        kind = KINDS[self.option]
        if kind.assign is not None and (self.updates or kind.apply is None):
            return kind.assign(merging, self.updates, self.where)
        assert kind.apply is not None
        return kind.apply(merging, self.where)


def _parse_clauses(arguments: Sequence[str]) -> list[Clause]:
    """Return the clauses in the arguments of `merge`, in order. Raise BadParameter for an invalid clause."""
    clauses: list[Clause] = []
    remaining = iter(arguments)
    for text in remaining:
        if text == "--":
            break
        name, equals, value = text.partition("=")
        if name in KINDS:
            clauses.append(Clause(name))
        elif name in ("--set", "--where"):
            if not clauses:
                raise typer.BadParameter(f"{name} must follow the clause that it belongs to")
            clauses[-1] = clauses[-1].extend(name, value if equals else next(remaining))
    if not clauses:
        raise typer.BadParameter(f"pass at least one clause: {', '.join(KINDS)}")
    for clause in clauses:
        clause.check()
    return clauses


def _report(table: str, result: RewriteResult) -> Report:
    names = "version rows_deleted rows_updated rows_inserted rows_copied files_removed"
    files = [facts(file, "path rows bytes") for file in result.files]
    return Report({"table": table, **facts(result, names), "files": files}, _sentences(table, result))


def _sentences(table: str, result: RewriteResult) -> Iterator[str]:
    if result.version is None:
        yield f"{table}: no row matches, nothing was written"
        return
    verbs = ("deleted", "updated", "inserted", "copied")
    numbers = ((getattr(result, f"rows_{verb}"), verb) for verb in verbs)
    done = [f"{count(number, 'row')} {verb}" for number, verb in numbers if number]
    yield f"{table}: version {result.version}, {', '.join(done) or '0 rows'}"
    added, size = count(len(result.files), "file"), size_text(sum(file.bytes for file in result.files))
    yield f"{count(result.files_removed, 'file')} removed, {added} added, {size}"
