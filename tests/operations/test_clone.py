"""`clone`: deltalake reads deep clones. Both kinds are written on their own, and leave the source alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pytest
from support.intercepted_store import commit_first, intercept
from support.memory_objects import MemoryObjects
from support.planting import plant_vector, plant_vector_file
from support.tables import read_commit

import delta_variant as dv
from delta_variant.storage.store import Store

OUTSIDE = {"allow_paths_outside_table": "true"}
CLONES = {"deep": None, "shallow": OUTSIDE}
"""The kinds of clones, and the options of their handles."""


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "p": f"x y%{number % 2}"} for number in ids]


def ids(table: Any) -> list[int]:
    return sorted(row["id"] for row in dv.read_table(table).to_pylist())


def actions(table: Path) -> dict[str, list[Any]]:
    """Return the actions of version 0 by kind."""
    found: dict[str, list[Any]] = {}
    for each in read_commit(table, 0):
        for kind, action in each.items():
            found.setdefault(kind, []).append(action)
    return found


def content(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a partitioned table of three versions, in a folder with a name that has to be encoded."""
    table = tmp_path / "so urce%ü"
    made = {"delta.enableDeletionVectors": "true", "team": "us"}
    dv.write_table(table, rows(0, 2, 4), partition_by="p", configuration=made, name="n", description="d")
    dv.write_table(table, rows(1, 3, 5), mode="append", commit=dv.CommitOptions(txn=("app", 3)))
    plant_vector_file(table, 0, 0)
    plant_vector(table, 1, 2)
    return table


@pytest.fixture(params=CLONES)
def clone(request: pytest.FixtureRequest, source: Path, tmp_path: Path) -> dv.Table:
    table = dv.Table(tmp_path / "clone", CLONES[request.param])
    dv.clone(source, table, shallow=request.param == "shallow")
    return table


def test_a_deep_clone_is_read_without_its_source(source: Path, tmp_path: Path):
    expected = ids(source)
    result = dv.clone(source, tmp_path / "clone")
    assert (result.version, result.cloned, result.files) == (0, 1, 2)
    assert result.metrics["numCopiedFiles"] == 2
    assert result.metrics["copiedFilesSize"] == result.bytes
    shutil.rmtree(source)
    assert ids(tmp_path / "clone") == expected
    assert dv.audit_table(tmp_path / "clone", data=True).is_clean
    # PROTOCOL.md, "Add File": the paths of a deep clone are relative.
    assert not any(
        unquote(add["path"]).startswith(("/", "file:")) for add in actions(tmp_path / "clone")["add"]
    )


def test_deltalake_reads_a_deep_clone(tmp_path: Path):
    dv.write_table(tmp_path / "s", rows(*range(6)), partition_by="p", configuration={"team": "us"})
    dv.clone(tmp_path / "s", tmp_path / "clone")
    other = deltalake.DeltaTable(tmp_path / "clone")
    assert sorted(other.to_pyarrow_table()["id"].to_pylist()) == list(range(6))
    assert other.metadata().configuration == {"team": "us"}
    assert other.metadata().partition_columns == ["p"]
    assert other.metadata().id != deltalake.DeltaTable(tmp_path / "s").metadata().id
    [entry] = other.history()
    assert entry["operation"] == "CLONE"
    assert entry["operationParameters"]["sourceVersion"] == "0"


def test_a_shallow_clone_copies_no_file_and_is_read_if_allowed(source: Path, tmp_path: Path):
    result = dv.clone(source, tmp_path / "clone", shallow=True)
    assert result.metrics["numCopiedFiles"] == 0
    assert [file.name for file in content_files(tmp_path / "clone")] == []
    for add in actions(tmp_path / "clone")["add"]:
        # As Delta on Spark writes them.
        assert unquote(add["path"]).startswith(f"file:{source}/p=")
        if "deletionVector" in add:
            assert add["deletionVector"]["storageType"] in "pi"
    with pytest.raises(dv.StoreError, match="allow_paths_outside_table"):
        ids(tmp_path / "clone")
    assert ids(dv.Table(tmp_path / "clone", OUTSIDE)) == ids(source)


def test_sql_of_deltalake_reads_a_shallow_clone(tmp_path: Path):
    dv.write_table(tmp_path / "s p", rows(1, 2))
    dv.clone(tmp_path / "s p", tmp_path / "c", shallow=True)
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "c"))
    found = query.execute("select sum(id) as total from t").read_all()
    assert found["total"].to_pylist() == [3]


def content_files(table: Path) -> list[Path]:
    return [file for file in table.rglob("*") if file.is_file() and "_delta_log" not in file.parts]


