"""The data source `delta_variant`: its options, and the limits of Spark's data sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType as SparkStruct
from spark.tables import data_files, listed_files, rows
from support.tables import read_actions

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import CommitConflictError, SchemaError
from delta_variant.spark.sinks import BatchSink, Sink

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    dvs.register(spark)
    return spark


def events(spark: SparkSession, first: int = 0, count: int = 60) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr(
        "id", "concat('{\"n\":', id, '}') AS event", "id % 3 AS part"
    )


def writer(df: DataFrame, **options: str) -> DataFrameWriter:
    return df.write.format("delta_variant").mode("append").options(variant_columns="event", **options)


def test_a_table_that_another_writer_created_concurrently_is_appended_to(tmp_path: Path):
    table = tmp_path / "t"
    sink = BatchSink(
        SparkStruct().add("id", "long"), {"path": str(table), "storage_options": None}, overwrite=False
    )
    message = sink.write(iter([pa.record_batch({"id": pa.array([1, 2])})]))
    dv.write_table(table, pa.table({"id": [0]}), configuration={"delta.columnMapping.mode": "name"})
    sink.commit([message])
    assert sorted(dv.read_table(table).to_table()["id"].to_pylist()) == [0, 1, 2]
    assert data_files(table) == listed_files(table)


def test_rows_are_appended_and_read_by_paths(source: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    writer(events(source), partition_by="part", configuration='{"delta.appendOnly":"true"}').save(str(table))
    writer(events(source, 60)).save(str(table))
    assert len(read_actions(table, "commitInfo")) == 2
    assert read_actions(table, "metaData")[0]["configuration"]["delta.appendOnly"] == "true"
    assert data_files(table) == listed_files(table)

    read = source.read.format("delta_variant")
    assert read.load(str(table)).selectExpr("sum(event:n::int) AS n").collect()[0].n == 120 * 119 // 2
    assert dict(read.load(str(table)).dtypes) == {"id": "bigint", "event": "variant", "part": "bigint"}
    found = read.option("where", "event:n::int = 7").option("columns", '{"n": "event:n::int", "id": "id"}')
    assert [tuple(row) for row in found.load(str(table)).collect()] == [(7, 7)]
    assert source.read.format("delta_variant").schema("id long").load(str(table)).columns == ["id"]


def test_filters_of_a_dataframe_select_its_rows_whatever_spark_pushes(source: SparkSession, tmp_path: Path):
    writer(events(source)).save(str(tmp_path / "t"))
    source.conf.set(PUSHDOWN, "true")
    df = source.read.format("delta_variant").load(str(tmp_path / "t"))
    assert df.where("id in (3, 4) and part = 1 and event is not null").count() == 1
    assert df.count() == 60
    assert df.where("id < 3").union(df.where("id > 50")).count() == 12


def test_spark_mixes_up_the_filters_of_two_uses_of_a_dataframe(source: SparkSession):
    """If this fails, Spark has been fixed, and the format can push filters on that version."""

    class Numbers(DataSource):
        """Four numbers, of which a reader selects those that a pushed filter allows."""

        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "n int"

        def reader(self, schema: SparkStruct) -> DataSourceReader:
            class Reader(DataSourceReader):
                least = 0

                def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802 - Spark's name
                    for each in filters:
                        if type(each).__name__ == "GreaterThanOrEqual":
                            self.least = each.value
                        else:
                            yield each

                def read(self, partition: Any) -> Iterator[tuple[int]]:
                    yield from ((n,) for n in range(self.least, 4))

            return Reader()

    source.dataSource.register(Numbers)
    source.conf.set(PUSHDOWN, "true")
    df = source.read.format("numbers").load()
    assert df.where("n >= 3").count() == 1
    assert df.count() == 1, "it should be 4"


def test_a_view_is_of_one_version_until_it_is_created_again(source: SparkSession, tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"id": [1]}))
    create = (
        f"CREATE OR REPLACE TEMPORARY VIEW of_table USING delta_variant OPTIONS (path '{tmp_path / 't'}')"
    )
    source.sql(create)
    df = source.read.format("delta_variant").load(str(tmp_path / "t"))
    count = "SELECT count(*) FROM of_table"
    assert source.sql(count).collect()[0][0] == 1
    source.sql("INSERT INTO of_table SELECT 2")
    source.sql("REFRESH TABLE of_table")
    assert source.sql(count).collect()[0][0] == 1
    assert df.count() == 2, "a DataFrame is of the version of its first action"
    source.sql(create)
    assert source.sql(count).collect()[0][0] == 2
    source.catalog.dropTempView("of_table")


@pytest.mark.parametrize("options", ["LOCATION '{}'", "OPTIONS (path '{}')"])
def test_a_table_of_the_catalog_is_rejected(source: SparkSession, tmp_path: Path, options: str):
    dv.write_table(tmp_path / "t", pa.table({"id": [1]}))
    with pytest.raises(PySparkException, match="create a view"):
        source.sql(f"CREATE TABLE of_catalog USING delta_variant {options.format(tmp_path / 't')}")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda df, path: writer(df).mode("error").save(path), "ErrorIfExists"),
        (lambda df, path: writer(df, nothing="1").save(path), "unknown option 'nothing'"),
        (
            lambda df, path: writer(df, annotate="perhaps").save(path),
            "invalid value 'perhaps' of the option 'annotate'",
        ),
        (lambda df, path: writer(df, on_invalid="reject").save(path), "rejects requires on_invalid='reject'"),
        (lambda df, path: writer(df, txn_version="1").save(path), "txn_app_id and txn_version"),
        (lambda df, path: writer(df).option("partition_by", "nothing").save(path), "nothing"),
    ],
)
def test_invalid_options_are_rejected_and_nothing_is_written(
    source: SparkSession, tmp_path: Path, write: Callable[[DataFrame, str], None], message: str
):
    with pytest.raises(PySparkException, match=message):
        write(events(source), str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_failed_write_leaves_nothing(source: SparkSession, tmp_path: Path):
    df = events(source).selectExpr("id", "if(id = 59, '{', event) AS event")
    with pytest.raises(PySparkException, match=r"InvalidJsonError: (?=.*partition 1).*row 29"):
        writer(df).save(str(tmp_path / "t"))
    assert data_files(tmp_path / "t") == set()


def test_a_batch_with_a_txn_is_written_once(source: SparkSession, tmp_path: Path):
    for version in ("3", "3", "4"):
        writer(events(source), txn_app_id="app", txn_version=version).save(str(tmp_path / "t"))
    assert len(rows(tmp_path / "t", id="id")) == 120
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


def test_a_write_after_a_concurrent_change_of_schema_is_rejected(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"id": [0]}))
    sink = Sink.of(
        SparkStruct().add("id", "long"), {"path": str(tmp_path / "t"), "storage_options": None}, None
    )
    dv.write_table(tmp_path / "t", pa.table({"id": [1], "a": [1]}), mode="append", schema_mode="merge")
    with pytest.raises(CommitConflictError, match="start the write again") as caught:
        sink.commit([], None)
    assert (caught.value.table, caught.value.version) == (str(tmp_path / "t"), 1)


def test_a_write_that_does_not_fit_a_concurrently_created_table_is_rejected(tmp_path: Path):
    sink = Sink.of(
        SparkStruct().add("id", "long"), {"path": str(tmp_path / "t"), "storage_options": None}, None
    )
    dv.write_table(tmp_path / "t", pa.table({"other": [1]}))
    with pytest.raises(SchemaError, match="id"):
        sink.commit([], None)


def test_a_table_is_overwritten_completely_or_by_a_predicate(source: SparkSession, tmp_path: Path):
    table = str(tmp_path / "t")
    writer(events(source), partition_by="part").save(table)
    writer(events(source, 60, 6)).mode("overwrite").save(table)
    assert [row["n"] for row in rows(tmp_path / "t", n="event:n::int")] == list(range(60, 66))
    of_part = events(source, 90, 6).where("part = 1")
    writer(of_part, where="part = 1", userMetadata="nightly").mode("overwrite").save(table)
    assert [entry.metadata for entry in dv.history(table)] == ["nightly", None, None]
    assert [row["n"] for row in rows(tmp_path / "t", n="event:n::int")] == [60, 62, 63, 65, 91, 94]
    with pytest.raises(PySparkException, match="PredicateViolationError"):
        writer(events(source, 90, 6), where="part = 1").mode("overwrite").save(table)
    assert len(rows(tmp_path / "t", id="id")) == 6


def test_a_table_with_column_mapping_is_created(source: SparkSession, tmp_path: Path):
    mapped = json.dumps({"delta.columnMapping.mode": "name"})
    writer(events(source), configuration=mapped).save(str(tmp_path / "t"))
    assert len(rows(tmp_path / "t", n="event:n::int")) == 60


@pytest.fixture(autouse=True)
def _unset(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset(PUSHDOWN)
