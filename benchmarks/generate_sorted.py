"""Write events to a table of a hundred commits and files, sorted by x.

python benchmarks/generate_sorted.py TARGET EVENTS
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import delta_variant as dv

FILES = 100


def main(target: Path, events: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        dv.write_table(folder, dv.read_json(events, column="event"))
        columns = {"event": "event", "x": "try_cast(event:x as bigint)"}
        rows = dv.read_table(folder, columns=columns).to_table().sort_by("x").select(["event"])
    size = -(-rows.num_rows // FILES)
    for start in range(0, rows.num_rows, size):
        dv.write_table(target, rows.slice(start, size), mode="append")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
