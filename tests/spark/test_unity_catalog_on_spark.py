"""Tables of a Unity Catalog on Spark: tasks read and write their files, the driver commits by the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.tables import load
from pyspark.sql import DataFrame, SparkSession
from spark.tables import finished, on_spark, write_frame
from support.unity_catalog import Catalog, ManagedTable, copy_without_features, unity_catalog

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import UnsupportedFeatureError


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with unity_catalog(f"file://{tmp_path}") as catalog:
        yield catalog


@pytest.fixture
def table(catalog: Catalog) -> ManagedTable:
    return catalog.create()


def numbers(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count).selectExpr("id", "concat('{\"n\":', id, '}') AS event")


def ids(catalog: Catalog, table: ManagedTable) -> list[int]:
    rows = dv.read_table(dv.Table(table.uri, catalog.options), columns=["id"]).to_table()
    return sorted(rows["id"].to_pylist())


def test_operations_by_tasks_commit_by_the_catalog(spark, catalog, table):
    handle = dv.Table(table.uri, storage_options=catalog.options)
    write_frame(handle, numbers(spark, 0, 6), mode="append", variant_columns=["event"])
    on_spark(spark, handle).delete("id = 0")
    on_spark(spark, handle).update({"id": "id + 100"}, where="id = 1")
    source = numbers(spark, 5, 2)
    merge = on_spark(spark, handle).merge(source, on="target.id = source.id", variant_columns=["event"])
    merge.when_not_matched_insert_all().execute()
    assert ids(catalog, table) == [2, 3, 4, 5, 6, 101]
    assert catalog.latest(table) == 4
    assert table.published == [0, 1, 2, 3, 4]
    rows = dvs.read_table(spark, handle, columns={"n": "event:n::int"}).collect()
    assert sorted(row["n"] for row in rows) == [1, 2, 3, 4, 5, 6]


def test_the_format_reads_and_writes_by_name(spark, catalog, table, tmp_path):
    dvs.register(spark)
    options = {f"storage.{name}": value for name, value in catalog.options.items()}
    writer = numbers(spark, 0, 3).write.format("delta_variant").mode("append")
    writer.options(variant_columns="event", **options).save(table.uri)
    frame = spark.read.format("delta_variant").options(**options).load(table.uri)
    assert sorted(row["id"] for row in frame.collect()) == [0, 1, 2]
    stream = spark.readStream.format("delta_variant").options(**options).load(table.uri)
    target = catalog.create()
    query = stream.writeStream.format("delta_variant").options(**options)
    finished(
        query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(target.uri)
    )
    assert ids(catalog, target) == [0, 1, 2]


def test_maintenance_by_tasks_is_rejected(spark, catalog, table):
    handle = dv.Table(table.uri, storage_options=catalog.options)
    for operation in (on_spark(spark, handle).optimize, on_spark(spark, handle).vacuum):
        with pytest.raises(UnsupportedFeatureError, match="only the catalog may do this"):
            operation()


def test_auto_compaction_is_skipped(spark, catalog, table, caplog):
    handle = dv.Table(table.uri, storage_options=catalog.options)
    for number in range(52):
        dv.write_table(handle, [{"id": number}], mode="append")
    write_frame(handle, numbers(spark, 52, 1), mode="append", variant_columns=["event"], auto_compact=True)
    assert catalog.latest(table) == 53
    assert "auto-compaction" not in caplog.text


@pytest.mark.parametrize("commits", [3, 12])
def test_delta_on_spark_reads_what_was_published(spark_with_delta, catalog, table, tmp_path, commits):
    """Delta on Spark rejects the feature by path. Without it, the published log is that of any table."""
    for number in range(commits):
        dv.write_table(
            dv.Table(table.uri, catalog.options),
            [{"id": number, "event": {"n": number}}],
            mode="append",
        )
    copy = copy_without_features(table, tmp_path / "copy", "catalogManaged")
    rows = load(spark_with_delta, copy).selectExpr("id", "variant_get(event, '$.n', 'int') AS n").collect()
    assert sorted((row["id"], row["n"]) for row in rows) == [(number, number) for number in range(commits)]
