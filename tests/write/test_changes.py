"""Change data files: commits that change single rows record them (PROTOCOL.md, "Add CDC File")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import raises_at
from support.intercepted_store import commit_first
from support.planting import plant_vector
from support.tables import list_files, read_actions

import delta_variant as dv
from delta_variant.errors import CommitConflictError, DataFileError, UnsupportedFeatureError
from delta_variant.log.listing import commit_file_name
from delta_variant.log.load import load_snapshot

FEED = {"delta.enableChangeDataFeed": "true"}


def rows(texts: Sequence[str | None], first: int = 0, **columns: list[Any]) -> pa.Table:
    ids = list(range(first, first + len(texts)))
    return pa.table({"id": ids, **columns, "event": pa.array(texts, pa.string())})


def write(table: Path, data: pa.Table, **options: Any) -> None:
    """Append one file, to a table with a change data feed."""
    configuration = {**FEED, **options.pop("configuration", {})} if not table.exists() else None
    options = {"mode": "append", "configuration": configuration, **options}
    dv.write_table(str(table), data, variant_columns=["event"], **options)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two files with three rows each."""
    write(tmp_path / "t", rows(['{"n": 0}', '{"n": 1}', None]))
    write(tmp_path / "t", rows(['{"n": 3}', "null", '{"n": 5, "s": [1.50]}'], 3))
    return tmp_path / "t"


def change_files(table: Path, version: int) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """Yield the `cdc` actions of a commit with decoded paths, and the rows of their files."""
    for action in read_actions(table, "cdc", version):
        action["path"] = unquote(action["path"])
        with (table / action["path"]).open("rb") as file:
            yield action, pq.ParquetFile(file).read()


def changes(table: Path, version: int) -> list[tuple[str, int, str | None]]:
    """Return the changes of a commit sorted by id: type, `id`, and `event` as text."""
    found = []
    for _, read in change_files(table, version):
        texts = dv.to_json(read["event"].combine_chunks()).to_pylist()
        found += zip(read["_change_type"].to_pylist(), read["id"].to_pylist(), texts, strict=True)
    return sorted(found, key=lambda change: (change[1], change[0] == "update_postimage"))


def variant_bytes(read: pa.Table) -> dict[int, Any]:
    return dict(zip(read["id"].to_pylist(), read["event"].to_pylist(), strict=True))


@pytest.mark.usefixtures("shares_files")
def test_a_delete_records_all_rows_including_those_of_whole_files(table: Path):
    dv.delete(str(table), "id in (1, 3, 4, 5)")
    assert changes(table, 2) == [
        ("delete", 1, '{"n":1}'),
        ("delete", 3, '{"n":3}'),
        ("delete", 4, "null"),
        ("delete", 5, '{"n":5,"s":[1.5]}'),
    ]


def test_whole_files_do_not_have_change_data_files(table: Path):
    """Readers derive these changes from `add` and `remove`."""
    dv.delete(str(table), "id < 3")
    dv.optimize(str(table), sort_by="id")
    write(table, rows(["9"], 9), mode="overwrite")
    dv.delete_all(str(table))
    assert all(not read_actions(table, "cdc", version) for version in range(6))
    assert not (table / "_change_data").exists()


def test_a_table_without_the_feed_does_not_have_change_data_files(tmp_path: Path):
    write(tmp_path / "t", rows(["1", "2"]), configuration={"delta.enableChangeDataFeed": "false"})
    dv.delete(str(tmp_path / "t"), "id = 0")
    assert not read_actions(tmp_path / "t", "cdc", 1)


@pytest.mark.usefixtures("shares_files")
def test_an_update_records_updated_rows_only(table: Path):
    before = variant_bytes(dv.read_table(str(table)).to_table())
    dv.update(str(table), {"event:s": "id * 2"}, "id in (1, 5)")
    after = variant_bytes(dv.read_table(str(table)).to_table())
    assert changes(table, 2) == [
        ("update_preimage", 1, '{"n":1}'),
        ("update_postimage", 1, '{"n":1,"s":2}'),
        ("update_preimage", 5, '{"n":5,"s":[1.5]}'),
        ("update_postimage", 5, '{"n":5,"s":10}'),
    ]
    for _, read in change_files(table, 2):
        for image, known in (("update_preimage", before), ("update_postimage", after)):
            found = variant_bytes(read.filter(pa.compute.equal(read["_change_type"], image)))
            assert found == {key: known[key] for key in found}


@pytest.mark.usefixtures("shares_files")
def test_a_merge_records_all_changes(table: Path):
    source = pa.table({"key": [0, 4, 5, 20]})
    merge = dv.merge(str(table), source, "target.id = source.key")
    merge = merge.when_matched_delete("source.key = 4").when_matched_update({"event:k": "source.key"})
    merge = merge.when_not_matched_insert({"id": "source.key", "event": "source.key"}, "source.key = 20")
    merge.when_not_matched_by_source_update({"event:removed": "true"}, "id = 1").execute()
    assert changes(table, 2) == [
        ("update_preimage", 0, '{"n":0}'),
        ("update_postimage", 0, '{"k":0,"n":0}'),
        ("update_preimage", 1, '{"n":1}'),
        ("update_postimage", 1, '{"n":1,"removed":true}'),
        ("delete", 4, "null"),
        ("update_preimage", 5, '{"n":5,"s":[1.5]}'),
        ("update_postimage", 5, '{"k":5,"n":5,"s":[1.5]}'),
        ("insert", 20, "20"),
    ]
    assert len(list((table / "_change_data").iterdir())) == len(read_actions(table, "cdc", 2))


