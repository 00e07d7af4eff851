"""Every function opens the table that Spark opens by a text, or raises an error before a job starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from interop.conftest import HAS_DELTA
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.driver import count_jobs
from spark.tables import on_spark, write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import DeltaVariantError, StoreError, TableNotFoundError
from delta_variant.spark.locations import check_files, locate
from delta_variant.spark.stream_sinks import query_of
from delta_variant.spark.tasks import messages
from delta_variant.storage.store import open_store


def merged(spark: SparkSession, table: Any) -> Any:
    rows = spark.createDataFrame([(2, 20)], "id long, n long")
    return on_spark(spark, table).merge(rows, "target.id = source.id").when_matched_update_all()


CHANGES: dict[str, Callable[[SparkSession, Any], object]] = {
    "WRITE": lambda spark, table: write_frame(table, spark.range(3).selectExpr("id", "1L n"), mode="append"),
    "MERGE": lambda spark, table: merged(spark, table).execute(),
    "UPDATE": lambda spark, table: on_spark(spark, table).update({"n": "n + 1"}, "id = 1"),
    "DELETE": lambda spark, table: on_spark(spark, table).delete("id = 0"),
    "OPTIMIZE": lambda spark, table: on_spark(spark, table).optimize(sort_by="id"),
    "RESTORE": lambda spark, table: on_spark(spark, table).restore(1),
    "VACUUM END": lambda spark, table: on_spark(spark, table).vacuum(
        0, dry_run=False, enforce_retention_duration=False
    ),
}
READS: dict[str, Callable[[SparkSession, Any], object]] = {
    "read_table": lambda spark, table: dvs.read_table(spark, table),
    "read_changes": lambda spark, table: dvs.read_changes(spark, table),
    "audit_table": lambda spark, table: on_spark(spark, table).audit(),
    "repair_statistics": lambda spark, table: on_spark(spark, table).repair_statistics(),
    "create_view": lambda spark, table: dvs.create_view(spark, "named", table),
    "batch_writer": lambda spark, table: dvs.batch_writer(table, app_id="app")(spark.range(0), 0),
    "batch_merger": lambda spark, table: dvs.batch_merger(lambda _: merged(spark, table), app_id="other")(
        spark.range(0), 0
    ),
}
FUNCTIONS = {**CHANGES, **READS}


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session whose catalog has a table of Delta, one of Parquet and a view."""
    if not HAS_DELTA:
        pytest.skip("needs the JARs of Delta")
    dvs.register(spark)
    spark.sql("CREATE SCHEMA store")
    feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"CREATE TABLE store.orders (id BIGINT, n BIGINT) USING delta {feed}")
    spark.sql("CREATE TABLE store.plain (id BIGINT) USING parquet")
    spark.sql("CREATE VIEW store.viewed AS SELECT 1 AS id")
    spark.sql("CREATE TEMPORARY VIEW passing AS SELECT 1 AS id")
    yield spark
    spark.sql("DROP SCHEMA store CASCADE")
    spark.catalog.dropTempView("passing")
    dvs.drop_view(spark, "named")


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_function_opens_the_table_of_the_catalog(shop: SparkSession, working_directory: Path):
    names = ("store.orders", "spark_catalog.store.orders", "`store`.`orders`")
    for number, function in enumerate(FUNCTIONS.values()):
        function(shop, names[number % len(names)])
    location = shop.sql("DESCRIBE DETAIL store.orders").collect()[0]["location"].removeprefix("file:")
    assert {each.operation for each in dv.history(location)} >= {*CHANGES, "CREATE TABLE"}
    expected = sorted(tuple(row) for row in shop.table("store.orders").collect())
    for table in (*names, "named", f"delta.`{location}`"):
        assert sorted(tuple(row) for row in dvs.read_table(shop, table).collect()) == expected
    assert list(working_directory.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((each, "no table") for each in ("store.nothing", "nothing", "my-table", "a.b.c.d", "delta.orders")),
        ("store.plain", "parquet"),
        ("store.viewed", "a view"),
        ("passing", "a view"),
    ],
)
def test_a_name_of_no_delta_table_is_an_error_with_the_way_to_write_a_path(
    shop: SparkSession, working_directory: Path, name: str, reason: str
):
    before = count_jobs()
    # Each function calls the same one, so the other names need not be tried with all of them.
    is_tried_with_all = name == "store.nothing"
    for function in FUNCTIONS.values() if is_tried_with_all else [FUNCTIONS["WRITE"]]:
        with pytest.raises(TableNotFoundError, match=rf"{reason}.* '\./{name}' for a path") as caught:
            function(shop, name)
        assert caught.value.table == name
    assert count_jobs() == before
    assert list(working_directory.iterdir()) == []
    operations = (
        lambda: shop.range(1).write.format("delta_variant").mode("append").save(name),
        lambda: shop.read.format("delta_variant").load(name),
        lambda: shop.readStream.format("delta_variant").load(name).schema,
    )
    for operation in operations if is_tried_with_all else operations[:1]:
        with pytest.raises(PySparkException, match=rf"'\./{name}' for a path"):
            operation()


@pytest.fixture
def on_hdfs(shop: SparkSession) -> Iterator[SparkSession]:
    """Return a session in which a path without a scheme is one of HDFS."""
    shop.conf.set("fs.defaultFS", "hdfs://names:8020")
    dvs.register(shop)
    yield shop
    shop.conf.unset("fs.defaultFS")
    dvs.register(shop)


