"""Audits and repairs with tasks have the same results as those in one process."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import TableNotFoundError


def table_with_wrong_statistics(folder: Path) -> Path:
    """Write six files, and remove the bounds of every other one."""
    for number in range(6):
        texts = [f'{{"n":{number * 10 + each}}}' for each in range(10)]
        dv.write_table(folder, pa.table({"event": pa.array(texts, pa.json_())}), mode="append")
        if number % 2:
            log = folder / "_delta_log" / f"{number:020}.json"
            actions = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
            for action in actions:
                if "add" in action:
                    action["add"]["stats"] = '{"numRecords":10}'
            log.write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")
    return folder


@pytest.mark.parametrize("data", [False, True])
def test_an_audit_with_tasks_has_the_same_findings_in_the_same_order(
    spark: SparkSession, tmp_path: Path, data: bool
):
    table = table_with_wrong_statistics(tmp_path / "t")
    broken = dv.load_snapshot(table).files["path"][2].as_py()
    (table / broken).write_bytes(b"no Parquet")
    expected = dv.audit_table(table, data=data)
    found = dvs.audit_table(spark, table, data=data)
    assert found.findings == expected.findings
    assert found.files == expected.files
    assert (found.version, found.data, found.is_clean) == (5, data, False)


def test_a_table_that_cannot_be_loaded_is_audited(spark: SparkSession, tmp_path: Path):
    table = table_with_wrong_statistics(tmp_path / "t")
    (table / "_delta_log" / f"{0:020}.json").write_text("{", "utf-8")
    expected = dv.audit_table(table)
    assert dvs.audit_table(spark, table).findings == expected.findings
    with pytest.raises(TableNotFoundError):
        dvs.audit_table(spark, tmp_path / "missing")


def test_a_repair_with_tasks_commits_correct_statistics(spark: SparkSession, tmp_path: Path):
    table = table_with_wrong_statistics(tmp_path / "t")
    expected = dv.repair_statistics(table)
    assert dvs.repair_statistics(spark, table) == expected
    repaired = dvs.repair_statistics(spark, table, dry_run=False)
    assert (repaired.files, repaired.version) == (expected.files, 6)
    assert dv.audit_table(table, data=True).is_clean
    assert dvs.repair_statistics(spark, table, dry_run=False).version is None
