"""Spark reads the same row ids before and after each of our operations."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.tables import load
from pyspark.sql import SparkSession

import delta_variant as dv

Tracked = dict[int, tuple[int, int]]


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    texts = [f'{{"n": {number}, "deep": {{"s": "x{number}"}}}}' for number in numbers]
    days = [("a", "b", None)[number % 3] for number in numbers]
    return pa.table({"id": list(numbers), "day": days, "event": pa.array(texts, pa.string())})


def tracked(spark: SparkSession, table: Path) -> Tracked:
    """Return the row id and the row commit version of each row by its `id`, as Spark reads them."""
    read = load(spark, table).selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    found = {row[0]: (row[1], row[2]) for row in read}
    assert len({row_id for row_id, _ in found.values()}) == len(read) == len(found)
    return found


def without(found: Tracked, *numbers: int) -> Tracked:
    return {number: where for number, where in found.items() if number not in numbers}


@pytest.mark.parametrize(("mode", "partition_by"), [("id", ["day"]), ("name", ["day"]), ("none", None)])
def test_rows_keep_the_ids_that_spark_reads(spark: SparkSession, tmp_path: Path, mode, partition_by):
    table = tmp_path / "t"
    settings = {
        "delta.enableRowTracking": "true",
        "delta.columnMapping.mode": mode,
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
    }
    options = {"variant_columns": ["event"]}
    dv.write_table(str(table), rows(0, 12), partition_by=partition_by, configuration=settings, **options)
    dv.write_table(str(table), rows(12, 6), mode="append", **options)
    known = tracked(spark, table)

    dv.delete(str(table), "event:n::bigint in (1, 13)")
    known = without(known, 1, 13)
    assert tracked(spark, table) == known

    dv.update(str(table), {"event:deep.t": "id", "day": "'c'"}, "id in (0, 4, 5)")
    known |= {number: (known[number][0], 3) for number in (0, 4, 5)}
    assert tracked(spark, table) == known

    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (2, 6)")  # By deletion vectors.
    known = without(known, 2, 6)
    assert tracked(spark, table) == known

    merge = dv.merge(str(table), pa.table({"key": [3, 7, 8, 30]}), "target.id = key")
    merge = merge.when_matched_delete("key = 7").when_matched_update({"event:deep": "key"})
    merge.when_not_matched_insert({"id": "key", "day": "'a'", "event:n": "key"}).execute()
    found = tracked(spark, table)
    known = {**without(known, 7), **{number: (known[number][0], 5) for number in (3, 8)}, 30: found[30]}
    assert found == known
    assert found[30][1] == 5

    dv.optimize(str(table), sort_by="id")
    assert tracked(spark, table) == known

    spark.sql(f"UPDATE delta.`{table}` SET day = 'd' WHERE id = 9")
    known[9] = (known[9][0], 7)
    assert tracked(spark, table) == known

    new = rows(40, 1).set_column(1, "day", pa.array(["a"]))
    dv.write_table(str(table), new, mode="overwrite", where="id in (10, 40)", **options)
    found = tracked(spark, table)
    assert found == {**without(known, 10), 40: found[40]}
    assert not dv.audit_table(str(table), data=True).findings


def test_spark_reads_row_ids_that_are_assigned_later(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(str(table), rows(0, 3), variant_columns=["event"])
    dv.write_table(str(table), rows(3, 3), mode="append", variant_columns=["event"])
    dv.set_properties(str(table), {"delta.enableRowTracking": "true"})
    known = tracked(spark, table)
    assert sorted(known.values()) == [(number, 3) for number in range(6)]
    dv.delete(str(table), "id = 1")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 4")
    assert tracked(spark, table) == without(known, 1, 4)
