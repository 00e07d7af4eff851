"""Compare default shredding with none on small files: the CPU time and the size of a write.

    python benchmarks/small_files.py FILE.ndjson …

For each file and number of rows, writes with and without shredding alternate. A row has the median ratio of
the CPU times (user and system) with its range, and the ratio of the sizes.
"""

from __future__ import annotations

import statistics
import sys
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import engines
import pyarrow as pa

dv = engines.ours()

PAIRS = 9
SHAPES = ((1, 0), (3, 0), (10, 0), (100, 0), (300, 100), (1_200, 0), (100_000, 0))
"""The number of rows, and of partitions."""


def main(paths: list[str]) -> None:
    print(f"{'file':28} {'rows':>7} {'partitions':>10} {'CPU':>6} {'range':>15} {'size':>6}")
    for path in map(Path, paths):
        with path.open(encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in islice(file, max(rows for rows, _ in SHAPES))]
        for rows, partitions in SHAPES:
            row = compare(lines[:rows], partitions)
            print(f"{path.stem:28} {min(rows, len(lines)):7} {partitions:10} {row}", flush=True)


def compare(lines: list[str], partitions: int) -> str:
    """Return a row of figures of alternating writes."""
    data = {"event": pa.array(lines), "part": pa.array(row % max(partitions, 1) for row in range(len(lines)))}
    names = ["event", "part"] if partitions else ["event"]
    table = pa.table({name: data[name] for name in names})
    write(table, None)
    pairs = [(write(table, "infer"), write(table, None)) for _ in range(PAIRS)]
    times = [shredded[0] / plain[0] for shredded, plain in pairs]
    size = pairs[0][0][1] / pairs[0][1][1]
    middle = statistics.median(times)
    return f"{middle:6.2f} {min(times):6.2f} to {max(times):6.2f} {size:6.3f}"


def write(table: pa.Table, shredding: Any) -> tuple[float, int]:
    """Return the CPU seconds and the bytes of the files of a write."""
    partition_by = ["part"] if "part" in table.schema.names else None
    with TemporaryDirectory() as folder:
        start = time.process_time()
        result = dv.write_table(
            Path(folder) / "table",
            table,
            variant_columns=["event"],
            shredding=shredding,
            partition_by=partition_by,
        )
        return time.process_time() - start, sum(file.bytes for file in result.files)


if __name__ == "__main__":
    main(sys.argv[1:])
