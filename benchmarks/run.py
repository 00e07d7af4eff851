"""Time every engine side by side, print one table, and write it to RESULTS.md.

    python benchmarks/run.py [--rows 2000000] [--rounds 3] [--only ENGINE …] [--workloads WORKLOAD …]

Each engine and flow runs in its own process, one after the other. The fastest round of each counts. Startup
(imports, a JVM, a server) is not measured. An engine that fails has a row with the reason.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import generate_log
import startup
from measure import Outcome, run_worker
from results import (
    ON_SPARK,
    OURS,
    TITLES,
    Flow,
    Lead,
    Target,
    render_leads,
    render_machine,
    render_table,
    render_targets,
)

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache" / "bench"
RESULTS = HERE / "RESULTS.md"
FULL_ROWS = 2_000_000
WHEELS = HERE.parent / "rust" / "target" / "wheels"


WRITES = (
    Flow("write", OURS, "ours"),
    Flow("write", "ours, keys shuffled", "ours", "shuffled"),
    Flow("write", "ours, shredding=None", "ours-unshredded"),
    Flow("write", "ours, 4 x the rows", "ours", "four"),
    Flow("write", "duckdb", "duckdb"),
    Flow("write", "spark", "spark"),
    Flow("write", ON_SPARK, "ours-on-spark"),
    Flow("write", "sail", "sail"),
    Flow("write", "clickhouse", "clickhouse"),
    Flow("write", "pyarrow, clean rows to typed columns", "pyarrow", "clean"),
)
COUNTS = tuple(
    Flow("count", flow.name, flow.engine)
    for flow in WRITES
    if flow.source in ("events", "clean") and flow.name != ON_SPARK
)
TEXTS = tuple(Flow("json", flow.name, flow.engine) for flow in COUNTS if flow.engine != "pyarrow")
STATS = (Flow("stats", OURS, "ours"),)
SELECTIVE = (
    *(Flow("selective", name, name, "sorted") for name in (OURS, "duckdb", "spark", "sail", "delta-spark")),
    Flow("selective", ON_SPARK, "ours-on-spark", "sorted"),
)
COMMITS = {"sixteen": 16, "hundred": 100}
REWRITES = tuple(
    Flow(workload, name, engine, source)
    for workload, source in (("delete", "sixteen"), ("optimize", "hundred"))
    for name, engine in ((OURS, "ours"), ("deltalake, unshredded", "deltalake"))
)
# The rows of these flows are files.
LOADS = (
    Flow("load", OURS, "ours", "log"),
    Flow("load", "deltalake", "deltalake", "log"),
    Flow("load", "delta-spark, inputFiles", "spark", "log"),
    Flow("plan", OURS, "ours", "log"),
    Flow("plan", "deltalake, its load", "deltalake", "log"),
)
FLOWS = (*WRITES, *COUNTS, *TEXTS, *STATS, *SELECTIVE, *REWRITES, *LOADS)
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
    Target("leaf values per CPU-second", "stats", OURS, "rows_per_cpu_second", 2_000_000, at_least=True),
    Target("% of the bytes read", "selective", OURS, "percent_in", 1.5),
    Target("peak MB of a worker", "write", ON_SPARK, "worker_megabytes", 600),
    Target("% typed, at least", "write", ON_SPARK, "typed_percent", 95, at_least=True),
    Target("peak MB", "load", OURS, "peak_megabytes", 1000),
    Target("peak MB", "plan", OURS, "peak_megabytes", 1000),
)

LEADS = (
    Lead("write", ON_SPARK, "spark", 3),
    Lead("selective", ON_SPARK, "delta-spark", 5),
    Lead("load", OURS, "deltalake", 1),
    Lead("delete", OURS, "deltalake, unshredded", 1),
    Lead("optimize", OURS, "deltalake, unshredded", 1),
)


def main() -> None:
    arguments = parse_arguments()
    flows = [
        flow
        for flow in FLOWS
        if flow.engine in (arguments.only or [flow.engine])
        and flow.workload in (arguments.workloads or TITLES)
    ]
    sources = generate_sources(arguments.rows, {flow.source for flow in flows})
    # Every other round runs in reverse order, because a process changes the caches that the next one finds.
    orders = [flows[:: (-1) ** number] for number in range(arguments.rounds)]
    rounds = [dict(run_flows(order, sources, arguments.rows)) for order in orders]
    results = [(flow, fastest([round_[flow] for round_ in rounds])) for flow in flows]
    table = "\n".join(
        [
            *render_table(results),
            "",
            *render_startup(),
            "",
            *render_targets(results, TARGETS, arguments.rows),
            *render_leads(results, LEADS),
        ]
    )
    print(table)
    if arguments.rows == FULL_ROWS and len(flows) == len(FLOWS):
        RESULTS.write_text(
            f"{render_machine(arguments.rows, arguments.rounds)}\n```text\n{table}\n```\n", encoding="utf-8"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time every engine side by side.")
    parser.add_argument("--rows", type=int, default=FULL_ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", metavar="ENGINE", help="run only these; RESULTS.md is not written"
    )
    parser.add_argument(
        "--workloads", nargs="+", choices=TITLES, help="run only these; RESULTS.md is not written"
    )
    return parser.parse_args()


def generate_sources(rows: int, names: set[str]) -> dict[str, Path]:
    """Return the inputs of these names. Generate missing ones."""
    CACHE.mkdir(parents=True, exist_ok=True)
    sources = {name: CACHE / f"{name}-{rows}.ndjson" for name in names | {"events"}}
    if "sorted" in names:
        names = names | {"clean"}
    options: dict[str, list[str]] = {"events": [], "shuffled": ["--shuffle"], "clean": ["--clean"]}
    for name, flags in options.items():
        if name in names:
            _generate(CACHE / f"{name}-{rows}.ndjson", "generate.py", str(rows), *flags)
    if "four" in names and not sources["four"].exists():
        _repeat(sources["events"], sources["four"], times=4)
    if "sorted" in names:
        sources["sorted"] = CACHE / f"sorted-{rows}"
        _generate(sources["sorted"], "generate_sorted.py", str(CACHE / f"clean-{rows}.ndjson"))
    for name in COMMITS.keys() & names:
        sources[name] = CACHE / f"{name}-{rows}"
        _generate(sources[name], "generate_rewrites.py", str(sources["events"]), str(COMMITS[name]))
    if "log" in names:
        sources["log"] = CACHE / f"log-{generate_log.FILES}"
        _generate(sources["log"], "generate_log.py", str(generate_log.FILES))
    return sources


def _generate(out: Path, generator: str, *arguments: str) -> None:
    if out.exists():
        return
    # An interrupted generator must not leave a file that looks complete.
    partial = out.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run([sys.executable, HERE / generator, partial, *arguments], check=True)
    partial.rename(out)


def _repeat(source: Path, out: Path, *, times: int) -> None:
    partial = out.with_suffix(".partial")
    with partial.open("wb") as copies:
        for _ in range(times):
            with source.open("rb") as original:
                shutil.copyfileobj(original, copies, 1 << 20)
    partial.rename(out)


def run_flows(flows: Sequence[Flow], sources: dict[str, Path], rows: int) -> Iterator[tuple[Flow, Outcome]]:
    """Yield the outcome of every flow in order. Queries read the files of the writes before them."""
    numbers = {"four": rows * 4, "log": generate_log.FILES}
    for flow in flows:
        print(f"{TITLES[flow.workload]}: {flow.name} …", file=sys.stderr, flush=True)
        outcome = _run(flow, sources[flow.source])
        number = outcome.facts.get("rows", 0) if flow.workload == "stats" else numbers.get(flow.source, rows)
        yield flow, _derive(outcome, number)


def fastest(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the fastest run with the highest peak memory of all, or a failed run if there is one."""
    failed = next((outcome for outcome in outcomes if outcome.failure), None)
    if failed:
        return failed
    best = min(outcomes, key=lambda outcome: outcome.facts["wall_seconds"])
    peak = max(outcome.facts["peak_megabytes"] for outcome in outcomes)
    return Outcome(best.engine, {**best.facts, "peak_megabytes": peak})


