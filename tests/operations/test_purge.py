"""An optimize rewrites files without their deleted rows: those with many, or all with a deletion vector.

Reports say how many rows are deleted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.tables import read_commit
from typer.testing import CliRunner
from write.test_row_tracking import tracked

import delta_variant as dv
from delta_variant.cli.app import app
from delta_variant.reports.audit import scope_of

PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
ROWS = 1000


def table_of(path: Path, files: int = 2, **options: Any) -> dv.Table:
    """Return a table of files of 1,000 rows each, and with so small a target that they stay as they are."""
    table = dv.Table(path)
    for first in range(0, files * ROWS, ROWS):
        ids = range(first, first + ROWS)
        events = pa.array([json.dumps({"n": number}) for number in ids], pa.json_())
        columns = pa.table({"id": pa.array(ids, pa.int64()), "event": events})
        table.append(columns, **({} if first else {"configuration": PROPERTIES, **options}))
    return table


ALONE = dv.FileOptions(target_file_size=1024)
"""The files of these tables are large for this target, so none is combined with another."""


def ids(table: dv.Table, **options: Any) -> list[int]:
    return sorted(dv.read_table(table, columns=["id"], **options).to_table()["id"].to_pylist())


def cardinalities(table: dv.Table) -> list[int]:
    vectors = table.snapshot().files["deletion_vector"].to_pylist()
    return sorted(0 if each is None else each["cardinality"] for each in vectors)


def test_files_with_more_than_a_twentieth_of_deleted_rows_are_rewritten(tmp_path: Path):
    table = table_of(tmp_path / "t")
    table.delete("id < 50 or id >= 1949")
    assert cardinalities(table) == [50, 51]
    before = ids(table)
    plan = table.optimize(files=ALONE, dry_run=True)
    assert (plan.version, plan.files_before, plan.rows_purged) == (None, 1, 51)
    assert str(plan).splitlines()[-1] == "purged  51 deleted rows"
    done = table.optimize(files=ALONE)
    assert done.groups == plan.groups
    assert done.metrics["numDeletionVectorsRemoved"] == 1
    assert cardinalities(table) == [0, 50]
    assert ids(table) == before
    assert table.optimize(files=ALONE).version is None


@pytest.mark.usefixtures("small_files_are_shredded")
def test_the_estimated_size_of_new_files_has_no_deleted_rows(tmp_path: Path):
    table = table_of(tmp_path / "t", 1)
    table.delete("id < 400")
    plan = table.optimize(dry_run=True)
    assert plan.bytes_after == plan.bytes_before * 6 // 10


def test_a_purge_rewrites_all_files_with_a_vector_and_no_others(tmp_path: Path):
    table = table_of(tmp_path / "t", 3)
    table.delete("id in (0, 1000, 1999)")
    marked = [each["path"] for each in table.snapshot().files.to_pylist() if each["deletion_vector"]]
    rows = tracked(tmp_path / "t")
    done = table.optimize(purge=True, files=ALONE)
    assert (done.files_before, done.rows_purged, len(done.files)) == (2, 3, 2)
    assert sorted(path for group in done.groups for path in group.paths) == sorted(marked)
    assert cardinalities(table) == [0, 0, 0]
    assert tracked(tmp_path / "t") == rows
    stats = [json.loads(each["add"]["stats"]) for each in read_commit(tmp_path / "t", 4) if "add" in each]
    assert sorted(
        (each["numRecords"], each["minValues"]["id"], each["maxValues"]["id"]) for each in stats
    ) == [
        (998, 1001, 1998),
        (999, 1, 999),
    ]
    assert all(each.get("tightBounds", True) for each in stats)
    assert table.optimize(purge=True, files=ALONE).version is None
    # As Delta 4.4 on Spark records REORG TABLE t APPLY (PURGE).
    last = table.history(1)[0]
    assert (last.operation, last.parameters) == ("REORG", {"predicate": [], "applyPurge": True})
    assert table.audit(data=True).findings == ()


def test_a_purge_combines_files_with_a_vector_and_leaves_other_small_files(tmp_path: Path):
    table = table_of(tmp_path / "t", 4)
    table.delete("id in (0, 1000)")
    assert (table.optimize(purge=True).files_before, table.snapshot().num_files) == (2, 3)
    assert table.optimize(purge=True).version is None
    assert table.optimize().files_before == 3


def test_readers_of_bare_files_see_no_deleted_row_after_a_purge(tmp_path: Path):
    table = table_of(tmp_path / "t", 1)
    table.delete("id < 10")
    table.optimize(purge=True)
    (path,) = table.snapshot().files["path"].to_pylist()
    found = duckdb.sql(f"select min(id), count(*) from read_parquet('{tmp_path}/t/{path}')").fetchall()
    assert found == [(10, 990)]


def test_a_purge_changes_no_row(tmp_path: Path):
    table = table_of(tmp_path / "t")
    table.set_properties({"delta.enableChangeDataFeed": "true"})
    table.delete("id % 100 = 0")
    table.optimize(purge=True)
    changes = table.changes(start=3).to_table()
    assert changes["_change_type"].to_pylist() == ["delete"] * 20
    actions = [action for each in read_commit(tmp_path / "t", 4) for action in each.values()]
    assert {each["dataChange"] for each in actions if "dataChange" in each} == {False}


@pytest.mark.parametrize("purge", [False, True])
def test_partitions_are_purged_by_themselves(tmp_path: Path, purge: bool):
    table = dv.Table(tmp_path / "t")
    rows = pa.table({"id": range(200), "day": ["ab"[number % 2] for number in range(200)]})
    table.append(rows, partition_by=["day"], configuration=PROPERTIES)
    table.delete("id < 40")
    done = table.optimize("day = 'a'", purge=purge)
    assert (done.files_before, done.rows_purged) == (1, 20)
    assert cardinalities(table) == [0, 20]


def test_reports_say_how_many_rows_are_deleted(tmp_path: Path):
    table = table_of(tmp_path / "t")
    assert table.describe().title == f"{tmp_path / 't'}, version 1: 2,000 rows"
    table.delete("id % 100 = 0")
    summary = table.describe()
    assert (summary.rows, summary.deleted_rows) == (1980, 20)
    assert f"{tmp_path / 't'}, version 2: 1,980 rows and 20 deleted rows" in summary.title
    audit = table.audit()
    assert [(file.rows, file.deleted_rows) for file in audit.files] == [(1000, 10), (1000, 10)]
    assert "version 2, 2 files, 1,980 rows and 20 deleted rows (" in scope_of(audit)
    assert table.history()[0].metrics["numDeletedRows"] == 20
    described = json.loads(CliRunner().invoke(app, ["describe", str(tmp_path / "t"), "--json"]).stdout)
    assert (described["rows"], described["deleted_rows"]) == (1980, 20)
    shown = CliRunner().invoke(app, ["describe", str(tmp_path / "t")]).stdout
    assert shown.startswith(f"{tmp_path / 't'}: version 2, 1,980 rows and 20 deleted rows, ")
