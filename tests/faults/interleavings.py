"""Histories of concurrent operations on one table, each from a seed, and the checks of each.

`python tests/faults/interleavings.py --count 500` explores, and `--seed 1234` repeats one history and prints
its calls. The same seed gives the same history. With `--rows`, the operations change rows of the same files.
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import virtual_runtime

# Modules of delta_variant bind the clock, the ids and the thread pools when they are imported.
virtual_runtime.install()

from concurrent_operations import Draw, Operation, draw_operation  # noqa: E402
from history_checks import CHECKS, History  # noqa: E402
from history_tables import ROW_TABLES, TABLES, HistoryTable, history_table, open_memory, remember  # noqa: E402
from scheduler import AgelessObjects, Outcome, RacyObjects, ScheduledObjects, Scheduler  # noqa: E402

from delta_variant.log import transaction  # noqa: E402
from delta_variant.storage.store import Memo, Store  # noqa: E402

# The waits of a commit depend on its time. The process pool needs the real clock.
transaction.monotonic = virtual_runtime.RUNTIME.monotonic  # type: ignore[attr-defined]

# A vacuum whose last commit fails, and a write that is skipped, are parts of a history.
logging.getLogger("delta_variant").setLevel(logging.CRITICAL)

# A collection in a thread could run finalizers of another operation, at a time that no seed determines.
gc.freeze()
gc.disable()

LOST_ANSWERS = 0.15
"""How likely the answers of a history are lost at times, and then each of them."""

MOST_SKEW = 60_000_000_000
"""By how many nanoseconds the clock of an operation may differ from that of the store."""

PROGRESS = 1000

STORES: dict[str, Callable[..., ScheduledObjects]] = {
    "sound": ScheduledObjects,
    "create is not atomic": RacyObjects,
    "files have no age": AgelessObjects,
}
"""Stores by name. The others break a promise that operations rely on, so that a check has to fail."""


@dataclass
class Report:
    """What a history did, or which check of it failed."""

    seed: int
    table: int
    operations: Sequence[Operation] = ()
    outcomes: Sequence[Outcome] = ()
    trace: Sequence[str] = ()
    failure: str | None = None
    kinds: Counter[str] = field(default_factory=Counter)

    def describe(self, *, with_trace: bool) -> str:
        """Return the seed, the operations, how they ended, and what failed."""
        lines = [f"seed {self.seed}, table {self.table}"]
        for number, (operation, outcome) in enumerate(zip(self.operations, self.outcomes, strict=True)):
            ended = f"{type(outcome.error).__name__}: {outcome.error}" if outcome.error else outcome.result
            lines.append(f"  {number} {operation} -> {ended}; committed {outcome.commits}")
        lines += [f"    {call}" for call in self.trace] if with_trace else []
        return "\n".join([*lines, f"  {self.failure or 'all checks passed'}"])


def explore(seed: int, store: str = "sound", *, rows: bool = False) -> Report:
    """Run the history of a seed and check it; with `rows`, of changes of rows of the same files."""
    number = TABLES + seed % ROW_TABLES if rows else seed % TABLES
    table = history_table(number)
    random = Random(seed)
    virtual_runtime.RUNTIME.reset(f"history {seed}")
    count = random.choice([2, 2, 3, 3, 4])
    draws = [
        Draw(random, each, table.versions, table.options, table.has("enableChangeDataFeed"), rows)
        for each in range(count)
    ]
    operations = [draw_operation(draw) for draw in draws]
    outcomes = [Outcome() for _ in operations]
    scheduler, objects = Scheduler(random), table.objects.copy()
    lost = LOST_ANSWERS if random.random() < LOST_ANSWERS else 0.0
    runs = [
        partial(
            _run,
            operation,
            open_memory(
                STORES[store](objects, scheduler, each, outcomes[each], random, lost),
                _draw_memo(table, seed, each),
            ),
            random.randrange(-MOST_SKEW, MOST_SKEW),
        )
        for each, operation in enumerate(operations)
    ]
    report = Report(seed, number, operations, outcomes, scheduler.trace)
    try:
        scheduler.run(runs, outcomes)
    except TimeoutError as error:
        report.failure = str(error)
        return report
    gc.collect()
    report.kinds.update(_ending(*pair) for pair in zip(operations, outcomes, strict=True))
    history = History(table, objects, operations, outcomes)
    report.failure = _failure(history)
    return report


def _draw_memo(table: HistoryTable, seed: int, number: int) -> Memo | None:
    """Return the memo of a handle that loaded some version, None for an operation on a path."""
    version = Random(f"memo {seed} {number}").randrange(-2, len(table.versions))
    return None if version < 0 else remember(table, version)


def _run(operation: Operation, store: Store, skew: int) -> Any:
    virtual_runtime.RUNTIME.set_skew(skew)
    return operation.run(store)


def _ending(operation: Operation, outcome: Outcome) -> str:
    ended = type(outcome.error).__name__ if outcome.error else "done"
    raced = " after a lost race" if outcome.attempts > max(1, len(outcome.commits)) else ""
    return f"{type(operation).__name__}: {ended}{raced}"


def _failure(history: History) -> str | None:
    for check in CHECKS:
        try:
            check(history)
        except Exception as error:  # A library error in a check is a failure of the history, too.
            return f"{check.__name__}: {type(error).__name__}: {error}"
    return None


def _explore_in_worker(seed: int, store: str, *, rows: bool) -> tuple[int, str | None, Any]:
    report = explore(seed, store, rows=rows)
    return seed, report.describe(with_trace=True) if report.failure else None, report.kinds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="repeat the history of this seed and print its calls")
    parser.add_argument("--first", type=int, default=0, help="the first seed to explore")
    parser.add_argument("--count", type=int, default=500, help="how many seeds to explore")
    parser.add_argument("--workers", type=int, default=1, help="how many processes to use")
    parser.add_argument(
        "--store", choices=STORES, default="sound", help="a store that keeps or breaks promises"
    )
    parser.add_argument("--rows", action="store_true", help="change rows of the same files")
    parser.add_argument("--failures", type=int, default=5, help="stop after this many failures")
    given = parser.parse_args()
    if given.seed is not None:
        report = explore(given.seed, given.store, rows=given.rows)
        print(report.describe(with_trace=True))
        return report.failure is not None
    return _explore_all(given)


def _explore_all(given: argparse.Namespace) -> int:
    started, failures, kinds = time.monotonic(), 0, Counter[str]()
    seeds = range(given.first, given.first + given.count)
    done = 0
    with get_context("spawn").Pool(given.workers) as pool:
        run = partial(_explore_in_worker, store=given.store, rows=given.rows)
        for seed, failure, ended in pool.imap(run, seeds, 20):
            done = seed - given.first + 1
            kinds += ended
            if done % PROGRESS == 0:
                print(f"{done:,} of {given.count:,} interleavings", file=sys.stderr, flush=True)
            if failure:
                failures += 1
                print(failure, flush=True)
                if failures >= given.failures:
                    break
        pool.terminate()
    seconds = time.monotonic() - started
    for name, number in sorted(kinds.items()):
        print(f"{number:7,} {name}")
    print(f"{done:,} interleavings of seeds from {given.first} in {seconds:.0f} s, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
