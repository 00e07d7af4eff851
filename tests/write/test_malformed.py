"""A malformed Variant in a data file: the error of a rewrite has its file, its row and its column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from support import planting
from support.errors import raises_at
from support.tables import read_ids

import delta_variant as dv

EMPTY_OBJECT = {"metadata": b"\x01\x00\x00", "value": b"\x02\x00\x00"}
MALFORMED = {"metadata": b"\x01\x00\x00", "value": b"\xff\xff"}
MALFORMED_ID = 70


@pytest.fixture
def planted(tmp_path: Path) -> planting.Table:
    """Return a table of two files, of which the first has a malformed Variant."""
    planted = planting.Table.write(tmp_path)
    rows = [EMPTY_OBJECT] * 100
    rows[MALFORMED_ID] = MALFORMED
    planted.replace_rows(planting.column(None), *rows)
    return planted


def _merge(table: dv.Table) -> object:
    source = pa.table({"key": [3], "n": [1]})
    return table.merge(source, "id = key").when_matched_update({"v:n": "n"}).execute()


CHANGES: dict[str, Callable[[dv.Table], object]] = {
    "delete": lambda table: table.delete("id = 3"),
    "update": lambda table: table.update({"v:n": "1"}, "id = 3"),
    "merge": _merge,
    "optimize": lambda table: table.optimize(),
    "reshred": lambda table: table.optimize(reshred=True),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_rewrite_names_the_file_the_row_and_the_column(
    planted: planting.Table, change: Callable[[dv.Table], object]
):
    file = planted.file.name
    planted.append()
    table = dv.Table(planted.path)
    way_out = "restore the file, or delete its malformed rows"
    with raises_at(dv.MalformedVariantError, way_out, file=file, row=MALFORMED_ID, column="v"):
        change(table)
    assert table.version == 1


def test_the_malformed_row_can_be_deleted(planted: planting.Table):
    table = dv.Table(planted.path)
    assert table.delete(f"id = {MALFORMED_ID}").rows_deleted == 1
    table.optimize()
    assert read_ids(planted.path) == [each for each in range(100) if each != MALFORMED_ID]