def test_a_clone_is_written_and_vacuumed_without_a_change_of_the_source(clone: dv.Table, source: Path):
    before, start = content(source), ids(source)
    clone.append(rows(20, 21))
    clone.delete("id = 3")
    clone.update({"id": "id + 100"}, where="id = 1")
    clone.merge([{"id": 2}], "target.id = source.id").when_matched_delete().execute()
    expected = sorted({*start, 20, 21, 101} - {1, 2, 3})
    assert ids(clone) == expected
    clone.optimize()
    assert clone.vacuum(0, dry_run=False, enforce_retention_duration=False).files
    assert ids(clone) == expected
    assert clone.audit(data=True).is_clean
    assert content(source) == before


def test_a_vacuum_keeps_the_files_of_a_clone_in_the_folder_of_its_source(source: Path):
    inner = dv.Table(source / "clone", OUTSIDE)
    dv.clone(source, inner, shallow=True)
    dv.clone(source, source / "deep")
    dv.vacuum(source, 0, dry_run=False, enforce_retention_duration=False)
    assert ids(inner) == ids(source / "deep") == ids(source)


def test_a_shallow_clone_is_restored(source: Path, tmp_path: Path):
    clone = dv.Table(tmp_path / "clone", OUTSIDE)
    dv.clone(source, clone, shallow=True)
    clone.delete_all()
    clone.restore(0)
    assert ids(clone) == ids(source)


@pytest.mark.parametrize("kind", CLONES)
def test_a_shallow_clone_is_cloned(source: Path, tmp_path: Path, kind: str):
    first = dv.Table(tmp_path / "first", OUTSIDE)
    dv.clone(source, first, shallow=True)
    first.append(rows(50))
    second = dv.Table(tmp_path / "second", CLONES[kind])
    first.clone(second, shallow=kind == "shallow")
    if kind == "deep":
        shutil.rmtree(tmp_path / "first")
        expected = [*ids(source), 50]
        shutil.rmtree(source)
    else:
        expected = ids(first)
    assert ids(second) == expected
    assert second.audit(data=True).is_clean


def test_an_earlier_version_is_cloned(source: Path, tmp_path: Path):
    table = dv.Table(source)
    assert table.clone(tmp_path / "a", version=0).cloned == 0
    assert table.as_of(version=0).clone(tmp_path / "b", shallow=True).cloned == 0
    [*_, first] = table.history()
    assert table.clone(tmp_path / "c", timestamp=first.timestamp).cloned == 0
    assert ids(tmp_path / "a") == ids(tmp_path / "c") == [2, 4]
    with pytest.raises(dv.VersionNotFoundError):
        table.clone(tmp_path / "d", version=9)
    assert not (tmp_path / "d").exists()


def test_names_and_transactions_are_not_cloned(clone: dv.Table, source: Path):
    snapshot = clone.snapshot()
    assert (snapshot.metadata.name, snapshot.metadata.description, dict(snapshot.txns)) == (None, None, {})
    assert snapshot.properties["team"] == "us"
    assert snapshot.protocol == dv.load_snapshot(source).protocol
    assert clone.append(rows(9), commit=dv.CommitOptions(txn=("app", 3))).version == 1


def test_properties_that_name_versions_of_the_source_are_not_cloned(tmp_path: Path):
    dv.write_table(tmp_path / "s", rows(1))
    dv.set_properties(tmp_path / "s", {"delta.enableInCommitTimestamps": "true"})
    dv.clone(tmp_path / "s", tmp_path / "c")
    # PROTOCOL.md, "In-Commit Timestamps": a table that has them from version 0 on names no version.
    assert dict(dv.load_snapshot(tmp_path / "c").properties) == {"delta.enableInCommitTimestamps": "true"}
    assert "inCommitTimestamp" in actions(tmp_path / "c")["commitInfo"][0]


def test_rows_of_a_clone_get_new_ids(tmp_path: Path):
    source, clone = dv.Table(tmp_path / "s"), dv.Table(tmp_path / "c")
    source.append(rows(*range(4)), configuration={"delta.enableRowTracking": "true"})
    source.append(rows(4))
    source.update({"p": "'z'"}, where="id = 1")
    source.clone(clone)
    adds = actions(tmp_path / "c")["add"]
    numbers = [json.loads(add["stats"])["numRecords"] for add in adds]
    # The ids of the source are in columns of the copied files, whose names the clone does not use.
    assert [add["baseRowId"] for add in adds] == [sum(numbers[:index]) for index in range(len(adds))]
    assert {add["defaultRowCommitVersion"] for add in adds} == {0}
    name = "delta.rowTracking.materializedRowIdColumnName"
    assert clone.snapshot().properties[name] != source.snapshot().properties[name]
    clone.delete("id = 0")
    assert clone.audit(data=True).is_clean


