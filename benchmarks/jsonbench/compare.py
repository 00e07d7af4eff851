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
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from documents import COLLECTIONS, MILLION, POSTERS, START_US
from systems import SYSTEMS, Rows, machine, measure, size_of

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "jsonbench"
RESULTS = HERE / "results"

RUNS = 3
QUERIES = 5

FEED = ("app.bsky.feed.like", "app.bsky.feed.post", "app.bsky.feed.repost")
"""The collections of query 3."""
HOUR = 16
"""All documents of the first million are of this hour."""


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
        work(arguments.work, names[0], documents, folder_of(names[0], folder))
        return
    loaded = load(names, folder, arguments)
    rounds = [
        {name: run_worker("ask", name, arguments) for name in order}
        for order in orders(names, arguments.rounds)
    ]
    check_answers(rounds[0], is_generated=not arguments.documents, rows=arguments.rows)
    report(names, rounds, loaded, arguments)


def folder_of(name: str, folder: Path) -> Path:
    """Return the folder with the data of a system."""
    return folder / (SYSTEMS[name].data or name)


def load(names: Sequence[str], folder: Path, arguments: argparse.Namespace) -> dict[Path, Any]:
    """Load the documents into each system, and return the reports by folder; those of kept data, too."""
    loaded: dict[Path, Any] = {}
    for name in names:
        target = folder_of(name, folder)
        if target in loaded:
            continue
        report = folder / f"{target.name}-load.json"
        if not (arguments.keep and target.exists()):
            shutil.rmtree(target, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
            report.write_text(json.dumps(run_worker("load", name, arguments)), "utf-8")
        loaded[target] = json.loads(report.read_text("utf-8")) if report.exists() else None
    return loaded


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
        cost, _ = measure(lambda: system.load([each.absolute() for each in documents], folder))
        print(json.dumps({"seconds": cost.wall_seconds, "cpu_seconds": cost.cpu_seconds}))
        return
    size = (system.size or size_of)(folder)
    ask = system.open(folder)
    answers: list[Rows] = []
    costs = []
    for number in range(QUERIES):
        drop_caches()
        runs = [measure(lambda number=number: ask(number)) for _ in range(RUNS)]
        costs.append([cost for cost, _ in runs])
        answers.append(runs[-1][1])
    facts = {
        name: [[getattr(cost, name) for cost in query] for query in costs]
        for name in ("wall_seconds", "cpu_seconds")
    }
    report = {"size": size, "version": system.version(), "answers": answers, **facts}
    print(json.dumps(report, default=str))


def drop_caches() -> None:
    """Forget what the machine has cached of files, if this process may."""
    with suppress(OSError):
        subprocess.run(["sync"], check=False)
        Path("/proc/sys/vm/drop_caches").write_text("3")


def check_answers(found: dict[str, Any], *, is_generated: bool, rows: int) -> None:
    """Stop with an error unless all systems agree, and a generated million has the published answers."""
    answers = {name: [normal(rows) for rows in each["answers"]] for name, each in found.items()}
    published = published_answers() if is_generated and rows == MILLION else {}
    first = next(iter(answers))
    for name, each in answers.items():
        for number, (mine, theirs) in enumerate(zip(each, answers[first], strict=True), 1):
            if mine != theirs:
                raise SystemExit(f"query {number}: {name} found {mine[:3]} …, and {first} {theirs[:3]} …")
            if number in published and figures(number, mine) != published[number]:
                raise SystemExit(f"query {number}: {name} does not have the published answer: {mine[:3]} …")


def published_answers() -> dict[int, list[list[Any]]]:
    """Return the answers for the first million documents. Those to queries 4 and 5 are without the users."""
    by_count = sorted(COLLECTIONS, key=lambda each: -each.events)
    created = sorted((each for each in COLLECTIONS if each.creates), key=lambda each: -each.creates)
    in_feed = [each for each in COLLECTIONS if each.name in FEED]
    firsts = [datetime.fromtimestamp((START_US + first) // 10**6, timezone.utc) for first, _ in POSTERS]
    return {
        1: [[each.name or "", each.events] for each in by_count],
        2: [[each.name, each.creates, each.users] for each in created],
        3: sorted([each.name, HOUR, each.creates] for each in in_feed),
        4: [
            [f"{at:%Y-%m-%d %H:%M:%S}.{(START_US + first) % 10**6:06}"]
            for at, (first, _) in zip(firsts, POSTERS, strict=True)
        ],
        5: [[span] for _, span in POSTERS],
    }


def figures(number: int, rows: list[list[Any]]) -> list[list[Any]]:
    """Return an answer without the users, which are random."""
    return [row[1:] for row in rows] if number > 3 else rows


def normal(rows: Rows) -> list[list[Any]]:
    """Return rows with one form of NULL, of times and of numbers, which some systems return as text."""
    return [[_normal(cell) for cell in row] for row in rows]


def _normal(cell: Any) -> int | str:
    text = "" if cell is None else str(cell)
    return int(text) if text.lstrip("-").isdigit() else text


def report(
    names: Sequence[str],
    rounds: Sequence[dict[str, Any]],
    loaded: dict[Path, Any],
    arguments: argparse.Namespace,
) -> None:
    """Write the results of each system, and print the comparison."""
    kind = "real" if arguments.documents else "generated"
    costs = {folder.name: cost for folder, cost in loaded.items()}
    for name in names:
        of_system = [each[name] for each in rounds]
        result = {
            "system": SYSTEMS[name].title,
            "version": of_system[0]["version"],
            "os": platform.platform(terse=True),
            "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
            "machine": machine(),
            "retains_structure": "yes",
            "tags": [f"{kind} documents", f"median of {len(rounds)} rounds"],
            "dataset_size": arguments.rows,
            "num_loaded_documents": arguments.rows,
            "total_size": of_system[0]["size"],
            "load": costs.get(SYSTEMS[name].data or name),
            "result": medians(of_system, "wall_seconds"),
            "cpu": medians(of_system, "cpu_seconds"),
        }
        folder = RESULTS / name
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(result, indent=1, ensure_ascii=False)
        (folder / f"{kind}_{arguments.rows // MILLION}m.json").write_text(text + "\n", "utf-8")
    print("\n".join(table(names, rounds, "wall_seconds")))
    print("\n".join(table(names, rounds, "cpu_seconds")))


def medians(rounds: Sequence[Any], fact: str) -> list[list[float]]:
    """Return the medians over the rounds, of each run of each query."""
    return [
        [round(median(each[fact][query][run] for each in rounds), 4) for run in range(RUNS)]
        for query in range(QUERIES)
    ]


def table(names: Sequence[str], rounds: Sequence[dict[str, Any]], fact: str) -> Iterator[str]:
    """Yield a Markdown table of the best of the later runs of each query, which are not cold."""
    unit = fact.replace("_seconds", " s")
    yield "| system | " + " | ".join(f"Q{number + 1} {unit}" for number in range(QUERIES)) + " | MB |"
    yield "|---" + "|--:" * (QUERIES + 1) + "|"
    for name in names:
        of_system = [each[name] for each in rounds]
        hot = " | ".join(f"{min(runs[1:]):.3f}" for runs in medians(of_system, fact))
        yield f"| {SYSTEMS[name].title} | {hot} | {of_system[0]['size'] / 1e6:,.1f} |"


if __name__ == "__main__":
    main()
