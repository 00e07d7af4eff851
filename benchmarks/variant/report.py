"""The tables of RESULTS.md, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from operator import itemgetter
from statistics import median
from typing import Any, TypeAlias

from queries import CLASSES, LAYOUTS, QUESTIONS

__all__ = ["report"]

Result: TypeAlias = Mapping[str, Any]

WRITE_FACTS = ("cpu_seconds", "wall_seconds", "bytes_out")

INTRODUCTION = """\
# Variants, by engine and layout

`run.py` writes this file from `results/`, which has the figures of every round; README.md explains the
questions, and has the figures that others published. All engines read the same files of {rows:,} documents,
which this library wrote. Figures are medians over the rounds. CPU time is user and system time of the process
and its child processes; a start, and the time to open a table or a view, are left out. Compare wall times
only if the machine was quiet: *Machine* has how many processors were busy before.
"""


def report(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the tables of all engines."""
    yield INTRODUCTION.format(rows=results[0]["rows"])
    for fact, title in (("cpu", "CPU time in ms"), ("wall", "Wall time in ms")):
        yield from _times(results, fact, title)
    yield from _ratios(results)
    yield from _writes(results)
    yield from _failures(results)
    yield from _machines(results)


def _times(results: Sequence[Result], fact: str, title: str) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield f"| engine | layout | {' | '.join(QUESTIONS)} |"
    yield f"|---|---{'|--:' * len(QUESTIONS)}|"
    for result in results:
        for layout in _layouts(result):
            found = [_median(result, layout, name, fact) for name in QUESTIONS]
            cells = [f"{value * 1000:,.0f}" if value else "-" for value in found]
            yield f"| {result['engine']} | {layout} | {' | '.join(cells)} |"
    yield ""


def _ratios(results: Sequence[Result]) -> Iterator[str]:
    yield "## Times as fast as JSON text in the same engine"
    yield ""
    yield "CPU time of `string` by that of the layout, the geometric mean over the questions of a class."
    yield ""
    yield f"| engine | layout | {' | '.join(CLASSES)} |"
    yield f"|---|---{'|--:' * len(CLASSES)}|"
    for result in results:
        for layout in _layouts(result):
            cells = [_ratio(result, layout, kind) for kind in CLASSES]
            if layout != "string" and any(cells):
                yield f"| {result['engine']} | {layout} | {' | '.join(cell or '-' for cell in cells)} |"
    yield ""


def _ratio(result: Result, layout: str, kind: str) -> str:
    names = [name for name, question in QUESTIONS.items() if question.kind == kind]
    pairs = [[_median(result, each, name, "cpu") for each in ("string", layout)] for name in names]
    factors = [text / other for text, other in pairs if text and other]
    return f"{prod(factors) ** (1 / len(factors)):.1f}" if len(factors) == len(names) else ""


def _writes(results: Sequence[Result]) -> Iterator[str]:
    yield "## JSON lines to each layout"
    yield ""
    yield "| writer | layout | CPU s | to `string` | wall s | MB |"
    yield "|---|---|--:|--:|--:|--:|"
    for result in results:
        writes = {
            layout: [each["writes"][layout] for each in result["rounds"]]
            for layout in result["rounds"][0]["writes"]
        }
        for layout, costs in writes.items():
            if not any(cost["failure"] for cost in (*costs, *writes["string"])):
                cpu, wall, size = (median(map(itemgetter(fact), costs)) for fact in WRITE_FACTS)
                factor = cpu / median(map(itemgetter("cpu_seconds"), writes["string"]))
                cells = f"{cpu:.1f} | {factor:.2f} | {wall:.1f} | {size / 1e6:,.1f}"
                yield f"| {result['engine']} | {layout} | {cells} |"
    yield ""


def _failures(results: Sequence[Result]) -> Iterator[str]:
    yield "## Without a figure"
    yield ""
    yield "The first line of the error of an engine, for the first question that has it, or its wrong answer."
    yield ""
    for result in results:
        for number, each in enumerate(result["rounds"], 1):
            if each["failure"]:
                yield f"- {result['engine']}, round {number}: `{each['failure']}`"
            for layout, cost in each["writes"].items():
                if cost["failure"]:
                    yield f"- {result['engine']}, round {number}, written as {layout}: `{cost['failure']}`"
        for layout in _layouts(result):
            for failure, names in _failures_of(result, layout).items():
                yield f"- {result['engine']}, {layout}, {', '.join(names)}: `{failure}`"
    yield ""


def _failures_of(result: Result, layout: str) -> dict[str, list[str]]:
    """Return the questions of each failure of a layout; the first failure if no question has a figure."""
    found: dict[str, list[str]] = {}
    for name in QUESTIONS:
        failures = [each["layouts"].get(layout, {}).get(name, {}).get("failure") for each in result["rounds"]]
        if failure := next(filter(None, failures), None):
            found.setdefault(failure, []).append(name)
    if sum(map(len, found.values())) == len(QUESTIONS):
        return {next(iter(found)): ["all"]}
    return found


def _machines(results: Sequence[Result]) -> Iterator[str]:
    yield "## Machine"
    yield ""
    engines: dict[str, list[str]] = {}
    for result in results:
        rounds, load = len(result["rounds"]), result["load_before"]
        count = f"{rounds} round{'s' * (rounds > 1)}, {load} processors busy before"
        run = f"{result['date']}, {count}, {result['machine']}"
        engines.setdefault(run, []).append(result["engine"])
    for run, names in engines.items():
        yield f"- {', '.join(names)}: {run}"


def _layouts(result: Result) -> list[str]:
    asked = {layout for each in result["rounds"] for layout in each["layouts"]}
    return [layout for layout in LAYOUTS if layout in asked]


def _median(result: Result, layout: str, name: str, fact: str) -> float | None:
    """Return the median over the rounds; None if a round has no figure."""
    costs = [each["layouts"].get(layout, {}).get(name, {}) for each in result["rounds"]]
    return median(cost[fact] for cost in costs) if all(fact in cost for cost in costs) else None
