"""Load the log of a table of a million files, and plan a query, one engine and one workload per process.

    python benchmarks/planning.py ENGINE WORKLOAD TARGET

`load` loads the snapshot with the statistics of every file, as the other engines do.
Spark's `inputFiles` is the closest equivalent; it lists the files without their statistics.
`plan` selects the files, one in 500, whose bounds of a Variant path do not exclude a value.
Other engines cannot plan by a Variant path. The table compares with their load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import engines
from measure import measure, report

# Returns the number of files, so that engines can be compared.
Load = Callable[[], int]


def ours(workload: str, target: Path) -> Load:
    dv = engines.ours()
    from delta_variant.operations.read.query import Query
    from delta_variant.scan.plan import plan_files

    def plan() -> int:
        snapshot = dv.load_snapshot(target)
        query = Query.of(snapshot, [], "event:day::bigint = 20500")
        return plan_files(snapshot, query.predicate).files.num_rows

    return {"load": lambda: dv.load_snapshot(target).files.num_rows, "plan": plan}[workload]


def deltalake(_: str, target: Path) -> Load:
    from deltalake import DeltaTable

    return lambda: int(DeltaTable(target).get_add_actions().num_rows)


def spark(_: str, target: Path) -> Load:
    session = engines.delta_session()
    return lambda: len(session.read.format("delta").load(str(target)).inputFiles())


ENGINES: dict[str, Callable[[str, Path], Load]] = {"ours": ours, "deltalake": deltalake, "spark": spark}


def main(engine: str, workload: str, target: str) -> None:
    cost, files = measure(ENGINES[engine](workload, Path(target)))
    report(cost, rows=files)
    # The process does not end while a JVM runs.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
