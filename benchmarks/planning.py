"""Load the log of a table of a million files, and plan a query of it, one engine and one work a process.

    python benchmarks/planning.py ENGINE WORK TARGET

`load` is what an engine does before it can plan a query: the snapshot, with the statistics of every file.
Spark's `inputFiles` is the nearest that it offers, and names the files without their statistics.
`plan` loads it and picks the files, one in 500, whose bounds of a Variant path do not exclude a value.
The peers have no such plan: their loads stand beside it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import engines
from measure import measure, report

# Returns a number of files, so that engines can be compared.
Load = Callable[[], int]


def ours(work: str, target: Path) -> Load:
    dv = engines.ours()
    from delta_variant.operations.read.query import Query
    from delta_variant.scan.plan import plan_files

    def plan() -> int:
        snapshot = dv.load_snapshot(target)
        query = Query.of(snapshot, [], "event:day::bigint = 20500")
        return plan_files(snapshot, query.predicate).files.num_rows

    return {"load": lambda: dv.load_snapshot(target).num_files, "plan": plan}[work]


def deltalake(_: str, target: Path) -> Load:
    from deltalake import DeltaTable

    return lambda: int(DeltaTable(target).get_add_actions().num_rows)


def spark(_: str, target: Path) -> Load:
    session = engines.delta_session()
    return lambda: len(session.read.format("delta").load(str(target)).inputFiles())


ENGINES: dict[str, Callable[[str, Path], Load]] = {"ours": ours, "deltalake": deltalake, "spark": spark}


def main(engine: str, work: str, target: str) -> None:
    cost, files = measure(ENGINES[engine](work, Path(target)))
    report(cost, rows=files)
    # A JVM keeps a process from ending.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
