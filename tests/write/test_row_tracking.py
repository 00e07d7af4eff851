"""Row tracking: a row keeps its id when it moves to another file (PROTOCOL.md, "Row Tracking")."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.intercepted_store import commit_first
from support.planting import plant_vector
from support.tables import read_actions
from support.vectors import deleted_rows

import delta_variant as dv
from delta_variant import _arrow
from delta_variant.errors import CommitConflictError, ProtocolError
from delta_variant.log.listing import commit_file_name
from delta_variant.log.load import load_snapshot
from delta_variant.operations.merge import joining
from delta_variant.protocol.actions import DeletionVector

Tracked = dict[int, tuple[int, int]]
TRACKED = {"delta.enableRowTracking": "true"}
ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"


def write(table: Path, ids: Sequence[int], **options: Any) -> None:
    """Append one file, to a table that tracks rows."""
    data = pa.table(
        {
            "id": list(ids),
            "event": pa.array([f'{{"n": {number}}}' for number in ids], pa.string()),
            "day": ["ab"[number % 2] for number in ids],
        }
    )
    configuration = {**TRACKED, **options.pop("configuration", {})} if not table.exists() else None
    options = {"mode": "append", "configuration": configuration, **options}
    dv.write_table(str(table), data, variant_columns=["event"], **options)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two files, with the ids 0 to 2 and 3 to 5."""
    return table_of_two_files(tmp_path / "t", {})


