"""Auto-compaction after writes: what it compacts, and that neither writes nor streams notice it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark.tables import data_files, finished, on_spark, rows, write_frame
from support.tables import read_actions

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.log.file_tables import FILES_SCHEMA
from delta_variant.operations.optimize import auto_compaction, optimize
from delta_variant.operations.optimize.auto_compaction import select_files
from delta_variant.protocol.actions import Format, Metadata, Protocol
from delta_variant.protocol.table_configuration import TableConfiguration
from delta_variant.spark.executor import SparkExecutor

PROPERTY = "delta.autoOptimize.autoCompact"


@pytest.fixture
def at_four_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a partition with four small files be compacted."""
    monkeypatch.setattr(auto_compaction, "MIN_FILES", 4)


def events(spark: SparkSession, first: int, count: int, partitions: int = 1) -> DataFrame:
    columns = ("id", "concat('{\"n\":', id, '}') AS event", "id % 2 AS part")
    return spark.range(first, first + count, 1, partitions).selectExpr(*columns)


def write(spark: SparkSession, table: Path, first: int, count: int = 1, **options: Any) -> dv.WriteResult:
    arguments = {"mode": "append", "variant_columns": ["event"], "auto_compact": True, **options}
    return write_frame(table, events(spark, first, count), **arguments)


def files_of(table: Path) -> dict[str | None, int]:
    """Return the number of files of each partition of the latest version."""
    found: dict[str | None, int] = {}
    for values in dv.load_snapshot(table).files["partition_values"].to_pylist():
        part = dict(values).get("part")
        found[part] = found.get(part, 0) + 1
    return found


def small_files(*sizes: int, part: str = "0") -> list[dict[str, Any]]:
    return [
        {"path": f"{part}-{number}", "size": size, "partition_values": [("part", part)]}
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([1, 1, 1], []),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        # A file of three quarters of the target is large.
        ([75, 1, 1, 1], []),
        ([74, 25, 25, 25], [74, 25, 25, 25]),
        # One that is larger than the rest together stays, and so does the next one.
        ([30, 9, 9, 9, 9], [30, 9, 9, 9, 9]),
        ([40, 9, 9, 9, 9], [9, 9, 9, 9]),
        ([40, 20, 3, 3, 3, 3], [3, 3, 3, 3]),
        ([40, 20, 3, 3, 3], []),
    ],
)
def test_enough_small_files_of_a_partition_are_selected(
    at_four_files: None, sizes: list[int], chosen: list[int]
):
    found = [*small_files(*sizes), *small_files(1, 1, 1, 1, part="1")]
    table = pa.Table.from_pylist(found, FILES_SCHEMA)
    selected = select_files(table, {frozenset({("part", "0")})}, 100)
    assert sorted(selected["size"].to_pylist(), reverse=True) == chosen
    assert {dict(values)["part"] for values in selected["partition_values"].to_pylist()} <= {"0"}


def test_files_with_many_deleted_rows_are_selected_with_small_ones(at_four_files: None):
    def deleted(count: int, part: str) -> list[dict[str, Any]]:
        vector, stats = {"cardinality": count}, '{"numRecords":100}'
        return [{**file, "deletion_vector": vector, "stats": stats} for file in small_files(75, part=part)]

    found = [*small_files(1, 1, 1, 1), *deleted(6, "0"), *deleted(5, "0"), *deleted(6, "1")]
    table = pa.Table.from_pylist(found, FILES_SCHEMA)
    selected = select_files(table, {frozenset({("part", part)}) for part in "01"}, 100)
    assert [each and each["cardinality"] for each in selected["deletion_vector"].to_pylist()] == [
        None
    ] * 4 + [6]