def test_a_table_at_the_target_is_never_replaced(source: Path, tmp_path: Path):
    dv.write_table(tmp_path / "clone", rows(1))
    before = content(tmp_path / "clone")
    for shallow in (False, True):
        with pytest.raises(dv.TableExistsError, match=r"choose another location$"):
            dv.clone(source, tmp_path / "clone", shallow=shallow)
    with pytest.raises(dv.TableExistsError):
        dv.clone(source, source)
    assert content(tmp_path / "clone") == before


def test_a_clone_that_another_one_precedes_keeps_the_files_of_the_other(source: Path, tmp_path: Path):
    target = tmp_path / "clone"
    with pytest.raises(dv.TableExistsError):
        dv.clone(source, commit_first(target, lambda: dv.clone(source, target)))
    assert ids(target) == ids(source)
    assert len(list(target.rglob("*.parquet"))) == 2


def test_a_copy_that_fails_leaves_nothing(source: Path, tmp_path: Path):
    lost = sorted(source.rglob("*.parquet"))[-1]
    lost.unlink()
    with pytest.raises(dv.StoreError, match=lost.name):
        dv.clone(source, tmp_path / "clone")
    assert not (tmp_path / "clone").exists()


def test_an_interrupted_copy_leaves_nothing(source: Path, tmp_path: Path):
    def interrupt(call: str, key: str) -> None:
        if call == "get_ranges":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dv.clone(intercept(source, before=interrupt), tmp_path / "clone")
    assert not (tmp_path / "clone").exists()


def test_files_of_any_size_are_copied_between_stores(monkeypatch: pytest.MonkeyPatch, source: Path):
    monkeypatch.setattr("delta_variant.storage.store.PART_BYTES", 100)
    objects = MemoryObjects(lambda: 0)
    target = Store("mem:/clone", objects, None)
    dv.clone(source, target)
    assert ids(target) == ids(source)
    assert dv.audit_table(target, data=True).is_clean


def test_a_table_of_a_catalog_and_unknown_features_are_rejected(tmp_path: Path):
    dv.write_table(tmp_path / "s", rows(1), configuration={"delta.enableInCommitTimestamps": "true"})
    for feature in ("catalogManaged", "anotherFeature"):
        plant_writer_feature(tmp_path / "s", feature)
        with pytest.raises(dv.UnsupportedFeatureError, match=r"a catalog manages|anotherFeature"):
            dv.clone(tmp_path / "s", tmp_path / "c")
    assert not (tmp_path / "c").exists()


def plant_writer_feature(table: Path, feature: str) -> None:
    """Replace the protocol of version 0 by one with a reader and writer feature."""
    commit = table / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    listed = [feature, "inCommitTimestamp"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [feature],
        "writerFeatures": listed,
    }
    changed = [{"protocol": protocol} if "protocol" in line else line for line in lines]
    commit.write_text("".join(json.dumps(line) + "\n" for line in changed), encoding="utf-8")


def test_a_clone_has_the_clustering_columns_and_no_other_domain(tmp_path: Path):
    from delta_variant.log.commit_context import commit_context
    from delta_variant.log.conflicts import Reads
    from delta_variant.log.transaction import replace_files
    from delta_variant.protocol.actions import DomainMetadata

    dv.write_table(tmp_path / "s", rows(1), configuration={"delta.enableRowTracking": "true"})
    snapshot = dv.load_snapshot(tmp_path / "s")
    clustering = DomainMetadata(
        domain="delta.clustering", configuration='{"clusteringColumns":[["id"]]}', removed=False
    )
    own = DomainMetadata(domain="ours", configuration="{}", removed=False)
    replace_files(
        snapshot,
        snapshot.files.slice(0, 0),
        (),
        context=commit_context("x"),
        reads=Reads(snapshot.files.slice(0, 0), lambda _: False),
        domains=[clustering, own],
    )
    dv.clone(tmp_path / "s", tmp_path / "c", shallow=True)
    # Delta on Spark copies this domain alone, and counts row ids from 0.
    assert dict(dv.load_snapshot(tmp_path / "c").domain_metadata) == {
        "delta.clustering": clustering,
        "delta.rowTracking": DomainMetadata(
            domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":0}', removed=False
        ),
    }
