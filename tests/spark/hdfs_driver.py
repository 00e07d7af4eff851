"""A driver whose default file system is HDFS, as on EMR and Dataproc.

`python hdfs_driver.py FOLDER 1` expects HADOOP_CONF_DIR with a core-site.xml, and prints how many functions
reject a path that Spark looks for in HDFS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.tables import finished, on_spark, write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import StoreError
from delta_variant.spark.locations import default_file_system, hadoop_settings

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}

FUNCTIONS: dict[str, Callable[[SparkSession, str], object]] = {
    "append": lambda spark, path: write_frame(path, spark.range(3), mode="append"),
    "read": lambda spark, path: dvs.read_table(spark, path).collect(),
    "changes": lambda spark, path: dvs.read_changes(spark, path).collect(),
    "sql": lambda spark, path: dvs.sql(spark, f"select * from delta.`{path}`").collect(),
    "optimize": lambda spark, path: on_spark(spark, path).optimize(),
    "vacuum": lambda spark, path: on_spark(spark, path).vacuum(),
    "check": lambda spark, path: dvs.check_cluster(spark, path),
    "batch_writer": lambda spark, path: dvs.batch_writer(path, app_id="a")(spark.range(3), 0),
}


def main(folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    hdfs = default_file_system(spark)
    assert hdfs.startswith("hdfs://127.0.0.1:"), hdfs
    assert hadoop_settings(spark)["fs.s3a.access.key"] == "of core-site.xml"
    path = str(folder / "table")
    spark.range(5).write.parquet(path)
    assert not Path(path).exists()
    reject(spark, path, hdfs)
    use_local(spark, f"file://{path}", spark.read.parquet(path).count())
    stream(spark, path, f"file://{path}-of-stream")
    print(f"run 0: {len(FUNCTIONS)} functions", flush=True)
    spark.stop()


def reject(spark: SparkSession, path: str, hdfs: str) -> None:
    """Raise unless each function rejects a path, by an error that names HDFS, and creates nothing."""
    expected = f"Spark looks for it in {hdfs}"
    for function in FUNCTIONS.values():
        with pytest.raises(StoreError) as caught:
            function(spark, path)
        assert expected in str(caught.value), caught.value
        assert "pass the URI of an object store, or file:///" in str(caught.value), caught.value
        with pytest.raises(StoreError, match=r"hdfs.*pass the path of a mount"):
            function(spark, hdfs + path)
    dvs.register(spark)
    with pytest.raises(PySparkException, match=f"StoreError.*{expected}"):
        spark.read.format("delta_variant").load(path)
    assert not Path(path).exists()


def use_local(spark: SparkSession, uri: str, count: int) -> None:
    """Raise unless a table at a file:// URI has the rows that Spark reads from HDFS."""
    assert dvs.check_cluster(spark, uri).problems == ()
    rows = spark.range(count).selectExpr("id", "concat('{\"n\":', id, '}') AS event")
    write_frame(uri, rows, variant_columns=["event"])
    on_spark(spark, uri).delete("event:n::bigint = 0")
    assert on_spark(spark, uri).optimize().version is not None
    expected = list(range(1, count))
    for found in (
        dvs.read_table(spark, uri),
        dvs.read_table(spark, uri, columns={"id": "event:n::bigint"}),
        dvs.sql(spark, f"select id from delta.`{uri}`"),
        spark.read.format("delta_variant").load(uri),
    ):
        assert sorted(row["id"] for row in found.collect()) == expected
    assert dv.read_table(uri).count() == count - 1


def stream(spark: SparkSession, source: str, uri: str) -> None:
    """Raise unless a stream from HDFS, with its checkpoint there, writes each row once."""
    for _ in range(2):
        rows = spark.readStream.schema("id long").parquet(source)
        query = rows.writeStream.foreachBatch(dvs.batch_writer(uri))
        finished(
            query.option("checkpointLocation", f"{source}-checkpoint").trigger(availableNow=True).start()
        )
    assert sorted(row["id"] for row in dvs.read_table(spark, uri).collect()) == list(range(5))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
