"""Spark reads exactly our changes from the change data feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import delta_variant as dv

Change = tuple[str, int, Any, str | None]


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    texts = [f'{{"n": {number}, "deep": {{"s": "x{number}", "d": {number}.50}}}}' for number in numbers]
    days = [("a", "b", None)[number % 3] for number in numbers]
    return pa.table({"id": list(numbers), "day": days, "event": pa.array(texts, pa.string())})


def changes(spark: SparkSession, table: Path, version: int) -> list[Change]:
    """Return the changes of a version as Spark reads them."""
    read = spark.read.format("delta").option("readChangeFeed", "true")
    feed = read.option("startingVersion", version).option("endingVersion", version).load(str(table))
    found = feed.selectExpr("_change_type", "id", "day", "to_json(event) AS event", "_commit_version")
    collected = found.collect()
    assert {row["_commit_version"] for row in collected} <= {version}
    return sorted((tuple(row)[:4] for row in collected), key=str)


def state(table: Path, version: int) -> dict[int, tuple[Any, str | None]]:
    columns = {"id": "id", "day": "day", "event": "to_json(event)"}
    read = dv.read_table(str(table), columns=columns, version=version).to_table().to_pylist()
    return {row["id"]: (row["day"], row["event"]) for row in read}


def difference(table: Path, version: int, updated: set[int]) -> list[Change]:
    """Return the changes from the version before: `updated` are ids of rows that were updated."""
    before, after = state(table, version - 1) if version else {}, state(table, version)
    found: list[Change] = []
    for number in updated:
        found.append(("update_preimage", number, *before.pop(number)))
        found.append(("update_postimage", number, *after.pop(number)))
    found += [("delete", number, *each) for number, each in before.items() if after.get(number) != each]
    found += [("insert", number, *each) for number, each in after.items() if before.get(number) != each]
    return sorted(found, key=str)


@pytest.mark.parametrize("partition_by", [None, ["day"]], ids=["plain", "partitioned"])
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_spark_reads_exactly_the_changes_of_each_operation(
    spark: SparkSession, tmp_path: Path, mode, partition_by
):
    table = tmp_path / "t"
    settings = {
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": mode,
        "delta.enableDeletionVectors": "true",
    }
    options: dict[str, Any] = {"variant_columns": ["event"]}
    dv.write_table(str(table), rows(0, 12), partition_by=partition_by, configuration=settings, **options)
    dv.write_table(str(table), rows(12, 6), mode="append", **options)
    updates: dict[int, set[int]] = {0: set(), 1: set()}

    dv.delete(str(table), "event:n::bigint in (1, 2, 12, 13, 14, 15, 16, 17)")
    updates[2] = set()
    dv.update(str(table), {"event:deep.t": "id", "day": "'c'"}, "id in (0, 4, 5)")
    updates[3] = {0, 4, 5}
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 6")  # By a deletion vector.
    updates[4] = set()
    merge = dv.merge(str(table), pa.table({"key": [3, 7, 8, 30]}), "target.id = key")
    merge = merge.when_matched_delete("key = 7").when_matched_update({"event:deep": "key"})
    merge.when_not_matched_insert({"id": "key", "day": "'a'", "event:n": "key"}).execute()
    updates[5] = {3, 8}
    new = rows(40, 1).set_column(1, "day", pa.array(["a"]))
    dv.write_table(str(table), new, mode="overwrite", where="id in (9, 40)", **options)
    updates[6] = set()
    dv.optimize(str(table), sort_by="id")
    updates[7] = set()

    for version, updated in updates.items():
        assert changes(spark, table, version) == difference(table, version, updated), version
    assert changes(spark, table, 7) == []
