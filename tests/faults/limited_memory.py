"""One action on a table in limited memory.

`python limited_memory.py MEGABYTES ACTION TABLE` prints the outcome.

The limit excludes the memory that the imports take. Exceeding it raises MemoryError.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import delta_variant as dv


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _virtual() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _read(table: str, **options: Any) -> int:
    return sum(batch.num_rows for batch in dv.read_table(table, **options).to_batches())


def _write(path: str) -> int:
    text = Path(path).read_text()
    data = pa.table({"event": pa.array([text], pa.large_string())})
    dv.write_table(f"{path}.table", data, variant_columns=["event"])
    (found,) = (
        dv.read_table(f"{path}.table", columns={"last": "event:k999999::bigint"}).to_table().to_pylist()
    )
    return int(found["last"])


ACTIONS: Mapping[str, Callable[[str], Any]] = {
    "load": lambda table: dv.load_snapshot(table).num_files,
    "read": _read,
    "read a path": lambda table: _read(table, columns={"n": "event:n::bigint"}),
    "find": lambda table: _read(table, where="event:n::bigint = 1"),
    "find a row": lambda table: _read(table, where="id = 1"),
    "audit": lambda table: len(dv.audit_table(table).findings),
    "audit data": lambda table: len(dv.audit_table(table, data=True).findings),
    "delete": lambda table: dv.delete(table, "event:n::bigint = 1").rows_deleted,
    "everything": lambda table: [
        ACTIONS[action](table) for action in ("load", "read", "find a row", "audit")
    ],
    "write": _write,
}


def main(megabytes: int, action: str, table: str) -> None:
    before = peak()
    # Threads reserve address space that they do not use; the limit saves the machine.
    limit = _virtual() + (megabytes << 20) + (4 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        outcome: dict[str, Any] = {"result": ACTIONS[action](table)}
    except (dv.DeltaVariantError, MemoryError, RecursionError) as error:
        outcome = {"error": type(error).__name__, "text": str(error)[:1000]}
    print(json.dumps(outcome | {"megabytes": peak() - before}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
