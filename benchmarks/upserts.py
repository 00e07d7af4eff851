"""Merge many small batches into a large table with deletion vectors, as a stream of changes does.

    python benchmarks/upserts.py ours BATCHES SOURCE TARGET

Each batch updates 900 rows all over the table of `generate_plain.py`, and inserts 100. The table enables
auto-compaction, which combines small files and purges deleted rows. Reported are the seconds of a batch, as
medians of the first and the last tenth of them and at most, bytes written, and the most files of the table.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from random import Random
from statistics import mean, median

import engines
import pyarrow as pa
from measure import measure, report, size_of

UPDATED, INSERTED = 900, 100


def batch(number: int, rows: int) -> pa.Table:
    random = Random(number)
    first = rows + number * INSERTED
    ids = [*random.sample(range(rows), UPDATED), *range(first, first + INSERTED)]
    columns = {
        "id": pa.array(ids, pa.int64()),
        "kind": pa.array([number % 128] * len(ids), pa.int32()),
        "name": [f"batch {number}"] * len(ids),
        "amount": [float(number)] * len(ids),
    }
    return pa.table(columns)


def main(engine: str, batches: str, source: str, folder: str) -> None:
    dv = getattr(engines, engine)()
    target = Path(folder)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    properties = {"delta.enableDeletionVectors": "true", "delta.autoOptimize.autoCompact": "true"}
    dv.set_properties(target, properties)
    rows, count = dv.read_table(target).count(), int(batches)
    seconds, sizes, files = [], [], []

    def run() -> None:
        for number in range(count):
            changes, before, start = batch(number, rows), size_of(target), time.perf_counter()
            merging = dv.merge(target, changes, "target.id = source.id")
            merging.when_matched_update_all().when_not_matched_insert_all().execute()
            seconds.append(time.perf_counter() - start)
            sizes.append((size_of(target) - before) / 1e6)
            files.append(dv.load_snapshot(target).num_files)

    cost, _ = measure(run)
    assert dv.read_table(target).count() == rows + count * INSERTED
    tenth = max(1, count // 10)
    report(
        cost,
        rows=count * (UPDATED + INSERTED),
        bytes_out=int(sum(sizes) * 1e6),
        first_seconds=median(seconds[:tenth]),
        last_seconds=median(seconds[-tenth:]),
        last_to_first=median(seconds[-tenth:]) / median(seconds[:tenth]),
        greatest_seconds=max(seconds),
        mean_seconds=mean(seconds),
        most_files=max(files),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
