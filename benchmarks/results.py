"""Render the results of pairs as Markdown: a table for each workload, and the targets."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

from pairs import PAIRS, Target

PACKAGES = (
    "delta-variant",
    "deltalake",
    "duckdb",
    "polars",
    "datafusion",
    "pyspark",
    "pysail",
    "chdb",
    "pyarrow",
    "orjson",
)
TITLES = {
    "write": "JSON lines to a shredded table",
    "residual-rows": "Rows with values of another type in files of their own",
    "count": "Count over one path",
    "json": "All rows to JSON text",
    "selective": "A query that 1 % of the files can match",
    "stats": "Statistics from data",
    "files": "One path of 1,000 small files",
    "delete": "1 row in 100 deleted, in all of 16 files",
    "update": "1 row in 100 updated, in all of 16 files",
    "merge": "100,000 changes merged into 16 files, half of them new rows",
    "merge-few": "1,000 changes merged into 20,000,000 rows of plain columns",
    "scan": "20 scans after a delete of 1 row in 100",
    "upserts": "1,000 merges of 1,000 changes into 10,000,000 rows",
    "optimize": "100 files combined",
    "load": "Log of 1,000,000 files to a snapshot",
    "plan": "The same, and files picked by a path",
}
NOTES = {
    "write": "Events of a web shop, 791.6 MB for 2,000,000, some of them with values of another type. The "
    "peer `orjson.loads` only parses each line: it is the yardstick for the speed of the machine. The "
    "command line includes the start of Python.",
    "count": "`x > 900000`, warm, the medians of five runs in one process. DuckDB's writer leaves the "
    "integers of JSON in `value`, so it rebuilds every Variant of its own file. Our file of clean events has "
    "no values there, and DuckDB reads its typed column.",
    "residual-rows": "The peer has all rows in order in one file. `duckdb` counts the values of `x` and of "
    "`geo.lat`, warm. `pruned` counts 1 row in 200 of a table that is sorted by `x`, in files of 5 MiB.",
    "json": "The peer `orjson.loads` parses the same rows.",
    "stats": "The rows are leaf values.",
    "merge-few": "The rows of a rate are 2,000,000, a tenth of the table.",
    "scan": "The peer reads files from which the rows were removed, `ours` files with deletion vectors.",
    "upserts": "The table enables auto-compaction. The rows are changes.",
    "load": "The rows are files.",
    "plan": "The rows are files. Other engines cannot plan by a path, so theirs is the load alone.",
}
METHOD = """\
`make bench` writes this file from `results/`, which has the figures of every round. In each round, both flows
of a pair run once, in alternating order, each in its own process with two threads. Figures are medians over
the rounds, in brackets the least and the greatest. CPU seconds are user and system time with all child
processes. Imports and the start of a JVM or a server are left out, but for the command line. A ratio above 1
means that this library is faster.

[variant/RESULTS.md](variant/RESULTS.md) compares JSON strings, Variants, shredded Variants and views in each
engine."""
RATES = {"rows_per_cpu_second": "rows per CPU second", "rows_per_second": "rows per second"}
FACTS = {
    "ratio": "ratio",
    "peak_megabytes": "peak in MB",
    "megabytes_out": "MB written",
    "worker_megabytes": "peak of a worker in MB",
    "typed_percent": "% of the values typed",
    "percent_in": "% of the bytes read",
    "rows_per_cpu_second": "rows per CPU second",
    "cpu_seconds": "CPU seconds",
    "cores": "CPU time / wall time",
    "last_to_first": "seconds of the last 100 batches / the first 100",
    "most_files": "files of the table at most",
}

Result = Mapping[str, Any]


def render(results: Sequence[Result], start: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the lines of RESULTS.md from the results of pairs and of the start."""
    order = list(PAIRS)
    known = sorted(
        (each for each in results if each["pair"] in PAIRS), key=lambda each: order.index(each["pair"])
    )
    yield "# Benchmarks"
    yield ""
    yield METHOD
    for workload, group in groupby(known, key=lambda each: PAIRS[each["pair"]].workload):
        yield from _render_workload(workload, list(group))
    yield from _render_targets(known)
    if start is not None:
        yield from _render_start(start)
    yield from _render_machines(known)


def summary(result: Result) -> str:
    """Return one line about a pair."""
    rates = (f"{name} {_cells(result, name, '')[0]}" for name in result["flows"])
    ratio = f", ratio {_range(ratios(result), 2)}" if len(result["flows"]) > 1 else ""
    return f"{result['pair']}: {' | '.join(rates)} {RATES[result['rate']]}{ratio}"


