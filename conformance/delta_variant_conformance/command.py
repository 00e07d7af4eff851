"""The command `conformance`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from delta_variant.cli.options import Json, Text, Texts, option
from delta_variant.cli.output import ERROR, FINDINGS, write_page
from delta_variant.cli.tables import Heading, print_table
from delta_variant.cli.terminal import console, print_json, print_lines
from delta_variant.errors import printable

from .corpus import find_own_cases, open_cases
from .engines import ENGINES
from .grade import Result
from .history import load_history
from .page import html_page
from .report import json_report, matrix_rows, text_lines
from .runner import OURS, Run, run

__all__ = ["conformance"]


def conformance(
    cases: Annotated[
        Texts,
        option(
            "A folder or an archive of cases or of parquet-testing; repeatable. Default: the cases of this "
            "project.",
            "PATH",
        ),
    ] = None,
    engine: Annotated[
        Texts, option(f"One of {', '.join(ENGINES)}; repeatable. Default: all.", "NAME")
    ] = None,
    packages: Annotated[
        Text,
        option(
            "A folder with the packages of engines: DIR/NAME has the Python packages or JARs of NAME.", "DIR"
        ),
    ] = None,
    history: Annotated[
        Text,
        option(
            "Add the outcomes to a history, and print what changed since the last version of an engine.",
            "FILE",
        ),
    ] = None,
    html: Annotated[Text, option("Write an HTML page with all details.", "FILE")] = None,
    timeout: Annotated[float, option("Seconds per case.", "N", min=0.1)] = 60,
    json: Json = False,
) -> None:
    """Run engines on the specification cases for reading and writing Variants.

    The exit status is about the engines of --engine, or about this library: 1 means that a case failed, 2
    that an engine did not start.
    """
    unknown = [name for name in engine or () if name not in ENGINES]
    if unknown:
        raise typer.BadParameter(f"unknown engine {unknown[0]!r}: expected one of {', '.join(ENGINES)}")
    if history is not None:
        # An invalid file is an error before the engines run.
        load_history(Path(history))
    found = _run(cases, engine, packages, timeout)
    # With --json, standard output has nothing else.
    out = console(stderr=json)
    if history is not None:
        _record_history(found, Path(history), out)
    if html is not None:
        write_page(html, html_page(found))
    if json:
        print_json(json_report(found))
    _print_text(found, out)
    _exit_with_status(found, engine or [OURS])


def _run(paths: Texts, engines: Texts, packages: Text, seconds: float) -> Run:
    status = console(stderr=True).status("")

    def show(result: Result) -> None:
        status.update(printable(f"{result.engine}: {result.case.id}"))

    with open_cases(map(Path, paths) if paths else [find_own_cases()]) as cases, status:
        return run(
            cases,
            engines or ENGINES,
            timeout_seconds=seconds,
            packages=None if packages is None else Path(packages),
            on_result=show,
        )


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


def _exit_with_status(found: Run, names: Sequence[str]) -> None:
    engines = [engine for engine in found.engines if engine.name in names]
    if any(engine.absent for engine in engines):
        raise typer.Exit(ERROR)
    if any(engine.findings for engine in engines):
        raise typer.Exit(FINDINGS)
