"""The command `conformance`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from fnmatch import fnmatchcase
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
from .process import worker_command
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
    case: Annotated[
        Texts, option("Run only cases with this id, such as 'decode/primitive_*'; repeatable.", "PATTERN")
    ] = None,
    engine: Annotated[
        Texts,
        option(
            f"One of {', '.join(ENGINES)}, or a name of your own and the command of its worker; repeatable. "
            "Default: all.",
            "NAME[=COMMAND]",
        ),
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
    commands = dict(map(_command, engine or ENGINES))
    if history is not None:
        # An invalid file is an error before the engines run.
        load_history(Path(history))
    found = _run(cases, case, commands, packages, timeout)
    # With --json, standard output has nothing else.
    out = console(stderr=json)
    if history is not None:
        _record_history(found, Path(history), out)
    if html is not None:
        write_page(html, html_page(found))
    if json:
        print_json(json_report(found))
    _print_text(found, out)
    _exit_with_status(found, list(commands) if engine else [OURS])


def _command(engine: str) -> tuple[str, Sequence[str]]:
    """Return the name of an engine and the command of its worker. Raise BadParameter for an unknown one."""
    name, separator, command = engine.partition("=")
    if separator and name and name not in ENGINES and (words := shlex.split(command)):
        return name, words
    if engine not in ENGINES:
        raise typer.BadParameter(
            f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}, or another name and the "
            "command of a worker, such as mine='python worker.py'"
        )
    return engine, worker_command(engine)


def _run(
    paths: Texts, patterns: Texts, commands: Mapping[str, Sequence[str]], packages: Text, seconds: float
) -> Run:
    status = console(stderr=True).status("")

    def show(result: Result) -> None:
        status.update(printable(f"{result.engine}: {result.case.id}"))

    with open_cases(map(Path, paths) if paths else [find_own_cases()]) as cases, status:
        if patterns:
            cases = [each for each in cases if any(fnmatchcase(each.id, pattern) for pattern in patterns)]
            if not cases:
                raise typer.BadParameter(f"no case has an id such as {', '.join(patterns)}")
        return run(
            cases,
            commands,
            timeout_seconds=seconds,
            packages=None if packages is None else Path(packages),
            command=commands.__getitem__,
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
