"""Render the results of the flows as a plain-text table."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from measure import Outcome

PACKAGES = ("delta-variant", "deltalake", "duckdb", "pyspark", "pysail", "chdb", "pyarrow")
OURS = "ours"
ON_SPARK = "ours, on Spark"
NO_PEERS = ("ours", "ours-unshredded", "ours-on-spark", "pyarrow")
TITLES = {
    "write": "JSON lines to a shredded table",
    "count": "count over one path (x > 900000), warm",
    "json": "all rows to JSON text",
    "stats": "statistics from data, leaf values for rows",
    "selective": "a query that 1 % of the files can match",
    "delete": "1 row in 100 deleted, all of 16 files rewritten",
    "optimize": "100 files written as few",
    "load": "log of 1,000,000 files to a snapshot",
    "plan": "the same, and files picked by a path",
}
WIDTHS = {"rows/CPU-s": 11, "rows/s": 11, "wall s": 8, "peak MB": 8, "MB in": 8, "MB out": 8, "ours is": 8}
COLUMNS = " ".join(f"{name:>{width}}" for name, width in WIDTHS.items())


@dataclass(frozen=True)
class Flow:
    """One row of the table: an engine and a workload. `name` distinguishes variants of an engine."""

    workload: str
    name: str
    engine: str
    source: str = "events"


@dataclass(frozen=True)
class Target:
    """A target figure for a flow."""

    text: str
    workload: str
    name: str
    fact: str
    bound: float
    at_least: bool = False

    def holds(self, measured: float) -> bool:
        return measured >= self.bound if self.at_least else measured <= self.bound


@dataclass(frozen=True)
class Lead:
    """The target ratio of the wall times of two flows with the same workload."""

    workload: str
    name: str
    peer: str
    bound: float


Rows = list[tuple[Flow, Outcome]]


def render_table(results: Rows) -> Iterator[str]:
    """Yield the lines of each workload. The last column is the speedup of this library."""
    for workload, title in TITLES.items():
        rows = [(flow, outcome) for flow, outcome in results if flow.workload == workload]
        if not rows:
            continue
        rate = "rows_per_cpu_second" if workload == "write" else "rows_per_second"
        ours = next((outcome.facts.get(rate) for flow, outcome in rows if flow.name == OURS), None)
        yield f"{title:<42} {COLUMNS}"
        for flow, outcome in rows:
            yield _render_row(flow, outcome, ours, rate)
        yield from _render_best_peer(rows, ours, rate)
        yield ""


def _render_row(flow: Flow, outcome: Outcome, ours: float | None, rate: str) -> str:
    name = f"  {flow.name:<40}"
    if outcome.failure:
        return f"{name} failed: {outcome.failure}"
    facts = outcome.facts
    cells = (
        f"{_number(facts.get('rows_per_cpu_second')):>11}",
        f"{_number(facts['rows_per_second']):>11}",
        f"{facts['wall_seconds']:>8.3f}",
        f"{facts['peak_megabytes']:>8.0f}",
        f"{_number(facts.get('megabytes_in')):>8}",
        f"{_number(facts.get('megabytes_out')):>8}",
        f"{ours / facts[rate]:>7.1f}x" if ours and rate in facts else "",
    )
    return " ".join([name, *cells]).rstrip()


def _render_best_peer(rows: Rows, ours: float | None, rate: str) -> Iterator[str]:
    """Yield comparisons with the best other engine, without typed columns of clean rows."""
    peers = [(flow, outcome.facts) for flow, outcome in rows if flow.engine not in NO_PEERS]
    rates = [(facts[rate], flow.name) for flow, facts in peers if rate in facts]
    if ours and rates:
        fastest, name = max(rates)
        yield f"  ours / fastest peer ({name}): {ours / fastest:.1f}"
    sizes = [(facts["megabytes_out"], flow.name) for flow, facts in peers if "megabytes_out" in facts]
    if sizes:
        yield "  smallest output of a peer: {:.1f} MB ({})".format(*min(sizes))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value / 1000:,.0f}k" if value >= 10_000 else f"{value:,.1f}"


def render_targets(results: Rows, targets: Iterable[Target], rows: int) -> Iterator[str]:
    """Yield the target figures next to the measured ones."""
    yield "figures to reach, which are for 2,000,000 rows" + ("" if rows == 2_000_000 else f", not {rows:,}")
    for target in targets:
        facts = _facts(results, target.workload, target.name)
        if target.fact in facts:
            verdict = "holds" if target.holds(facts[target.fact]) else "MISSED"
            limit = f"{'>=' if target.at_least else '<='} {target.bound:,g}"
            subject = f"{target.workload}, {target.name}"
            yield f"  {subject:<30} {target.text:<20} {limit:>12} {facts[target.fact]:>14,.3f}  {verdict}"


def render_leads(results: Rows, leads: Iterable[Lead]) -> Iterator[str]:
    """Yield the measured ratio for each target ratio."""
    for lead in leads:
        ours, theirs = (_facts(results, lead.workload, name) for name in (lead.name, lead.peer))
        if "wall_seconds" in ours and "wall_seconds" in theirs:
            times = theirs["wall_seconds"] / ours["wall_seconds"]
            verdict = "holds" if times >= lead.bound else "MISSED"
            subject, text = f"{lead.workload}, {lead.name}", f"times {lead.peer}"
            yield f"  {subject:<30} {text:<20} {f'>= {lead.bound:g}':>12} {times:>14,.3f}  {verdict}"


def _facts(results: Rows, workload: str, name: str) -> dict[str, float]:
    return next(
        (dict(outcome.facts) for flow, outcome in results if (flow.workload, flow.name) == (workload, name)),
        {},
    )


def render_machine(rows: int, rounds: int) -> str:
    """Return the head of RESULTS.md: date, machine and versions."""
    now = datetime.now(timezone.utc)
    return (
        f"# Benchmarks\n\n`make bench` wrote this on {now:%Y-%m-%d}: {rows:,} events, {os.cpu_count()} "
        f"cores, {_cpu_model()}, Python {platform.python_version()}, {', '.join(_versions(PACKAGES))}.\n"
        f"Each engine ran in its own process, one after the other; of {rounds} rounds the fastest run of\n"
        "each is shown, and its greatest peak. CPU seconds are user and system time of the process and\n"
        "its children; imports and the start of a JVM or a server are left out for all, and the JVM ran\n"
        "one small job before. Peaks are of whole processes.\n"
    )


def _versions(packages: Iterable[str]) -> Iterator[str]:
    for package in packages:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"{package} absent"


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown CPU"
    )
