"""Time every engine side by side, print one table, and write it to RESULTS.md.

    python benchmarks/run.py [--rows 2000000] [--only ENGINE …]

Each engine and each flow runs in a process of its own, one after the other. Starts (imports, a JVM, a server) are
not counted, for anyone. An engine that fails is a row that says so.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import startup
from measure import Outcome, run_worker

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache" / "bench"
RESULTS = HERE / "RESULTS.md"
WHEELS = HERE.parent / "rust" / "target" / "wheels"
PACKAGES = ("delta-variant", "duckdb", "pyspark", "pysail", "chdb", "pyarrow")
OURS = "ours"


@dataclass(frozen=True)
class Flow:
    """One row of the table: an engine at one work; `name` tells variants of an engine apart."""

    work: str
    name: str
    engine: str
    source: str = "events"

    @property
    def target(self) -> Path:
        return CACHE / "out" / self.name


@dataclass(frozen=True)
class Target:
    """One figure to reach, over the rows of one flow."""

    text: str
    work: str
    name: str
    fact: str
    bound: float
    at_least: bool = False

    def holds(self, measured: float) -> bool:
        return measured >= self.bound if self.at_least else measured <= self.bound


WRITES = (
    Flow("write", OURS, "ours"),
    Flow("write", "ours, keys shuffled", "ours", "shuffled"),
    Flow("write", "ours, shredding=None", "ours-unshredded"),
    Flow("write", "ours, 4 x the rows", "ours", "four"),
    Flow("write", "duckdb", "duckdb"),
    Flow("write", "spark", "spark"),
    Flow("write", "sail", "sail"),
    Flow("write", "clickhouse", "clickhouse"),
    Flow("write", "pyarrow, clean rows to typed columns", "pyarrow", "clean"),
)
COUNTS = tuple(Flow("count", flow.name, flow.engine) for flow in WRITES if flow.source in ("events", "clean"))
TEXTS = tuple(Flow("json", flow.name, flow.engine) for flow in COUNTS if flow.engine != "pyarrow")
TITLES = {
    "write": "JSON lines to a shredded table",
    "count": "count over one path (x > 900000), warm",
    "json": "all rows to JSON text",
}
TARGETS = (
    Target("rows per CPU-second", "write", OURS, "rows_per_cpu_second", 400_000, at_least=True),
    Target(
        "rows per CPU-second", "write", "ours, keys shuffled", "rows_per_cpu_second", 300_000, at_least=True
    ),
    Target(
        "rows per CPU-second", "write", "ours, shredding=None", "rows_per_cpu_second", 300_000, at_least=True
    ),
    Target("peak MB", "write", OURS, "peak_megabytes", 400),
    Target("peak MB", "write", "ours, 4 x the rows", "peak_megabytes", 440),
    Target("MB written", "write", OURS, "megabytes_out", 120),
    Target("seconds", "count", OURS, "wall_seconds", 0.06),
    Target("rows per second", "json", OURS, "rows_per_second", 1_000_000, at_least=True),
    Target("rows per second", "json", "ours, shredding=None", "rows_per_second", 800_000, at_least=True),
)

Rows = list[tuple[Flow, Outcome]]


def main() -> None:
    arguments = parse_arguments()
    sources = generate_sources(arguments.rows)
    results = list(run_flows(arguments.only, sources, arguments.rows))
    table = "\n".join(
        [*render_table(results), "", *render_startup(), "", *render_targets(results, arguments.rows)]
    )
    print(table)
    if not arguments.only:
        RESULTS.write_text(f"{render_machine(arguments.rows)}\n```text\n{table}\n```\n", encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time every engine side by side.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument(
        "--only", nargs="+", metavar="ENGINE", help="a partial run, which RESULTS.md does not keep"
    )
    return parser.parse_args()


def generate_sources(rows: int) -> dict[str, Path]:
    """Return the input files by name, generated where they are not there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    options: dict[str, list[str]] = {"events": [], "shuffled": ["--shuffle"], "clean": ["--clean"]}
    sources = {name: CACHE / f"{name}-{rows}.ndjson" for name in (*options, "four")}
    for name, flags in options.items():
        if not sources[name].exists():
            _generate(sources[name], rows, flags)
    if not sources["four"].exists():
        _repeat(sources["events"], sources["four"], times=4)
    return sources


def _generate(out: Path, rows: int, flags: list[str]) -> None:
    # A generator that was stopped must not leave a file that looks whole.
    partial = out.with_suffix(".partial")
    subprocess.run([sys.executable, HERE / "generate.py", partial, str(rows), *flags], check=True)
    partial.rename(out)


def _repeat(source: Path, out: Path, *, times: int) -> None:
    partial = out.with_suffix(".partial")
    with partial.open("wb") as copies:
        for _ in range(times):
            with source.open("rb") as original:
                shutil.copyfileobj(original, copies, 1 << 20)
    partial.rename(out)


def run_flows(only: list[str] | None, sources: dict[str, Path], rows: int) -> Iterator[tuple[Flow, Outcome]]:
    """Yield the outcome of every flow in order; the queries read what the writes wrote."""
    for flow in (*WRITES, *COUNTS, *TEXTS):
        if only and flow.engine not in only:
            continue
        print(f"{TITLES[flow.work]}: {flow.name} …", file=sys.stderr, flush=True)
        yield flow, _derive(_run(flow, sources[flow.source]), rows * (4 if flow.source == "four" else 1))