def _run(flow: Flow, source: Path) -> Outcome:
    if flow.source in ("log", "sorted"):
        script = "planning.py" if flow.source == "log" else "read.py"
        return run_worker(HERE / script, flow.engine, flow.workload, str(source))
    target = CACHE / "out" / flow.name.replace(" ", "_")
    if flow.source in COMMITS:
        return run_worker(
            HERE / "rewrite.py", flow.engine, flow.workload, str(source), f"{target}_{flow.workload}"
        )
    if flow.workload != "write":
        return run_worker(HERE / "read.py", flow.engine, flow.workload, str(target))
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    return run_worker(HERE / "write.py", flow.engine, str(source), str(target))


def _derive(outcome: Outcome, rows: int) -> Outcome:
    """Add the rates and sizes of the table."""
    if outcome.failure:
        return outcome
    facts = dict(outcome.facts)
    facts["rows_per_second"] = rows / max(facts["wall_seconds"], 1e-9)
    # A CPU time below the clock's resolution cannot be a divisor.
    if facts["cpu_seconds"] > 0:
        facts["rows_per_cpu_second"] = rows / facts["cpu_seconds"]
    if "bytes_out" in facts:
        facts["megabytes_out"] = facts["bytes_out"] / 1e6
    if "bytes_of_table" in facts:
        facts["percent_in"] = facts["megabytes_in"] * 1e8 / facts["bytes_of_table"]
    return Outcome(outcome.engine, facts)


def render_startup() -> Iterator[str]:
    """Yield the lines about the time of the start and the download size."""
    yield "start: CPU seconds"
    try:
        seconds, optional = startup.cpu_seconds(), startup.optional_modules("delta_variant")
        yield from startup.render(seconds)
        yield f"  optional dependencies imported: {', '.join(optional) or 'none'}"
    except subprocess.CalledProcessError:
        yield "  failed"
    megabytes = startup.wheel_megabytes(WHEELS)
    yield f"  wheel: {f'{megabytes} MB (at most 12)' if megabytes else f'none in {WHEELS.name}/'}"


if __name__ == "__main__":
    main()
