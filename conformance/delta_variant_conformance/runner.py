"""Run every case on every engine, each engine in a separate process."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from .case import Case
from .differences import Difference, find_difference
from .engines import ENGINES
from .grade import Result, grade
from .invoke import Answer
from .process import AbsentError, EngineProcess, worker_command

TIMEOUT_SECONDS = 60.0
START_SECONDS = 300.0

# Spark's JVM has up to 2 GB of heap, and no case needs more.
MEMORY_GB = 4.0
OURS = "ours"


@dataclass(frozen=True)
class EngineRun:
    """The results of an engine; `absent` is the reason if it did not start.

    An interrupted engine has the results until then. `differences` has how wrong answers differ from the
    expected ones, by the ids of their cases.
    """

    name: str
    version: str = ""
    results: tuple[Result, ...] = ()
    absent: str | None = None
    differences: Mapping[str, Difference] = field(default_factory=dict)
    is_interrupted: bool = False

    @property
    def findings(self) -> tuple[Result, ...]:
        """Return the results that are defects of the engine."""
        return tuple(result for result in self.results if result.is_finding)


@dataclass(frozen=True)
class Run:
    """The results of all engines for the same cases; an interrupt leaves out the engines after it."""

    cases: tuple[Case, ...]
    engines: tuple[EngineRun, ...] = field(default=())
    date: str = ""
    machine: str = ""

    @property
    def is_interrupted(self) -> bool:
        """Return whether an interrupt ended the run."""
        return any(engine.is_interrupted for engine in self.engines)


def run(
    cases: Sequence[Case],
    engines: Iterable[str] = ENGINES,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    start_seconds: float = START_SECONDS,
    memory_gb: float = MEMORY_GB,
    packages: Path | None = None,
    command: Callable[[str], Sequence[str]] = worker_command,
    on_result: Callable[[Result], None] = lambda result: None,
) -> Run:
    """Return the result of each engine in each case.

    `command` returns the command of the worker of an engine by its name. `on_result` is called after each
    case. A KeyboardInterrupt ends the run, which keeps its results. An engine whose processes exceed
    `memory_gb` is killed (Linux only), as is one that times out.
    `packages` contains a folder for each engine that has packages of its own, by the engine's name.
    """

    def process(name: str) -> EngineProcess:
        return EngineProcess(
            name,
            command(name),
            start_seconds=start_seconds,
            memory_gb=memory_gb,
            packages=None if packages is None else packages / name,
        )

    runs: list[EngineRun] = []
    for name in dict.fromkeys(engines):
        runs.append(_run_engine(cases, process(name), name, timeout_seconds, on_result))
        if runs[-1].is_interrupted:
            break
    today = datetime.now(timezone.utc).date().isoformat()
    return Run(tuple(cases), tuple(runs), today, _machine())


def _machine() -> str:
    return f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} CPUs"


def _run_engine(
    cases: Sequence[Case],
    process: EngineProcess,
    name: str,
    timeout_seconds: float,
    on_result: Callable[[Result], None],
) -> EngineRun:
    results: list[Result] = []
    differences: dict[str, Difference] = {}
    is_interrupted = False
    try:
        process.start()
        for case in cases:
            answer = _invoke(process, case, timeout_seconds)
            results.append(grade(case, name, answer, is_ours=name == OURS))
            if results[-1].status == "wrong value" and (found := find_difference(case, answer.content)):
                differences[case.id] = found
            on_result(results[-1])
    except AbsentError as error:
        return EngineRun(name, absent=str(error))
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        process.stop()
    return EngineRun(
        name, process.version, tuple(results), differences=differences, is_interrupted=is_interrupted
    )


def _invoke(process: EngineProcess, case: Case, timeout_seconds: float) -> Answer:
    try:
        return process.invoke(case, timeout_seconds)
    except AbsentError as error:
        return Answer("crashed", message=f"after an earlier crash, {error}")