def _run(flow: Flow, source: Path) -> Outcome:
    if flow.work != "write":
        return run_worker(HERE / "read.py", flow.engine, flow.work, str(flow.target))
    shutil.rmtree(flow.target, ignore_errors=True)
    flow.target.parent.mkdir(parents=True, exist_ok=True)
    return run_worker(HERE / "write.py", flow.engine, str(source), str(flow.target))


def _derive(outcome: Outcome, rows: int) -> Outcome:
    """Add the rates and sizes that the table shows."""
    if outcome.failure:
        return outcome
    facts = dict(outcome.facts)
    facts["rows_per_second"] = rows / max(facts["wall_seconds"], 1e-9)
    # Below the clock's tick there is no CPU figure to divide by.
    if facts["cpu_seconds"] > 0:
        facts["rows_per_cpu_second"] = rows / facts["cpu_seconds"]
    if "bytes_out" in facts:
        facts["megabytes_out"] = facts["bytes_out"] / 1e6
    return Outcome(outcome.engine, facts)


def render_table(results: Rows) -> Iterator[str]:
    """Yield one block of lines a work; the last column says how many times faster ours is."""
    for work, title in TITLES.items():
        rows = [(flow, outcome) for flow, outcome in results if flow.work == work]
        rate = "rows_per_cpu_second" if work == "write" else "rows_per_second"
        ours = next((outcome.facts.get(rate) for flow, outcome in rows if flow.name == OURS), None)
        yield f"{title:<42} {'rows/CPU-s':>11} {'rows/s':>11} {'wall s':>8} {'peak MB':>8} {'MB out':>8} {'ours is':>8}"
        for flow, outcome in rows:
            yield _render_row(flow, outcome, ours, rate)
        yield from _render_best_peer(rows, ours, rate)
        yield ""


def _render_row(flow: Flow, outcome: Outcome, ours: float | None, rate: str) -> str:
    name = f"  {flow.name:<40}"
    if outcome.failure:
        return f"{name} failed: {outcome.failure}"
    facts = outcome.facts
    ratio = f"{ours / facts[rate]:.1f} x" if ours and rate in facts else ""
    return (
        f"{name} {_number(facts.get('rows_per_cpu_second')):>11} {_number(facts['rows_per_second']):>11} "
        f"{facts['wall_seconds']:>8.3f} {facts['peak_megabytes']:>8.0f} {_number(facts.get('megabytes_out')):>8} {ratio:>8}"
    )


def _render_best_peer(rows: Rows, ours: float | None, rate: str) -> Iterator[str]:
    """Yield how ours compares with the fastest peer that does the same work; typed columns of clean rows do not."""
    peers = [
        (outcome.facts[rate], flow.name)
        for flow, outcome in rows
        if not flow.engine.startswith(OURS) and flow.engine != "pyarrow" and rate in outcome.facts
    ]
    if ours and peers:
        fastest, name = max(peers)
        yield f"  ours / best peer ({name}): {ours / fastest:.1f}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value / 1000:,.0f}k" if value >= 10_000 else f"{value:,.1f}"


def render_startup() -> Iterator[str]:
    """Yield the lines about what a person waits for before any work."""
    yield "start"
    try:
        seconds, optional = startup.import_seconds("delta_variant"), startup.optional_modules("delta_variant")
        yield f"  import delta_variant: {seconds} s (at most 0.25), optional dependencies: {', '.join(optional) or 'none'}"
    except subprocess.CalledProcessError:
        yield "  import delta_variant: failed"
    megabytes = startup.wheel_megabytes(WHEELS)
    yield f"  wheel: {f'{megabytes} MB (at most 12)' if megabytes else f'none in {WHEELS.name}/'}"


def render_targets(results: Rows, rows: int) -> Iterator[str]:
    """Yield the figures to reach beside what was measured."""
    yield (
        "figures to reach"
        if rows == 2_000_000
        else f"figures to reach are for 2,000,000 rows; this run has {rows:,}"
    )
    for target in TARGETS:
        facts = _facts(results, target.work, target.name)
        if target.fact in facts:
            verdict = "holds" if target.holds(facts[target.fact]) else "MISSED"
            limit = f"{'>=' if target.at_least else '<='} {target.bound:,g}"
            yield f"  {target.work + ', ' + target.name:<30} {target.text:<20} {limit:>12} {facts[target.fact]:>14,.3f}  {verdict}"


def _facts(results: Rows, work: str, name: str) -> dict[str, float]:
    return next(
        (dict(outcome.facts) for flow, outcome in results if (flow.work, flow.name) == (work, name)), {}
    )


def render_machine(rows: int) -> str:
    """Return the head of RESULTS.md: when, on what, with which versions."""
    now = datetime.now(timezone.utc)
    return (
        f"# Benchmarks\n\n`make bench` wrote this on {now:%Y-%m-%d} ({rows:,} events, {os.cpu_count()} cores, {_cpu_model()}, "
        f"Python {platform.python_version()}; {', '.join(_versions(PACKAGES))}).\n"
        "Each engine ran in its own process, one after the other. CPU seconds are user and system time of the process "
        "and its children; imports, the JVM's start and a server's start are left out for everyone; the JVM ran one small "
        "job before. Peaks are of whole processes.\n"
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


if __name__ == "__main__":
    main()
