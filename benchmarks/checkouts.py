"""Compare this checkout with another one: no pair may need 10 % more CPU time.

    python benchmarks/checkouts.py ../before [PAIR …] [--rounds 5] [--rows 2000000] [--limit 1.10]

Both checkouts are built by `make`. Each flow of this library runs once in each checkout and round, in
alternating order and on the same input. The exit status is 1 if the median of the ratios exceeds the limit.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from statistics import median

from measure import Outcome, run_worker
from pairs import PAIRS, Flow
from run import FULL_ROWS, chosen, wait_for_quiet
from sources import CACHE, HERE, source_of

PAIRS_OF_CI = ("write/orjson", "count/clickhouse", "load/deltalake")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare this checkout with another one.")
    parser.add_argument("other", type=Path, help="the folder of the other checkout")
    parser.add_argument("pairs", nargs="*", metavar="PAIR", default=PAIRS_OF_CI, help=", ".join(PAIRS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=FULL_ROWS)
    parser.add_argument("--limit", type=float, default=1.10, help="CPU time here over CPU time there")
    arguments = parser.parse_args()
    is_slower = False
    print("| pair | CPU here / there | rounds |\n|---|--:|---|")
    for pair in chosen(arguments.pairs):
        source = source_of(pair.ours, arguments.rows)
        wait_for_quiet()
        ratios = [
            ratio_of(pair.ours, source, arguments.other.resolve(), is_here_first=number % 2 == 0)
            for number in range(arguments.rounds)
        ]
        print(
            f"| {pair.name} | {median(ratios):.3f} | {' '.join(f'{each:.3f}' for each in ratios)} |",
            flush=True,
        )
        is_slower |= median(ratios) > arguments.limit
    return int(is_slower)


def ratio_of(flow: Flow, source: Path, other: Path, *, is_here_first: bool) -> float:
    """Run a flow in both checkouts and return the ratio of their CPU times."""
    order = (is_here_first, not is_here_first)
    seconds = {is_here: run(flow, source, HERE.parent if is_here else other) for is_here in order}
    return seconds[True] / seconds[False]


def run(flow: Flow, source: Path, root: Path) -> float:
    """Run a flow in a checkout and return its CPU seconds."""
    target = CACHE / "out" / "checkouts"
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    actions = [flow.action] if flow.action else []
    targets = [str(target)] if flow.script in ("write.py", "rewrite.py", "upserts.py") else []
    outcome: Outcome = run_worker(
        root / "benchmarks" / flow.script,
        flow.engine,
        *actions,
        str(source),
        *targets,
        environment=flow.environment,
        interpreter=root / ".venv" / "bin" / "python",
    )
    shutil.rmtree(target, ignore_errors=True)
    if outcome.failure:
        raise SystemExit(f"{flow.name} in {root}: {outcome.failure}")
    return float(outcome.facts["cpu_seconds"])


if __name__ == "__main__":
    sys.exit(main())
