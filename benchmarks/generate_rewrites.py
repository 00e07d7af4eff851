"""Write events twice, in many commits: as a shredded table, and as an unshredded table of deltalake.

    python benchmarks/generate_rewrites.py TARGET EVENTS COMMITS

Both have the columns `id`, the row number, and `event`: a Variant, or for deltalake, which lacks the type,
a struct of the same bytes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

import delta_variant as dv

PLAIN = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])


def main(target: Path, events: Path, commits: int) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        dv.write_table(folder, dv.read_json(events, column="event"), shredding=None)
        rows = dv.read_table(folder).to_table()
    rows = rows.add_column(0, "id", pa.array(range(rows.num_rows), pa.int64()))
    # Other engines do not support the VARIANT annotation.
    plain = pa.table([rows["id"], rows["event"].cast(PLAIN)], names=["id", "event"])
    size = -(-rows.num_rows // commits)
    for start in range(0, rows.num_rows, size):
        dv.write_table(target / "ours", rows.slice(start, size), mode="append")
        write_deltalake(target / "deltalake", plain.slice(start, size), mode="append")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
