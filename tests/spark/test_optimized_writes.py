"""`write_table(…, optimize_write=True)`: the sizes of files, the order of rows, and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark.tables import data_files, finished, listed_files, rows, write_frame
from support.tables import read_actions
from write.test_row_rules import planted

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import (
    ConstraintViolationError,
    InvalidJsonError,
    PredicateViolationError,
)
from delta_variant.spark.file_tasks import Chunk
from delta_variant.spark.writing import Layout, plan_layout

EVENT = 'concat(\'{"n":\', id, \',"user":{"name":"u\', id % 7, \'"}}\') AS event'
# Text that does not become smaller, so that few rows make large files.
RANDOM_EVENT = "concat('{\"n\":', id, ',\"text\":\"', sha2(string(id), 512), '\"}') AS event"
TARGET = 200_000


def events(spark: SparkSession, count: int = 100, partitions: int = 3, event: str = EVENT) -> DataFrame:
    return spark.range(0, count, 1, partitions).selectExpr("id", event, "id % 4 AS part")


@pytest.fixture
def adaptive(spark: SparkSession) -> Iterator[None]:
    """Let Spark adapt the partitions of queries, as it does by default."""
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    yield
    spark.conf.set("spark.sql.adaptive.enabled", "false")


def test_files_have_the_size_that_is_next_to_the_target():
    sizes = {"a": [10] * 8, "b": [1], "c": [30] * 10}
    chunks = [Chunk(0, number, name, 1, size) for name in sizes for number, size in enumerate(sizes[name])]
    # A file has 20 bytes of chunks. The chunks of c are larger, and are not split.
    layout = plan_layout(chunks, 0.5, 10, tasks=3)
    assert layout.files == [0, 0, 1, 1, 2, 2, 3, 3, 4, *range(5, 15)]
    assert sorted(layout.tasks) == list(range(15))
    # Twice the target: four of a with 20 bytes, and one of b in a task with the smallest of the others.
    layout = plan_layout(chunks[:9], 1.0, 20, tasks=1)
    assert layout.files == [0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert sorted(layout.tasks) == [0, 0, 1, 2, 3]
    assert plan_layout([], 1.0, 10, tasks=3) == Layout([], [])


@pytest.mark.parametrize(("tasks", "expected"), [(1, 1), (2, 2), (9, 4)])
def test_small_files_share_the_tasks_that_run_at_once(tasks: int, expected: int):
    chunks = [Chunk(0, number, name, 1, 5) for number, name in enumerate("abcd")]
    layout = plan_layout(chunks, 1.0, 1000, tasks=tasks)
    assert layout.files == [0, 1, 2, 3]
    assert len(set(layout.tasks)) == expected


@pytest.mark.usefixtures("adaptive")
def test_a_partitioned_write_has_one_file_for_each_small_partition(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t"
    df = events(spark, 200, 10)
    arguments = {"variant_columns": ["event"], "partition_by": "part"}
    assert len(write_frame(table, df, **arguments).files) == 4
    assert len(write_frame(table, df, mode="append", optimize_write=False, **arguments).files) == 40
    assert rows(table, id="id", n="event:n::int", part="part") == sorted(
        ({"id": n, "n": n, "part": n % 4} for n in [*range(200), *range(200)]), key=str
    )
    assert data_files(table) == listed_files(table)
    metrics = read_actions(table, "commitInfo")[0]["operationMetrics"]
    assert (metrics["numFiles"], metrics["numOutputRows"]) == ("4", "200")


def test_the_default_follows_the_table_and_the_session(spark: SparkSession, tmp_path: Path):
    def files(name: str, text: str | None, *, partitioned: bool = True) -> int:
        configuration = {} if text is None else {"delta.autoOptimize.optimizeWrite": text}
        partition_by = ["part"] if partitioned else None
        df = events(spark, 12, 3).drop("event")
        result = write_frame(tmp_path / name, df, partition_by=partition_by, configuration=configuration)
        return len(result.files)

    # Without adaptive execution Spark keeps the partitions of a DataFrame, and so does a write.
    assert (files("a", None), files("b", "true"), files("c", "false")) == (12, 4, 12)
    assert files("d", "true", partitioned=False) == 1
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        assert (files("e", None), files("f", "false"), files("g", None, partitioned=False)) == (4, 12, 3)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")


def test_small_partitions_of_a_dataframe_become_one_file(spark: SparkSession, tmp_path: Path):
    df = events(spark, 100, 40)
    result = write_frame(tmp_path / "t", df, variant_columns=["event"], optimize_write=True)
    assert (len(result.files), result.rows) == (1, 100)


@pytest.mark.parametrize("partition_by", [None, "part"])
def test_files_are_within_a_fifth_of_the_target_size(
    spark: SparkSession, tmp_path: Path, partition_by: str | None
):
    # Rows for 9 and twice 3 files: rows for one and a quarter would fit no number of files.
    df = spark.range(0, 42_000, 1, 7).selectExpr("id", RANDOM_EVENT, "greatest(id % 5 - 2, 0) AS part")
    result = write_frame(
        tmp_path / "t",
        df,
        variant_columns=["event"],
        partition_by=partition_by,
        optimize_write=True,
        files=dv.FileOptions(target_file_size=TARGET),
    )
    assert result.rows == 42_000
    assert len(result.files) >= 8
    assert [file.bytes for file in result.files if not 0.8 * TARGET <= file.bytes <= 1.2 * TARGET] == []


def test_the_order_of_rows_is_kept(spark: SparkSession, tmp_path: Path):
    df = events(spark, 10_000, 5, RANDOM_EVENT).orderBy("id")
    files = dv.FileOptions(target_file_size=TARGET)
    write_frame(tmp_path / "t", df, variant_columns=["event"], optimize_write=True, files=files)
    bounds = []
    for path in listed_files(tmp_path / "t"):
        ids = pa.parquet.read_table(tmp_path / "t" / path, columns=["id"])["id"].to_pylist()
        assert ids == list(range(ids[0], ids[-1] + 1))
        bounds += [(ids[0], ids[-1])]
    bounds.sort()
    assert len(bounds) == 3
    assert [first for first, _ in bounds] == [0, *(last + 1 for _, last in bounds[:-1])]
    assert bounds[-1][1] == 9_999


@pytest.mark.usefixtures("small_files_are_shredded")
def test_one_schema_shreds_all_files(spark: SparkSession, tmp_path: Path):
    df = events(spark, 30_000, 3).selectExpr("*", "id % 2 AS half")
    result = write_frame(
        tmp_path / "t",
        df,
        variant_columns=["event"],
        partition_by="half",
        one_shredding=True,
        optimize_write=True,
    )
    paths = [tuple((path.path, str(path.type)) for path in file.variants["event"]) for file in result.files]
    assert paths == 2 * [((("n",), "int64"), (("user", "name"), "string"))]


def test_invalid_json_has_the_location_that_it_has_in_the_dataframe(spark: SparkSession, tmp_path: Path):
    df = events(spark, 99).selectExpr("id", "part", "if(id in (50, 98), '{', event) AS event")
    arguments = {"variant_columns": ["event"], "optimize_write": True}
    for partition_by in (None, "part"):
        folder = tmp_path / f"rejects of {partition_by}"
        result = write_frame(
            tmp_path / f"t {partition_by}",
            df,
            partition_by=partition_by,
            json=dv.JsonOptions(on_invalid="reject", rejects=folder),
            **arguments,
        )
        assert (result.rows, result.invalid) == (97, 2)
        texts = "".join(path.read_text("utf-8") for path in folder.iterdir())
        found = [json.loads(line) for line in texts.splitlines()]
        assert sorted((each["partition"], each["row"]) for each in found) == [(1, 17), (2, 32)]
    with pytest.raises(InvalidJsonError, match=r"partition [12], byte 2 of the text: ") as caught:
        write_frame(tmp_path / "u", df, **arguments)
    assert caught.value.row in (17, 32)
    assert not (tmp_path / "u").exists()


def test_generated_partitions_and_constraints_are_those_of_a_write_by_tasks(
    spark: SparkSession, tmp_path: Path
):
    table = tmp_path / "t"
    expressions = {"part": "id % 2", "n": "event:n::bigint"}
    metadata = {name: {"delta.generationExpression": text} for name, text in expressions.items()}
    empty = pa.table({"id": [0], "event": pa.array(["1"], pa.json_()), "part": [0], "n": [0]})
    planted(table, empty, {**metadata, "id": {"not null": True}}, partition_by="part")
    dv.add_constraint(table, "small", "n < 100")

    def append(count: int) -> dv.WriteResult:
        df = events(spark, count).drop("part")
        return write_frame(table, df, mode="append", variant_columns=["event"], optimize_write=True)

    assert len(append(100).files) == 2
    assert rows(table, id="id", part="part", n="n")[5] == {"id": 13, "part": 1, "n": 13}
    with pytest.raises(ConstraintViolationError, match="small") as caught:
        append(101)
    assert caught.value.row == 33
    overwrite = {"mode": "overwrite", "where": "id < 8", "variant_columns": ["event"]}
    with pytest.raises(PredicateViolationError):
        write_frame(table, events(spark, 9).drop("part"), optimize_write=True, **overwrite)
    assert data_files(table) == listed_files(table)


def test_a_dataframe_without_rows_is_written(spark: SparkSession, tmp_path: Path):
    result = write_frame(
        tmp_path / "t", events(spark, 0), variant_columns=["event"], optimize_write=True, one_shredding=True
    )
    assert (result.version, result.rows, result.files) == (0, 0, ())


def test_values_of_every_type_pass_through_chunks(spark: SparkSession, tmp_path: Path):
    df = spark.range(0, 3, 1, 3).selectExpr(
        "id",
        "CASE WHEN id < 2 THEN parse_json(concat('{\"a\":', id, '}')) END AS v",
        "array(parse_json('1'), NULL) AS a",
        "map('k', parse_json('[2]')) AS m",
        "timestamp'2026-01-01 00:00:00' AS t",
        "date'2026-01-01' AS d",
        "CAST(1.5 AS DECIMAL(5,2)) AS `dec.imal`",
        "CAST('x' AS BINARY) AS bin",
        "nullif(id, 1) AS part",
    )
    arguments = {"partition_by": ["part", "d"], "configuration": {"delta.columnMapping.mode": "name"}}
    for name, optimize_write in (("t", True), ("u", False)):
        write_frame(tmp_path / name, df, optimize_write=optimize_write, **arguments)
    one, other = (dvs.read_table(spark, tmp_path / name).orderBy("id") for name in ("t", "u"))
    shown = ["id", "to_json(v)", "to_json(a)", "to_json(m)", "t", "d", "`dec.imal`", "bin", "part"]
    assert one.selectExpr(*shown).collect() == other.selectExpr(*shown).collect()
    assert one.count() == 3


def test_a_stream_writes_optimized_batches(spark: SparkSession, tmp_path: Path):
    (tmp_path / "lines").mkdir()
    for number in range(2):
        text = "".join(f'{{"n":{n}}}\n' for n in range(10 * number, 10 * number + 10))
        (tmp_path / "lines" / f"{number}.txt").write_text(text, "utf-8")
    options = {"app_id": "app", "variant_columns": ["value"], "optimize_write": True}
    write = dvs.batch_writer(tmp_path / "t", **options)
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines")).repartition(4)
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    finished(query.trigger(availableNow=True).start())
    assert len(read_actions(tmp_path / "t", "add")) == 2
    assert rows(tmp_path / "t", n="value:n::int") == sorted(({"n": n} for n in range(20)), key=str)
