"""Changes of small files write few new ones, and have the rows, row ids, changes and counts of Delta."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_variant as dv
from delta_variant.typing import Engine

FEATURES = ("enableChangeDataFeed", "enableRowTracking")
SOURCE = [(number, f"s{number}") for number in (1, 8, 15, 22, 29, 36, 43, 50, 57, 64, 71, 100, 101)]
# After a merge the copies have different files, and so other numbers of copied rows.
COUNTS = {
    "MERGE": [
        "numTargetFilesRemoved",
        "numTargetRowsUpdated",
        "numTargetRowsDeleted",
        "numTargetRowsInserted",
        "numTargetRowsCopied",
    ],
    "UPDATE": ["numUpdatedRows"],
    "DELETE": ["numDeletedRows"],
}


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of 12 files in two partitions, with row ids and a change data feed."""
    table = tmp_path_factory.mktemp("small") / "table"
    settings = ", ".join(f"'delta.{name}' = 'true'" for name in FEATURES)
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING, name STRING, event VARIANT) USING delta "
        f"PARTITIONED BY (day) TBLPROPERTIES ({settings})"
    )
    df = spark.range(72).repartitionByRange(6, "id")
    event = 'parse_json(format_string(\'{"n": %d, "s": "x%d"}\', id, id % 3)) AS event'
    df = df.selectExpr("id", "elt(1 + id % 2, 'a', 'b') AS day", "concat('n', id) AS name", event)
    df.write.format("delta").mode("append").save(str(table))
    return table


def merge(table: dv.Table, source: pa.Table | DataFrame) -> dv.RewriteResult:
    clauses = dv.merge(table, source, "target.id = key").when_matched_delete("key % 5 = 0")
    clauses = clauses.when_matched_update({"name": "text", "day": "if(key = 8, 'c', day)"})
    return clauses.when_not_matched_insert({"id": "key", "name": "text", "day": "'a'"}).execute()


def merge_by_delta(table: Path) -> str:
    values = ", ".join(f"({key}, '{text}')" for key, text in SOURCE)
    source = f"(SELECT col1 AS key, col2 AS text FROM VALUES {values})"
    return (
        f"MERGE INTO delta.`{table}` t USING {source} s ON t.id = s.key "
        "WHEN MATCHED AND s.key % 5 = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = s.text, day = if(s.key = 8, 'c', t.day) "
        "WHEN NOT MATCHED THEN INSERT (id, name, day) VALUES (s.key, s.text, 'a')"
    )


def content(spark: SparkSession, table: Path, version: int) -> dict[str, list[Any]]:
    """Return the rows of a table with the ids of those that are not new, and the changes of its version."""
    columns = "id", "day", "name", "to_json(event) AS event"
    row_id = "if(id < 100, _metadata.row_id, NULL) AS row_id"
    rows = spark.read.format("delta").load(str(table))
    options = {"readChangeFeed": "true", "startingVersion": str(version)}
    changes = spark.read.format("delta").options(**options).load(str(table))
    found = {
        "rows": rows.selectExpr(*columns, row_id, "_metadata.row_commit_version AS version"),
        "changes": changes.selectExpr(*columns, "_change_type", "_commit_version"),
    }
    return {name: sorted(map(tuple, df.collect()), key=str) for name, df in found.items()}


def test_small_files_share_new_ones_and_all_else_is_that_of_delta(
    spark: SparkSession, template: Path, tmp_path: Path, engine: Engine | None
):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for copy in (ours, theirs):
        shutil.copytree(template, copy)
    table, frame = dv.Table(ours, engine=engine), spark.createDataFrame(SOURCE, "key bigint, text string")
    source = frame.toArrow() if engine is None else frame
    updated, deleted = "id % 9 = 3", "id % 10 = 4"
    steps = [
        ("MERGE", lambda: merge(table, source), merge_by_delta(theirs)),
        (
            "UPDATE",
            lambda: dv.update(table, {"name": "concat(name, 'u')"}, updated),
            f"UPDATE delta.`{theirs}` SET name = concat(name, 'u') WHERE {updated}",
        ),
        ("DELETE", lambda: dv.delete(table, deleted), f"DELETE FROM delta.`{theirs}` WHERE {deleted}"),
    ]
    for version, (operation, change, statement) in enumerate(steps, start=2):
        before = dv.load_snapshot(ours).num_files
        result = change()
        spark.sql(statement)
        assert result.version == version
        assert content(spark, ours, version) == content(spark, theirs, version)
        metrics = [spark.sql(f"DESCRIBE HISTORY delta.`{each}` LIMIT 1").first() for each in (ours, theirs)]
        found, expected = (dict(row["operationMetrics"]) for row in metrics if row is not None)
        if operation == "MERGE":
            found["numTargetFilesRemoved"] = found["numRemovedFiles"]
            # A file for each partition of the table and each task.
            assert before == 12
            assert len(result.files) <= (5 if engine is None else 8)
        names = COUNTS[operation]
        assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert dv.audit_table(ours, data=True).is_clean
