"""The column `_metadata` has the values that Spark's scan of the same files returns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import ExpressionError, UnsupportedFeatureError

FIELDS = [f"_metadata.file_{name}" for name in ("path", "name", "size")]


def test_the_file_of_a_row_is_that_of_spark(spark: SparkSession, tmp_path: Path):
    table = tmp_path / "t \u00e9 100%25 {x}"
    dv.write_table(table, [{"id": 1, "p": "a b/#?"}, {"id": 2, "p": "\u2713"}], partition_by="p")
    found = dvs.read_table(spark, table, columns=["id", *FIELDS]).collect()
    files = [str(path).replace("{", "\\{").replace("}", "\\}") for path in table.rglob("*.parquet")]
    expected = spark.read.parquet(*files).selectExpr("id", *FIELDS).collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))


@pytest.mark.parametrize("columns", [None, ["id"]])
def test_rows_of_a_file_are_found_by_its_path(spark: SparkSession, tmp_path: Path, columns: list[str] | None):
    for number in range(2):
        dv.write_table(tmp_path, [{"id": number}], mode="append")
    path = dvs.read_table(spark, tmp_path, columns=FIELDS[:1], where="id = 1").first()[0]
    rows = dvs.read_table(spark, tmp_path, columns=columns, where=f"_metadata.file_path = '{path}'")
    assert rows.collect() == [(1,)]


def test_the_scan_of_spark_does_not_return_the_column(spark: SparkSession, tmp_path: Path):
    dv.write_table(tmp_path, [{"id": 1}])
    with pytest.raises(UnsupportedFeatureError, match=r"_metadata.*reader='kernel'"):
        dvs.read_table(spark, tmp_path, columns=FIELDS, reader="scan")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two files, with an `id` in each."""
    for number in range(2):
        dv.write_table(
            tmp_path / "a b", [{"id": number, "v": {"n": number}}], variant_columns=["v"], mode="append"
        )
    return tmp_path / "a b"


@pytest.mark.parametrize(
    "query",
    [
        "select id, _metadata.file_path, `_metadata`.file_size from {t} where _METADATA.file_name > ''",
        "select *, x._metadata.file_name from {t} x where v:n::int = 1",
        "select * except (v), _metadata.file_name as f from {t}",
        "select x._metadata.file_name, * from {t} x join {t} y on x.id = y.id",
        "select count(*), min(id), _metadata.file_name as f from {t} group by f",
        "with q as (select id as i, _metadata.file_name as f from {t}) select * from q join {t} y on i = id "
        "where y._metadata.file_name = f",
        "select id, (select max(y.id) from {t} y where y._metadata.file_name = x._metadata.file_name) as n "
        "from {t} x order by _metadata.file_name",
        "select id from (select id, _metadata.file_name as f from {t} union all select 7, 'x') where f > ''",
        "select _metadata.file_name from {t} x join {t} y on x.id = y.id",
    ],
)
def test_queries_have_the_files_of_sparks_own_scan(spark_with_delta: SparkSession, table: Path, query: str):
    def outcome(run: Callable[[str], DataFrame]) -> object:
        try:
            df = run(query.replace("{t}", f"delta.`{table}`"))
            return df.columns, sorted(map(str, df.collect()))
        except AnalysisException as error:
            return error.getCondition()

    found = outcome(partial(dvs.sql, spark_with_delta))
    assert found == outcome(spark_with_delta.sql)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select id, input_file_name() from {t}", "use _metadata.file_path"),
        ("select distinct * from {t} where _metadata.file_size > 0", "DISTINCT.*name the columns"),
        (
            "select * from {t} x join {t} y using (id) where x._metadata.file_size > 0",
            "USING.*name the columns",
        ),
        ("select x._metadata.file_size from {t} x natural join {t} y", "a natural join"),
        ("select _metadata.file_size from {t} tablesample (50 percent)", "a sample"),
        (
            "select (select max(_metadata.file_size) from (select 1)) from {t}",
            "qualify it, as in t._metadata",
        ),
        ("select s._metadata.file_name from (select * from {t}) s", "`s`.`_metadata`.*only if it selects it"),
    ],
)
def test_unsupported_queries_are_rejected(spark: SparkSession, table: Path, query: str, message: str):
    with pytest.raises(ExpressionError, match=message):
        dvs.sql(spark, query.replace("{t}", f"delta.`{table}`"))


def test_the_file_of_a_query_has_three_fields(spark: SparkSession, table: Path):
    with pytest.raises(AnalysisException, match="`file_path`, `file_name`, `file_size`"):
        dvs.sql(spark, f"select _metadata.file_block_start from delta.`{table}`").collect()
