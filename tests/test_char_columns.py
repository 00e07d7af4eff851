"""Columns of Spark's type `char(n)` are padded when they are read; the right values are those of Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from support.commits import commit_actions

import delta_variant as dv
from delta_variant.protocol.actions import CommitInfo

TYPE_TEXT = "__CHAR_VARCHAR_TYPE_STRING"


@pytest.fixture(params=[None, "c"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a table with the columns `c char(5)` and `w varchar(5)`; another engine stored padded text."""
    data = {
        "id": [1, 2, 3, 4],
        "c": ["a", "b    ", None, "toolong"],
        "w": ["a", "b", None, "c"],
        "v": pa.array(['{"c": "a"}', '{"c": "b    "}', "{}", "{}"], pa.json_()),
    }
    dv.write_table(tmp_path, pa.table(data), partition_by=request.param)
    state = dv.load_snapshot(tmp_path)
    schema = json.loads(state.metadata.schema_string)
    for field, text in zip(schema["fields"][1:3], ("char(5)", "varchar(5)"), strict=True):
        field["metadata"][TYPE_TEXT] = text
    metadata = replace(state.metadata, schema_string=json.dumps(schema))
    commit_actions(state.store, 1, [CommitInfo({}), metadata])
    return tmp_path


def test_a_read_pads_char_columns_only(table: Path):
    found = sorted(dv.read_table(table, columns=["id", "c", "w"]).to_pylist(), key=lambda row: row["id"])
    assert [row["c"] for row in found] == ["a    ", "b    ", None, "toolong"]
    assert [row["w"] for row in found] == ["a", "b", None, "c"]
    whole = dv.read_table(table).to_table().sort_by("id")
    assert whole["c"].to_pylist() == ["a    ", "b    ", None, "toolong"]
    assert whole.schema.names == ["id", "c", "w", "v"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("c = 'a'", [1]),
        ("c = 'a    '", [1]),
        ("c = 'b'", [2]),
        ("'a      ' = c", [1]),
        ("c in ('a', 'b', 'x')", [1, 2]),
        ("c <=> 'b'", [2]),
        ("c < 'b'", [1]),
        ("c between 'a' and 'b'", [1, 2]),
        ("c <> 'a'", [2, 4]),
        ("c <=> null", [3]),
        ("length(c) = 5", [1, 2]),
        # Text that is not a constant is compared as it is.
        ("c = w", []),
        ("v:c::string = c", [2]),
        ("c like 'a'", []),
        ("w = 'a'", [1]),
        ("w = 'a    '", []),
    ],
)
def test_constants_are_padded_in_comparisons(table: Path, where: str, ids: list[int]):
    assert sorted(dv.read_table(table, where=where).to_table()["id"].to_pylist()) == ids
    assert dv.read_table(table, where=where).count() == len(ids)
    if ids:
        dv.delete(table, where)
    assert sorted(set(dv.read_table(table).to_table()["id"].to_pylist())) == sorted({1, 2, 3, 4} - {*ids})


def test_aggregates_are_of_the_padded_text(table: Path):
    assert dv.aggregate(table, {"low": "min(c)", "n": "count(c)"}).values == {"low": "a    ", "n": 3}
    assert dv.aggregate(table, {"high": "max(c)"}, where="c < 'b'").values == {"high": "a    "}


def test_a_rewrite_keeps_the_stored_text(table: Path):
    dv.update(table, {"id": "10"}, "c = 'a'")
    stored = dv.load_snapshot(table).metadata
    schema = json.loads(stored.schema_string)
    for field in schema["fields"]:
        field["metadata"].pop(TYPE_TEXT, None)
    state = dv.load_snapshot(table)
    metadata = replace(stored, schema_string=json.dumps(schema))
    commit_actions(state.store, state.version + 1, [CommitInfo({}), metadata])
    assert dv.read_table(table, where="id = 10").to_table()["c"].to_pylist() == ["a"]