def test_files_are_selected_by_all_partition_columns_and_null_is_a_value(at_four_files: None):
    values = [[("a", "1"), ("b", None)], [("a", "1"), ("b", "2")], [("a", None), ("b", None)]]
    found = [
        {"path": f"{part}-{number}", "size": 1, "partition_values": each}
        for number in range(4)
        for part, each in enumerate(values)
    ]
    files = pa.Table.from_pylist(found, FILES_SCHEMA)
    for part, each in enumerate(values):
        selected = select_files(files, {frozenset(each)}, 100)
        assert selected["path"].to_pylist() == [f"{part}-{number}" for number in range(4)]
    assert select_files(files, {frozenset([("a", "2"), ("b", "2")])}, 100).num_rows == 0
    whole = files.set_column(
        files.schema.get_field_index("partition_values"),
        files.schema.field("partition_values"),
        pa.array([[], None] * 6, files.schema.field("partition_values").type),
    )
    assert select_files(whole, {frozenset()}, 100).num_rows == 12


def test_the_partitions_of_a_write_are_compacted_in_a_commit_of_its_own(
    spark: SparkSession, tmp_path: Path, at_four_files: None
):
    table = tmp_path / "t"
    for first in (1, 3, 5):
        write(spark, table, first, partition_by="part")
    for first in (0, 2, 4):
        write(spark, table, first)
    assert files_of(table) == {"0": 3, "1": 3}
    result = write(spark, table, 6)
    assert (result.version, dv.load_snapshot(table).version) == (6, 7)
    assert files_of(table) == {"0": 1, "1": 3}
    newest = dv.history(table)[0]
    assert (newest.operation, newest.parameters["auto"]) == ("OPTIMIZE", True)
    assert newest.metrics["numRemovedFiles"] == 4
    actions = [
        action
        for kind in ("add", "remove")
        for action in read_actions(table, kind)[-4 if kind == "remove" else -1 :]
    ]
    assert {action["dataChange"] for action in actions} == {False}
    assert rows(table, id="id", n="event:n::int") == [{"id": n, "n": n} for n in range(7)]
    # Nothing is left but the files that were replaced.
    removed = {action["path"] for action in read_actions(table, "remove")}
    assert data_files(table) == set(dv.load_snapshot(table).files["path"].to_pylist()) | removed


def test_a_new_table_is_compacted(spark: SparkSession, tmp_path: Path, at_four_files: None):
    write_frame(tmp_path / "t", events(spark, 0, 8, 4), variant_columns=["event"], auto_compact=True)
    assert files_of(tmp_path / "t") == {None: 1}
    assert dv.load_snapshot(tmp_path / "t").version == 1


@pytest.mark.parametrize(
    ("text", "argument", "is_compacted"),
    [
        (None, None, False),
        (None, True, True),
        ("false", None, False),
        ("false", True, True),
        ("true", None, True),
        ("auto", None, True),
        ("legacy", None, True),
        ("true", False, False),
    ],
)
def test_the_argument_comes_before_the_property(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    argument: bool | None,
    is_compacted: bool,
):
    monkeypatch.setattr(auto_compaction, "MIN_FILES", 2)
    configuration = {} if text is None else {PROPERTY: text}
    dv.write_table(tmp_path / "t", [{"id": 0}, {"id": 1}], configuration=configuration)
    write_frame(tmp_path / "t", spark.range(0, 2, 1, 1), mode="append", auto_compact=argument)
    assert files_of(tmp_path / "t") == {None: 1 if is_compacted else 2}


def test_the_deprecated_property_compacts_too():
    protocol = Protocol(min_reader_version=1, min_writer_version=2)

    def compacts(properties: dict[str, str], auto_compact: bool | None) -> bool:
        metadata = Metadata(
            id="1",
            format=Format(),
            schema_string='{"type":"struct","fields":[]}',
            partition_columns=(),
            configuration=properties,
        )
        return auto_compaction.compacts(TableConfiguration.of("t", protocol, metadata), auto_compact)

    # In Delta on Spark, false for the new name does not disable the old one.
    assert compacts({"delta.autoOptimize": "true", PROPERTY: "false"}, None)
    assert not compacts({"delta.autoOptimize": "true"}, False)
    assert not compacts({"delta.autoOptimize": "false"}, None)


def test_fifty_files_are_compacted_by_default(spark: SparkSession, tmp_path: Path):
    for number in range(48):
        dv.write_table(tmp_path / "t", [{"id": number}], mode="append")
    for number, files in ((48, 49), (49, 1)):
        df = spark.range(number, number + 1, 1, 1)
        write_frame(tmp_path / "t", df, mode="append", auto_compact=True)
        assert files_of(tmp_path / "t") == {None: files}


