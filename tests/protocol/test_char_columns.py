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
    declare(tmp_path, {"c": "char(5)", "w": "varchar(5)"})
    return tmp_path


def declare(path: Path, types: dict[str, str]) -> None:
    """Commit the types of columns as Spark stores them; others have none."""
    state = dv.load_snapshot(path)
    schema = json.loads(state.metadata.schema_string)
    for field in schema["fields"]:
        field["metadata"].pop(TYPE_TEXT, None)
        if field["name"] in types:
            field["metadata"][TYPE_TEXT] = types[field["name"]]
    metadata = replace(state.metadata, schema_string=json.dumps(schema))
    commit_actions(state.store, state.version + 1, [CommitInfo({}), metadata])


def test_a_read_pads_char_columns_only(table: Path):
    found = sorted(dv.read_table(table, columns=["id", "c", "w"]).to_pylist(), key=lambda row: row["id"])
    assert [row["c"] for row in found] == ["a    ", "b    ", None, "toolong"]
    assert [row["w"] for row in found] == ["a", "b", None, "c"]
    whole = dv.read_table(table).to_table().sort_by("id")
    assert whole["c"].to_pylist() == ["a    ", "b    ", None, "toolong"]
    assert whole.schema.names == ["id", "c", "w", "v"]


@pytest.mark.parametrize(
    ("where", "ids"), [("c = w", [1, 2]), ("c in (w)", [1, 2]), ("c in ('a', w)", []), ("w in ('a', c)", [])]
)
def test_lists_of_columns_are_compared_without_padding(tmp_path: Path, where: str, ids: list[int]):
    """Spark 4.2 pads lists of constants, and a list of one column, which it takes for `=`."""
    dv.write_table(tmp_path, pa.table({"id": [1, 2, 3], "c": ["a", "b", None], "w": ["a", "b", None]}))
    declare(tmp_path, {"c": "char(5)", "w": "char(3)"})
    assert sorted(dv.read_table(tmp_path, where=where).to_table()["id"].to_pylist()) == ids


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
    declare(table, {})
    assert dv.read_table(table, where="id = 10").to_table()["c"].to_pylist() == ["a"]


def test_an_update_reads_padded_text(table: Path):
    dv.update(table, {"w": "c"}, "id = 1")
    assert dv.read_table(table, where="id = 1").to_table()["w"].to_pylist() == ["a    "]


# Delta on Spark adds the padding to the target of a merge too, as a projection.
@pytest.mark.parametrize(
    ("on", "where", "ids"),
    [
        ("target.c = 'a'", None, [1]),
        ("target.id = source.id and target.c in ('b', 'x')", None, [2]),
        ("target.c = source.text", None, [1]),
        ("target.id = source.id", "target.c = 'a'", [1]),
        ("target.id = source.id", "length(target.c) = 5", [1, 2]),
        ("target.id = source.id", "target.w = 'a    '", []),
    ],
)
def test_a_merge_pads_columns_of_its_target(table: Path, on: str, where: str | None, ids: list[int]):
    source = pa.table({"id": [1, 2, 4], "text": ["a    ", "b", "c"]})
    if "source" not in on:
        source = source.slice(0, 1)
    changed = (
        dv.merge(table, source, on).when_matched_update({"id": "target.id + 100"}, where=where).execute()
    )
    assert changed.rows_updated == len(ids)
    found = dv.read_table(table).to_table()["id"].to_pylist()
    assert sorted(each - 100 for each in found if each > 100) == ids


def test_a_merge_reads_padded_text_and_keeps_that_of_other_columns(table: Path):
    merge = dv.merge(table, pa.table({"id": [1]}), "target.id = source.id")
    merge.when_matched_update({"w": "target.c"}).execute()
    declare(table, {})
    (row,) = dv.read_table(table, columns=["c", "w"], where="id = 1").to_pylist()
    assert row == {"c": "a", "w": "a    "}


# The types and the values are those of Spark's `CharVarcharTestSuite`.
NESTED = {
    "s": "struct<c:char(5),n:int>",
    "a": "array<char(5)>",
    "m": "map<char(5),char(3)>",
    "deep": "struct<a:array<struct<c:char(3),v:varchar(9)>>>",
}
STORED = [
    {
        "s": {"c": "a", "n": 1},
        "a": ["a", "ab", None],
        "m": [("a", "ab")],
        "deep": {"a": [{"c": "x", "v": "y"}, None]},
    },
    {"s": None, "a": None, "m": None, "deep": None},
    {"s": {"c": None, "n": 2}, "a": [], "m": [("b    ", None)], "deep": {"a": None}},
]
PADDED = [
    {
        "s": {"c": "a    ", "n": 1},
        "a": ["a    ", "ab   ", None],
        "m": [("a    ", "ab ")],
        "deep": {"a": [{"c": "x  ", "v": "y"}, None]},
    },
    *STORED[1:],
]


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """Return a table with text in structs, arrays and maps, which another engine stored without padding."""
    leaf = pa.struct({"c": pa.string(), "v": pa.string()})
    schema = pa.schema(
        {
            "s": pa.struct({"c": pa.string(), "n": pa.int32()}),
            "a": pa.list_(pa.string()),
            "m": pa.map_(pa.string(), pa.string()),
            "deep": pa.struct({"a": pa.list_(leaf)}),
        }
    )
    dv.write_table(tmp_path, pa.Table.from_pylist(STORED, schema))
    declare(tmp_path, NESTED)
    return tmp_path


def test_a_read_pads_text_within_structs_arrays_and_maps(nested: Path):
    scan = dv.read_table(nested)
    assert scan.to_table().to_pylist() == PADDED
    assert scan.to_table().schema == scan.schema
    assert dv.read_table(nested, limit=1).to_table().to_pylist() == PADDED[:1]
    fields = dv.read_table(nested, columns={"c": "s.c", "n": "s.n"}).to_pylist()
    assert fields == [{"c": "a    ", "n": 1}, {"c": None, "n": None}, {"c": None, "n": 2}]


@pytest.mark.parametrize(
    ("where", "rows"),
    [("s.c = 'a    '", 1), ("s.c = 'a'", 0), ("array_contains(a, 'ab   ')", 1), ("s.n = 2", 1)],
)
def test_nested_text_is_compared_as_it_is_read(nested: Path, where: str, rows: int):
    """Spark pads only columns in comparisons, not fields of structs."""
    assert dv.read_table(nested, where=where).to_table().num_rows == rows


def test_a_rewrite_keeps_nested_text(nested: Path):
    dv.update(nested, {"a": "array('z')"}, "s.n = 2")
    declare(nested, {})
    assert dv.read_table(nested).to_table().to_pylist()[:2] == STORED[:2]
