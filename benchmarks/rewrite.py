"""Rewrite a copy of a table, one engine and one workload per process. `generate_rewrites.py` writes it.

    python benchmarks/rewrite.py ENGINE WORKLOAD SOURCE TARGET

`delete` removes one row in a hundred, so that every file is rewritten. `optimize` combines all files.
deltalake has no Variants and rewrites the same bytes as binary columns.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import engines
from measure import measure, report, size_of

# Returns the number of rows or files, so that engines can be compared.
Rewrite = Callable[[], int]

DELETED = "id % 100 = 7"


def ours(workload: str, target: Path) -> Rewrite:
    dv = engines.ours()
    # The first use of a public name imports its modules.
    delete, optimize = dv.delete, dv.optimize

    return {
        "delete": lambda: delete(target, DELETED).rows_deleted,
        "optimize": lambda: optimize(target).files_before,
    }[workload]


def deltalake(workload: str, target: Path) -> Rewrite:
    from deltalake import DeltaTable

    return {
        "delete": lambda: int(DeltaTable(target).delete(DELETED)["num_deleted_rows"]),
        "optimize": lambda: int(DeltaTable(target).optimize.compact()["numFilesRemoved"]),
    }[workload]


ENGINES: dict[str, Callable[[str, Path], Rewrite]] = {"ours": ours, "deltalake": deltalake}


def main(engine: str, workload: str, source: str, folder: str) -> None:
    target = Path(folder)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(Path(source) / engine, target)
    before = set(target.rglob("*.parquet"))
    cost, rows = measure(ENGINES[engine](workload, target))
    written = sum(size_of(file) for file in set(target.rglob("*.parquet")) - before)
    report(cost, rows=rows, bytes_out=written)


if __name__ == "__main__":
    main(*sys.argv[1:])
