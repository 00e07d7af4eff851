"""Write events to a table, some of them with values of another type, sorted by x.

python benchmarks/generate_residual.py TARGET EVENTS separate|inline
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import delta_variant as dv

FILE_SIZE = 5 << 20


def main(target: str, events: str, residual_rows: Literal["separate", "inline"]) -> None:
    files = dv.FileOptions(target_file_size=FILE_SIZE, residual_rows=residual_rows)
    dv.write_table(target, dv.read_json(Path(events), column="event"), files=files)
    dv.optimize(target, sort_by="try_cast(event:x as bigint)", files=files)
    dv.vacuum(target, retention_hours=0, enforce_retention_duration=False, dry_run=False)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
