"""Destructive commands: one rule decides which they are, and how they ask before they run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import typer

from .._text import count
from ..execution import Plan
from .interrupts import all_or_nothing
from .output import CLEAN, ERROR, console, print_json, print_lines, showing_progress

# A command is destructive if, after it, something that the table had can no longer be read from its latest
# version, or an earlier version can no longer be read. `optimize`, `repair`, `convert` and `migrate` rewrite
# files, but all values remain.
DESTRUCTIVE: Mapping[str, str] = {
    "delete": "rows",
    "update": "the old values of rows",
    "merge": "rows and values, with a clause that updates or deletes",
    "write --mode overwrite": "rows",
    "alter --drop-column": "a column",
    "drop-feature": "a feature, and with --truncate-history the log of earlier versions",
    "restore": "what was written after the restored version",
    "repair-files": "the entries of lost files",
    "repair-log": "checkpoints and checksums that contradict the commits",
    "vacuum": "files of earlier versions",
    "clean-up-log": "the log of earlier versions",
}
"""The destructive commands, and what each one removes from a table."""

RULE = (
    "A command that removes something from the latest version of a table, or deletes files of earlier "
    f"versions, shows its plan and asks: {', '.join(DESTRUCTIVE)}. Without a terminal it requires --yes. "
    "--dry-run prints the plan only. All other commands run at once."
)


MAX_SHOWN_FILES = 10

Planned = TypeVar("Planned", bound=Plan)


def confirm(
    command: str, table: str, plan: Callable[[], Planned], *, yes: bool, dry_run: bool, json: bool
) -> Planned:
    """Return the plan that a destructive command runs: `--yes` is passed, or the user accepts it.

    With `--dry-run`, print the plan and raise Exit. Raise Exit, too, if the user declines, and ValueError if
    there is no terminal to ask on.
    """
    if not (yes or dry_run or (sys.stdin.isatty() and sys.stderr.isatty())):
        raise ValueError(
            f"{command} removes {DESTRUCTIVE[command]}, and there is no terminal to ask on: pass --yes, or "
            "--dry-run to print the plan"
        )
    with all_or_nothing("nothing was changed"), showing_progress():
        planned = plan()
        if yes and not dry_run:
            return planned
        described = planned.describe()
    first, *others = described.sentences
    sentences = (f"{table}: {first}", *others)
    if dry_run:
        if json:
            print_json({"dry_run": True, "table": table, **described.facts})
        else:
            print_lines(console(), *described.files, *sentences)
        raise typer.Exit(CLEAN)
    _ask(described.files, sentences)
    return planned


def _ask(files: Sequence[str], sentences: Sequence[str]) -> None:
    err = console(stderr=True)
    print_lines(err, *files[:MAX_SHOWN_FILES])
    if more := len(files[MAX_SHOWN_FILES:]):
        print_lines(err, f"and {count(more, 'more file')}: --dry-run lists all")
    print_lines(err, *sentences)
    err.print("Continue? [y/N] ", end="")
    answer = sys.stdin.readline()
    if not answer:
        # The end of the input does not move to the next line.
        err.print()
    if answer.strip().lower() not in ("y", "yes"):
        print_lines(err, "delta-variant: nothing was changed")
        raise typer.Exit(ERROR)
