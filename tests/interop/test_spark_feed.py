"""Spark and we read the same changes from the change data feed of tables of either writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from interop.tables import in_order
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import ChangesNotRecordedError

COLUMNS = {
    "id": "id",
    "day": "day",
    "event": "to_json(event)",
    "kind": "_change_type",
    "version": "_commit_version",
    "time": "_commit_timestamp",
}
FEED = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableVariantShredding": "true",
    "delta.feature.variantShredding": "supported",
}
FEATURES = {
    "mapped by name, deletion vectors": {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
    },
    "mapped by id, in-commit timestamps": {
        "delta.columnMapping.mode": "id",
        "delta.enableInCommitTimestamps": "true",
    },
}


def by_spark(spark: SparkSession, table: Path, **options: Any) -> list[dict[str, Any]]:
    reader = spark.read.format("delta").option("readChangeFeed", "true").options(**options)
    selected = [f"{expression} AS {name}" for name, expression in COLUMNS.items()]
    selected[-1] = "unix_micros(_commit_timestamp) AS time"
    return in_order(row.asDict() for row in reader.load(str(table)).selectExpr(*selected).collect())


def by_us(table: Path, **options: Any) -> list[dict[str, Any]]:
    rows = dv.read_changes(table, columns=COLUMNS, **options).to_table().to_pylist()
    return in_order({**row, "time": round(row["time"].timestamp() * 1_000_000)} for row in rows)


@pytest.mark.parametrize("feature", FEATURES)
def test_both_read_the_same_changes(spark: SparkSession, tmp_path: Path, feature: str):
    table = tmp_path / "t"
    text = ", ".join(f"'{name}' = '{value}'" for name, value in {**FEED, **FEATURES[feature]}.items())
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING, event VARIANT) USING delta "
        f"PARTITIONED BY (day) TBLPROPERTIES ({text})"
    )
    spark.sql(
        f"INSERT INTO delta.`{table}` SELECT id, elt(1 + id % 2, 'Zürich [a]', 'x=y%') AS day, "
        'parse_json(format_string(\'{"n": %d, "s": [1.50, null]}\', id)) AS event FROM range(0, 10, 1, 1)'
    )
    spark.sql(f'UPDATE delta.`{table}` SET event = parse_json(\'{{"n": "x"}}\') WHERE id IN (1, 2)')
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (3, 4)")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE day = 'x=y%'")
    spark.sql(
        f"MERGE INTO delta.`{table}` AS t USING (SELECT * FROM VALUES (0L), (50L) AS s(key)) AS s "
        "ON t.id = s.key "
        "WHEN MATCHED THEN UPDATE SET event = NULL "
        "WHEN NOT MATCHED THEN INSERT (id, day, event) VALUES (key, NULL, parse_json('[1, {}]'))"
    )
    dv.update(table, {"event:n": "id"}, "id = 8")
    dv.delete(table, "id = 6")
    dv.restore(table, 2)
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 4")
    last = dv.load_snapshot(table).version
    found = by_us(table)
    assert found == by_spark(spark, table, startingVersion=0)
    assert {row["kind"] for row in found} == {"insert", "delete", "update_preimage", "update_postimage"}
    for first, end in ((1, 1), (2, 4), (last, last)):
        theirs = by_spark(spark, table, startingVersion=first, endingVersion=end)
        assert by_us(table, start=first, end=end) == theirs
    middle = dv.history(table)[3].timestamp
    text = middle.strftime("%Y-%m-%d %H:%M:%S.%f")
    theirs = by_spark(spark, table, startingTimestamp=text, endingVersion=last)
    assert by_us(table, start=middle) == theirs
    theirs = by_spark(spark, table, startingVersion=0, endingTimestamp=text)
    assert by_us(table, end=middle) == theirs


def test_both_raise_for_versions_without_a_feed(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING, event VARIANT) USING delta")
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a', NULL)")
    with pytest.raises(AnalysisException, match="DELTA_MISSING_CHANGE_DATA"):
        by_spark(spark, table, startingVersion=0)
    with raises_at(ChangesNotRecordedError, version=0):
        by_us(table)
    assert by_us(table, start=1) == by_spark(spark, table, startingVersion=1)


def test_spark_and_we_read_the_same_feed_of_the_corpus(spark: SparkSession, unpack_table):
    table = unpack_table("d_cdf")
    selected = {
        "id": "id",
        "v": "to_json(v)",
        "w": "to_json(st.w)",
        "kind": "_change_type",
        "version": "_commit_version",
    }
    ours = dv.read_changes(table, columns=selected).to_table().to_pylist()
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    texts = [f"{expression} AS {name}" for name, expression in selected.items()]
    theirs = [row.asDict() for row in reader.load(str(table)).selectExpr(*texts).collect()]
    assert in_order(ours) == in_order(theirs)
    assert ours
