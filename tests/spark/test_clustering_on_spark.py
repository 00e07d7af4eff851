"""A clustered table that this library creates is that of Delta's CREATE TABLE … CLUSTER BY."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from support.tables import read_commit

import delta_variant as dv

COLUMNS = ["id bigint", "`a.b` string", "s struct<`x`: date, n: decimal(5,2)>"]


def actions(table: Path) -> dict[str, Any]:
    """Return the actions of version 0 by kind, without what differs between any two tables."""
    found: dict[str, Any] = {kind: each for line in read_commit(table, 0) for kind, each in line.items()}
    found["protocol"]["writerFeatures"].sort()
    for name in ("id", "createdTime"):
        del found["metaData"][name]
    found["commitInfo"] = {name: found["commitInfo"][name] for name in ("operation", "operationParameters")}
    return found


def test_a_clustered_table_is_that_of_delta(spark_with_delta: SparkSession, tmp_path: Path):
    spark, ours, theirs = spark_with_delta, tmp_path / "ours", tmp_path / "theirs"
    dv.create_table(ours, COLUMNS, cluster_by=["`a.b`", "s.n"])
    columns = ", ".join(COLUMNS)
    spark.sql(f"CREATE TABLE delta.`{theirs}` ({columns}) USING delta CLUSTER BY (`a.b`, s.n)").collect()
    assert actions(ours) == actions(theirs)
    for table in (ours, theirs):
        dv.write_table(table, [{"id": 1, "a.b": "x"}, {"id": 2, "a.b": "y"}], mode="append")
    spark.sql(f"INSERT INTO delta.`{ours}` VALUES (3, 'z', NULL)").collect()
    spark.sql(f"OPTIMIZE delta.`{ours}`").collect()
    # Delta clusters the files of this library.
    assert dv.load_snapshot(ours).files["clustering_provider"].to_pylist() == ["liquid"]
    assert sorted(row["id"] for row in dv.Table(ours)) == [1, 2, 3]
    assert dv.audit_table(ours, data=True).is_clean
