"""Spark with Delta's own JARs reads what we write, and we read what it writes, value by value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from interop.corpus import CORPORA, json_table, read_lines, write_texts
from pyspark.sql import DataFrame, SparkSession

import delta_variant as dv

TABLES = (
    "a_unshredded",
    "b0_shredded_defaults",
    "b1_limit_only",
    "b2_stats_preview",
    "c_both_preview",
    "c_stats_ga",
    "c_stats_ga_limit2",
    "d_cdf",
    "d_ckpt_struct_nojson",
    "d_cm_id",
    "d_cm_name",
    "d_dv",
    "d_partitioned",
    "d_v2ckpt",
    "f_prop_toggle",
    "g_missing",
    "g_names",
    "g_scalar",
    "g_types",
)
# Lenient shredding (P-T1) keeps a number's value and may change its type within the exact-numeric class.
SCHEMA = r"regexp_replace(schema_of_variant({}), 'BIGINT|DECIMAL\\(\\d+,\\d+\\)', 'NUMBER')"


@pytest.mark.parametrize("shredding", ["infer", None])
@pytest.mark.parametrize("name", CORPORA)
def test_spark_reads_every_value_we_wrote_as_its_own_parse_json_gives_it(
    spark: SparkSession, corpora: Path, tmp_path: Path, name: str, shredding: Literal["infer"] | None
):
    lines = read_lines(corpora, name)
    table = tmp_path / "table"
    dv.write_table(str(table), json_table(lines), shredding=shredding)

    ours = spark.read.format("delta").load(str(table))
    assert ours.count() == len(lines)
    assert _different_lines(ours, _parsed_by_spark(spark, lines, tmp_path)) == []


@pytest.mark.parametrize("name", CORPORA)
def test_we_read_every_value_of_a_shredded_table_that_spark_wrote(
    spark: SparkSession, corpora: Path, tmp_path: Path, name: str
):
    table = tmp_path / "table"
    lines = read_lines(corpora, name)
    spark.sql(
        f"CREATE TABLE delta.`{table}` (line BIGINT, event VARIANT) USING delta TBLPROPERTIES ("
        "'delta.enableVariantShredding' = 'true', 'delta.feature.variantShredding' = 'supported')"
    )
    _parsed_by_spark(spark, lines, tmp_path).write.format("delta").mode("append").save(str(table))

    assert _lines_by_us(table) == _lines_by_spark(spark, table)


@pytest.mark.parametrize("name", TABLES)
def test_we_read_a_table_of_the_corpus_as_spark_does(
    spark: SparkSession, unpack_table: Callable[[str], Path], name: str
):
    table = unpack_table(name)
    types = spark.read.format("delta").load(str(table)).dtypes
    column = next(f"`{column}`" for column, kind in types if kind == "variant")

    # The tables have no key in common, and their rows no order.
    ours, theirs = _texts_by_us(table, column), _texts_by_spark(spark, table, column)
    assert sorted(ours, key=str) == sorted(theirs, key=str)


def _parsed_by_spark(spark: SparkSession, lines: list[str], folder: Path) -> DataFrame:
    texts = spark.read.schema("line BIGINT, text STRING").json(
        str(write_texts(lines, folder / "texts.ndjson"))
    )
    return texts.selectExpr("line", "parse_json(text) AS event")


def _different_lines(ours: DataFrame, expected: DataFrame) -> list[tuple[int, str, str]]:
    """Return some of the lines whose text, or types beside exact numbers, differ."""
    joined = ours.alias("ours").join(expected.alias("theirs"), "line", "full_outer")
    both = joined.selectExpr(
        "line",
        "to_json(ours.event) AS ours",
        "to_json(theirs.event) AS theirs",
        f"{SCHEMA.format('ours.event')} AS our_types",
        f"{SCHEMA.format('theirs.event')} AS their_types",
    )
    different = both.where("NOT (ours <=> theirs AND our_types <=> their_types)").limit(3)
    return [tuple(row) for row in different.collect()]


def _lines_by_us(table: Path) -> dict[int, str]:
    rows = dv.read_table(str(table), columns={"line": "line", "text": "to_json(event)"}).read_all()
    return dict(zip(rows["line"].to_pylist(), rows["text"].to_pylist(), strict=True))


def _lines_by_spark(spark: SparkSession, table: Path) -> dict[int, str]:
    rows = spark.read.format("delta").load(str(table)).selectExpr("line", "to_json(event) AS text").collect()
    return {row.line: row.text for row in rows}


def _texts_by_us(table: Path, column: str) -> list[str | None]:
    return dv.read_table(str(table), columns={"text": f"to_json({column})"}).read_all()["text"].to_pylist()


def _texts_by_spark(spark: SparkSession, table: Path, column: str) -> list[str | None]:
    rows = spark.read.format("delta").load(str(table)).selectExpr(f"to_json({column})").collect()
    return [row[0] for row in rows]
