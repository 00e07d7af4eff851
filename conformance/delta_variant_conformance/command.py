"""The command `conformance`."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from delta_variant.cli.interrupts import Interrupted
from delta_variant.cli.options import Json, Text, Texts, option
from delta_variant.cli.output import ERROR, FINDINGS, console, print_json, print_lines, write_page
from delta_variant.cli.report import Heading, print_table
from delta_variant.errors import printable

from .case import Case
from .corpus import find_own_cases, open_cases
from .engines import ENGINES
from .grade import Result
from .history import Change, load_history
from .page import html_page
from .process import worker_command
from .report import cases_text, json_report, matrix_rows, text_lines
from .results import badge, run_junit
from .runner import OURS, Run, run

LINE_SECONDS = 10.0
"""The seconds between the lines of progress in a log without a terminal."""


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
    rule: Annotated[Texts, option("Run only cases of this rule, such as E-M2; repeatable.", "ID")] = None,
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
    junit: Annotated[Text, option("Write a test case for each case as JUnit XML.", "FILE")] = None,
    badges: Annotated[
        Text, option("Write an SVG image with the passed cases of each engine to a folder.", "DIR")
    ] = None,
    timeout: Annotated[float, option("Seconds per case.", "N", min=0.1)] = 60,
    json: Json = False,
) -> None:
    """Run engines on the specification cases for reading and writing Variants.

    The exit status is about the engines of --engine, or about this library: 1 means that a case failed, 2
    that an engine did not start. An interrupted run reports the results until then.
    """
    commands = dict(map(_command, engine or ENGINES))
    if history is not None:
        # An invalid file is an error before the engines run.
        load_history(Path(history))
    found = _run(cases, Selection(case or (), rule or ()), commands, packages, timeout)
    # With --json, standard output has nothing else.
    out = console(stderr=json)
    changes = [] if history is None else _record_history(found, Path(history), out)
    if html is not None:
        write_page(html, html_page(found, changes))
    if junit is not None:
        write_page(junit, run_junit(found))
    if badges is not None:
        _write_badges(found, Path(badges))
    if json:
        print_json(json_report(found))
    _print_text(found, out)
    _exit_with_status(found, list(commands) if engine else [OURS])


@dataclass(frozen=True)
class Selection:
    """Patterns of ids, and rules: a case is selected by one of each; none select all."""

    patterns: Sequence[str]
    rules: Sequence[str]

    def of(self, cases: Sequence[Case]) -> list[Case]:
        """Return the selected cases. Raise BadParameter if there are none."""
        found = [
            each
            for each in cases
            if (not self.patterns or any(fnmatchcase(each.id, pattern) for pattern in self.patterns))
            and (not self.rules or set(each.rules) & set(self.rules))
        ]
        if not found:
            wanted = [*self.patterns, *(f"the rule {rule}" for rule in self.rules)]
            raise typer.BadParameter(f"no case has an id such as {' and '.join(wanted)}")
        return found


def _command(engine: str) -> tuple[str, Sequence[str]]:
    """Return the name of an engine and the command of its worker. Raise BadParameter for an unknown one."""
    name, separator, command = engine.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise typer.BadParameter(f"cannot split the command of {engine!r}: {error}") from error
    if separator and name and name not in ENGINES and words:
        return name, words
    if engine not in ENGINES:
        raise typer.BadParameter(
            f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}, or another name and the "
            "command of a worker, such as mine='python worker.py'"
        )
    return engine, worker_command(engine)


def _run(
    paths: Texts,
    selection: Selection,
    commands: Mapping[str, Sequence[str]],
    packages: Text,
    seconds: float,
) -> Run:
    err = console(stderr=True)
    status = err.status("")
    done: Counter[str] = Counter()
    printed = time.monotonic()

    def show(result: Result) -> None:
        nonlocal printed
        status.update(printable(f"{result.engine}: {result.case.id}"))
        done[result.engine] += 1
        if not err.is_terminal and time.monotonic() - printed >= LINE_SECONDS:
            printed = time.monotonic()
            print_lines(err, f"{result.engine}: {cases_text(done[result.engine])}")

    with open_cases(map(Path, paths) if paths else [find_own_cases()]) as cases, status:
        return run(
            selection.of(cases),
            commands,
            timeout_seconds=seconds,
            packages=None if packages is None else Path(packages),
            command=commands.__getitem__,
            on_result=show,
        )


def _record_history(found: Run, file: Path, out: Console) -> list[Change]:
    """Add a run to a history, print what changed in each engine since its last record, and return it."""
    history = load_history(file)
    changes = history.add(found, found.date)
    for change in changes:
        print_lines(out, *change.lines())
    history.save(file)
    return changes


def _write_badges(found: Run, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for engine in found.engines:
        if not engine.absent:
            write_page(folder / f"{engine.name}.svg", badge(engine))


def _print_text(found: Run, out: Console) -> None:
    heading, *rows = matrix_rows(found)
    headings: list[Heading] = [
        (title, "left" if not position else "right") for position, title in enumerate(heading)
    ]
    print_lines(out, *text_lines(found), "")
    print_table(out, headings, rows)


def _exit_with_status(found: Run, names: Sequence[str]) -> None:
    if found.is_interrupted:
        answered = sum(len(engine.results) for engine in found.engines)
        raise Interrupted(f"interrupted after {answered:,} results")
    engines = [engine for engine in found.engines if engine.name in names]
    if any(engine.absent for engine in engines):
        raise typer.Exit(ERROR)
    if any(engine.findings for engine in engines):
        raise typer.Exit(FINDINGS)
