"""Ask every engine the questions of Variants, of the same files, and write the results.

    python benchmarks/variant/run.py [--rows 250000] [--engines duckdb,spark] [--rounds 3] [--folder FOLDER]

In each round, every engine runs once, in a process of its own, in alternating order. `results/` has a file
for each engine with the figures of its rounds, and RESULTS.md the tables of all files there. Other numbers of
rows write no results, and print the tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from data import prepare
from report import report
from systems import ENGINES, busy_processors, machine, run_worker

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
CACHE = HERE.parents[1] / ".cache" / "variant"
FULL_ROWS = 250_000

WRITERS: Mapping[str, Mapping[str, str]] = {
    "delta_variant": {"string": "ours-string", "variant": "ours-unshredded", "shredded": "ours"},
    "duckdb": {"string": "duckdb-string", "shredded": "duckdb"},
    "spark": {"string": "spark-string", "variant": "spark-unshredded", "shredded": "spark"},
}
"""The engines of `../write.py` that write each layout."""


def main() -> None:
    arguments = parse_arguments()
    names = arguments.engines.split(",")
    if unknown := {*names} - {*ENGINES}:
        raise SystemExit(f"there is no engine {min(unknown)}: {', '.join(ENGINES)}")
    folder = (arguments.folder / str(arguments.rows)).absolute()
    prepare(folder, arguments.rows)
    is_saved = arguments.rows == FULL_ROWS
    facts = {"rows": arguments.rows, "load_before": busy_processors(), "machine": machine()}
    results: dict[str, Any] = {name: {"engine": name, "rounds": [], **facts} for name in names}
    for number in range(arguments.rounds):
        for name in names[:: (-1) ** number]:
            print(f"round {number + 1}: {name} …", file=sys.stderr, flush=True)
            result = results[name]
            result["date"] = f"{datetime.now(timezone.utc):%Y-%m-%d}"
            result["rounds"].append(ask(name, folder, number) | {"writes": write(name, folder)})
            if is_saved:
                RESULTS.mkdir(exist_ok=True)
                (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if is_saved:
        results = {file.stem: json.loads(file.read_text("utf-8")) for file in RESULTS.glob("*.json")}
    text = "\n".join(report([results[name] for name in ENGINES if name in results])) + "\n"
    if is_saved:
        (HERE / "RESULTS.md").write_text(text, "utf-8")
    print(text)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ask every engine the questions of Variants.")
    parser.add_argument("--rows", type=int, default=FULL_ROWS, help="other numbers write no results")
    parser.add_argument("--engines", default=",".join(ENGINES), help="all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=CACHE, help="for the documents and the layouts")
    return parser.parse_args()


def ask(name: str, folder: Path, number: int) -> dict[str, Any]:
    """Return the costs of an engine for each question of each layout, or why it did not start."""
    outcome = run_worker(HERE / "ask.py", name, str(folder), str(number), timeout=3600)
    return {"layouts": outcome.facts.get("layouts", {}), "failure": outcome.failure}


def write(name: str, folder: Path) -> dict[str, Any]:
    """Return the costs of writing the documents in each layout, and the bytes written."""
    found = {}
    for layout, engine in WRITERS.get(name, {}).items():
        target = folder / "written"
        shutil.rmtree(target, ignore_errors=True)
        source = str(folder / "documents.ndjson")
        outcome = run_worker(HERE.parent / "write.py", engine, source, str(target))
        shutil.rmtree(target, ignore_errors=True)
        found[layout] = dict(outcome.facts) | {"failure": outcome.failure}
    return found


if __name__ == "__main__":
    main()
