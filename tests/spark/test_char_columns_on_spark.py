"""Columns of the type CHAR(n) have the text that Spark reads, and are compared as Spark compares them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from spark.queries import outcome

from delta_variant import spark as dvs

QUERIES = [
    "select id, c, p, w, length(c), length(p), length(w) from chars",
    "select id from chars where c = 'a'",
    "select id from chars where c = 'a    ' and p in ('x', 'y')",
    "select id from chars where v:c::string = c or p = 'x'",
    "select c, v:c::string as s from chars where c < 'b'",
    "select c, count(*) as n, max(p) as p from chars group by c having c = 'b'",
    "select l.id from chars l join chars r on l.c = r.p or l.c = r.w",
]


def rows(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in df.select("id", "c", "p", "w").collect()), key=str)


def test_char_columns_are_padded_as_by_spark(spark_with_delta: SparkSession, tmp_path: Path):
    spark, table = spark_with_delta, str(tmp_path / "t")
    dvs.register(spark)
    columns = "id INT, c CHAR(5), w VARCHAR(5), v VARIANT, p CHAR(3)"
    spark.sql(f"CREATE TABLE chars ({columns}) USING delta PARTITIONED BY (p) LOCATION '{table}'")
    try:
        spark.sql(
            "INSERT INTO chars VALUES (1, 'a', 'a', parse_json('{\"c\":\"a\"}'), 'x'), "
            "(2, 'b', 'b', parse_json('{\"c\":\"b    \"}'), 'y'), (3, NULL, NULL, NULL, NULL)"
        )
        found = {query: outcome(lambda text: dvs.sql(spark, text), query) for query in QUERIES}
        assert found == {query: outcome(spark.sql, query) for query in QUERIES}
        read = {reader: dvs.read_table(spark, "chars", reader=reader) for reader in ("scan", "kernel")}
        read["format"] = spark.read.format("delta_variant").load(table)
        read["columns"] = dvs.read_table(spark, "chars", columns=["id", "c", "p", "w"], where="id < 9")
        for condition in ("true", "c = 'a' or p = 'y'", "c = w"):
            expected = rows(spark.table("chars").where(condition))
            assert {name: rows(df.where(condition)) for name, df in read.items()} == dict.fromkeys(
                read, expected
            )
    finally:
        spark.sql("DROP TABLE chars")
