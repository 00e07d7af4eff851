"""Write a Delta table of plain columns, in 20 commits.

    python benchmarks/generate_plain.py TARGET ROWS

The ids ascend over the files. deltalake writes the table, so that no engine reads its own files alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

FILES = 20


def main(target: Path, count: int) -> None:
    size = count // FILES
    for first in range(0, count, size):
        ids = pa.array(range(first, first + size), pa.int64())
        mixed = pc.bit_wise_and(pc.multiply(ids, pa.scalar(2_654_435_761)), pa.scalar(0xFFFFFFF))
        names = pc.binary_join_element_wise("name", pc.bit_wise_and(mixed, 0xFFFFF).cast(pa.string()), " ")
        columns = {
            "id": ids,
            "kind": pc.bit_wise_and(mixed, 127).cast(pa.int32()),
            "name": names,
            "amount": pc.divide(mixed.cast(pa.float64()), 7.0),
        }
        write_deltalake(target, pa.table(columns), mode="append")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
