"""An adapter for pyarrow, by WORKERS.md alone: it answers cases of the kinds `file` and `unshred`.

delta-variant conformance --engine mine='python protocol_fixtures/adapters/pyarrow_adapter.py'
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def read(case: dict) -> dict:
    """Return the Variants of a column, as bytes in hex."""
    name = case["input"].get("column", "v")
    column = pq.read_table(Path(case["folder"], case["input"]["file"])).column(name)
    if not pa.types.is_struct(column.type) or {field.name for field in column.type} != {"metadata", "value"}:
        raise ValueError(f"the column is {column.type}")
    rows = (row if row is None else [row["metadata"].hex(), row["value"].hex()] for row in column.to_pylist())
    return {"rows": [row if row is None else {"$variant": row} for row in rows]}


KINDS = {"file": read, "unshred": read}


def answer(case: dict) -> dict:
    """Return the answer to a case."""
    if case["kind"] not in KINDS or case["options"]:
        return {"outcome": "not offered", "message": f"pyarrow has nothing for {case['kind']}"}
    try:
        return {"outcome": "answered", "content": KINDS[case["kind"]](case)}
    except Exception as error:  # an error of the engine is an answer
        return {"outcome": "refused", "message": f"{type(error).__name__}: {error}"}


print(json.dumps({"ready": pa.__version__}), flush=True)
for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps({"number": case["number"], **answer(case)}), flush=True)
