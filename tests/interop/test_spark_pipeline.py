"""Our Spark integration and Delta's JARs in one session read and change each other's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from interop.tables import in_order, load, rows_by_spark, rows_by_us
from pyspark.sql import DataFrame, SparkSession
from spark.tables import finished, on_spark, write_frame

import delta_variant as dv
from delta_variant import spark as dvs

COLUMNS = {"id": "id", "n": "event:n::int", "text": "to_json(event)"}
STATISTICS = (
    "spark.databricks.delta.stats.limitPerVariant",
    "spark.databricks.delta.variantShredding.parseFooterForStats",
)
PROPERTIES = [{}, {"delta.enableDeletionVectors": "true"}, {"delta.columnMapping.mode": "name"}]


def events(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr("id", "concat('{\"n\":', id, '}') AS event")


def rows_by_tasks(spark: SparkSession, table: Path) -> list[dict[str, object]]:
    return in_order(row.asDict() for row in dvs.read_table(spark, table, columns=COLUMNS).collect())


@pytest.mark.parametrize("properties", PROPERTIES, ids=lambda each: "".join(each) or "plain")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {table} SET event = parse_json('{{\"n\":-1}}') WHERE id % 10 = 3",
        "DELETE FROM {table} WHERE event:n::int BETWEEN 5 AND 8",
        "MERGE INTO {table} t "
        "USING (SELECT id + 35 AS id, parse_json('{{\"n\":-2}}') AS event FROM range(10)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.event = s.event WHEN NOT MATCHED THEN INSERT *",
        "OPTIMIZE {table}",
    ],
    ids=lambda change: change.split()[0],
)
def test_changes_of_our_table_by_spark_sql_are_read_and_appended_to(
    spark: SparkSession, tmp_path: Path, change: str, properties: dict[str, str]
):
    table = tmp_path / "t"
    write_frame(table, events(spark, 0, 20), variant_columns=["event"], configuration=properties)
    write_frame(table, events(spark, 20, 20), variant_columns=["event"], mode="append")
    spark.sql(change.format(table=f"delta.`{table}`"))
    write_frame(table, events(spark, 100, 5), variant_columns=["event"], mode="append")

    theirs = rows_by_spark(spark, table, COLUMNS)
    assert rows_by_tasks(spark, table) == rows_by_us(table, COLUMNS) == theirs
    assert len(theirs) in (41, 45, 50)
    assert dv.audit_table(table, data=True).is_clean

    files = dv.load_snapshot(table).num_files
    done = on_spark(spark, table).optimize(sort_by="event:n::int")
    assert (done.files_before, len(done.files)) == (files, 1)
    assert rows_by_spark(spark, table, COLUMNS) == theirs
    assert dv.audit_table(table, data=True).is_clean


def test_tables_of_spark_with_default_settings_are_clean_without_variant_bounds(
    spark: SparkSession, tmp_path: Path, statistics_of_variants: Callable[[bool], None]
):
    table = tmp_path / "t"
    write_frame(table, events(spark, 0, 20), variant_columns=["event"])
    assert dv.audit_table(table, data=True).findings == ()
    statistics_of_variants(False)
    spark.sql(f"UPDATE delta.`{table}` SET id = id + 100 WHERE event:n::int = 3")
    audit = dv.audit_table(table, data=True)
    assert audit.is_clean
    assert {finding.rule for finding in audit.findings} == {"ST10"}
    on_spark(spark, table).repair_statistics(dry_run=False)
    assert dv.audit_table(table, data=True).findings == ()


@pytest.fixture
def statistics_of_variants(spark: SparkSession) -> Iterator[Callable[[bool], None]]:
    """Return a function that sets whether Spark writes bounds of Variants, as these tests do."""
    before = {name: spark.conf.get(name) for name in STATISTICS}
    yield lambda wanted: [spark.conf.unset(name) for name in STATISTICS if not wanted]
    for name, value in before.items():
        spark.conf.set(name, value)


def test_a_table_of_spark_is_appended_to_merged_and_read_back(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    parsed = events(spark, 0, 20).selectExpr("id", "parse_json(event) AS event")
    parsed.write.format("delta").option("delta.enableVariantShredding", "true").save(str(table))
    write_frame(table, events(spark, 20, 10), variant_columns=["event"], mode="append")
    write_frame(table, parsed, mode="append")
    assert load(spark, table).count() == 50
    source = pa.table({"key": [25, 300]})
    merge = dv.merge(table, source, "target.event:n::int = source.key").when_matched_update(
        {"event:new": "1"}
    )
    assert merge.when_not_matched_insert({"id": "key", "event:n": "key"}).execute().rows_inserted == 1
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT id FROM range(299, 302)) s ON t.event:n::int = s.id "
        "WHEN MATCHED THEN UPDATE SET t.event = parse_json('{\"n\":-300}') "
        "WHEN NOT MATCHED THEN INSERT (id, event) VALUES (s.id, parse_json('{\"n\":7}'))"
    )
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id BETWEEN 26 AND 29")
    theirs = rows_by_spark(spark, table, COLUMNS)
    assert rows_by_tasks(spark, table) == rows_by_us(table, COLUMNS) == theirs
    assert [row["text"] for row in theirs if row["id"] in (25, 299, 300)] == [
        '{"n":25,"new":1}',
        '{"n":7}',
        '{"n":-300}',
    ]
    assert len(theirs) == 49
    assert dv.audit_table(table, data=True).is_clean


def test_streams_of_both_sides_write_to_one_table(spark: SparkSession, tmp_path: Path):
    dvs.register(spark)
    source, target = tmp_path / "source", tmp_path / "target"
    events(spark, 0, 10).selectExpr("id", "parse_json(event) AS event").write.format("delta").save(
        str(source)
    )
    by_us = spark.readStream.format("delta_variant").load(str(source))
    by_spark = spark.readStream.format("delta").load(str(source)).selectExpr("id + 10 AS id", "event")
    ours = by_us.writeStream.foreachBatch(dvs.batch_writer(target))
    for name, stream in (("ours", ours), ("theirs", by_spark.writeStream.format("delta"))):
        stream = stream.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True)
        query = stream.start() if name == "ours" else stream.start(str(target))
        finished(query)
    assert [row["id"] for row in rows_by_tasks(spark, target)] == sorted(range(20), key=str)
    assert len(dv.load_snapshot(target).txns) == 2
