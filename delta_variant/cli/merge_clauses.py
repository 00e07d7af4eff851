"""The clauses of `merge`: options whose order counts, each with the --set and --where after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import typer

from ..operations.merge.builder import Merge
from .commands.rows import parse_assignment

__all__ = ["Clause", "add_clauses", "parse_clauses"]

KINDS: Mapping[str, str] = {
    "--when-matched-update": "matched update",
    "--when-matched-delete": "matched delete",
    "--when-not-matched-insert": "not matched insert",
    "--when-not-matched-by-source-update": "not matched by source update",
    "--when-not-matched-by-source-delete": "not matched by source delete",
}


@dataclass(frozen=True)
class Clause:
    """A clause: its kind, its assignments, none for all columns, and the rows to which it applies."""

    option: str
    updates: Mapping[str, str | None] = field(default_factory=dict)
    where: str | None = None

    @property
    def is_destructive(self) -> bool:
        """Return whether the clause removes rows or values."""
        return not self.option.endswith("insert")

    def describe(self) -> str:
        """Return the clause as text."""
        assignments = ", ".join(f"{name} = {(value or '').strip()}" for name, value in self.updates.items())
        condition = f" where {self.where}" if self.where is not None else ""
        return f"when {KINDS[self.option]}{condition}{': set ' if assignments else ''}{assignments}"


def parse_clauses(arguments: Sequence[str]) -> list[Clause]:
    """Return the clauses in the arguments of `merge`, in order. Raise BadParameter for invalid ones."""
    clauses: list[Clause] = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            break
        option, equals, value = argument.partition("=")
        if option in KINDS:
            clauses.append(Clause(option))
        elif option in ("--set", "--where"):
            if not clauses:
                raise typer.BadParameter(f"{option} must follow the clause that it belongs to")
            clauses[-1] = _extend(clauses[-1], option, value if equals else next(remaining))
    if not clauses:
        raise typer.BadParameter(f"pass at least one clause: {', '.join(KINDS)}")
    for clause in clauses:
        if clause.option == "--when-not-matched-by-source-update" and not clause.updates:
            raise typer.BadParameter(f"{clause.option} requires --set, because there is no source row")
    return clauses


def _extend(clause: Clause, option: str, value: str) -> Clause:
    if option == "--where":
        if clause.where is not None:
            raise typer.BadParameter(f"{clause.option} has two --where: combine them with AND")
        return replace(clause, where=value)
    name, text = parse_assignment(value)
    if clause.option.endswith("delete"):
        raise typer.BadParameter(f"{clause.option} takes no --set")
    if name in clause.updates:
        raise typer.BadParameter(f"{name!r} is assigned twice: pass one --set for it")
    return replace(clause, updates={**clause.updates, name: text})


def add_clauses(merge: Merge, clauses: Sequence[Clause]) -> Merge:
    """Return a merge with the clauses."""
    for clause in clauses:
        merge = _add(merge, clause)
    return merge


def _add(merge: Merge, clause: Clause) -> Merge:
    if clause.option == "--when-matched-update":
        if clause.updates:
            return merge.when_matched_update(clause.updates, clause.where)
        return merge.when_matched_update_all(clause.where)
    if clause.option == "--when-not-matched-insert":
        if clause.updates:
            return merge.when_not_matched_insert(clause.updates, clause.where)
        return merge.when_not_matched_insert_all(clause.where)
    if clause.option == "--when-not-matched-by-source-update":
        return merge.when_not_matched_by_source_update(clause.updates, clause.where)
    if clause.option == "--when-matched-delete":
        return merge.when_matched_delete(clause.where)
    return merge.when_not_matched_by_source_delete(clause.where)
