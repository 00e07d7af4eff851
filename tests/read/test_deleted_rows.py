"""Rows that deletion vectors leave: values, positions and filters at the boundaries of batches and pages."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_variant as dv

ROWS = 140_000
VECTORS = {"delta.enableDeletionVectors": "true"}

# Batches have 65,536 rows. Fewer than 2,048 deleted rows in succession are decoded, others are skipped.
DELETED: Mapping[str, Callable[[int], bool]] = {
    "id * 7919 % 101 < 3": lambda row: row * 7919 % 101 < 3,
    "id % 2 = 0": lambda row: row % 2 == 0,
    "id < 65536 or id = 139999": lambda row: row < 65_536 or row == 139_999,
    "id between 60000 and 62047 or id between 70000 and 72046": lambda row: (
        60_000 <= row <= 62_047 or 70_000 <= row <= 72_046
    ),
    "id % 65536 = 65535 or id % 65536 = 0": lambda row: row % 65_536 in (0, 65_535),
}


def event_of(row: int) -> dict[str, Any]:
    """Return an event; the names of the late objects are read only where such an object is."""
    odd = row > 100_000 and row % 1_000 == 1
    return {"n": {"x": row} if odd else row % 1_000, "word": f"word {row % 50}", "text": f"text {row}"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("deleted") / "t"
    events = pa.array((json.dumps(event_of(row)) for row in range(ROWS)), pa.json_())
    halves = pa.array((row / 2 for row in range(ROWS)), pa.float64())
    lists = pa.array(([row, None] if row % 3 else None for row in range(ROWS)), pa.list_(pa.int64()))
    rows = pa.table({"id": range(ROWS), "half": halves, "list": lists, "event": events})
    dv.write_table(path, rows, configuration=VECTORS)
    return path


@pytest.fixture(params=DELETED)
def marked(whole: Path, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, list[int]]:
    """Return a table with deleted rows, and the numbers of the rows that remain."""
    table = tmp_path / "t"
    dv.clone(whole, table)
    dv.delete(table, request.param)
    return table, [row for row in range(ROWS) if not DELETED[request.param](row)]


def test_the_rows_that_remain_have_their_own_values(marked: tuple[Path, list[int]]) -> None:
    table, remaining = marked
    columns = {"id": "id", "half": "half", "list": "list", "word": "event:word::string"}
    found = dv.read_table(table, columns=columns).to_table()
    assert found["id"].to_pylist() == remaining
    assert found["half"].to_pylist() == [row / 2 for row in remaining]
    assert found["list"].to_pylist() == [[row, None] if row % 3 else None for row in remaining]
    assert found["word"].to_pylist() == [f"word {row % 50}" for row in remaining]
    assert dv.read_table(table).count() == len(remaining)


def test_filters_and_whole_variants_see_the_rows_that_remain(marked: tuple[Path, list[int]]) -> None:
    table, remaining = marked
    matching = [row for row in remaining if row % 50 == 7 and row > 1_000]
    condition = "event:word::string = 'word 7' and id > 1000"
    found = dv.read_table(table, columns={"id": "id", "n": "event:n"}, where=condition).to_pylist("json")
    assert found == [
        {"id": row, "n": json.dumps(event_of(row)["n"], separators=(",", ":"))} for row in matching
    ]
    assert dv.read_table(table, where=condition).count() == len(matching)
    sample = random.Random(7).sample(remaining, 300)
    texts = dv.read_table(table, columns={"id": "id", "text": "to_json(event)"}).to_table()
    by_id = dict(zip(texts["id"].to_pylist(), texts["text"].to_pylist(), strict=True))
    assert len(by_id) == len(remaining)
    assert [json.loads(by_id[row]) for row in sample] == [event_of(row) for row in sample]
