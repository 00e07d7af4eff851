"""Files of deletion vectors in time travel, vacuum, restore, clones and the change data feed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from operations.test_vacuum import age
from support.intercepted_store import commit_first

import delta_variant as dv
from delta_variant.errors import CommitConflictError, DataFileError, StoreError

FILE_ROWS = 20_000
VECTORS = {"delta.enableDeletionVectors": "true"}
AT_ONCE = {"retention_hours": 0, "enforce_retention_duration": False, "dry_run": False}


@pytest.fixture
def table(tmp_path: Path) -> dv.Table:
    """Return a table of two files; each fifth row of both is deleted by vectors that share a file."""
    table = dv.Table(tmp_path / "t")
    for day, first in (("a", 0), ("b", FILE_ROWS)):
        ids = range(first, first + FILE_ROWS)
        rows = pa.table({"id": ids, "day": [day] * FILE_ROWS})
        table.append(rows, partition_by=["day"], configuration=None if first else VECTORS)
    table.delete("id % 5 = 0")
    assert len(vector_files(table)) == 1
    return table


def vector_files(table: dv.Table) -> set[str]:
    return {path.name for path in Path(table.table_uri).glob("*.bin")}


def ids(table: dv.Table, version: int | None = None) -> set[int]:
    read = dv.read_table(table, columns=["id"], version=version).to_table()["id"].to_pylist()
    assert len(set(read)) == len(read)
    return set(read)


def expected(*rests: int) -> set[int]:
    """Return the ids without those that leave one of these rests when divided by five."""
    return {number for number in range(2 * FILE_ROWS) if number % 5 not in rests}


def test_a_shared_file_is_deleted_with_the_last_vector_that_a_version_needs(table: dv.Table):
    shared = vector_files(table)
    table.optimize("day = 'a'", purge=True)
    age(Path(table.table_uri))
    table.vacuum(dry_run=False)
    assert vector_files(table) == shared
    assert ids(table) == expected(0)
    table.optimize(purge=True)
    table.vacuum(dry_run=False)
    assert vector_files(table) == shared
    age(Path(table.table_uri))
    table.vacuum(dry_run=False)
    assert vector_files(table) == set()
    assert ids(table) == expected(0)


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_versions_within_the_retention_keep_their_vectors(table: dv.Table, policy: str):
    table.set_properties({"delta.checkpointPolicy": policy})
    (first,) = vector_files(table)
    table.delete("id % 5 = 1")
    (second,) = vector_files(table) - {first}
    age(Path(table.table_uri))
    table.delete("id % 5 = 2")
    table.checkpoint()
    table.vacuum(dry_run=False)
    assert first not in vector_files(table)
    assert second in vector_files(table)
    assert ids(table, 4) == expected(0, 1)
    assert ids(table) == expected(0, 1, 2)
    with pytest.raises(StoreError, match=f"{first}: the file does not exist: a vacuum may have deleted it"):
        ids(table, 2)
    with pytest.raises(DataFileError, match=f"files are missing.*{first}"):
        table.restore(2)


def test_a_vector_that_a_concurrent_restore_adds_again_is_kept(table: dv.Table):
    table.delete("id % 5 = 1")
    age(Path(table.table_uri))
    with pytest.raises(CommitConflictError, match=r"re-added deletion_vector_.*\.bin, which"):
        dv.vacuum(commit_first(Path(table.table_uri), lambda: dv.restore(table.table_uri, 2)), dry_run=False)
    assert ids(table) == expected(0)


def test_a_restore_moves_between_vectors(table: dv.Table):
    table.delete("id % 5 = 1")
    for version, rests in ((2, (0,)), (1, ()), (3, (0, 1))):
        table.restore(version)
        assert ids(table) == expected(*rests)
    table.vacuum(**AT_ONCE)
    assert ids(table) == expected(0, 1)
    assert table.audit(data=True).findings == ()


def test_clones_have_vectors_of_their_own(table: dv.Table, tmp_path: Path):
    before = vector_files(table)
    deep = dv.Table(tmp_path / "deep")
    shallow = dv.Table(tmp_path / "shallow", {"allow_paths_outside_table": "true"})
    dv.clone(table, deep)
    dv.clone(table, shallow, shallow=True)
    assert [len(vector_files(each)) for each in (deep, shallow)] == [1, 0]
    for clone in (deep, shallow):
        assert ids(clone) == expected(0)
        clone.delete("id % 5 = 1")
        assert ids(clone) == expected(0, 1)
        clone.vacuum(**AT_ONCE)
        assert len(vector_files(clone)) == 1
        assert clone.audit(data=True).findings == ()
    assert vector_files(table) == before
    assert ids(table) == expected(0)
    shallow.optimize(purge=True)
    table.overwrite(pa.table({"id": [1], "day": ["a"]}))
    table.vacuum(**AT_ONCE)
    assert vector_files(table) == set()
    assert ids(shallow) == ids(deep) == expected(0, 1)


def test_the_change_data_feed_has_what_vectors_delete_and_restore(table: dv.Table):
    table.set_properties({"delta.enableChangeDataFeed": "true"})
    table.delete("id % 5 = 1")
    table.update({"day": "'b'"}, "id in (2, 3)")
    table.merge(pa.table({"key": [4, -1]}), "id = key").when_matched_delete().when_not_matched_insert(
        {"id": "key", "day": "'a'"}
    ).execute()
    table.optimize(purge=True)
    table.restore(3)
    found = [changes_of(table, version) for version in range(4, 9)]
    deleted = {number for number in range(2 * FILE_ROWS) if number % 5 == 1}
    assert found[0] == Counter(("delete", number) for number in deleted)
    assert found[1] == Counter(
        (kind, number) for kind in ("update_preimage", "update_postimage") for number in (2, 3)
    )
    assert found[2] == Counter([("delete", 4), ("insert", -1)])
    assert found[3] == Counter()
    # No file of the restored version is in the one before.
    removed = Counter(("delete", number) for number in ids(table, 7))
    assert found[4] == removed + Counter(("insert", number) for number in expected(0))


def changes_of(table: dv.Table, version: int) -> Counter[Any]:
    columns = {"kind": "_change_type", "id": "id"}
    rows = dv.read_changes(table, start=version, end=version, columns=columns).to_table().to_pylist()
    return Counter((row["kind"], row["id"]) for row in rows)
