"""Rewrite a copy of a table, one engine and one work a process; `generate_rewrites.py` made it.

    python benchmarks/rewrite.py ENGINE WORK SOURCE TARGET

`delete` takes one row in a hundred away, so that every file is written anew. `optimize` writes all files as
few. The peer has no Variants: it rewrites the same bytes as plain columns.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import engines
from measure import measure, report, size_of

# Returns a number of rows or files, so that engines can be compared.
Rewrite = Callable[[], int]

DELETED = "id % 100 = 7"


def ours(work: str, target: Path) -> Rewrite:
    dv = engines.ours()

    return {
        "delete": lambda: dv.delete(target, DELETED).rows_deleted,
        "optimize": lambda: dv.optimize(target).files_before,
    }[work]


def deltalake(work: str, target: Path) -> Rewrite:
    from deltalake import DeltaTable

    return {
        "delete": lambda: int(DeltaTable(target).delete(DELETED)["num_deleted_rows"]),
        "optimize": lambda: int(DeltaTable(target).optimize.compact()["numFilesRemoved"]),
    }[work]


ENGINES: dict[str, Callable[[str, Path], Rewrite]] = {"ours": ours, "deltalake": deltalake}


def main(engine: str, work: str, source: str, folder: str) -> None:
    target = Path(folder)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(Path(source) / engine, target)
    before = set(target.rglob("*.parquet"))
    cost, rows = measure(ENGINES[engine](work, target))
    written = sum(size_of(file) for file in set(target.rglob("*.parquet")) - before)
    report(cost, rows=rows, bytes_out=written)


if __name__ == "__main__":
    main(*sys.argv[1:])
