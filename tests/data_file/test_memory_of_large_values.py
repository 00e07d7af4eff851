"""The memory of operations on rows with values of 4 MB does not grow with the number of rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SETUP = """
import resource, sys
import pyarrow as pa
import delta_variant as dv

table, text, properties = sys.argv[1], "x" * 4_000_000, {"delta.enableChangeDataFeed": "true"}
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

def rows(count):
    for number in range(count):
        row = {"id": [number], "name": ["a"], "text": [text], "event": pa.array(["{}"], pa.json_())}
        yield pa.record_batch(row)

def write(count):
    return pa.RecordBatchReader.from_batches(next(rows(1)).schema, rows(count))

def create(count):
    data = {"id": range(count), "text": ["a"] * count, "event": pa.array(["{}"] * count, pa.json_())}
    dv.write_table(table, pa.table(data), configuration=properties)
"""
OPERATIONS = {
    # Short values of the other columns wait for their page, but do not keep the batches of the large ones.
    "write": (
        "batches = write(200)",
        "dv.write_table(table, batches)",
    ),
    "update": (
        "create(200)",
        "assert dv.update(table, {'text': f\"'{text}'\"}).rows_updated == 200",
    ),
    "merge": (
        "create(200); source = pa.table({'id': range(100, 300)})",
        """
merge = dv.merge(table, source, "target.id = source.id")
merge = merge.when_matched_update({"text": f"'{text}'"})
result = merge.when_not_matched_insert({"id": "source.id", "text": f"'{text}'"}).execute()
assert (result.rows_updated, result.rows_inserted) == (100, 100)
""",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_memory_of_an_operation_does_not_grow_with_the_rows(name: str, tmp_path: Path):
    """The values have 800 MB, and as much again in the change data feed."""
    prepare, operate = OPERATIONS[name]
    script = f"{SETUP}\n{prepare}\nbefore = peak()\n{operate}\nprint(peak() - before)"
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 700