def _render_workload(workload: str, results: Sequence[Result]) -> Iterator[str]:
    yield ""
    yield f"## {TITLES[workload]}"
    yield ""
    if workload in NOTES:
        yield fill(NOTES[workload], 110)
        yield ""
    yield "| pair | flow | rate | ratio | wall s | peak MB | MB in | MB out |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for result in results:
        names = list(result["flows"])
        for name in names:
            first = name == names[0]
            ratio = _range(ratios(result), 2) if first and len(names) > 1 else ""
            yield (
                " | ".join([f"| {result['pair'] if first else ''}", name, *_cells(result, name, ratio)])
                + " |"
            )
    yield ""
    kinds = {RATES[result["rate"]] for result in results}
    yield f"Rates are {' or '.join(sorted(kinds))}."


def _cells(result: Result, name: str, ratio: str) -> list[str]:
    runs = result["flows"][name]
    if failures := [run["failure"] for run in runs if run["failure"]]:
        return [f"failed: {failures[0]}", ratio, "", "", "", ""]
    return [
        _range([run[result["rate"]] for run in runs]),
        ratio,
        _range([run["wall_seconds"] for run in runs], 3),
        f"{max(run['peak_megabytes'] for run in runs):,.0f}",
        _median_of(runs, "megabytes_in"),
        _median_of(runs, "megabytes_out"),
    ]


def _render_targets(results: Sequence[Result]) -> Iterator[str]:
    yield ""
    yield "## Targets"
    yield ""
    yield "| pair | figure | target | measured | |"
    yield "|---|---|--:|--:|---|"
    for result in results:
        for each in result["targets"]:
            target = Target(**each)
            measured = _measured(result, target.fact)
            if not measured:
                continue
            sign = "≥" if target.at_least else "≤"
            verdict = "holds" if target.holds(median(measured)) else "**missed**"
            noisy = "" if result["quiet"] else ", noisy machine"
            cells = (result["pair"], FACTS[target.fact], f"{sign} {target.bound:,.4g}", _range(measured, 2))
            yield f"| {' | '.join(cells)} | {verdict}{noisy} |"


def _render_start(start: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Start"
    yield ""
    yield f"CPU seconds, the least of {start['rounds']} runs, on {start['date']}."
    yield ""
    yield "| program | seconds | more than | target |"
    yield "|---|--:|--:|--:|"
    for row in start["programs"]:
        more = "" if row["more"] is None else f"{row['more']:.3f} than {row['other']}"
        target = "" if row["target"] is None else f"≤ {row['target']:.2f}"
        yield f"| {row['name']} | {row['seconds']:.3f} | {more} | {target} |"


def _render_machines(results: Sequence[Result]) -> Iterator[str]:
    yield ""
    yield "## Machine"
    yield ""
    kinds = sorted({(result["date"], result["rounds"], result["machine"]) for result in results})
    for date, rounds, text in kinds:
        names = [
            each["pair"]
            for each in results
            if (each["date"], each["rounds"], each["machine"]) == (date, rounds, text)
        ]
        pairs = "all pairs" if len(names) == len(results) else ", ".join(names)
        yield f"- {date}, {rounds} rounds, {text}: {pairs}"
    noisy = [f"{each['pair']} ({each['load_before']})" for each in results if not each["quiet"]]
    if noisy:
        yield f"- Other processes were running, in brackets how many processors were busy: {', '.join(noisy)}"


def ratios(result: Result) -> list[float]:
    """Return the ratio of both flows in each round."""
    ours, peer = result["flows"].values()
    return [
        mine[result["rate"]] / theirs[result["rate"]]
        for mine, theirs in zip(ours, peer, strict=True)
        if not mine["failure"] and not theirs["failure"]
    ]


def _measured(result: Result, fact: str) -> list[float]:
    if fact == "ratio":
        return ratios(result)
    return [run[fact] for run in next(iter(result["flows"].values())) if fact in run]


def _range(values: Sequence[float], digits: int = 0) -> str:
    """Return the median of values with their range."""
    if not values:
        return ""
    texts = [_number(value, digits) for value in (median(values), min(values), max(values))]
    return texts[0] if len(set(texts)) == 1 else "{} ({} to {})".format(*texts)


def _number(value: float, digits: int) -> str:
    return f"{value / 1000:,.0f}k" if value >= 10_000 else f"{value:,.{digits}f}"


def _median_of(runs: Sequence[Mapping[str, float]], fact: str) -> str:
    values = [run[fact] for run in runs if fact in run]
    return _number(median(values), 1) if values else ""


def machine() -> str:
    """Return a description of the machine, with the versions of the packages that are compared."""
    versions = ", ".join(_versions(PACKAGES))
    return f"{os.cpu_count()} cores, {_cpu_model()}, Python {platform.python_version()}, {versions}"


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
