"""Deletes by deletion vectors: what they write, and that all that reads a table sees the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import read_commit
from support.vectors import deleted_rows

import delta_variant as dv
from delta_variant.log import deletion_vectors

VECTORS = {"delta.enableDeletionVectors": "true"}
ROWS_7_AND_9 = bytes.fromhex("d1d339640100000000000000000000003a30000001000000000001001000000007000900")


def table_of(path: Path, rows: int = 1000, *, files: int = 1, **properties: str) -> dv.Table:
    """Return a table of rows with the ids 0, 1, …, in files of the same size."""
    table, size = dv.Table(path), rows // files
    for first in range(0, rows, size):
        ids = range(first, first + size)
        events = pa.array([json.dumps({"n": number % 10}) for number in ids], pa.json_())
        columns = pa.table({"id": pa.array(ids, pa.int64()), "event": events})
        table.append(columns, configuration=None if first else {**VECTORS, **properties})
    return table


def ids(table: dv.Table, **options: Any) -> list[int]:
    return sorted(dv.read_table(table, columns=["id"], **options).to_table()["id"].to_pylist())


def commit_of(table: dv.Table, version: int) -> dict[str, list[dict[str, Any]]]:
    actions: dict[str, list[dict[str, Any]]] = {}
    for ((kind, action),) in map(dict.items, read_commit(table.table_uri, version)):
        actions.setdefault(kind, []).append(action)
    return actions


def data_files(table: dv.Table) -> set[str]:
    return {file.name for file in Path(table.table_uri).glob("**/*.parquet")}


def test_a_vector_has_the_bytes_that_delta_spark_writes():
    """The vector of rows 7 and 9 is from a table of delta-spark 4.4.0."""
    one, count = deletion_vectors.add_rows(None, pa.array([7], pa.int64()))
    assert count == 1
    assert deletion_vectors.add_rows(one, pa.array([9, 7], pa.int64())) == (ROWS_7_AND_9, 2)


def test_one_row_is_deleted_by_a_vector_alone(tmp_path: Path):
    table = table_of(tmp_path / "t")
    before = data_files(table)
    result = table.delete("id = 7")
    assert (result.rows_deleted, result.rows_copied, result.files_removed, result.files) == (1, 0, 0, ())
    assert data_files(table) == before
    commit = commit_of(table, 1)
    (add,), (remove,) = commit["add"], commit["remove"]
    assert add["path"] == remove["path"]
    assert {key: add["deletionVector"][key] for key in ("storageType", "cardinality", "sizeInBytes")} == {
        "storageType": "u",
        "cardinality": 1,
        "sizeInBytes": 34,
    }
    stats = json.loads(add["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (1000, False)
    assert stats["minValues"] == json.loads(remove["stats"])["minValues"]
    assert commit["commitInfo"][0]["operationMetrics"]["numDeletionVectorsAdded"] == "1"
    assert ids(table) == [number for number in range(1000) if number != 7]
    assert ids(table, version=0) == list(range(1000))
    assert table.audit(data=True).findings == ()


def test_large_vectors_of_many_files_share_a_file(tmp_path: Path):
    table = table_of(tmp_path / "t", 60_000, files=3)
    table.delete("event:n::int in (1, 3, 8)")
    adds = commit_of(table, 3)["add"]
    assert {add["deletionVector"]["storageType"] for add in adds} == {"u"}
    assert len({add["deletionVector"]["pathOrInlineDv"] for add in adds}) == 1
    for add in adds:
        rows = deleted_rows(add, lambda path: (tmp_path / "t" / path).read_bytes())
        assert rows == {row for row in range(20_000) if row % 10 in (1, 3, 8)}
    assert ids(table) == [number for number in range(60_000) if number % 10 not in (1, 3, 8)]
    assert table.audit(data=True).findings == ()


def test_many_vectors_have_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("delta_variant.write.deletion_vectors.FILE_BYTES", 10_000)
    table = table_of(tmp_path / "t", 60_000, files=3)
    table.delete("event:n::int in (1, 3, 8)")
    stored = {add["deletionVector"]["pathOrInlineDv"] for add in commit_of(table, 3)["add"]}
    assert len(stored) == len(list((tmp_path / "t").glob("*.bin"))) > 1
    assert ids(table) == [number for number in range(60_000) if number % 10 not in (1, 3, 8)]


def test_a_second_delete_adds_to_the_vector_of_the_first(tmp_path: Path):
    table = table_of(tmp_path / "t")
    table.delete("id < 3")
    table.delete("id in (2, 5)")
    (vector,) = table.snapshot().files["deletion_vector"].to_pylist()
    assert vector["cardinality"] == 4
    assert ids(table) == [4 - 1, 4, *range(6, 1000)]
    assert ids(table, version=1) == list(range(3, 1000))
    assert table.audit(data=True).findings == ()


def test_a_file_with_more_deleted_rows_than_others_is_rewritten(tmp_path: Path):
    table = table_of(tmp_path / "t")
    table.delete("id < 400")
    assert table.snapshot().files["deletion_vector"].null_count == 0
    result = table.delete("id < 501")
    assert (result.rows_deleted, result.rows_copied, result.files_removed) == (101, 499, 1)
    assert table.snapshot().files["deletion_vector"].null_count == 1
    assert ids(table) == list(range(501, 1000))


def test_a_file_without_rows_is_removed(tmp_path: Path):
    table = table_of(tmp_path / "t", files=2)
    table.delete("id < 499")
    result = table.delete("id < 501")
    assert (result.rows_deleted, result.files_removed) == (2, 1)
    assert ids(table) == list(range(501, 1000))
    assert table.snapshot().num_files == 1


def test_a_change_data_feed_needs_no_change_files(tmp_path: Path):
    table = table_of(tmp_path / "t", files=2, **{"delta.enableChangeDataFeed": "true"})
    table.delete("id < 700")
    assert "cdc" not in commit_of(table, 2)
    changes = table.changes(start=2).to_table()
    assert sorted(changes["id"].to_pylist()) == list(range(700))
    assert set(changes["_change_type"].to_pylist()) == {"delete"}
    assert ids(table) == list(range(700, 1000))


def test_row_ids_stay(tmp_path: Path):
    table = table_of(tmp_path / "t", files=2, **{"delta.enableRowTracking": "true"})
    table.delete("id % 7 = 0")
    tracked = [(add["baseRowId"], add["defaultRowCommitVersion"]) for add in commit_of(table, 2)["add"]]
    assert sorted(tracked) == [(0, 0), (500, 1)]
    assert "domainMetadata" not in commit_of(table, 2)


def test_partitions_mapped_columns_and_variant_paths(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    rows = [{"day": f"d{number % 3}", "id": number, "event": {"n": number}} for number in range(300)]
    properties = {**VECTORS, "delta.columnMapping.mode": "name"}
    table.append(rows, variant_columns=["event"], partition_by=["day"], configuration=properties)
    table.delete("day = 'd1' and event:n::int < 30")
    assert ids(table) == [number for number in range(300) if number % 3 != 1 or number >= 30]
    assert table.snapshot().num_files == 3
    assert table.audit(data=True).findings == ()


def test_overwrite_where_keeps_the_files_of_the_other_rows(tmp_path: Path):
    table = table_of(tmp_path / "t")
    before = data_files(table)
    new = pa.table({"id": [5], "event": pa.array(['{"n": 0}'], pa.json_())})
    result = table.overwrite(new, where="id = 5")
    assert (result.rows_deleted, result.rows_copied) == (1, 0)
    assert before < data_files(table)
    assert ids(table) == list(range(1000))


def test_vacuum_keeps_a_vector_until_no_version_needs_it(tmp_path: Path):
    table = table_of(tmp_path / "t", 60_000)
    table.delete("id % 3 = 0")
    (stored,) = (tmp_path / "t").glob("*.bin")
    options = {"retention_hours": 0, "enforce_retention_duration": False, "dry_run": False}
    table.vacuum(**options)
    assert stored.exists()
    table.optimize()
    assert table.snapshot().files["deletion_vector"].null_count == 1
    table.vacuum(**options)
    assert not stored.exists()
    assert len(ids(table)) == 40_000


def test_a_restore_brings_the_rows_back(tmp_path: Path):
    table = table_of(tmp_path / "t")
    table.delete("id < 10")
    table.restore(0)
    assert ids(table) == list(range(1000))
    table.restore(1)
    assert ids(table) == list(range(10, 1000))


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.integers(2, 40), st.integers(0, 39)), max_size=5), st.booleans())
def test_any_deletes_leave_the_other_rows(
    tmp_path_factory: pytest.TempPathFactory, deletes: list[tuple[int, int]], has_feed: bool
):
    feed = {"delta.enableChangeDataFeed": "true"} if has_feed else {}
    table = table_of(tmp_path_factory.mktemp("t") / "t", 400, files=2, **feed)
    left = set(range(400))
    for divisor, rest in deletes:
        removed = {number for number in left if number % divisor == rest}
        assert table.delete(f"id % {divisor} = {rest}").rows_deleted == len(removed)
        left -= removed
        assert table.count() == len(left)
    assert ids(table) == sorted(left)
    assert ids(table, where="event:n::int = 3") == sorted(number for number in left if number % 10 == 3)
    if has_feed:
        found = table.changes(start=2).to_table()["id"].to_pylist() if table.version > 1 else []
        assert set(found) == set(range(400)) - left
