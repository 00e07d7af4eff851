"""Run JSONBench: load the documents into each system, and ask its five queries.

    python benchmarks/jsonbench/compare.py [SYSTEM …] [--rows 1000000] [--documents FILE …] [--keep]

Without `--documents`, documents are generated. With the files of JSONBench, such as `file_0001.json.gz`, the
same command measures the real ones. Each query runs three times after the system was started and the file
caches of the machine were dropped, where this is allowed. Rounds over the systems alternate. `results/` gets
a file for each system in the form of JSONBench's own, with the medians over the rounds, and RESULTS.md the
comparison.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from documents import COLLECTIONS, MILLION
from systems import SYSTEMS, Rows, machine, size_of

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "jsonbench"
RESULTS = HERE / "results"

RUNS = 3
QUERIES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description="Run JSONBench.")
    parser.add_argument("systems", nargs="*", choices=[[], *SYSTEMS], metavar="SYSTEM")
    parser.add_argument("--rows", type=int, default=MILLION, help="how many documents are generated")
    parser.add_argument(
        "--documents", nargs="+", type=Path, help="files of JSON lines, instead of generated ones"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="use the data that an earlier run loaded")
    parser.add_argument("--work", choices=("load", "ask"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.systems or list(SYSTEMS)
    documents = arguments.documents or [generated(arguments.rows)]
    folder = CACHE / ("real" if arguments.documents else f"generated-{arguments.rows}")
    if arguments.work:
        work(arguments.work, names[0], documents, folder / names[0])
        return
    for name in names:
        if not (arguments.keep and (folder / name).exists()):
            shutil.rmtree(folder / name, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
            run_worker("load", name, arguments)
    rounds = [
        {name: run_worker("ask", name, arguments) for name in order}
        for order in orders(names, arguments.rounds)
    ]
    check_answers(rounds[0], is_generated=not arguments.documents, rows=arguments.rows)
    report(names, rounds, arguments)


def generated(rows: int) -> Path:
    """Return the file of generated documents, which is written once."""
    file = CACHE / f"documents-{rows}.ndjson"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, str(HERE / "documents.py"), str(file), "--rows", str(rows)], check=True
        )
    return file


def orders(names: Sequence[str], rounds: int) -> list[Sequence[str]]:
    """Return the order of the systems in each round: forwards and backwards in turn."""
    return [names[:: (-1) ** number] for number in range(rounds)]


def run_worker(kind: str, name: str, arguments: argparse.Namespace) -> Any:
    """Load or ask in a process of its own, and return its report."""
    print(f"{name}: {kind} …", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, name, "--work", kind, "--rows", str(arguments.rows)]
    if arguments.documents:
        command += ["--documents", *map(str, arguments.documents)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def work(kind: str, name: str, documents: Sequence[Path], folder: Path) -> None:
    """Load or ask, and print the report."""
    system = SYSTEMS[name]
    if kind == "load":
        start = time.perf_counter()
        system.load([each.absolute() for each in documents], folder)
        print(json.dumps({"seconds": time.perf_counter() - start}))
        return
    size = (system.size or size_of)(folder)
    ask = system.open(folder)
    answers: list[Rows] = []
    times: list[list[float]] = []
    for number in range(QUERIES):
        drop_caches()
        times.append([])
        for _ in range(RUNS):
            start = time.perf_counter()
            rows = ask(number)
            times[-1].append(time.perf_counter() - start)
        answers.append(rows)
    print(json.dumps({"size": size, "times": times, "answers": answers}, default=str))


def drop_caches() -> None:
    """Forget what the machine has cached of files, if this process may."""
    with suppress(OSError):
        subprocess.run(["sync"], check=False)
        Path("/proc/sys/vm/drop_caches").write_text("3")


def check_answers(found: dict[str, Any], *, is_generated: bool, rows: int) -> None:
    """Stop with an error unless all systems agree, and a generated million has the published answers."""
    counts = {name: [normal(rows) for rows in each["answers"]] for name, each in found.items()}
    first = next(iter(counts))
    for name, answers in counts.items():
        for number, (mine, theirs) in enumerate(zip(answers, counts[first], strict=True), 1):
            if mine != theirs:
                raise SystemExit(f"query {number}: {name} found {mine[:3]} …, and {first} {theirs[:3]} …")
    if is_generated and rows == MILLION:
        published = [
            [each.name or "", each.events] for each in sorted(COLLECTIONS, key=lambda each: -each.events)
        ]
        if counts[first][0] != published:
            raise SystemExit(f"query 1 does not have the published answer: {counts[first][0]}")
        users = [[each.name, each.creates, each.users] for each in COLLECTIONS if each.creates]
        if sorted(counts[first][1]) != sorted(users):
            raise SystemExit(f"query 2 does not have the published answer: {counts[first][1]}")


def normal(rows: Rows) -> list[list[Any]]:
    """Return rows with one form of NULL, of times and of numbers, which some systems return as text."""
    return [[_normal(cell) for cell in row] for row in rows]


def _normal(cell: Any) -> int | str:
    text = "" if cell is None else str(cell)
    return int(text) if text.lstrip("-").isdigit() else text


def report(names: Sequence[str], rounds: Sequence[dict[str, Any]], arguments: argparse.Namespace) -> None:
    """Write the results of each system, and the comparison."""
    RESULTS.mkdir(exist_ok=True)
    kind = "real" if arguments.documents else "generated"
    lines = []
    for name in names:
        times = [
            [round(median(each[name]["times"][query][run] for each in rounds), 4) for run in range(RUNS)]
            for query in range(QUERIES)
        ]
        size = rounds[0][name]["size"]
        result = {
            "system": SYSTEMS[name].title,
            "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
            "machine": machine(),
            "documents": kind,
            "num_loaded_documents": arguments.rows,
            "rounds": len(rounds),
            "total_size": size,
            "result": times,
        }
        (RESULTS / f"{name}_{kind}_{arguments.rows}.json").write_text(
            json.dumps(result, indent=1) + "\n", "utf-8"
        )
        hot = " | ".join(f"{min(runs[1:]):.3f}" for runs in times)
        lines.append(f"| {SYSTEMS[name].title} | {hot} | {size / 1e6:,.1f} |")
    print(
        "\n".join(
            ["| system | Q1 s | Q2 s | Q3 s | Q4 s | Q5 s | MB |", "|---|--:|--:|--:|--:|--:|--:|", *lines]
        )
    )


if __name__ == "__main__":
    main()
