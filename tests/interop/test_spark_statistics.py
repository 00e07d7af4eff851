"""Spark decodes our statistics, derives the same from our files, and keeps them in checkpoints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.corpus import CORPORA, json_table, read_lines
from interop.tables import rows_by_spark, rows_by_us
from pyspark.sql import SparkSession
from support.tables import read_actions

import delta_variant as dv

ALL_PATHS = 10_000
ALL_BYTES = 1 << 20
SIDES = (("minValues", "MIN_STAT"), ("maxValues", "MAX_STAT"))


@pytest.fixture
def table(
    corpora: Path, tmp_path: Path, request: pytest.FixtureRequest, small_files_are_shredded: None
) -> Path:
    """Return our table of the corpus that the test requests, with bounds of all paths."""
    lines = read_lines(corpora, request.param)
    files = dv.FileOptions(max_variant_stats_paths=ALL_PATHS, max_variant_stats_bytes=ALL_BYTES)
    dv.write_table(str(tmp_path / "table"), json_table(lines), files=files)
    return tmp_path / "table"


@pytest.mark.parametrize("table", CORPORA, indirect=True)
def test_spark_decodes_our_bounds_and_derives_the_same_from_our_footer(spark: SparkSession, table: Path):
    jvm: Any = spark._jvm
    codec = _scala_object(jvm, "org.apache.spark.sql.delta.util.DeltaStatsJsonUtils")
    [add] = read_actions(table, "add")
    derived = _derived_from_footer(spark, table / add["path"])
    stats = json.loads(add["stats"])

    for side, stat_type in SIDES:
        bounds = json.loads(codec.decodeVariantFromZ85(stats[side]["event"]).toString())
        assert len(bounds) >= 10
        assert bounds == derived[stat_type]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_spark_decodes_and_derives_our_bounds_within_structs(spark: SparkSession, tmp_path: Path):
    """PROTOCOL.md, "Per-file Statistics": statistics mirror the structs that contain Variants."""
    variants = dv.parse_json(['{"a":1,"b":"x"}', '{"a":5}', None, '{"a":-2,"b":"y"}'])
    mark = {"ARROW:extension:name": "arrow.parquet.variant"}
    fields = [pa.field("n", pa.int64()), pa.field("event", variants.type, metadata=mark)]
    data = pa.StructArray.from_arrays([pa.array(range(4)), variants], fields=fields)
    dv.write_table(str(tmp_path / "table"), pa.table({"s": data}))
    codec = _scala_object(spark._jvm, "org.apache.spark.sql.delta.util.DeltaStatsJsonUtils")
    [add] = read_actions(tmp_path / "table", "add")
    stats = json.loads(add["stats"])
    assert stats["nullCount"] == {"s": {"n": 0, "event": 1}}

    derived = _derived_from_footer(spark, tmp_path / "table" / add["path"], ["s", "event"])
    expected = ({"$['a']": -2, "$['b']": "x"}, {"$['a']": 5, "$['b']": "y"})
    for (side, stat_type), bounds in zip(SIDES, expected, strict=True):
        assert json.loads(codec.decodeVariantFromZ85(stats[side]["s"]["event"]).toString()) == bounds
        assert derived[stat_type] == bounds


@pytest.mark.parametrize("table", CORPORA, indirect=True)
def test_our_bounds_contain_every_value_that_spark_reads(spark: SparkSession, table: Path):
    jvm: Any = spark._jvm
    codec = _scala_object(jvm, "org.apache.spark.sql.delta.util.DeltaStatsJsonUtils")
    stats = json.loads(read_actions(table, "add")[0]["stats"])
    least, greatest = (
        json.loads(codec.decodeVariantFromZ85(stats[side]["event"]).toString()) for side, _ in SIDES
    )

    paths = [path for path in least if path in greatest]
    cast = {path: "string" if isinstance(least[path], str) else "decimal(38,10)" for path in paths}
    expressions = {
        f"{side}{index}": f"{side}(variant_get(event, \"{path}\", '{cast[path]}'))"
        for index, path in enumerate(paths)
        for side in ("min", "max")
        if '"' not in path
    }
    [found] = rows_by_spark(spark, table, expressions)
    for index, path in enumerate(paths):
        smallest, largest = found[f"min{index}"], found[f"max{index}"]
        if isinstance(smallest, str):
            assert least[path] == smallest[:32], path
            assert greatest[path] == (largest if len(largest) <= 32 else largest[:32] + "\U0010ffff"), path
        else:
            assert (least[path], greatest[path]) == (smallest, largest), path


@pytest.mark.parametrize("table", ["github_webhooks"], indirect=True)
def test_a_checkpoint_of_spark_keeps_our_statistics_and_both_read_it(spark: SparkSession, table: Path):
    columns = {"line": "line", "text": "to_json(event)"}
    dv.write_table(str(table), json_table(['{"a":1}'], 1_000), mode="append")
    before = {add["path"]: add["stats"] for add in read_actions(table, "add")}
    rows = rows_by_us(table, columns)

    delta_log = _scala_object(spark._jvm, "org.apache.spark.sql.delta.DeltaLog")
    delta_log.forTable(spark._jsparkSession, str(table)).checkpoint()
    delta_log.clearCache()
    (table / "_delta_log" / f"{0:020}.json").unlink()

    snapshot = dv.load_snapshot(str(table))
    kept = dict(zip(snapshot.files["path"].to_pylist(), snapshot.files["stats"].to_pylist(), strict=True))
    assert {path: json.loads(stats) for path, stats in kept.items()} == {
        path: json.loads(stats) for path, stats in before.items()
    }
    assert rows_by_us(table, columns) == rows == rows_by_spark(spark, table, columns)


def _derived_from_footer(
    spark: SparkSession, file: Path, path: Sequence[str] = ("event",)
) -> dict[str, dict[str, Any]]:
    """Return the bounds that Delta on Spark would write for the file."""
    jvm: Any = spark._jvm
    location = jvm.org.apache.hadoop.fs.Path(str(file))
    configuration = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    footer = jvm.org.apache.parquet.hadoop.ParquetFileReader.readFooter(configuration, location)
    # Keep dates and times of the proleptic calendar, as ours are, unchanged.
    unchanged = getattr(jvm.scala.Predef, "$conforms")()
    package = "org.apache.spark.sql.delta.stats"
    derived = _scala_object(jvm, f"{package}.VariantStatsData").apply(footer, unchanged, unchanged)
    column = jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(path))
    return {
        name: json.loads(
            derived.forPrefixAndStatType(column, _scala_object(jvm, f"{package}.{name}")).toString()
        )
        for _, name in SIDES
    }


def _scala_object(jvm: Any, name: str) -> Any:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.lang.Class.forName(f"{name}$", True, loader).getField("MODULE$").get(None)