@pytest.fixture(params=["false", "true"], ids=["rewritten", "marked"])
def changed_table(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return such a table whose changed rows are in files that are rewritten, or are marked by vectors."""
    return table_of_two_files(tmp_path / "t", {"delta.enableDeletionVectors": request.param})


def table_of_two_files(table: Path, configuration: dict[str, str]) -> Path:
    write(table, [0, 1, 2], configuration=configuration)
    write(table, [3, 4, 5])
    return table


def tracked(table: Path) -> Tracked:
    """Return the row id and the row commit version of each row by its `id`, as PROTOCOL.md defines them."""
    snapshot = load_snapshot(table)
    names = [snapshot.properties[key] for key in (ID_COLUMN, VERSION_COLUMN)]
    (field, *_) = snapshot.schema.fields
    found: Tracked = {}
    for file in snapshot.files.to_pylist():
        with (table / file["path"]).open("rb") as opened:
            read = pq.ParquetFile(opened).read()
        ids = read[field.metadata.get("delta.columnMapping.physicalName", "id")].to_pylist()
        kept = [read[name].to_pylist() if name in read.column_names else [None] * len(ids) for name in names]
        vector = file["deletion_vector"] and msgspec.to_builtins(DeletionVector(**file["deletion_vector"]))
        deleted = deleted_rows({"deletionVector": vector}, lambda name: (table / name).read_bytes())
        for position, (number, row_id, version) in enumerate(zip(ids, *kept, strict=True)):
            if position in deleted:
                continue
            fresh = file["base_row_id"] + position
            where = (
                fresh if row_id is None else row_id,
                file["default_row_commit_version"] if version is None else version,
            )
            assert found.setdefault(number, where) == where
    assert dv.read_table(str(table), columns=["id"]).to_table()["id"].to_pylist() == list(found)
    assert len({row_id for row_id, _ in found.values()}) == len(found)
    return found


def test_other_rows_of_a_file_keep_id_and_version_after_a_delete(table: Path, shares_files: bool):
    before = tracked(table)
    assert before == {0: (0, 0), 1: (1, 0), 2: (2, 0), 3: (3, 1), 4: (4, 1), 5: (5, 1)}
    dv.delete(str(table), "id in (0, 4)")
    assert tracked(table) == {number: before[number] for number in (1, 2, 3, 5)}
    added = read_actions(table, "add", 2)
    expected = [(6, 2)] if shares_files else [(6, 2), (8, 2)]
    assert sorted((add["baseRowId"], add["defaultRowCommitVersion"]) for add in added) == expected
    (domain,) = read_actions(table, "domainMetadata", 2)
    assert domain["configuration"] == '{"rowIdHighWaterMark":9}'
    (info,) = read_actions(table, "commitInfo", 2)
    assert info["tags"] == {"delta.rowTracking.preserved": "true"}


def test_an_updated_row_keeps_its_id_and_takes_the_version_of_the_commit(changed_table: Path):
    before = tracked(changed_table)
    dv.update(str(changed_table), {"event:n": "-1"}, "id in (1, 2)")
    dv.update(str(changed_table), {"event:n": "-2"}, "id in (2, 3)")
    assert tracked(changed_table) == {
        **before,
        1: (before[1][0], 2),
        2: (before[2][0], 3),
        3: (before[3][0], 3),
    }


@pytest.mark.usefixtures("shares_files")
def test_a_merge_keeps_the_ids_of_rows_and_gives_new_ones_to_new_rows(changed_table: Path):
    before = tracked(changed_table)
    merge = dv.merge(str(changed_table), pa.table({"key": [0, 1, 9, 10]}), "id = key")
    merge = merge.when_matched_delete("key = 0").when_matched_update({"event:k": "key"})
    merge.when_not_matched_insert({"id": "key"}).execute()
    after = tracked(changed_table)
    assert {after.pop(9)[1], after.pop(10)[1]} == {2}
    assert after == {number: before[number] for number in (2, 3, 4, 5)} | {1: (before[1][0], 2)}


def test_an_overwrite_keeps_the_ids_of_remaining_rows(changed_table: Path):
    before = tracked(changed_table)
    write(changed_table, [1, 7], mode="overwrite", where="id in (1, 7)")
    after = tracked(changed_table)
    assert after.pop(1)[0] > 5
    assert after.pop(7)[1] == 2
    assert after == {number: before[number] for number in (0, 2, 3, 4, 5)}


@pytest.mark.parametrize(
    "options", [{}, {"sort_by": "-id"}, {"sort_by": ["id"], "files": dv.FileOptions(target_file_size=1)}]
)
def test_optimize_keeps_ids_and_versions(table: Path, options: dict[str, Any]):
    dv.update(str(table), {"event:n": "-1"}, "id = 1")
    before = tracked(table)
    dv.optimize(str(table), **options)
    assert read_actions(table, "remove", 3)
    assert tracked(table) == before
    dv.delete(str(table), "id = 2")
    assert tracked(table) == {number: where for number, where in before.items() if number != 2}


@pytest.mark.usefixtures("shares_files")
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_ids_are_preserved_with_column_mapping_and_partitions(tmp_path: Path, mode: str):
    table = tmp_path / "t"
    settings = {"delta.columnMapping.mode": mode}
    write(table, range(8), partition_by=["day"], configuration=settings)
    before = tracked(table)
    dv.update(str(table), {"day": "'c'"}, "id < 4")
    dv.delete(str(table), "id = 5")
    after = tracked(table)
    expected = {number: (row_id, 1 if number < 4 else 0) for number, (row_id, _) in before.items()}
    assert after == {number: where for number, where in expected.items() if number != 5}


@pytest.mark.usefixtures("shares_files")
def test_positions_count_rows_that_a_deletion_vector_marks(tmp_path: Path):
    table = tmp_path / "t"
    write(table, range(6), configuration={"delta.enableDeletionVectors": "true"})
    plant_vector(table, 0, 0, 3)
    before = tracked(table)
    assert before == {number: (number, 0) for number in (1, 2, 4, 5)}
    dv.delete(str(table), "id = 2")
    assert tracked(table) == {number: (number, 0) for number in (1, 4, 5)}
    dv.optimize(str(table), sort_by="id")
    assert tracked(table) == {number: (number, 0) for number in (1, 4, 5)}


def test_positions_go_on_over_row_groups_and_batches(tmp_path: Path):
    table, count = tmp_path / "t", 300_000
    dv.write_table(str(table), pa.table({"id": range(count)}), configuration=TRACKED)
    dv.delete(str(table), "id % 7 = 3")
    assert tracked(table) == {number: (number, 0) for number in range(count) if number % 7 != 3}


def test_readers_do_not_see_the_materialized_columns(table: Path):
    dv.delete(str(table), "id = 0")
    assert dv.read_table(str(table)).schema.names == ["id", "event", "day"]
    (add,) = read_actions(table, "add", 2)
    assert json.loads(add["stats"])["nullCount"].keys() == {"id", "event", "day"}
    assert not dv.audit_table(str(table), data=True).findings


def test_a_table_that_only_supports_it_moves_rows_as_any_other(table: Path):
    """PROTOCOL.md, "Row Tracking": without enabled row tracking, writers cannot preserve ids."""
    edit_metadata(table, lambda configuration: configuration.pop("delta.enableRowTracking"))
    dv.delete(str(table), "id = 0")
    (added,) = read_actions(table, "add", 2)
    assert added["baseRowId"] == 6
    assert pq.read_schema(table / added["path"]).names == ["id", "event", "day"]
    assert "tags" not in read_actions(table, "commitInfo", 2)[0]


def test_suspended_row_tracking_does_not_assign_ids(table: Path):
    def suspend(configuration: dict[str, str]) -> None:
        configuration["delta.enableRowTracking"] = "false"
        configuration["delta.rowTrackingSuspended"] = "true"

    edit_metadata(table, suspend)
    write(table, [6])
    (added,) = read_actions(table, "add", 2)
    assert "baseRowId" not in added
    assert not read_actions(table, "domainMetadata", 2)


def edit_metadata(table: Path, change: Callable[[dict[str, str]], object]) -> None:
    """Change the properties of a table in its first commit, and delete the checksums of its versions."""
    commit = table / commit_file_name(0)
    lines = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
    for line in lines:
        if "metaData" in line:
            change(line["metaData"]["configuration"])
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda configuration: configuration.pop(ID_COLUMN), f"does not set {ID_COLUMN}"),
        (lambda configuration: configuration.update({VERSION_COLUMN: "day"}), "has a column 'day'"),
    ],
)
def test_a_table_without_names_for_id_columns_is_unchanged(table: Path, change: Any, sentence: str):
    edit_metadata(table, change)
    with pytest.raises(ProtocolError, match=sentence):
        dv.delete(str(table), "id = 0")
    assert len(list(table.rglob("*.parquet"))) == 2


def test_rows_keep_their_ids_if_a_merge_changes_them_in_parts(
    changed_table: Path, monkeypatch: pytest.MonkeyPatch
):
    for module in (_arrow, joining):
        monkeypatch.setattr(module, "COPIED_BYTES", 5)
    before = tracked(changed_table)
    source = pa.table({"least": [0], "event": pa.array(['{"text":"long"}'], pa.json_())})
    merge = dv.merge(changed_table, source, "target.id >= source.least")
    merge = merge.when_matched_delete("target.id = 1").when_matched_update({"event": "source.event"})
    assert merge.execute().rows_updated == 5
    assert tracked(changed_table) == {
        number: (row_id, 2) for number, (row_id, _) in before.items() if number != 1
    }


def test_a_file_without_a_base_row_id_is_an_error(table: Path):
    commit = table / commit_file_name(1)
    commit.write_text(commit.read_text("utf-8").replace("baseRowId", "base"), "utf-8")
    with pytest.raises(ProtocolError, match=r"part-.* has no baseRowId"):
        dv.delete(str(table), "id = 4")


def test_ids_are_rebased_on_a_concurrent_commit(table: Path):
    before = tracked(table)
    store = commit_first(table, lambda: write(table, [20, 21]))
    assert dv.delete(store, "id = 0").version == 3
    after = tracked(table)
    assert {number: after.pop(number) for number in (20, 21)} == {20: (6, 2), 21: (7, 2)}
    assert after == {number: before[number] for number in (1, 2, 3, 4, 5)}
    (added,) = read_actions(table, "add", 3)
    assert (added["baseRowId"], added["defaultRowCommitVersion"]) == (8, 3)
    assert read_actions(table, "domainMetadata", 3)[0]["configuration"] == '{"rowIdHighWaterMark":9}'


def untracked(table: Path) -> Path:
    """Return a table of two files without row ids."""
    write(table, [0, 1, 2], configuration={"delta.enableRowTracking": "false"})
    write(table, [3, 4])
    return table


def test_enabling_row_tracking_assigns_ids_to_existing_rows(tmp_path: Path):
    table = untracked(tmp_path / "t")
    assert dv.set_properties(str(table), TRACKED).version == 4
    assert [read_actions(table, "commitInfo", version)[0]["operation"] for version in (2, 3, 4)] == [
        "SET TBLPROPERTIES",
        "ROW TRACKING BACKFILL",
        "SET TBLPROPERTIES",
    ]
    assert [add["dataChange"] for add in read_actions(table, "add", 3)] == [False, False]
    before = tracked(table)
    assert sorted(before.values()) == [(number, 3) for number in range(5)]
    dv.delete(str(table), "id = 1")
    assert tracked(table) == {number: where for number, where in before.items() if number != 1}
    assert dv.audit_table(str(table), data=True).is_clean


def test_a_table_with_ids_begins_to_track_rows_by_one_commit(table: Path):
    dv.set_properties(str(table), {"delta.enableRowTracking": "false"})
    before = tracked(table)
    assert dv.set_properties(str(table), TRACKED).version == 3
    assert tracked(table) == before


def test_ids_are_assigned_after_a_concurrent_append(tmp_path: Path):
    table = untracked(tmp_path / "t")
    dv.set_properties(commit_first(table, None, lambda: write(table, [7])), TRACKED)
    assert sorted(tracked(table)) == [0, 1, 2, 3, 4, 7]


def test_a_concurrent_metadata_change_prevents_ids(tmp_path: Path):
    table = untracked(tmp_path / "t")
    store = commit_first(table, None, None, lambda: dv.set_properties(table, {"mine": "x"}))
    with pytest.raises(CommitConflictError, match="changed the metadata"):
        dv.set_properties(store, TRACKED)
    assert load_snapshot(table).properties["mine"] == "x"
    dv.set_properties(str(table), TRACKED)
    assert load_snapshot(table).properties["mine"] == "x"
    assert len(tracked(table)) == 5


def test_files_without_row_counts_prevent_ids(tmp_path: Path):
    table = untracked(tmp_path / "t")
    commit = table / commit_file_name(1)
    commit.write_text(commit.read_text("utf-8").replace("numRecords", "records"), "utf-8")
    with pytest.raises(ProtocolError, match="lack numRecords"):
        dv.set_properties(str(table), TRACKED)
    dv.repair_statistics(str(table), dry_run=False)
    dv.set_properties(str(table), TRACKED)
    assert len(tracked(table)) == 5


def test_row_tracking_is_enabled_by_a_commit_after_the_one_that_ends_its_suspension(tmp_path: Path):
    """PROTOCOL.md, "Row Tracking": while suspended, neither new nor existing files get ids."""
    table = untracked(tmp_path / "t")
    dv.set_properties(str(table), {"delta.rowTrackingSuspended": "true"})
    with pytest.raises(ProtocolError, match=r"unset delta\.rowTrackingSuspended in an earlier commit"):
        dv.set_properties(str(table), {"delta.rowTrackingSuspended": "false", **TRACKED})
    dv.unset_properties(str(table), ["delta.rowTrackingSuspended"])
    dv.set_properties(str(table), TRACKED)
    assert sorted(tracked(table)) == [0, 1, 2, 3, 4]


def test_row_tracking_is_not_suspended_where_it_is_enabled(table: Path):
    with pytest.raises(ProtocolError, match="cannot both be true"):
        dv.set_properties(str(table), {"delta.rowTrackingSuspended": "true"})
    dv.set_properties(str(table), {"delta.rowTrackingSuspended": "true", "delta.enableRowTracking": "false"})
    assert load_snapshot(table).version == 2


def test_a_table_that_tracks_rows_without_ids_gives_them_some_when_properties_are_set(tmp_path: Path):
    table = untracked(tmp_path / "t")
    dv.set_properties(str(table), {"delta.feature.rowTracking": "supported"})
    names = {ID_COLUMN: "_row_id", VERSION_COLUMN: "_row_version"}
    edit_metadata(table, lambda configuration: configuration.update({**TRACKED, **names}))
    with pytest.raises(ProtocolError, match="has no baseRowId"):
        dv.update(str(table), {"event:n": "-1"}, "id = 1")
    dv.set_properties(str(table), TRACKED)
    assert sorted(tracked(table)) == [0, 1, 2, 3, 4]
    dv.update(str(table), {"event:n": "-1"}, "id = 1")
    assert dv.audit_table(str(table), data=True).is_clean
