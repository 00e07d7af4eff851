"""`repair_files`: deltalake reads the remaining rows after files were lost."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import delta_variant as dv


@pytest.fixture
def table(tmp_path: Path) -> dv.Table:
    """Return a table of five files with a row each, of which those of ids 1 and 3 are lost."""
    table = dv.Table(tmp_path / "a table")
    for number in range(5):
        result = table.append(pa.table({"id": [number], "p": [f"x y{number}"]}), partition_by="p")
        if number in (1, 3):
            for file in (tmp_path / "a table").rglob("*.parquet"):
                if file.parent.name.endswith(str(number)):
                    file.unlink(missing_ok=True)
        assert result.rows == 1
    return table


def test_entries_of_lost_files_are_removed(table: dv.Table):
    with pytest.raises(dv.DeltaVariantError, match="does not exist"):
        table.head()
    found = table.repair_files()
    assert (len(found.files), found.rows, found.version, table.version) == (2, 2, None, 4)
    done = table.repair_files(dry_run=False)
    assert (done.files, done.version, done.metrics) == (found.files, 5, {"numRemovedFiles": 2})
    other = deltalake.DeltaTable(table.table_uri)
    assert sorted(other.to_pyarrow_table()["id"].to_pylist()) == [0, 2, 4]
    assert other.history(1)[0]["operation"] == "FSCK"
    assert table.count() == 3
    assert table.repair_files(dry_run=False).version is None


def test_deltalake_finds_the_same_files(table: dv.Table):
    other = deltalake.DeltaTable(table.table_uri)
    assert sorted(other.repair(dry_run=True)["files_removed"]) == sorted(table.repair_files().files)


def test_rows_that_others_append_at_the_same_time_stay(table: dv.Table):
    from delta_variant.operations.repair import plan_file_repair, run_file_repair

    plan = plan_file_repair(table)
    table.append(pa.table({"id": [9], "p": ["z"]}))
    assert run_file_repair(plan).version == 6
    assert sorted(row["id"] for row in table) == [0, 2, 4, 9]


def test_an_append_only_table_is_rejected(table: dv.Table):
    table.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(dv.UnsupportedFeatureError, match="append"):
        table.repair_files()
