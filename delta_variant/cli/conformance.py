"""Run the conformance kit and print its report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ..conformance.corpus import load_cases
from ..conformance.engines import ENGINES
from ..conformance.grade import Result
from ..conformance.html import html_page
from ..conformance.report import json_report, matrix_rows, text_lines
from ..conformance.runner import OURS, Run, run
from .exit_codes import CLEAN, ERROR, FINDINGS
from .output import write_page
from .tables import Heading, print_table
from .terminal import console, print_json, print_lines, printable

__all__ = ["conform"]


def conform(
    folders: Sequence[str], engines: Sequence[str], html: str | None, json: bool, timeout_seconds: float
) -> int:
    """Run engines on cases, print the report, and return the exit status.

    Without `engines` all of them run, and the status is that of this library. With `json` the matrix is
    printed to standard error.
    """
    cases = load_cases(map(Path, folders))
    out = console(stderr=True)
    with out.status("") as status:

        def show(result: Result) -> None:
            status.update(printable(f"{result.engine}: {result.case.id}"))

        found = run(cases, engines or ENGINES, timeout_seconds=timeout_seconds, on_result=show)
    if html is not None:
        write_page(html, html_page(found))
    if json:
        print_json(json_report(found))
    _print_text(found, console(stderr=json))
    return _status(found, engines or [OURS])


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
