"""The core of `delta_variant.spark`, on every supported PySpark and on Spark Connect.

`make old-spark` runs this file on the oldest versions. `make test` runs it on a classic session and, with
SPARK_REMOTE, on one of Spark Connect. It uses neither JARs nor the JVM.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote
from spark.queries import TABLES, QueryGenerator, differences, write_tables
from spark.tables import data_files, finished, listed_files, on_spark, rows, write_frame

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import (
    CastError,
    ConstraintViolationError,
    InvalidJsonError,
    TableExistsError,
    UnsupportedFeatureError,
)
from delta_variant.spark import running
from delta_variant.spark.locations import hadoop_settings
from delta_variant.spark.running import parallelism
from delta_variant.spark.versions import INSTALLED

# PySpark 4.0 and 4.1 leave sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    *(["ignore::pytest.PytestUnraisableExceptionWarning"] if INSTALLED < (4, 2) else [])
)

EVENT = 'concat(\'{"n":\', id, \',"user":{"name":"u\', id % 7, \'"}}\') AS event'


def events(spark: SparkSession, count: int = 100, partitions: int = 3) -> DataFrame:
    return spark.range(0, count, 1, partitions).selectExpr("id", EVENT, "id % 3 AS part")


def test_the_session_is_of_the_kind_that_the_run_requests(spark: SparkSession):
    assert spark.version == pyspark.__version__
    assert type(spark).__module__.startswith("pyspark.sql.connect") == is_remote()
    assert parallelism(spark) == 2


def test_a_client_counts_the_tasks_of_a_cluster_once_a_minute(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    count_tasks, counts = running._count_tasks, []

    def count(session: SparkSession) -> int:
        counts.append(count_tasks(session))
        return counts[-1]

    monkeypatch.setattr(running, "_count_tasks", count)
    monkeypatch.setattr(running, "_COUNTED", WeakKeyDictionary())
    # A classic session knows the cluster.
    expected = [2] if is_remote() else []
    assert (parallelism(spark), parallelism(spark), counts) == (2, 2, expected)
    monkeypatch.setattr(running, "COUNT_SECONDS", 0.0)
    assert (parallelism(spark), counts) == (2, 2 * expected)


def test_the_settings_of_hadoop_are_those_of_the_session(spark: SparkSession):
    spark.conf.set("spark.hadoop.fs.s3a.access.key", "of the start")
    spark.conf.set("fs.s3a.secret.key", "secret")
    try:
        found = hadoop_settings(spark)
        assert (found["fs.s3a.access.key"], found["fs.s3a.secret.key"]) == ("of the start", "secret")
    finally:
        spark.conf.unset("spark.hadoop.fs.s3a.access.key")
        spark.conf.unset("fs.s3a.secret.key")


@pytest.mark.parametrize("one_shredding", [False, True])
def test_rows_are_written_and_read(spark: SparkSession, tmp_path: Path, one_shredding: bool):
    table = tmp_path / "t"
    arguments = {"variant_columns": ["EVENT"], "one_shredding": one_shredding}
    assert write_frame(table, events(spark), partition_by="part", **arguments).rows == 100
    with pytest.raises(TableExistsError):
        write_frame(table, events(spark), **arguments)
    write_frame(table, events(spark, 10), mode="append", **arguments)
    assert len(rows(table, n="event:n::int")) == 110
    assert data_files(table) == listed_files(table)
    for reader in ("auto", "kernel"):
        df = dvs.read_table(spark, table, where="event:n::int < 5", reader=reader)
        assert dict(df.dtypes)["event"] == "variant"
        found = df.selectExpr("id", "variant_get(event, '$.user.name', 'string') AS name").collect()
        assert sorted(map(tuple, found)) == sorted(2 * [(n, f"u{n}") for n in range(5)])
    columns = {"n": "event:n::bigint", "part": "part"}
    assert dvs.read_table(spark, table, columns=columns).groupBy().sum("n").collect()[0][0] == 4950 + 45


@pytest.mark.parametrize("one_shredding", [False, True])
def test_an_optimized_write_has_a_file_for_each_partition(
    spark: SparkSession, tmp_path: Path, one_shredding: bool
):
    table = tmp_path / "t"
    arguments = {"variant_columns": ["event"], "one_shredding": one_shredding, "optimize_write": True}
    df = events(spark, 3000, 7)
    assert len(write_frame(table, df, partition_by="part", **arguments).files) == 3
    small = dv.FileOptions(target_file_size=10_000)
    result = write_frame(table, df, mode="append", files=small, **arguments)
    assert (result.rows, len(result.files) >= 3) == (3000, True)
    expected = sorted(({"id": n, "n": n, "part": n % 3} for n in [*range(3000), *range(3000)]), key=str)
    assert rows(table, id="id", n="event:n::int", part="part") == expected
    assert data_files(table) == listed_files(table)
    empty = write_frame(tmp_path / "empty", events(spark, 0), **arguments)
    assert (empty.version, empty.rows, empty.files) == (0, 0, ())


def test_columns_of_every_type_pass_unchanged(spark: SparkSession, tmp_path: Path):
    df = spark.range(2).selectExpr(
        "id",
        "CASE WHEN id = 0 THEN parse_json('{\"a\":1}') END AS v",
        "array(parse_json('1'), NULL) AS a",
        "timestamp'2026-01-01 00:00:00' AS t",
        "timestamp_ntz'2026-01-01 00:00:00' AS ntz",
        "id AS `dotted.name`",
    )
    write_frame(tmp_path / "t", df, configuration={"delta.columnMapping.mode": "name"})
    found = dvs.read_table(spark, tmp_path / "t").orderBy("id").selectExpr("to_json(v)", "t", "ntz", "a[1]")
    expected = df.orderBy("id").selectExpr("to_json(v)", "t", "ntz", "a[1]")
    assert found.collect() == expected.collect()
    assert dvs.read_table(spark, tmp_path / "t").columns[-1] == "dotted.name"


def test_an_error_of_a_task_arrives_as_itself_and_nothing_is_left(spark: SparkSession, tmp_path: Path):
    df = events(spark).selectExpr("id", "if(id = 99, '{', event) AS event")
    with pytest.raises(InvalidJsonError) as caught:
        write_frame(tmp_path / "t", df, variant_columns=["event"])
    assert (caught.value.column, caught.value.row) == ("event", 33)
    assert data_files(tmp_path / "t") == set()
    write_frame(tmp_path / "t", events(spark), variant_columns=["event"])
    dv.add_constraint(tmp_path / "t", "small", "id < 100")
    with pytest.raises(ConstraintViolationError, match="small"):
        write_frame(tmp_path / "t", events(spark, 101), mode="append", variant_columns=["event"])


def test_an_action_of_a_dataframe_raises_the_error_of_its_task(spark: SparkSession, tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"event": pa.array(["1", '"x"'], pa.json_())}))
    df = dvs.read_table(spark, tmp_path / "t", columns={"n": "event::int"})
    with pytest.raises(CastError) as caught, dvs.restore_errors():
        df.count()
    assert (caught.value.column, caught.value.row, caught.value.path) == ("event", 1, "$")


def test_a_table_is_maintained(spark: SparkSession, tmp_path: Path):
    for _ in range(2):
        write_frame(tmp_path / "t", events(spark, 10), mode="append", variant_columns=["event"])
    assert on_spark(spark, tmp_path / "t").optimize(sort_by="event:n::bigint").version == 2
    assert len(rows(tmp_path / "t", n="event:n::int")) == 20
    assert on_spark(spark, tmp_path / "t").repair_statistics(dry_run=False).files == ()
    assert on_spark(spark, tmp_path / "t").audit(data=True).is_clean


def test_rows_are_deleted_updated_and_merged(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    write_frame(table, events(spark, 10), variant_columns=["event"])
    assert on_spark(spark, table).delete("event:n::int >= 8").rows_deleted == 2
    assert on_spark(spark, table).update({"event:n": "100"}, "id = 0").rows_updated == 1
    source = events(spark, 12).where("id >= 7").selectExpr("id", "'{\"n\":-1}' AS event", "part")
    if INSTALLED < (4, 1):
        with pytest.raises(UnsupportedFeatureError, match=r"upgrade to PySpark 4\.1"):
            on_spark(spark, table).merge(source, "target.id = source.id", variant_columns=["event"])
        return
    merge = on_spark(spark, table).merge(source, "target.id = source.id", variant_columns=["event"])
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.version, result.rows_updated, result.rows_inserted) == (3, 1, 4)
    found = [(row["id"], row["n"]) for row in rows(table, id="id", n="event:n::int")]
    assert sorted(found) == [(0, 100), *((n, n) for n in range(1, 7)), *((n, -1) for n in range(7, 12))]
    assert listed_files(table) <= data_files(table)


def test_changes_are_read_and_old_files_deleted(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_frame(table, events(spark, 10), variant_columns=["event"], configuration=feed)
    on_spark(spark, table).delete("event:n::int >= 8")
    columns = {"n": "event:n::int", "change": "_change_type", "version": "_commit_version"}
    changes = dvs.read_changes(spark, table, start=1, columns=columns)
    assert sorted(map(tuple, changes.collect())) == [(8, "delete", 1), (9, "delete", 1)]
    assert dict(dvs.read_changes(spark, table).dtypes)["event"] == "variant"
    dvs.register(spark)
    reader = (
        spark.read.format("delta_variant").option("readChangeFeed", "true").option("startingVersion", "1")
    )
    assert reader.load(str(table)).select("id").count() == 2
    assert on_spark(spark, table).restore(0).version == 2
    unused = on_spark(spark, table).vacuum(0, dry_run=False, enforce_retention_duration=False).files
    assert len(unused) == 2
    assert data_files(table) == listed_files(table)
    assert len(rows(table, n="event:n::int")) == 10


def test_the_format_writes_and_reads(spark: SparkSession, tmp_path: Path):
    dvs.register(spark)
    path = str(tmp_path / "t")
    writer = events(spark).write.format("delta_variant").mode("append")
    writer.option("variant_columns", "event").save(path)
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")
    reader = spark.read.format("delta_variant").option("where", "event:n::int = 7")
    assert [row.id for row in reader.load(path).select("id").collect()] == [7]
    df = events(spark).selectExpr("'{' AS event")
    writer = df.write.format("delta_variant").mode("append").option("variant_columns", "event")
    with pytest.raises(PySparkException, match="InvalidJsonError"):
        writer.save(str(tmp_path / "u"))


def accepts_parameters(spark: SparkSession) -> bool:
    """Return whether queries can have parameters, which the parser of Delta's JARs does not pass on."""
    try:
        spark.sql("select :one", {"one": 1})
    except PySparkException:
        return False
    return True