def test_a_merge_that_only_inserts_does_not_write_change_data_files(table: Path):
    dv.merge(str(table), pa.table({"key": [20]}), "id = key").when_not_matched_insert({"id": "key"}).execute()
    assert read_actions(table, "add", 2)
    assert not read_actions(table, "cdc", 2)


def test_an_overwrite_of_some_rows_records_deletes_and_inserts(table: Path):
    new = rows(['{"n": 50}'], 1, extra=["x"])
    write(table, new, mode="overwrite", where="id = 1", schema_mode="merge")
    assert changes(table, 2) == [("delete", 1, '{"n":1}'), ("insert", 1, '{"n":50}')]
    extras = [value for _, read in change_files(table, 2) for value in read["extra"].to_pylist()]
    assert sorted(extras, key=str) == [None, "x"]


def test_an_overwrite_of_partitions_does_not_write_change_data_files(tmp_path: Path):
    write(tmp_path / "t", rows(["1", "2"], day=["a", "b"]), partition_by=["day"])
    write(tmp_path / "t", rows(["3"], day=["a"]), mode="overwrite", where="day = 'a'")
    assert not read_actions(tmp_path / "t", "cdc", 1)


@pytest.mark.usefixtures("shares_files")
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_change_files_lie_in_their_partitions_under_physical_names(tmp_path: Path, mode: str):
    table = tmp_path / "t"
    data = rows(["1", "2", "3"], day=["a", "a", None])
    write(table, data, partition_by=["day"], configuration={"delta.columnMapping.mode": mode})
    dv.update(str(table), {"day": "'é b'"}, "id in (1, 2)")
    found = []
    for action, read in change_files(table, 1):
        assert action["dataChange"] is False
        assert action["size"] == (table / action["path"]).stat().st_size
        assert action["path"].startswith("_change_data/day=")
        (value,) = action["partitionValues"].values()
        found += [(value, kind) for kind in read["_change_type"].to_pylist()]
        names = dict(zip(("id", "day", "event"), physical_names(table), strict=True))
        assert list(action["partitionValues"]) == [names["day"]]
        assert read.column_names == [names["id"], names["event"], "_change_type"]
    after = [("é b", "update_postimage")] * 2
    assert sorted(found, key=str) == [("a", "update_preimage"), *after, (None, "update_preimage")]


def physical_names(table: Path) -> list[str]:
    fields = load_snapshot(table).schema.fields
    return [field.metadata.get("delta.columnMapping.physicalName", field.name) for field in fields]


def test_deleted_rows_are_not_changes(tmp_path: Path):
    table = tmp_path / "t"
    write(table, rows(["0", "1", "2"]), configuration={"delta.enableDeletionVectors": "true"})
    write(table, rows(["3", "4"], 3))
    plant_vector(table, 0, 1)
    plant_vector(table, 1, 0)
    dv.delete(str(table), "id >= 1")
    found = dv.read_changes(str(table), start=2).to_table().sort_by("id")
    assert found.select(["_change_type", "id"]).to_pylist() == [
        {"_change_type": "delete", "id": 2},
        {"_change_type": "delete", "id": 4},
    ]


def test_variants_in_change_files_are_not_shredded(table: Path):
    dv.delete(str(table), "id = 5")
    ((_, read),) = change_files(table, 2)
    assert {part.name for part in read.schema.field("event").type} == {"metadata", "value"}


def test_a_failed_commit_leaves_no_change_data_files(table: Path):
    before = list_files(table, "*.parquet")
    operations = [
        lambda store: dv.update(store, {"event": "1"}, "id in (1, 4)"),
        lambda store: dv.write_table(
            store, rows(["7"], 1), mode="overwrite", where="id in (1, 4)", variant_columns=["event"]
        ),
    ]
    for number, operation in enumerate(operations):
        with pytest.raises(CommitConflictError, match="removed"):
            operation(commit_first(table, lambda: dv.delete(table, "id < 3")))
        assert list_files(table, "*.parquet") == before
        if not number:
            (table / commit_file_name(2)).unlink()


def test_a_failure_to_write_changes_leaves_no_files(table: Path):
    before = list_files(table, "*.parquet")
    (table / "_change_data").touch()
    for operation in (
        lambda: dv.update(str(table), {"event": "1"}, "id = 1"),
        lambda: write(table, rows(["7"], 1), mode="overwrite", where="id in (1, 4)"),
    ):
        with pytest.raises(DataFileError, match=r"_change_data.*File exists"):
            operation()
        assert list_files(table, "*.parquet") == before


def test_a_reserved_column_name_is_rejected(tmp_path: Path):
    with raises_at(UnsupportedFeatureError, "the change data feed reserves", column="_Change_type"):
        dv.write_table(str(tmp_path / "t"), pa.table({"_Change_type": [1]}), configuration=FEED)
    dv.write_table(str(tmp_path / "t"), pa.table({"_Change_type": [1]}))
