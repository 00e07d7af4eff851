"""Locations in unsupported stores raise an error on the driver, before a job starts or a folder is created.

As a local path, such a location would be a different folder on each executor.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from spark.driver import count_jobs
from spark.tables import finished, on_spark, write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import StoreError, UnsupportedFeatureError
from delta_variant.spark.stream_sinks import query_of

LOCATIONS = ("dbfs:/x/y", "hdfs:/x", "s3:/b/t", "gs:/b/t", "unknown:/x")


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(3).selectExpr("id", "concat('{\"n\":', id, '}') AS event")


def rejecting(location: str) -> dict[str, Any]:
    return {"variant_columns": ["event"], "json": dv.JsonOptions("reject", location)}


IN_PROCESS: dict[str, Callable[[SparkSession, str], object]] = {
    "write_table": lambda spark, location: write_frame(location, numbers(spark), mode="append"),
    "rejects": lambda spark, location: write_frame("./table", numbers(spark), **rejecting(location)),
    "batch_writer": lambda spark, location: dvs.batch_writer(location, app_id="app")(numbers(spark), 0),
    "read_table": lambda spark, location: dvs.read_table(spark, location).collect(),
    "optimize": lambda spark, location: on_spark(spark, location).optimize(),
    "audit_table": lambda spark, location: on_spark(spark, location).audit(),
    "repair_statistics": lambda spark, location: on_spark(spark, location).repair_statistics(dry_run=False),
}
BY_FORMAT: dict[str, Callable[[SparkSession, str, Path], object]] = {
    "save": lambda spark, location, _: (
        numbers(spark).write.format("delta_variant").mode("append").save(location)
    ),
    "rejects": lambda spark, location, folder: (
        numbers(spark)
        .write.format("delta_variant")
        .mode("append")
        .options(variant_columns="event", on_invalid="reject", rejects=location)
        .save(str(folder / "table"))
    ),
    "load": lambda spark, location, _: spark.read.format("delta_variant").load(location).collect(),
    "stream from": lambda spark, location, _: spark.readStream.format("delta_variant").load(location).schema,
}


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    dvs.register(spark)
    return spark


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("operation", IN_PROCESS)
def test_a_function_raises_before_a_job(
    source: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, location: str
):
    monkeypatch.chdir(tmp_path)
    before = count_jobs()
    scheme = location.split(":", 1)[0]
    with pytest.raises(StoreError, match=scheme):
        IN_PROCESS[operation](source, location)
    assert count_jobs() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("operation", BY_FORMAT)
def test_the_format_raises_before_a_job(source: SparkSession, tmp_path: Path, operation: str):
    before = count_jobs()
    with pytest.raises(PySparkException, match=r"StoreError: .*dbfs"):
        BY_FORMAT[operation](source, "dbfs:/x/y", tmp_path)
    assert count_jobs() == before
    assert list(tmp_path.iterdir()) == []
    # The processes of data sources keep the working directory in which Spark was started.
    assert not Path("dbfs:").exists()


def test_a_stream_into_the_format_raises_before_a_job(source: SparkSession, tmp_path: Path):
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "0.txt").write_text('{"n":1}\n', "utf-8")
    lines = source.readStream.text(str(tmp_path / "lines"))
    sink = lines.writeStream.format("delta_variant").option("checkpointLocation", str(tmp_path / "c"))
    before = count_jobs()
    query = sink.trigger(availableNow=True).start("dbfs:/x/y")
    with pytest.raises(StreamingQueryException, match=r"StoreError: .*dbfs"):
        finished(query)
    assert count_jobs() == before
    assert {path.name for path in tmp_path.iterdir()} == {"lines", "c"}
    assert not Path("dbfs:").exists()


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_checkpoint_in_an_unsupported_store_is_not_read_as_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
):
    monkeypatch.chdir(tmp_path)
    Path(location).mkdir(parents=True)
    (Path(location) / "metadata").write_text('{"id":"of another query"}', "utf-8")
    with pytest.raises(UnsupportedFeatureError, match="txn_app_id"):
        query_of(location)