def test_a_query_reads_a_view(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "delta_variant.spark.queries.execution")
    write_frame(tmp_path / "t", events(spark), variant_columns=["event"])
    dvs.create_view(spark, "core_events", tmp_path / "t")
    name, number = "variant_get(e.event, '$.user.name', 'string')", "variant_get(e.event, '$.n', 'int')"
    query = f"select {name} as name, sum({number}) as n from core_events e where {number} >= 97 group by 1"
    expected = [("u0", 98), ("u1", 99), ("u6", 97)]
    assert sorted(map(tuple, dvs.sql(spark, query).collect())) == expected
    assert "runs as 'select coalesce(extracted" in caplog.text
    if accepts_parameters(spark):
        found = dvs.sql(spark, query.replace("97", ":least"), {"least": 97}).collect()
        assert sorted(map(tuple, found)) == expected
    by_path = (
        "select event:user.name::string as name, event:n::int as n from core_events where event:n::int = 7"
    )
    if INSTALLED < (4, 1):
        with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
            dvs.sql(spark, by_path)
    else:
        assert [tuple(row) for row in dvs.sql(spark, by_path).collect()] == [("u0", 7)]
    assert [row.id for row in dvs.sql(spark, "select * from core_events where id = 3").collect()] == [3]
    on_spark(spark, tmp_path / "t").delete("id > 0")
    assert dvs.sql(spark, "select count(*) as n from core_events").collect()[0].n == 1
    dvs.drop_view(spark, "core_events")
    with pytest.raises(PySparkException, match="core_events"):
        dvs.sql(spark, "select count(*) from core_events").collect()


