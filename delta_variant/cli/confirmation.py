"""Destructive commands: one rule decides which they are, and how they ask before they run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import typer

from .._text import count
from ..execution import Description
from .output import ERROR
from .terminal import console, print_json, print_lines

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["DESTRUCTIVE", "RULE", "Destructive", "confirm", "print_plan"]

Destructive: TypeAlias = Literal[
    "alter --drop-column",
    "clean-up-log",
    "delete",
    "merge",
    "restore",
    "update",
    "vacuum",
    "write --mode overwrite",
]

# A command is destructive if, after it, something that the table had can no longer be read from its latest
# version, or an earlier version can no longer be read. `optimize`, `repair`, `convert` and `migrate` rewrite
# files, but all values remain.
DESTRUCTIVE: Mapping[Destructive, str] = {
    "delete": "rows",
    "update": "the old values of rows",
    "merge": "rows and values, with a clause that updates or deletes",
    "write --mode overwrite": "rows",
    "alter --drop-column": "a column",
    "restore": "what was written after the restored version",
    "vacuum": "files of earlier versions",
    "clean-up-log": "the log of earlier versions",
}
"""The destructive commands, and what each one removes from a table."""

RULE = (
    "A command that removes something from the latest version of a table, or deletes files of earlier "
    "versions, shows its plan and asks: delete, update, merge, write --mode overwrite, alter --drop-column, "
    "restore, vacuum, clean-up-log. Without a terminal it requires --yes. --dry-run prints the plan only. "
    "All other commands run at once."
)


MAX_SHOWN_FILES = 10


def confirm(
    command: Destructive,
    plan: Callable[[], Description],
    *,
    yes: bool,
    dry_run: bool = False,
    json: bool = False,
) -> bool:
    """Return whether a destructive command runs: `--yes` is passed, or the user accepts its plan.

    With `--dry-run`, print the plan and return False. Raise ValueError if there is no terminal to ask on, and
    Exit if the user declines.
    """
    if dry_run:
        print_plan(plan(), json=json)
        return False
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ValueError(
            f"{command} removes {DESTRUCTIVE[command]}, and there is no terminal to ask on: pass --yes, or "
            "--dry-run to print the plan"
        )
    err = console(stderr=True)
    _print_question(err, plan())
    err.print("Continue? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print_lines(err, "delta-variant: nothing was changed")
    raise typer.Exit(ERROR)


def _print_question(err: Console, plan: Description) -> None:
    print_lines(err, *plan.files[:MAX_SHOWN_FILES])
    if more := len(plan.files[MAX_SHOWN_FILES:]):
        print_lines(err, f"and {count(more, 'more file')}: --dry-run lists all")
    print_lines(err, *plan.sentences)


def print_plan(plan: Description, *, json: bool) -> None:
    """Print the plan of a command for `--dry-run`."""
    if json:
        print_json({"dry_run": True, **plan.facts})
    else:
        print_lines(console(), *plan.files, *plan.sentences)
