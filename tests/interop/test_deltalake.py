"""deltalake reads our log, and its checkpoint keeps our statistics."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop.corpus import json_table, read_lines
from support.tables import read_actions

import delta_variant as dv


@pytest.fixture
def table(corpora: Path, tmp_path: Path) -> Path:
    """Return our table with two commits of different sizes."""
    lines = read_lines(corpora, "github_webhooks")
    dv.write_table(str(tmp_path / "table"), json_table(lines[:300]))
    dv.write_table(str(tmp_path / "table"), json_table(lines[300:], 300), mode="append")
    return tmp_path / "table"


def _adds(table: Path) -> dict[str, dict[str, object]]:
    return {add["path"]: add for add in read_actions(table, "add")}


def test_deltalake_reads_our_files_with_their_row_counts(table: Path):
    opened = deltalake.DeltaTable(str(table))
    assert opened.version() == 1

    seen = opened.get_add_actions(flatten=True)
    rows = dict(zip(seen["path"].to_pylist(), seen["num_records"].to_pylist(), strict=True))
    assert rows == {path: json.loads(add["stats"])["numRecords"] for path, add in _adds(table).items()}
    assert sum(rows.values()) == 415


def test_deltalake_reads_our_schema(table: Path):
    fields = json.loads(deltalake.DeltaTable(str(table)).schema().to_json())["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [("line", "long"), ("event", "variant")]


def test_a_checkpoint_of_deltalake_keeps_our_statistics_verbatim(table: Path):
    deltalake.DeltaTable(str(table)).create_checkpoint()

    [checkpoint] = (table / "_delta_log").glob("*.checkpoint.parquet")
    adds = [add for add in pq.read_table(checkpoint, columns=["add"])["add"].to_pylist() if add]
    assert {add["path"]: add["stats"] for add in adds} == {
        path: add["stats"] for path, add in _adds(table).items()
    }


def test_we_read_a_table_through_the_checkpoint_of_deltalake(table: Path):
    before = dv.read_table(str(table), columns={"line": "line", "text": "to_json(event)"}).to_table()
    deltalake.DeltaTable(str(table)).create_checkpoint()
    *older, _ = sorted((table / "_delta_log").glob("*.json"))
    for commit in older:
        commit.unlink()

    after = dv.read_table(str(table), columns={"line": "line", "text": "to_json(event)"}).to_table()
    assert after.sort_by("line") == before.sort_by("line")


def test_deltalake_reads_our_change_data(tmp_path: Path):
    table, feed = str(tmp_path / "table"), {"delta.enableChangeDataFeed": "true"}
    rows = pa.table({"id": [1, 2, 3], "day": ["a", "b", "a"]})
    dv.write_table(table, rows, partition_by=["day"], configuration=feed)
    dv.update(table, {"day": "'c'"}, "id = 1")
    dv.delete(table, "id = 3")
    merge = dv.merge(table, pa.table({"k": [1, 9]}), "id = k").when_matched_update({"id": "10"})
    merge.when_not_matched_insert({"id": "k"}).execute()

    changes = pa.table(deltalake.DeltaTable(table).load_cdf(starting_version=1).read_all())
    found = changes.select(["_commit_version", "_change_type", "id", "day"]).to_pylist()
    assert sorted(tuple(change.values()) for change in found) == [
        (1, "update_postimage", 1, "c"),
        (1, "update_preimage", 1, "a"),
        (2, "delete", 3, "a"),
        (3, "insert", 9, None),
        (3, "update_postimage", 10, "c"),
        (3, "update_preimage", 1, "c"),
    ]