@pytest.mark.skipif(INSTALLED < (4, 1), reason="Spark 4.0 does not know paths such as value:a")
def test_random_queries_have_the_results_of_spark(spark: SparkSession, tmp_path: Path):
    source = random.Random(6)
    write_tables(spark, tmp_path, source, dirty=False)
    try:
        queries = iter(QueryGenerator(source, strict=True).query, None)
        assert list(differences(spark, queries, 3)) == []
    finally:
        for name in TABLES:
            dvs.drop_view(spark, name)
            spark.catalog.dropTempView(name)


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Iterator[DataFrame]:
    """Return a stream of two batches with a line each."""
    (tmp_path / "lines").mkdir()
    for number in range(2):
        (tmp_path / "lines" / f"{number}.txt").write_text(f'{{"n":{number}}}\n', "utf-8")
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))


def test_a_stream_is_written_batch_by_batch(lines: DataFrame, tmp_path: Path):
    writer = dvs.batch_writer(tmp_path / "t", app_id="app", variant_columns=["value"])
    query = lines.writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path / "c"))
    finished(query.trigger(availableNow=True).start())
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 0}, {"n": 1}]
    assert dv.load_snapshot(tmp_path / "t").txns["app"].version == 1
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


def test_a_batch_without_a_query_needs_an_id(spark: SparkSession, tmp_path: Path):
    with pytest.raises(UnsupportedFeatureError, match="app_id"):
        dvs.batch_writer(tmp_path / "t", variant_columns=["event"])(events(spark), 0)
    assert not (tmp_path / "t").exists()


