"""Spark with Delta's JARs and this library delete rows of the same files by deletion vectors, in turns."""

from __future__ import annotations

import json

import pyarrow as pa
from tables import load

import delta_variant as dv


def test_both_delete_rows_of_the_same_files(spark, tmp_path):
    table, left = dv.Table(tmp_path / "t"), set(range(20_000))
    events = pa.array([json.dumps({"n": number % 10}) for number in sorted(left)], pa.json_())
    columns = pa.table({"id": pa.array(sorted(left), pa.int64()), "event": events})
    table.append(columns, configuration={"delta.enableDeletionVectors": "true"})

    def delete(condition: str, removed: set[int], *, by_spark: bool) -> None:
        if by_spark:
            spark.sql(f"DELETE FROM delta.`{table.table_uri}` WHERE {condition}")
        else:
            table.delete(condition)
        left.difference_update(removed)
        assert {row.id for row in load(spark, tmp_path / "t").select("id").collect()} == left
        assert set(table.scan(columns=["id"]).to_table()["id"].to_pylist()) == left

    # A vector in the log, one in a file, and one that another writer wrote before.
    delete("id = 7", {7}, by_spark=False)
    delete("event:n::int = 3", {number for number in left if number % 10 == 3}, by_spark=False)
    delete("id % 11 = 0", {number for number in left if number % 11 == 0}, by_spark=True)
    delete("id % 13 = 0", {number for number in left if number % 13 == 0}, by_spark=False)
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1
    assert table.audit(data=True).findings == ()
    spark.sql(f"REORG TABLE delta.`{table.table_uri}` APPLY (PURGE)")
    assert table.snapshot().files["deletion_vector"].null_count == 1
    assert table.count() == len(left)
