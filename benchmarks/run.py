"""Compare this library with its peers, pair by pair, and write the results.

    python benchmarks/run.py [PAIR …] [--rounds 5] [--rows 2000000] [--keep-tables]

A PAIR is `write/orjson`, or a workload, such as `write`. Without any, all pairs run. In each round, both
flows of a pair run once, each in its own process, in alternating order. Imports and the start of a JVM or a
server are not measured. `results/` has the figures of every round as JSON, RESULTS.md the medians of all
pairs there, and the chart of README those of some.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import generate_log
import startup
from chart import chart
from measure import Outcome, busy_processors, run_worker
from pairs import PAIRS, Flow, Pair
from results import machine, render, summary
from sources import CACHE, HERE, forget_own_tables, source_of

FULL_ROWS = 2_000_000
RESULTS = HERE / "results"
CHART = HERE.parent / "docs" / "images" / "benchmarks.svg"

QUIET_LOAD = 0.5
"""Processes that want a processor, besides the one that runs: above it, figures are marked as noisy."""

PATIENCE_SECONDS = 120


def main() -> None:
    arguments = parse_arguments()
    if not arguments.keep_tables:
        forget_own_tables()
    for pair in chosen(arguments.pairs):
        print(f"{pair.name} …", file=sys.stderr, flush=True)
        result = compare(pair, arguments.rows, arguments.rounds)
        if arguments.rows == FULL_ROWS:
            save(pair.name.replace("/", "-"), result)
        print(summary(result), flush=True)
    if arguments.rows == FULL_ROWS:
        if not arguments.pairs:
            save("startup", startup.results())
        saved = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(RESULTS.glob("*.json"))}
        start = saved.pop("startup", None)
        (HERE / "RESULTS.md").write_text("\n".join(render(list(saved.values()), start)) + "\n", "utf-8")
        CHART.write_text("\n".join(chart(list(saved.values()))) + "\n", "utf-8")


def save(name: str, result: object) -> None:
    """Write a result to a file of its own."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare this library with its peers, pair by pair.")
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help="write/orjson, or a workload: write")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=FULL_ROWS, help="other numbers write no results")
    parser.add_argument(
        "--keep-tables", action="store_true", help="read the tables that this library wrote in an earlier run"
    )
    return parser.parse_args()


def chosen(names: Sequence[str]) -> list[Pair]:
    """Return the pairs of names and workloads, all pairs without any."""
    workloads = {pair.workload for pair in PAIRS.values()}
    unknown = [name for name in names if name not in PAIRS and name not in workloads]
    if unknown:
        raise SystemExit(f"there is no pair {unknown[0]}: {', '.join((*sorted(workloads), *PAIRS))}")
    return [pair for pair in PAIRS.values() if not names or {pair.name, pair.workload} & set(names)]


def compare(pair: Pair, rows: int, rounds: int) -> dict[str, object]:
    """Run both flows of a pair in turn, and return the figures of all rounds."""
    flows = [flow for flow in (pair.ours, pair.peer) if flow is not None]
    sources = {flow.name: source_of(flow, rows) for flow in flows}
    load = wait_for_quiet()
    outcomes: dict[str, list[Outcome]] = {flow.name: [] for flow in flows}
    for number in range(rounds):
        # The first of two finds the caches as another flow left them.
        for flow in flows[:: (-1) ** number]:
            outcomes[flow.name].append(run(flow, sources[flow.name], rows))
    return {
        "pair": pair.name,
        "rate": pair.rate,
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "rows": rows,
        "rounds": rounds,
        "load_before": load,
        "quiet": load <= QUIET_LOAD,
        "machine": machine(),
        "targets": [asdict(target) for target in pair.targets],
        "flows": {
            name: [dict(outcome.facts) | {"failure": outcome.failure} for outcome in found]
            for name, found in outcomes.items()
        },
    }


def wait_for_quiet() -> float:
    """Return the number of busy processors, once it is small or after two minutes."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (load := busy_processors()) > QUIET_LOAD and time.monotonic() < end:
        time.sleep(5)
    return load


def run(flow: Flow, source: Path, rows: int) -> Outcome:
    """Run a flow once and return its figures with the rates."""
    target = CACHE / "out" / flow.name.replace(" ", "_")
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    actions = [flow.action] if flow.action else []
    targets = [str(target)] if flow.script in ("write.py", "rewrite.py", "upserts.py") else []
    outcome = run_worker(
        HERE / flow.script, flow.engine, *actions, str(source), *targets, environment=flow.environment
    )
    shutil.rmtree(target, ignore_errors=True)
    number = {"four": rows * 4, "log": generate_log.FILES}.get(flow.source, rows)
    if flow.action == "stats":
        number = outcome.facts.get("rows", 0)
    return Outcome(outcome.engine, dict(derived(outcome, number)), outcome.failure)


def derived(outcome: Outcome, rows: int) -> Iterator[tuple[str, float]]:
    """Yield the figures of an outcome, and those that follow from them."""
    facts = outcome.facts
    yield from facts.items()
    if outcome.failure:
        return
    yield "rows_per_second", rows / facts["wall_seconds"]
    yield "rows_per_cpu_second", rows / facts["cpu_seconds"]
    yield "cores", facts["cpu_seconds"] / facts["wall_seconds"]
    if facts.get("bytes_out"):
        yield "megabytes_out", facts["bytes_out"] / 1e6
    if "bytes_of_table" in facts:
        yield "percent_in", facts["megabytes_in"] * 1e8 / facts["bytes_of_table"]


if __name__ == "__main__":
    main()