def test_the_format_streams_where_spark_has_the_interfaces(
    spark: SparkSession, lines: DataFrame, tmp_path: Path
):
    dvs.register(spark)
    sink = lines.writeStream.format("delta_variant").option("variant_columns", "value")
    sink = sink.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    if INSTALLED < (4, 1):
        with pytest.raises(PySparkException, match=r"upgrade to PySpark 4\.1"):
            finished(sink.start(str(tmp_path / "t")))
        return
    finished(sink.start(str(tmp_path / "t")))
    assert rows(tmp_path / "t", n="value:n::int") == [{"n": 0}, {"n": 1}]
    source = spark.readStream.format("delta_variant")
    if INSTALLED < (4, 2):
        with pytest.raises(PySparkException, match=r"upgrade to PySpark 4\.2"):
            finished(source.load(str(tmp_path / "t")).writeStream.format("noop").start())
        return
    query = source.load(str(tmp_path / "t")).selectExpr("to_json(value) AS value").writeStream
    query = query.option("checkpointLocation", str(tmp_path / "c2")).trigger(availableNow=True)
    finished(query.format("text").start(str(tmp_path / "out")))
    texts = [path.read_text("utf-8") for path in (tmp_path / "out").glob("*.txt")]
    assert sorted("".join(texts).split()) == ['{"n":0}', '{"n":1}']


def test_a_table_of_arrow_rows_is_read(spark: SparkSession, tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"id": [1, 2]}))
    assert dvs.read_table(spark, tmp_path / "t", where="id > 1").toPandas()["id"].tolist() == [2]