def test_a_path_that_spark_looks_for_elsewhere_is_an_error_before_a_job(
    on_hdfs: SparkSession, working_directory: Path
):
    before = count_jobs()
    for path in (str(working_directory / "t"), "./t", "~/t", working_directory / "t"):
        for function in FUNCTIONS.values() if path == "./t" else [FUNCTIONS["WRITE"]]:
            with pytest.raises(StoreError, match=r"hdfs://names:8020.*file:///") as caught:
                function(on_hdfs, path)
            assert caught.value.table == str(path)
    rejects: dict[str, Any] = {"variant_columns": ["id"], "json": dv.JsonOptions("reject", "/rejects")}
    rows = on_hdfs.range(1).selectExpr("string(id) AS id")
    with pytest.raises(StoreError, match="'/rejects' because Spark looks for it in hdfs"):
        write_frame(working_directory.as_uri() + "/t", rows, **rejects)
    with pytest.raises(StoreError, match="hdfs"):
        dvs.sql(on_hdfs, f"select * from delta.`{working_directory}/t`")
    with pytest.raises(PySparkException, match=r"StoreError: .*hdfs://names:8020"):
        on_hdfs.read.format("delta_variant").load("/t")
    assert count_jobs() == before
    assert list(working_directory.iterdir()) == []
    # A URI means one file system, and the name of a view has the location for which it was created.
    uri = working_directory.as_uri() + "/t"
    write_frame(uri, on_hdfs.range(2))
    dvs.create_view(on_hdfs, "named", uri)
    assert dvs.read_table(on_hdfs, "named").count() == 2


@pytest.mark.parametrize(
    ("path", "default_fs", "expected"),
    [
        ("/a/t", "file:///", "/a/t"),
        ("./t", "file:///", "./t"),
        ("/a/t", "s3a://bucket", "s3a://bucket/a/t"),
        (
            Path("/a/t"),
            "abfss://box@account.dfs.core.windows.net/",
            "abfss://box@account.dfs.core.windows.net/a/t",
        ),
        ("s3://other/t", "hdfs://names:8020", "s3://other/t"),
        ("file:///a/t", "dbfs:///", "file:///a/t"),
        ("file:/dbfs/t", "dbfs:///", "file:/dbfs/t"),
    ],
)
def test_a_path_is_mapped_as_spark_does(path: str | Path, default_fs: str, expected: str):
    assert locate(path, default_fs) == expected


@pytest.mark.parametrize(
    ("path", "default_fs"),
    [
        ("a/t", "s3a://bucket"),
        ("~/t", "gs://bucket"),
        ("/a/t", "dbfs:///"),
        ("/mnt/t", "viewfs://cluster"),
        ("/dbfs/t", "dbfs:///"),
        ("/dbfs/t", "file:///"),
        ("/Volumes/t", "dbfs:///"),
        ("memory://t", "file:///"),
    ],
)
def test_a_path_that_cannot_be_mapped_is_an_error(path: str, default_fs: str):
    with pytest.raises(StoreError) as caught:
        locate(path, default_fs)
    assert caught.value.table == path


def test_the_mounts_of_databricks_are_paths_for_spark_and_on_the_disk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.path.ismount", lambda path: path == "/dbfs")
    monkeypatch.setattr("os.path.isdir", lambda path: path == "/Volumes")
    for path in ("/dbfs/mnt/t", "/Volumes/main/t"):
        assert locate(path, "dbfs:///") == path


def test_the_checkpoint_of_a_query_is_not_looked_for_on_the_disk(tmp_path: Path):
    (tmp_path / "metadata").write_text('{"id":"of another query"}', "utf-8")
    with pytest.raises(DeltaVariantError, match="txn_app_id"):
        query_of(str(tmp_path), "hdfs://names:8020")
    assert query_of(f"file:{tmp_path}", "hdfs://names:8020") == "of another query"


OF_FILES: dict[str, Callable[[SparkSession, str], object]] = {
    "write": lambda spark, table: write_frame(table, spark.range(9), mode="append"),
    "optimized write": lambda spark, table: write_frame(
        table, spark.range(9), mode="append", optimize_write=True
    ),
    "update": lambda spark, table: on_spark(spark, table).update({"id": "id + 1"}, "id > 1"),
    "optimize": lambda spark, table: on_spark(spark, table).optimize(sort_by="id"),
}


@pytest.mark.parametrize("operation", OF_FILES)
def test_files_that_only_executors_have_are_not_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
):
    monkeypatch.setattr("delta_variant.spark.locations.PAUSES", (0.0,))
    dv.write_table(tmp_path / "t", [{"id": 1}, {"id": 2}])
    known = set((tmp_path / "t").glob("*.parquet"))

    def on_other_disks(rows: Any) -> list[Any]:
        for path in set((tmp_path / "t").glob("*.parquet")) - known:
            path.unlink()
        return messages(rows)

    monkeypatch.setattr("delta_variant.spark.executor.messages", on_other_disks)
    with pytest.raises(StoreError, match=r"driver does not find files .* mount that every machine has"):
        OF_FILES[operation](spark, str(tmp_path / "t"))
    assert dv.load_snapshot(tmp_path / "t").version == 0
    assert set((tmp_path / "t").rglob("*.parquet")) == known


def test_files_are_looked_for_again_before_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("delta_variant.spark.locations.sleep", lambda _: (tmp_path / "a").touch())
    check_files(open_store(tmp_path), ["a"])
    with pytest.raises(StoreError, match="1 of 2 tasks") as caught:
        check_files(open_store(tmp_path), ["a", "b"])
    assert caught.value.file == "b"
