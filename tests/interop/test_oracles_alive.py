"""The engines work: if these tests fail, failures of other interop tests say nothing about our code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession
from support.tables import read_actions


def test_spark_writes_a_shredded_table_with_variant_statistics_and_reads_it_back(
    spark: SparkSession, tmp_path: Path
):
    table = tmp_path / "events"
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta TBLPROPERTIES ("
        "'delta.enableVariantShredding' = 'true', 'delta.feature.variantShredding' = 'supported') "
        "AS SELECT id, parse_json(format_string('{\"a\": %d}', id)) AS event FROM range(0, 100, 1, 1)"
    )

    rows = spark.sql(f"SELECT id, to_json(event) AS text FROM delta.`{table}` ORDER BY id").collect()
    assert [(row.id, row.text) for row in rows] == [(number, f'{{"a":{number}}}') for number in range(100)]

    [protocol] = read_actions(table, "protocol", 0)
    assert {"variantType", "variantShredding"} <= set(protocol["readerFeatures"])
    stats = json.loads(read_actions(table, "add", 0)[0]["stats"])
    assert stats["numRecords"] == 100
    assert stats["nullCount"] == {"id": 0, "event": 0}
    assert stats["minValues"].keys() == stats["maxValues"].keys() == {"id", "event"}


@pytest.mark.parametrize(
    ("name", "expected"), [("c_stats_ga", (201, 200, 19_900)), ("d_ckpt_struct_nojson", (201, 201, 10_400))]
)
def test_spark_reads_a_table_of_the_corpus(
    spark: SparkSession, unpack_table: Callable[[str], Path], name: str, expected: tuple[int, int, int]
):
    table = unpack_table(name)
    [row] = spark.sql(f"SELECT count(*), count(v), sum(v:a::bigint) FROM delta.`{table}`").collect()
    assert tuple(row) == expected


def test_duckdb_reads_back_the_shredded_file_it_wrote(
    duckdb_connection: duckdb.DuckDBPyConnection, tmp_path: Path
):
    file = tmp_path / "events.parquet"
    duckdb_connection.execute(
        f"COPY (SELECT ('{{\"a\": ' || range || '}}')::JSON::VARIANT AS event FROM range(100)) TO '{file}'"
    )
    found = duckdb_connection.execute(f"SELECT count(*), sum(event.a::BIGINT) FROM '{file}'").fetchall()
    assert found == [(100, 4950)]
