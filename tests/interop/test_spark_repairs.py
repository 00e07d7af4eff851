"""Spark reads the same rows before and after a repair, and can write to a repaired table."""

from __future__ import annotations

import json

import pytest
from tables import in_order, load

import delta_variant as dv

TABLES = ["b1_limit_only", "c_stats_ga", "d_cm_id", "d_cm_name", "d_dv", "d_partitioned", "d_v2ckpt"]


def break_statistics(table):
    """Replace the statistics of each file in the log by wrong ones."""
    for commit in (table / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
        for add in (line["add"] for line in lines if "add" in line):
            statistics = json.loads(add["stats"])
            statistics["nullCount"] = dict.fromkeys(statistics["nullCount"], 1 << 20)
            add["stats"] = json.dumps({**statistics, "minValues": {}, "maxValues": {}})
        commit.write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")
    # Remove the checksums of Hadoop and Delta, which no longer match.
    for checksum in (table / "_delta_log").glob("*.crc"):
        checksum.unlink()


def rows(spark, table):
    """Return all rows as Spark reads them, Variants as JSON text."""
    frame = load(spark, table)
    texts = [
        f"to_json(struct(`{field.name}`))"
        if "variant" in field.dataType.simpleString()
        else f"`{field.name}`"
        for field in frame.schema
    ]
    return in_order(row.asDict() for row in frame.selectExpr(*texts).collect())


@pytest.mark.parametrize("name", TABLES)
def test_spark_reads_the_same_rows_of_a_repaired_table(spark, unpack_table, name):
    table = unpack_table(name)
    break_statistics(table)
    before = rows(spark, table)
    repair = dv.repair_statistics(table, dry_run=False)
    if repair.version is None:
        pytest.fail("nothing was repaired")
    # The checkpoint still has the statistics that the commits had before.
    broken = {"L13"} if list((table / "_delta_log").glob("*.checkpoint*")) else set()
    assert {finding.rule for finding in dv.audit_table(table, data=True).findings} == broken
    assert rows(spark, table) == before
    assert load(spark, table).count() == len(before) > 0


def test_spark_deletes_from_a_repaired_table(spark, unpack_table):
    table = unpack_table("c_stats_ga")
    break_statistics(table)
    dv.repair_statistics(table, dry_run=False)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id >= 100")
    assert load(spark, table).where("id >= 100").count() == 0
    assert load(spark, table).count() > 0
    assert dv.audit_table(table, data=True).is_clean


def test_spark_reads_a_table_after_its_lost_files_were_removed(spark, tmp_path):
    for number in range(3):
        result = dv.write_table(tmp_path, [{"id": number}], mode="append")
    (tmp_path / result.files[0].path).unlink()
    assert dv.repair_files(tmp_path, dry_run=False).version == 3
    found = spark.read.format("delta").load(str(tmp_path)).collect()
    assert sorted(row.id for row in found) == [0, 1]
