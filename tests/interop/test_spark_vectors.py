"""Spark with Delta's JARs and this library change rows of the same files by deletion vectors, in turns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.tables import load
from pyspark.sql import SparkSession
from support.intercepted_store import commit_first
from support.tables import read_commit

import delta_variant as dv

ROWS = 4000
COLUMNS = {"id": "id", "n": "event:n::int"}
KIND = {"version": "_commit_version", "kind": "_change_type", **COLUMNS}

Rows = dict[int, int]
"""The number in `event` of each row, by `id`."""


@dataclass
class Turns:
    """A table that both change, and the rows that it has."""

    spark: SparkSession
    table: dv.Table
    rows: Rows

    @property
    def path(self) -> Path:
        return Path(self.table.table_uri)

    def by_us(self, change: Callable[[dv.Table], Any], after: Callable[[Rows], Rows]) -> None:
        """Change the table by this library. Spark reads the rows after it."""
        change(self.table)
        self.rows = after(self.rows)
        theirs = load(self.spark, self.path).selectExpr("id", "event:n::int").collect()
        assert sorted(map(tuple, theirs)) == sorted(self.rows.items())

    def by_spark(self, statement: str, after: Callable[[Rows], Rows]) -> None:
        """Change the table by Spark. This library reads the rows after it."""
        self.spark.sql(statement.format(t=f"delta.`{self.path}`")).collect()
        self.rows = after(self.rows)
        ours = self.table.scan(columns=COLUMNS).to_table().to_pylist()
        assert sorted((row["id"], row["n"]) for row in ours) == sorted(self.rows.items())

    @property
    def vectors(self) -> int:
        """Return the number of files with a vector."""
        files = self.table.snapshot().files
        return files.num_rows - files["deletion_vector"].null_count


@pytest.fixture
def turns(spark: SparkSession, tmp_path: Path) -> Turns:
    """Return a table of one file."""
    rows = {number: number % 10 for number in range(ROWS)}
    events = pa.array([json.dumps({"n": n}) for n in rows.values()], pa.json_())
    table = dv.Table(tmp_path / "t")
    columns = pa.table({"id": pa.array(list(rows), pa.int64()), "event": events})
    table.append(columns, configuration={"delta.enableDeletionVectors": "true"})
    return Turns(spark, table, rows)


def without(found: Callable[[int, int], bool]) -> Callable[[Rows], Rows]:
    return lambda rows: {number: n for number, n in rows.items() if not found(number, n)}


def with_new(found: Callable[[int], bool], new: Callable[[int], int]) -> Callable[[Rows], Rows]:
    return lambda rows: {number: new(n) if found(number) else n for number, n in rows.items()}


def same(rows: Rows) -> Rows:
    return rows


def merge(table: dv.Table) -> None:
    source = pa.table({"key": pa.array([1, 2, 8001], pa.int64()), "new": [None, 77, 78]})
    change = table.merge(source, "id = key").when_matched_delete("new is null")
    change = change.when_matched_update({"event:n": "new"})
    change.when_not_matched_insert({"id": "key", "event:n": "new"}).execute()


SPARK_MERGE = """
MERGE INTO {t} USING (SELECT * FROM VALUES (4L, NULL), (2L, 87), (9001L, 88) AS v(key, new)) ON id = key
WHEN MATCHED AND new IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET event = parse_json('{{"n": ' || new || '}}')
WHEN NOT MATCHED THEN INSERT (id, event) VALUES (key, parse_json('{{"n": ' || new || '}}'))
"""


def test_both_change_rows_of_the_same_files(turns: Turns):
    turns.table.set_properties({"delta.enableChangeDataFeed": "true"})
    # Vectors in the log and in files, and in files that the other wrote before.
    turns.by_us(lambda table: table.delete("id = 7"), without(lambda number, n: number == 7))
    turns.by_spark("DELETE FROM {t} WHERE event:n::int = 3", without(lambda number, n: n == 3))
    turns.by_us(
        lambda table: table.update({"event:n": "event:n::int + 100"}, "id % 11 = 0"),
        with_new(lambda number: number % 11 == 0, lambda n: n + 100),
    )
    turns.by_spark(
        """UPDATE {t} SET event = parse_json('{{"n": 55}}') WHERE id % 13 = 0""",
        with_new(lambda number: number % 13 == 0, lambda n: 55),
    )
    turns.by_us(merge, lambda rows: {**without(lambda number, n: number == 1)(rows), 2: 77, 8001: 78})
    turns.by_spark(
        SPARK_MERGE, lambda rows: {**without(lambda number, n: number == 4)(rows), 2: 87, 9001: 88}
    )
    for version in range(2, 8):
        assert any(
            "deletionVector" in each["add"] for each in read_commit(turns.path, version) if "add" in each
        )
    assert turns.table.audit(data=True).findings == ()
    changes = turns.table.changes(start=2, columns=KIND).to_table().to_pylist()
    feed = turns.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    theirs = feed.load(str(turns.path)).selectExpr("_commit_version", "_change_type", "id", "event:n::int")
    assert Counter(tuple(row.values()) for row in changes) == Counter(map(tuple, theirs.collect()))


def test_each_maintains_what_the_other_changed(turns: Turns):
    turns.by_us(lambda table: table.delete("id % 7 = 0"), without(lambda number, n: number % 7 == 0))
    turns.by_spark("DELETE FROM {t} WHERE id % 5 = 0", without(lambda number, n: number % 5 == 0))
    turns.by_us(lambda table: table.update({"event:n": "9"}, "id = 1"), lambda rows: {**rows, 1: 9})
    turns.by_spark("OPTIMIZE {t}", same)
    assert turns.vectors == 0
    turns.by_spark("DELETE FROM {t} WHERE id = 2", without(lambda number, n: number == 2))
    turns.by_us(lambda table: table.optimize(purge=True), same)
    assert turns.vectors == 0
    turns.by_us(lambda table: table.delete("id = 3"), without(lambda number, n: number == 3))
    turns.by_spark("REORG TABLE {t} APPLY (PURGE)", same)
    assert turns.vectors == 0
    # Its vector has a few bytes.
    turns.by_us(lambda table: table.delete("id = 4"), without(lambda number, n: number == 4))
    turns.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    turns.by_spark("VACUUM {t} RETAIN 0 HOURS", same)
    assert len(list(turns.path.glob("*.bin"))) == 1
    turns.by_spark("DELETE FROM {t} WHERE id % 13 = 0", without(lambda number, n: number % 13 == 0))
    turns.by_us(
        lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
        same,
    )
    assert len(list(turns.path.glob("*.bin"))) == len(list(turns.path.glob("*.parquet"))) == 1
    assert turns.table.audit(data=True).findings == ()


def test_a_delete_merges_its_vector_with_that_of_a_concurrent_delete_of_spark(turns: Turns):
    statement = f"DELETE FROM delta.`{turns.path}` WHERE id % 5 = 0"
    store = commit_first(turns.path, lambda: turns.spark.sql(statement).collect())
    turns.by_us(
        lambda table: dv.delete(store, "id % 5 = 1"),
        without(lambda number, n: number % 5 < 2),
    )
    assert (turns.table.version, turns.vectors) == (2, 1)


def test_the_history_counts_vectors_as_delta_does(turns: Turns, tmp_path: Path):
    copy = tmp_path / "copy"
    turns.table.clone(copy)
    ours, statements = (
        dv.Table(copy),
        [
            "delete from {t} where id in (7, 70)",
            "update {t} set id = -8 where id = 8",
            "merge into {t} using (select 9L as key, -9L as new union all select 10L, null) as s on id = key "
            "when matched and new is null then delete when matched then update set id = new",
            "delete from {t} where id >= 0",
        ],
    )
    for statement in statements:
        turns.spark.sql(statement.format(t=f"delta.`{turns.path}`")).collect()
    source = pa.table({"key": [9, 10], "new": pa.array([-9, None], pa.int64())})
    ours.delete("id in (7, 70)")
    ours.update({"id": "-8"}, where="id = 8")
    merge = ours.merge(source, "target.id = source.key").when_matched_delete("source.new is null")
    merge.when_matched_update({"id": "source.new"}).execute()
    ours.delete("id >= 0")
    counted = [
        [(each.operation, vector_metrics(each)) for each in table.history()[:4]]
        for table in (ours, turns.table)
    ]
    assert counted[0] == counted[1]
    assert counted[0][1] == (
        "MERGE",
        {
            "numTargetDeletionVectorsAdded": 1,
            "numTargetDeletionVectorsRemoved": 1,
            "numTargetDeletionVectorsUpdated": 1,
        },
    )


def vector_metrics(entry: dv.HistoryEntry) -> dict[str, int]:
    return {name: int(value) for name, value in entry.metrics.items() if "DeletionVectors" in name}