def change(name: str, spark: SparkSession, table: Path, auto_compact: bool | None = None) -> dv.RewriteResult:
    """Change rows of the partition 0, and with `merge` insert a row of it."""
    if name == "merge":
        source = spark.createDataFrame([(0, 0, 7), (100, 0, 8)], "id long, part int, n int")
        merge = on_spark(spark, table, auto_compact=auto_compact).merge(source, "target.id = source.id")
        return merge.when_matched_update({"n": "source.n"}).when_not_matched_insert_all().execute()
    if name == "update":
        return on_spark(spark, table, auto_compact=auto_compact).update({"n": "7"}, "id = 0")
    # The one row of its file, and one of several.
    where = "id = 2" if name == "delete a file" else "id = 0"
    return on_spark(spark, table, auto_compact=auto_compact).delete(where)


def change_by_delta(name: str, spark: SparkSession, table: Path) -> None:
    values = "SELECT * FROM VALUES (0, 0, 7), (100, 0, 8) AS t(id, part, n)"
    texts = {
        "merge": "MERGE INTO {0} AS target USING ({1}) AS source ON target.id = source.id "
        "WHEN MATCHED THEN UPDATE SET n = source.n WHEN NOT MATCHED THEN INSERT *",
        "update": "UPDATE {0} SET n = 7 WHERE id = 0",
        "delete": "DELETE FROM {0} WHERE id = 0",
        "delete a file": "DELETE FROM {0} WHERE id = 2",
    }
    spark.sql(texts[name].format(f"delta.`{table}`", values))


def four_files(*parts: int) -> Iterator[pa.Table]:
    """Yield the rows of four appends with a file for each partition."""
    types = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("n", pa.int32())])
    for ids in ([0, 1], [2], [4], [6]):
        data = [{"id": n + part, "part": part, "n": 0} for part in parts for n in ids]
        yield pa.Table.from_pylist(data, types)


def write_four_files(table: Path, configuration: dict[str, str]) -> None:
    for number, data in enumerate(four_files(0, 10)):
        dv.write_table(table, data, mode="append", **({} if number else {"partition_by": "part"}))
    # Set last, because writes compact the table, too.
    dv.set_properties(table, {"purpose": "test", **configuration})


@pytest.mark.parametrize("name", ["merge", "update", "delete", "delete a file"])
def test_partitions_that_a_change_of_rows_adds_files_to_are_compacted_as_by_delta(
    spark_with_delta: SparkSession, tmp_path: Path, at_four_files: None, name: str
):
    spark = spark_with_delta
    write_four_files(tmp_path / "ours", {PROPERTY: "true"})
    # Delta counts only the files that its own session wrote.
    for data in four_files(0, 10):
        writer = spark.createDataFrame(data).coalesce(1).write.format("delta").partitionBy("part")
        writer.option(PROPERTY, "true").mode("append").save(str(tmp_path / "delta"))
    spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "4")
    try:
        change_by_delta(name, spark, tmp_path / "delta")
    finally:
        spark.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")
    result = change(name, spark, tmp_path / "ours")
    ours, delta = ([each.operation for each in dv.history(tmp_path / name)] for name in ("ours", "delta"))
    assert ours[:-5] == delta[:-4]
    assert (len(ours), result.version) == (6 if name == "delete a file" else 7, 5)
    assert files_of(tmp_path / "ours") == files_of(tmp_path / "delta")
    columns = {"id": "id", "part": "part", "n": "n"}
    assert rows(tmp_path / "ours", **columns) == rows(tmp_path / "delta", **columns)
    assert dv.audit_table(tmp_path / "ours", data=True).is_clean


@pytest.mark.parametrize("name", ["merge", "update", "delete"])
@pytest.mark.parametrize(
    ("text", "argument", "files"), [(None, None, 4), (None, True, 1), ("true", False, 4), ("false", True, 1)]
)
def test_the_argument_of_a_change_of_rows_comes_before_the_property(
    spark: SparkSession,
    tmp_path: Path,
    at_four_files: None,
    name: str,
    text: str | None,
    argument: bool | None,
    files: int,
):
    write_four_files(tmp_path / "t", {} if text is None else {PROPERTY: text})
    result = change(name, spark, tmp_path / "t", auto_compact=argument)
    # A merge adds a file with the new row.
    added = name == "merge" and files == 4
    assert (result.version, files_of(tmp_path / "t")) == (5, {"0": files + added, "10": 4})


