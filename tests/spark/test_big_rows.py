"""Frames without rows, large values, skewed keys and batches of any size: no row twice, none lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from spark.tables import data_files, listed_files, on_spark, rows, write_frame
from support.tables import read_actions

import delta_variant as dv
from delta_variant import spark as dvs

MIB = 1 << 20
LARGE = 10 * MIB
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
ON = "target.id = source.id"


@pytest.fixture
def source(spark_with_delta: SparkSession) -> SparkSession:
    dvs.register(spark_with_delta)
    return spark_with_delta


# Without rows.

EMPTY = {
    "without partitions": lambda spark: spark.range(0),
    "with empty partitions": lambda spark: spark.range(0, 9, 1, 3).where("id > 9"),
}


def write_empty(writer: str, df: DataFrame, table: Path, mode: str) -> None:
    if writer == "delta":
        df.write.format("delta").mode(mode).save(str(table))
    elif writer == "format":
        # The format has the modes append and overwrite.
        df.write.format("delta_variant").mode(mode.replace("error", "append")).save(str(table))
    elif writer == "batch_writer":
        dvs.batch_writer(table, app_id="a", mode=mode)(df, 0)
    else:
        write_frame(table, df, mode=mode, optimize_write=writer == "optimized")


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize("partitions", EMPTY)
def test_a_frame_without_rows_makes_the_commits_that_delta_makes_and_no_file(
    source: SparkSession, tmp_path: Path, partitions: str, mode: str
):
    versions = {}
    for writer in ("delta", "plain", "optimized", "format", "batch_writer"):
        table = tmp_path / writer
        if mode != "error":
            dv.write_table(table, [{"id": 1}])
        before = data_files(table)
        write_empty(writer, EMPTY[partitions](source), table, mode)
        versions[writer] = dv.load_snapshot(table).version
        assert [row["id"] for row in rows(table, id="id")] == ([1] if mode == "append" else [])
        if writer != "delta":
            # Delta leaves a file without rows that no version has.
            assert data_files(table) == before
    assert versions == dict.fromkeys(versions, 1 if mode == "overwrite" else 0)


@pytest.mark.parametrize("partitions", EMPTY)
def test_a_merge_of_no_rows_changes_what_no_row_matches(
    source: SparkSession, tmp_path: Path, partitions: str
):
    df = EMPTY[partitions](source)
    df.createOrReplaceTempView("no_rows")
    for table in (tmp_path / "ours", tmp_path / "delta"):
        dv.write_table(table, [{"id": 1}, {"id": 2}])
    start = on_spark(source, tmp_path / "ours").merge(df, ON)
    both = start.when_matched_delete().when_not_matched_insert_all()
    assert both.execute().version is None
    assert start.when_not_matched_by_source_delete("target.id = 1").execute().version == 1
    merge = f"MERGE INTO delta.`{tmp_path / 'delta'}` AS target USING no_rows AS source ON {ON} "
    source.sql(merge + "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")
    source.sql(merge + "WHEN NOT MATCHED BY SOURCE AND target.id = 1 THEN DELETE")
    operations = [entry.operation for entry in dv.history(tmp_path / "ours")]
    assert operations == [entry.operation for entry in dv.history(tmp_path / "delta")] == ["MERGE", "WRITE"]
    assert rows(tmp_path / "ours", id="id") == rows(tmp_path / "delta", id="id") == [{"id": 2}]


def test_changes_of_a_table_without_rows_commit_nothing(spark: SparkSession, tmp_path: Path):
    write_frame(tmp_path / "t", spark.range(0))
    assert on_spark(spark, tmp_path / "t").delete("id > 0").version is None
    assert on_spark(spark, tmp_path / "t").update({"id": "2"}).version is None
    assert on_spark(spark, tmp_path / "t").optimize().version is None
    merge = on_spark(spark, tmp_path / "t").merge(spark.range(0, 3, 1, 2), ON).when_not_matched_insert_all()
    assert merge.execute().rows_inserted == 3
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")


# Large values.


def documents(spark: SparkSession, first: int, end: int, partitions: int = 2) -> DataFrame:
    """Return rows whose documents have 10 MiB of text each."""
    text = f"concat('{{\"id\":', id, ',\"text\":\"', repeat(chr(97 + int(id % 26)), {LARGE}), '\"}}')"
    return spark.range(first, end, 1, partitions).selectExpr("id", "id % 2 AS part", f"{text} AS event")


@pytest.mark.usefixtures("compiled_casts")
@pytest.mark.parametrize("optimize_write", [False, True])
def test_values_of_ten_megabytes_are_written_changed_and_read(
    spark: SparkSession, tmp_path: Path, optimize_write: bool
):
    table = tmp_path / "t"
    options: dict[str, Any] = {"variant_columns": ["event"], "optimize_write": optimize_write}
    assert write_frame(table, documents(spark, 0, 4), partition_by="part", **options).rows == 4
    merge = on_spark(spark, table).merge(documents(spark, 2, 6), ON, variant_columns=["event"])
    merge = merge.when_matched_update({"event:text": "source.event:text", "event:seen": "false"})
    result = merge.when_not_matched_insert_all().execute()
    assert (result.rows_updated, result.rows_inserted) == (2, 2)
    assert on_spark(spark, table).update({"event:seen": "true"}, "id = 0").rows_updated == 1
    assert on_spark(spark, table).delete("event:id::int = 1").rows_deleted == 1
    assert on_spark(spark, table).optimize(sort_by="id").version == 4

    expected = [(n, chr(97 + n), LARGE, {0: True, 2: False, 3: False}.get(n)) for n in (0, 2, 3, 4, 5)]
    text = "event:text::string"
    read = dvs.read_table(spark, table, columns={"id": "id", "text": text, "seen": "event:seen::boolean"})
    found = read.selectExpr("id", "left(text, 1)", "length(text)", "seen").orderBy("id").collect()
    assert [tuple(row) for row in found] == expected
    query = f"SELECT id, left({text}, 1), length({text}), event:seen::boolean FROM delta.`{table}`"
    assert sorted(tuple(row) for row in dvs.sql(spark, query).collect()) == expected
    whole = dvs.read_table(spark, table).selectExpr("id", "length(variant_get(event, '$.text', 'string'))")
    assert sorted(tuple(row) for row in whole.collect()) == [(n, length) for n, _, length, _ in expected]


def test_one_large_row_of_the_source_updates_many_rows(spark: SparkSession, tmp_path: Path):
    """A copy of the source row for each row of the table would have 20 GB."""
    dv.write_table(tmp_path / "t", pa.table({"id": range(2000), "user": [2, 3] * 1000, "n": [0] * 2000}))
    source = documents(spark, 2, 4).withColumnRenamed("id", "user")
    merge = on_spark(spark, tmp_path / "t").merge(
        source, "target.user = source.user", variant_columns=["event"]
    )
    merge = merge.when_matched_update({"n": "source.event:id::int + target.id"}, where="source.user = 3")
    result = merge.when_matched_update({"n": "source.event:id::int"}).execute()
    assert result.rows_updated == 2000
    expected = [{"id": n, "n": 3 + n if n % 2 else 2} for n in range(2000)]
    assert rows(tmp_path / "t", id="id", n="n") == sorted(expected, key=str)


def test_one_large_value_of_the_source_is_assigned_to_many_rows(spark: SparkSession, tmp_path: Path):
    """The values of one batch of the table would have 2.4 GB, more than a column can have."""
    table, size = tmp_path / "t", 4_000_000
    rows_of_table = {
        "id": range(700),
        "user": [1] * 600 + [2] * 100,
        "event": pa.array(["{}"] * 700, pa.json_()),
    }
    dv.write_table(table, pa.table(rows_of_table))
    source = spark.range(1, 2).selectExpr(
        "id AS user", f"concat('{{\"text\":\"', repeat('a', {size}), '\"}}') AS doc"
    )
    merge = on_spark(spark, table).merge(source, "target.user = source.user", variant_columns=["doc"])
    merge = merge.when_matched_update({"event": "source.doc"}, where="source.doc:text::string <> 'b'")
    assert merge.execute().rows_updated == 600
    expected = [{"id": n, "length": size if n < 600 else None} for n in range(700)]
    assert rows(table, id="id", length="length(event:text::string)") == sorted(expected, key=str)


# Batches and skew.


def test_the_size_of_batches_does_not_change_the_table(spark: SparkSession, tmp_path: Path):
    event = 'concat(\'{"n":\', id, \',"user":{"name":"u\', id % 7, \'"}}\') AS event'
    df = spark.range(0, 5000, 1, 2).selectExpr("id", "id % 3 AS part", event)
    source = spark.range(4500, 5500, 1, 2).selectExpr("id", "id % 3 AS part", event)
    files: dict[str, list[tuple[Any, ...]]] = {}
    before = spark.conf.get(BATCH)
    try:
        for size in ("1", "7", "100000"):
            spark.conf.set(BATCH, size)
            table = tmp_path / size
            write_frame(table, df, variant_columns=["event"], partition_by="part")
            on_spark(spark, table).update({"event:n": "event:n::int + 1"}, "id % 500 = 0")
            merge = on_spark(spark, table).merge(source, ON, variant_columns=["event"])
            merge.when_matched_delete().when_not_matched_insert_all().execute()
            files[size] = [
                (add["partitionValues"], add["stats"], add["size"]) for add in read_actions(table, "add")
            ]
    finally:
        spark.conf.set(BATCH, before)
    columns = {"id": "id", "part": "part", "text": "to_json(event)"}
    expected = rows(tmp_path / "1", **columns)
    assert len(expected) == 5000
    assert rows(tmp_path / "7", **columns) == rows(tmp_path / "100000", **columns) == expected
    assert sorted(files["1"], key=str) == sorted(files["7"], key=str) == sorted(files["100000"], key=str)


@pytest.mark.parametrize("optimize_write", [False, True])
def test_most_rows_of_one_partition_and_one_key(spark: SparkSession, tmp_path: Path, optimize_write: bool):
    table, count = tmp_path / "t", 40_000
    event = "concat('{\"n\":', id, ',\"text\":\"', sha2(string(id), 256), '\"}') AS event"
    # All but 40 rows are of the partition 0 and the user 0.
    df = spark.range(0, count, 1, 4).selectExpr("id", "IF(id % 1000 = 1, id % 7, 0) AS part", event)
    files = dv.FileOptions(target_file_size=500_000)
    options: dict[str, Any] = {"variant_columns": ["event"], "optimize_write": optimize_write}
    result = write_frame(table, df, partition_by="part", files=files, **options)
    if optimize_write:
        large = [file.bytes for file in result.files if file.path.startswith("part=0/")]
        assert len(large) > 2
        assert all(size < 700_000 for size in large)
    source = spark.range(0, 3).withColumnRenamed("id", "part")
    merge = on_spark(spark, table).merge(source, "target.part = source.part")
    counts = merge.when_matched_update({"event:n": "target.id + source.part + 1"}).execute()
    matching = [n for n in range(count) if n % 1000 != 1 or n % 7 < 3]
    assert counts.rows_updated == len(matching)
    changed = set(matching)
    expected = [
        {"id": n, "n": n + (n % 7 if n % 1000 == 1 else 0) + 1 if n in changed else n} for n in range(count)
    ]
    assert rows(table, id="id", n="event:n::int") == sorted(expected, key=str)


# Tasks that fail.


@pytest.mark.parametrize("writer", ["optimized", "format", "batch_writer"])
def test_a_task_that_fails_at_its_first_attempt_writes_each_row_once(
    source: SparkSession, tmp_path: Path, writer: str
):
    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for number, batch in enumerate(batches):
            if number == 1 and context is not None and context.attemptNumber() == 0:
                raise OSError("the disk failed")
            yield batch

    df = source.range(0, 60_000, 1, 2).mapInArrow(fail_once, "id long")
    # An attempt has written files when it fails.
    files = dv.FileOptions(target_file_size=10_000)
    if writer == "format":
        writing = df.write.format("delta_variant").option("target_file_size", 10_000)
        writing.mode("append").save(str(tmp_path / "t"))
    elif writer == "batch_writer":
        dvs.batch_writer(tmp_path / "t", app_id="a", files=files)(df, 0)
    else:
        write_frame(tmp_path / "t", df, optimize_write=True, files=files)
    assert data_files(tmp_path / "t") == listed_files(tmp_path / "t")
    found = dv.read_table(tmp_path / "t", columns=["id"]).to_table()["id"]
    assert sorted(found.to_pylist()) == list(range(60_000))
    assert dv.audit_table(tmp_path / "t", data=True).is_clean
