"""Run the conformance kit and print its report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console

from ..conformance.corpus import find_own_cases, open_cases
from ..conformance.engines import ENGINES
from ..conformance.grade import Result
from ..conformance.history import load_history
from ..conformance.report import json_report, matrix_rows, text_lines
from ..conformance.runner import OURS, Run, run
from ..errors import printable
from ..reports.conformance_page import html_page
from .exit_codes import CLEAN, ERROR, FINDINGS
from .output import write_page
from .tables import Heading, print_table
from .terminal import console, print_json, print_lines

__all__ = ["conform"]


def conform(
    paths: Sequence[str],
    engines: Sequence[str],
    packages: str | None,
    history: str | None,
    html: str | None,
    json: bool,
    timeout_seconds: float,
) -> int:
    """Run engines on cases, print the report, and return the exit status.

    Without `paths` the cases of this project run. Without `engines` all engines run, and the status is about
    this library. With `json` the matrix is printed to standard error.
    """
    if history is not None:
        # An invalid file is an error before the engines run.
        load_history(Path(history))
    status = console(stderr=True).status("")

    def show(result: Result) -> None:
        status.update(printable(f"{result.engine}: {result.case.id}"))

    with open_cases(map(Path, paths) if paths else [find_own_cases()]) as cases, status:
        found = run(
            cases,
            engines or ENGINES,
            timeout_seconds=timeout_seconds,
            packages=None if packages is None else Path(packages),
            on_result=show,
        )
    if history is not None:
        _record_history(found, Path(history), console(stderr=json))
    if html is not None:
        write_page(html, html_page(found))
    if json:
        print_json(json_report(found))
    _print_text(found, console(stderr=json))
    return _status(found, engines or [OURS])


def _record_history(found: Run, file: Path, out: Console) -> None:
    """Add a run to a history, and print what changed in each engine since its last record."""
    history = load_history(file)
    for change in history.add(found, datetime.now(timezone.utc).date().isoformat()):
        print_lines(out, *change.lines())
    history.save(file)


def _print_text(found: Run, out: Console) -> None:
    heading, *rows = matrix_rows(found)
    headings: list[Heading] = [
        (title, "left" if not position else "right") for position, title in enumerate(heading)
    ]
    print_lines(out, *text_lines(found), "")
    print_table(out, headings, rows)


def _status(found: Run, names: Sequence[str]) -> int:
    engines = [engine for engine in found.engines if engine.name in names]
    if any(engine.absent for engine in engines):
        return ERROR
    return FINDINGS if any(engine.findings for engine in engines) else CLEAN