def conflict(*_: object, **__: object) -> None:
    raise dv.errors.CommitConflictError("a concurrent commit removed a file")


def fail_in_tasks(*_: object, **__: object) -> None:
    raise RuntimeError("the executors are lost")


@pytest.mark.parametrize(
    ("owner", "function", "failure"),
    [(optimize, "_commit_groups", conflict), (SparkExecutor, "run", fail_in_tasks)],
)
def test_a_compaction_that_fails_fails_no_write(
    spark: SparkSession,
    tmp_path: Path,
    at_four_files: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    owner: Any,
    function: str,
    failure: Any,
):
    for first in range(3):
        write(spark, tmp_path / "t", first)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(owner, function, failure)
        assert write(spark, tmp_path / "t", 3).version == 3
    assert "auto-compaction failed, the next write tries again" in caplog.text
    assert (dv.load_snapshot(tmp_path / "t").version, files_of(tmp_path / "t")) == (3, {None: 4})
    write(spark, tmp_path / "t", 4)
    assert (dv.load_snapshot(tmp_path / "t").version, files_of(tmp_path / "t")) == (5, {None: 1})
    assert [row["id"] for row in rows(tmp_path / "t", id="id")] == list(range(5))


def test_a_concurrent_delete_wins_over_a_compaction(
    spark: SparkSession, tmp_path: Path, at_four_files: None, monkeypatch: pytest.MonkeyPatch
):
    for first in range(3):
        write(spark, tmp_path / "t", first)
    commit = optimize._commit_groups

    def commit_after_delete(*arguments: Any) -> Any:
        dv.delete(tmp_path / "t", "id = 1")
        return commit(*arguments)

    monkeypatch.setattr(optimize, "_commit_groups", commit_after_delete)
    write(spark, tmp_path / "t", 3)
    assert [entry.operation for entry in dv.history(tmp_path / "t")][:2] == ["DELETE", "WRITE"]
    assert [row["id"] for row in rows(tmp_path / "t", id="id")] == [0, 2, 3]


@pytest.mark.nightly
@pytest.mark.classic("functions of `foreachBatch` in the process of the client")
def test_streams_read_each_row_of_a_compacted_table_once(
    spark_with_delta: SparkSession, tmp_path: Path, at_four_files: None
):
    """A stream writes and compacts, and streams of Delta's JARs and of the format read its table."""
    spark, table = spark_with_delta, tmp_path / "t"
    dvs.register(spark)
    writer = dvs.batch_writer(table, variant_columns=["value"], auto_compact=True)

    def run(number: int) -> None:
        (tmp_path / "lines").mkdir(exist_ok=True)
        (tmp_path / "lines" / f"{number}.txt").write_text(f'{{"n":{number}}}\n', "utf-8")
        lines = spark.readStream.text(str(tmp_path / "lines"))
        query = lines.writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path / "c"))
        finished(query.trigger(availableNow=True).start())

    def read(name: str) -> list[int]:
        stream = spark.readStream.format(name).load(str(table)).selectExpr("value:n::int AS n")
        query = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / f"{name}-c"))
        finished(query.trigger(availableNow=True).start(str(tmp_path / name)))
        return sorted(row.n for row in spark.read.parquet(str(tmp_path / name)).collect())

    seen = []
    for number in range(6):
        run(number)
        if number in (2, 3, 5):
            # The streams are before, at and after a compaction.
            assert read("delta") == read("delta_variant") == list(range(number + 1))
            seen.append(dv.load_snapshot(table).version)
    assert [entry.operation for entry in dv.history(table)].count("OPTIMIZE") == 1
    assert seen == [2, 4, 6]
    assert spark.read.format("delta").load(str(table)).count() == 6
    assert files_of(table) == {None: 3}
    assert dv.audit_table(table, data=True).is_clean
