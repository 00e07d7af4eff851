"""An overwrite of the partitions that the data has; deltalake reads the result."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import delta_variant as dv

DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None]
BEFORE = [{"id": 10 * day + n, "day": DAYS[day], "kind": "ab"[n]} for day in range(3) for n in range(2)]


def rows_of(table: Path) -> list[Any]:
    return sorted(deltalake.DeltaTable(table).to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


def columns(rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist(
        rows, pa.schema([("id", pa.int64()), ("day", pa.date32()), ("kind", pa.string())])
    )


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("partitions", [["day"], ["day", "kind"]])
def test_only_the_partitions_of_the_data_are_replaced(tmp_path: Path, partitions: list[str], mapping: str):
    table = dv.Table(tmp_path)
    properties = {"delta.columnMapping.mode": mapping, "delta.enableChangeDataFeed": "true"}
    table.overwrite(columns(BEFORE), partition_by=partitions, configuration=properties)
    new = [
        {"id": 99, "day": None, "kind": "a"},
        {"id": 98, "day": DAYS[1], "kind": "b"},
        {"id": 97, "day": dt.date(2026, 1, 9), "kind": "c"},
    ]
    written = {tuple(row[name] for name in partitions) for row in new}
    kept = [row for row in BEFORE if tuple(row[name] for name in partitions) not in written]
    result = table.overwrite(columns(new), partition_overwrite_mode="dynamic")
    assert result.rows_deleted == len(BEFORE) - len(kept)
    after = sorted([*kept, *new], key=lambda row: row["id"])
    if mapping == "none":
        assert rows_of(tmp_path) == after
    assert sorted(table, key=lambda row: row["id"]) == after
    changes = table.changes(start=1).to_pylist()
    assert sorted(row["id"] for row in changes if row["_change_type"] == "delete") == sorted(
        row["id"] for row in BEFORE if row not in kept
    )
    assert table.audit(data=True).is_clean


def test_data_without_rows_replaces_nothing(tmp_path: Path):
    dv.write_table(tmp_path, columns(BEFORE), partition_by="day")
    dv.write_table(tmp_path, columns([]), mode="overwrite", partition_overwrite_mode="dynamic")
    assert rows_of(tmp_path) == BEFORE


def test_a_new_table_is_created(tmp_path: Path):
    dv.write_table(
        tmp_path, columns(BEFORE), mode="overwrite", partition_overwrite_mode="dynamic", partition_by="day"
    )
    assert rows_of(tmp_path) == BEFORE


def test_a_concurrent_append_conflicts_only_in_the_same_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from delta_variant.operations import write

    table = dv.Table(tmp_path)
    table.overwrite(
        columns(BEFORE), partition_by="day", configuration={"delta.isolationLevel": "Serializable"}
    )
    new, commit = columns([{"id": 99, "day": DAYS[0], "kind": "a"}]), write.commit_files

    def overwrite_while(other: dict[str, Any]) -> None:
        def commit_after_other(*arguments: Any) -> Any:
            monkeypatch.setattr(write, "commit_files", commit)
            dv.write_table(tmp_path, columns([other]), mode="append")
            return commit(*arguments)

        monkeypatch.setattr(write, "commit_files", commit_after_other)
        table.overwrite(new, partition_overwrite_mode="dynamic")

    overwrite_while({"id": 50, "day": DAYS[1], "kind": "a"})
    assert {row["id"] for row in rows_of(tmp_path)} == {99, 10, 11, 20, 21, 50}
    with pytest.raises(dv.CommitConflictError):
        overwrite_while({"id": 51, "day": DAYS[0], "kind": "a"})


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "append"},
        {"mode": "overwrite", "where": "day is null"},
        {"mode": "overwrite", "schema_mode": "overwrite"},
    ],
)
def test_options_that_contradict_it_are_rejected(tmp_path: Path, options: dict[str, Any]):
    dv.write_table(tmp_path, columns(BEFORE), partition_by="day")
    with pytest.raises(ValueError, match="partition_overwrite_mode='dynamic' requires mode='overwrite'"):
        dv.write_table(tmp_path, columns(BEFORE), partition_overwrite_mode="dynamic", **options)


def test_a_table_without_partitions_is_rejected(tmp_path: Path):
    dv.write_table(tmp_path, columns(BEFORE))
    with pytest.raises(ValueError, match="because the table has none"):
        dv.write_table(tmp_path, columns(BEFORE), mode="overwrite", partition_overwrite_mode="dynamic")
