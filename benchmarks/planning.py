"""Load the log of a table of a million files, one engine a process.

    python benchmarks/planning.py ENGINE TARGET

`load` is what an engine does before it can plan a query: the snapshot, with the statistics of every file.
Spark's `inputFiles` is the nearest that it offers, and names the files without their statistics.
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


def ours(target: Path) -> Load:
    import delta_variant as dv

    return lambda: dv.load_snapshot(target).num_files


def deltalake(target: Path) -> Load:
    from deltalake import DeltaTable

    return lambda: int(DeltaTable(target).get_add_actions().num_rows)


def spark(target: Path) -> Load:
    session = engines.delta_session()
    return lambda: len(session.read.format("delta").load(str(target)).inputFiles())


ENGINES: dict[str, Callable[[Path], Load]] = {"ours": ours, "deltalake": deltalake, "spark": spark}


def main(engine: str, work: str, target: str) -> None:
    cost, files = measure(ENGINES[engine](Path(target)))
    report(cost, rows=files)
    # A JVM keeps a process from ending.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
