"""Report a run: the matrix and the causes of findings as text, and all results as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .case import KINDS
from .causes import Cause, causes_of
from .grade import Result, Status
from .runner import EngineRun, Run

NONE = "-"
SCORES = ("score", "of offered")

CAUSES = 25
"""Causes of an engine in the text."""

FINDINGS: tuple[Status, ...] = ("wrong value", "wrong layout", "crashed", "timed out", "accepted", "refused")
"""The statuses that are defects of an engine, worst first."""

# A user notices an error but not a wrong value. An answer instead of an expected error may be the stored
# value, but the user does not learn that the data is damaged. A wrong layout makes other readers fail.
POINTS = {
    "pass": 1.0,
    "refused": 0.0,
    "accepted": -0.5,
    "crashed": -1.0,
    "timed out": -1.0,
    "wrong layout": -1.0,
    "wrong value": -2.0,
}


def counts(results: Iterable[Result]) -> Counter[Status]:
    """Return the number of results by status."""
    return Counter(result.status for result in results)


def score(statuses: Iterable[Status]) -> int | None:
    """Return the points of all cases, of at most 100; None if the engine offers none.

    A pass counts 1, an unexpected error and a case that is not offered 0, an answer instead of the expected
    error -1/2, a crash, a timeout or a wrong layout -1, a wrong value -2. The score may be negative.
    """
    found = list(statuses)
    points = [POINTS[status] for status in found if status in POINTS]
    return round(100 * sum(points) / len(found)) if points else None


def score_of_offered(statuses: Iterable[Status]) -> int | None:
    """Return the score without the cases that are not offered, None if the engine offers none."""
    return score(status for status in statuses if status in POINTS)


def causes(engine: EngineRun) -> list[Cause]:
    """Return the causes of the findings of an engine, worst first."""
    return causes_of(engine, FINDINGS)


def kinds_of(run: Run) -> list[str]:
    """Return the kinds that have cases, in the order of the README."""
    present = {case.kind for case in run.cases}
    return [kind for kind in KINDS if kind in present]


def of_kind(engine: EngineRun, kind: str) -> list[Result]:
    """Return the results of the cases of a kind."""
    return [result for result in engine.results if result.case.kind == kind]


def passes_text(results: Sequence[Result]) -> str:
    """Return the passed of the offered cases: `113/128`."""
    found = counts(results)
    offered = len(results) - found["not offered"]
    return f"{found['pass']}/{offered}" if offered else NONE


def matrix_rows(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield a heading and a row for each engine: passes by kind, findings by status, and the scores."""
    kinds = kinds_of(run)
    yield ("engine", *(f"{kind} {_number(run, kind)}" for kind in kinds), "all", *FINDINGS, *SCORES)
    for engine in run.engines:
        name = f"{engine.name} {'(absent)' if engine.absent else engine.version}"
        by_kind = [passes_text(of_kind(engine, kind)) for kind in kinds]
        found = counts(engine.results)
        findings = [str(found[status] or NONE) for status in FINDINGS]
        yield (name, *by_kind, passes_text(engine.results), *findings, *scores_text(engine.results))


def scores_text(results: Sequence[Result]) -> list[str]:
    """Return the score of all cases, and that of the offered ones."""
    statuses = [result.status for result in results]
    return [
        NONE if points is None else str(points) for points in (score(statuses), score_of_offered(statuses))
    ]


def _number(run: Run, kind: str) -> int:
    return sum(case.kind == kind for case in run.cases)


def text_lines(run: Run) -> Iterator[str]:
    """Yield a line for each absent engine, and a few lines for each cause of findings, worst first."""
    for engine in run.engines:
        if engine.absent:
            yield f"absent: {engine.absent}"
    for engine in run.engines:
        found = causes(engine)
        for cause in found[:CAUSES]:
            yield from _cause_lines(engine, cause)
        if more := found[CAUSES:]:
            yield f"{engine.name}: {len(more)} more causes; --html and --json have all"


def cases_text(number: int) -> str:
    """Return a number of cases: `1 case`, `2,000 cases`."""
    return "1 case" if number == 1 else f"{number:,} cases"


def _cause_lines(engine: EngineRun, cause: Cause) -> Iterator[str]:
    example, number = cause.example, len(cause.results)
    where = f"{cases_text(number)} {cause.scope}"
    yield f"{engine.name}: {status_text(example)} in {where}: {_shorten(cause.title)}"
    yield f"  {'' if number == 1 else 'such as '}{example.case.id}: {example.case.about}"
    yield f"  expected {_shorten(example.expected)}"
    yield f"  got      {_shorten(example.got)}"


def status_text(result: Result) -> str:
    """Return the status, the kind of a wrong answer, and the bugs that the case guards."""
    effect = f" ({result.effect})" if result.effect else ""
    guards = f" [{', '.join(result.case.guards)}]" if result.case.guards else ""
    return f"{result.status}{effect}{guards}"


def _shorten(text: str, length: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length]}…"


def json_report(run: Run) -> Mapping[str, Any]:
    """Return the run as JSON values."""
    return {
        "date": run.date,
        "machine": run.machine,
        "interrupted": run.is_interrupted,
        "cases": [_case(each) for each in run.cases],
        "engines": [_engine(engine) for engine in run.engines],
    }


def _case(case: Any) -> Mapping[str, Any]:
    return {
        "id": case.id,
        "kind": case.kind,
        "rules": case.rules,
        "verdict": case.verdict,
        "section": case.section,
        "about": case.about,
        "options": case.options,
        "guards": case.guards,
    }


def _engine(engine: EngineRun) -> Mapping[str, Any]:
    statuses = [result.status for result in engine.results]
    return {
        "name": engine.name,
        "version": engine.version,
        "absent": engine.absent,
        "counts": counts(engine.results),
        "score": score(statuses),
        "score_of_offered": score_of_offered(statuses),
        "causes": [
            {
                "status": cause.status,
                "title": cause.title,
                "rules": cause.rules,
                "example": cause.example.case.id,
                "cases": [result.case.id for result in cause.results],
            }
            for cause in causes(engine)
        ],
        "results": [
            {
                "case": result.case.id,
                "status": result.status,
                "effect": result.effect,
                "expected": result.expected,
                "got": result.got,
                "notes": result.notes,
            }
            for result in engine.results
        ],
    }
