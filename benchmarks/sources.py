"""Generate the inputs of flows, and write the tables that they read. What exists is used again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import generate_log
from measure import run_worker
from pairs import Flow, Table

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache" / "bench"
EVENT_FLAGS = {"events": [], "shuffled": ["--shuffle"], "clean": ["--clean"]}
RESIDUAL_ROWS = ("separate", "inline")
PLAIN = {"plain": 10, "plain-half": 5}
"""Tables of plain columns, by the number of their rows for each row of other inputs."""

COMMITS = {"sixteen": 16, "hundred": 100, "thousand": 1000}
PACKAGES = {
    "duckdb": "duckdb",
    "clickhouse": "chdb",
    "spark": "pyspark",
    "sail": "pysail",
    "pyarrow": "pyarrow",
}


def source_of(flow: Flow, rows: int) -> Path:
    """Return the input of a flow, the table that it reads if it reads one."""
    return generated(flow.source, rows) if flow.table is None else written(flow.table, rows)


def generated(name: str, rows: int) -> Path:
    """Return a generated input. A missing one is generated."""
    CACHE.mkdir(parents=True, exist_ok=True)
    if name == "log":
        out = CACHE / f"log-{generate_log.FILES}"
        return _generate(out, "generate_log.py", str(generate_log.FILES))
    if name == "sorted":
        return _generate(CACHE / f"sorted-{rows}", "generate_sorted.py", str(generated("clean", rows)))
    if name in RESIDUAL_ROWS:
        events = str(generated("events", rows))
        return _generate(CACHE / f"{name}-{rows}", "generate_residual.py", events, name)
    if name in PLAIN:
        count = rows * PLAIN[name]
        return _generate(CACHE / f"plain-{count}", "generate_plain.py", str(count))
    if name in COMMITS:
        events = str(generated("events", rows))
        return _generate(CACHE / f"{name}-{rows}", "generate_rewrites.py", events, str(COMMITS[name]))
    out = CACHE / f"{name}-{rows}.ndjson"
    if name == "four":
        return out if out.exists() else _repeat(generated("events", rows), out, times=4)
    return _generate(out, "generate.py", str(rows), *EVENT_FLAGS[name])


def written(table: Table, rows: int) -> Path:
    """Return the files that an engine wrote. Those of this library are removed by `forget_own_tables`."""
    out = CACHE / "tables" / f"{table.engine}-{_version(table.engine)}-{table.source}-{rows}"
    if out.exists():
        return out
    partial = out.with_name(f"{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    source = generated(table.source, rows)
    outcome = run_worker(HERE / "write.py", table.engine, str(source), str(partial))
    if outcome.failure:
        raise RuntimeError(f"{table.engine} cannot write its table: {outcome.failure}")
    return partial.rename(out)


def forget_own_tables() -> None:
    """Remove the tables that this library wrote, perhaps by other code."""
    for name in ("ours", "ours-inline", "ours-unshredded"):
        for folder in (CACHE / "tables").glob(f"{name}-*"):
            shutil.rmtree(folder)
    for name in ("sorted", *RESIDUAL_ROWS, *COMMITS):
        for folder in CACHE.glob(f"{name}-*"):
            shutil.rmtree(folder)


def _version(engine: str) -> str:
    try:
        return version(PACKAGES.get(engine, "delta_variant"))
    except PackageNotFoundError:
        return "absent"


def _generate(out: Path, generator: str, *arguments: str) -> Path:
    if not out.exists():
        # An interrupted generator must not leave a file that looks complete.
        partial = out.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run([sys.executable, HERE / generator, partial, *arguments], check=True)
        partial.rename(out)
    return out


def _repeat(source: Path, out: Path, *, times: int) -> Path:
    partial = out.with_suffix(".partial")
    with partial.open("wb") as copies:
        for _ in range(times):
            with source.open("rb") as original:
                shutil.copyfileobj(original, copies, 1 << 20)
    return partial.rename(out)
