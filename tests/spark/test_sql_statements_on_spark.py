"""Statements of `dvs.sql`: what they change, and what Spark runs itself."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from spark.statements import differences

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import CastError, ExpressionError
from delta_variant.spark.versions import SPARK_ERRORS
from delta_variant.statements.parse import find_statement

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


@pytest.mark.parametrize("seed", range(6))
def test_random_statements_change_what_they_change_in_delta(
    spark_with_delta: SparkSession, tmp_path: Path, seed: int
):
    found = Counter[str]()
    assert list(differences(spark_with_delta, str(seed), 5, tmp_path, found)) == []
    assert found.total() - found["fails"] >= 2


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """Return the name of a view of a table with two rows."""
    dv.write_table(tmp_path / "t", [{"id": 1, "p": "x"}, {"id": 2, "p": "y"}], partition_by="p")
    dvs.create_view(spark, "shop", tmp_path / "t")
    yield "shop"
    dvs.drop_view(spark, "shop")


def rows(spark: SparkSession, table: str) -> list[tuple[int, str]]:
    return [tuple(row) for row in dvs.sql(spark, f"select id, p from {table} order by id").collect()]


def test_statements_run_on_the_tables_of_the_session(spark: SparkSession, table: str):
    for text, expected in {
        f"insert into {table} values (3, 'x')": [],
        f"update {table} set p = upper(p) where {table}.id = 1": [Row(num_affected_rows=1)],
        f"delete from {table} as t where t.id = 2": [Row(num_affected_rows=1)],
    }.items():
        assert dvs.sql(spark, text).collect() == expected
    assert rows(spark, table) == [(1, "X"), (3, "x")]
    history = dvs.sql(spark, f"describe history {table} limit 2")
    assert [row.operation for row in history.collect()] == ["DELETE", "UPDATE"]


def test_parameters_by_name_and_by_position(spark: SparkSession, table: str):
    dvs.sql(spark, f"update {table} set p = :new where id = :id", {"new": "it's", "id": 1})
    dvs.sql(spark, f"delete from {table} where id = ?", [2])
    source = "(select id + ? as id, p from shop)"
    on = f"merge into {table} t using {source} s on t.id = s.id and s.p <> ?"
    dvs.sql(spark, f"{on} when not matched then insert (id, p) values (s.id, ?)", [1, "none", "new"])
    assert rows(spark, table) == [(1, "it's"), (2, "new")]
    with pytest.raises(ExpressionError, match="expected an expression, got `\\?`"):
        dvs.sql(spark, f"delete from {table} where id = ?")


def test_an_insert_overwrites_partitions_as_the_session_says(spark: SparkSession, tmp_path: Path):
    table = f"delta.`{tmp_path / 't'}`"
    dvs.sql(spark, f"create table {table} (id int, p int, q string) partitioned by (p, q)")
    dvs.sql(spark, f"insert into {table} values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a')")
    before = spark.conf.get(DYNAMIC)
    spark.conf.set(DYNAMIC, "dynamic")
    try:
        dvs.sql(spark, f"insert overwrite {table} values (4, 2, 'a')")
        # Partitions without rows stay: others of p = 1, and the one of the last statement.
        dvs.sql(spark, f"insert overwrite {table} partition (p = 1) select 5, 'b'")
        dvs.sql(spark, f"insert overwrite {table} partition (p = 2, q = 'a') select 6 where 1 > 2")
    finally:
        spark.conf.set(DYNAMIC, before)
    found = dv.sql(f"select * from {table} order by id").to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, 1, "a"), (4, 2, "a"), (5, 1, "b")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select struct('5' as b, 9 as a), array('1', '2')", (Row(a=5, b="9"), [1, 2])),
        ("select struct('x' as b, 1 as a), array()", None),
        ("select struct(1 as a), array()", None),
        ("select null, array(1L, null)", (None, [1, None])),
    ],
)
def test_an_insert_casts_nested_values_by_position(
    spark_with_delta: SparkSession, tmp_path: Path, query: str, expected: tuple[object, ...] | None
):
    for run, name in (
        (spark_with_delta.sql, "jars"),
        (partial(dvs.sql, spark_with_delta), "tasks"),
        (dv.sql, "local"),
    ):
        table = f"delta.`{tmp_path / name}`"
        spark_with_delta.sql(f"create table {table} (s struct<a: int, b: string>, l array<int>) using delta")
        if expected is None:
            with pytest.raises((*SPARK_ERRORS, CastError, ExpressionError)):
                run(f"insert into {table} {query}")
        else:
            run(f"insert into {table} {query}")
        found = spark_with_delta.sql(f"select * from {table}").collect()
        assert found == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    "query",
    [
        "select 1 as id, struct('y' as b, 'x' as a) as s, array(struct('y' as b, 'x' as a)) as l",
        "by name select struct('y' as b, 'x' as a) as s, 1 as id",
        # By position: these rows have other types or other names.
        "select 1L as id, struct('y' as b, 'x' as a) as s, null as l",
        "select 1 as id, struct('y' as B, 'x' as A) as s, array(struct('x' as a, 'y' as b)) as l",
        "(s, id) select struct('y' as b, 'x' as a) as s, 1 as id",
        "by name select struct('y' as b, 'x' as c) as s, 1 as id",
    ],
)
def test_an_insert_matches_the_fields_of_structs_as_delta(
    spark_with_delta: SparkSession, tmp_path: Path, query: str
):
    found = []
    for run, name in (
        (spark_with_delta.sql, "jars"),
        (partial(dvs.sql, spark_with_delta), "tasks"),
        (dv.sql, "local"),
    ):
        table = f"delta.`{tmp_path / name}`"
        columns = "id int, s struct<a: string, b: string>, l array<struct<a: string, b: string>>"
        spark_with_delta.sql(f"create table {table} ({columns}) using delta")
        run(f"insert into {table} {query}")
        found.append(spark_with_delta.sql(f"select * from {table}").collect())
    assert found[1:] == found[:1] * 2


def test_a_new_table_by_its_path(spark: SparkSession, tmp_path: Path):
    name = f"delta.`{tmp_path / 'new'}`"
    dvs.sql(spark, f"create table {name} as select id, parse_json('{{\"a\": 1}}') as v from range(3)")
    assert dvs.sql(spark, f"select sum(v:a::int) as n from {name}").collect() == [Row(n=3)]


def test_convert_commits_what_delta_commits(spark_with_delta: SparkSession, tmp_path: Path):
    spark = spark_with_delta
    query = """select id, cast(id % 2 as string) || '/ ' as p, date '2026-01-01' + cast(id as int) as d,
        timestamp '2026-01-01 01:02:03.456789' as t, struct(id as a, array(id) as l) as s from range(4)"""
    spark.sql(query).write.partitionBy("p", "d").parquet(str(tmp_path / "jars"))
    found = []
    runs: list[tuple[str, Callable[[str], Any]]] = [
        ("jars", spark.sql),
        ("tasks", partial(dvs.sql, spark)),
        ("local", dv.sql),
    ]
    for name, _ in runs[1:]:
        shutil.copytree(tmp_path / "jars", tmp_path / name)
    for name, run in runs:
        # The second statement finds a table, and leaves it as it is.
        for _ in range(2):
            run(f"convert to delta parquet.`{tmp_path / name}` partitioned by (p string, d date)")
        (log,) = (tmp_path / name / "_delta_log").glob("*.json")
        found.append(converted(log.read_text()))
        rows = dv.read_table(tmp_path / name).to_table().sort_by("id")
        assert rows.equals(dv.read_table(tmp_path / "jars").to_table().sort_by("id"))
    assert len(found[0]["add"]) == 4
    assert found[1] == found[2] == found[0]


COLUMN_CHANGES = (
    "add columns (s.z int comment 'zed')",
    "add columns (s.w int first)",
    "add columns s.v int after x",
    "add columns (k int after id, l string first)",
    "add column a.element.r decimal(5, 2) comment 'it\\'s'",
    "alter column n comment 'the n'",
    "alter n first",
    "change column n after k",
    "alter column s.x after y",
    "alter column s.x comment 'x'",
)


def test_columns_change_as_delta_changes_them(spark_with_delta: SparkSession, tmp_path: Path):
    columns = "id bigint, n int, s struct<x: int, y: string>, a array<struct<q: int>>"
    for path in ("jars", "local"):
        spark_with_delta.sql(f"create table delta.`{tmp_path / path}` ({columns}) using delta")
    for change in COLUMN_CHANGES:
        spark_with_delta.sql(f"alter table delta.`{tmp_path / 'jars'}` {change}")
        dv.sql(f"alter table delta.`{tmp_path / 'local'}` {change}")
    found = []
    for path in ("jars", "local"):
        logs = [log.read_text() for log in sorted((tmp_path / path / "_delta_log").glob("*[1-9]*.json"))]
        actions = [[json.loads(line) for line in log.splitlines()] for log in logs]
        commits = [{name: action for each in lines for name, action in each.items()} for lines in actions]
        found.append(
            [
                (
                    each["commitInfo"]["operation"],
                    each["commitInfo"]["operationParameters"],
                    each["metaData"]["schemaString"],
                )
                for each in commits
            ]
        )
    assert len(found[0]) == len(COLUMN_CHANGES)
    assert found[1] == found[0]


def converted(log: str) -> dict[str, Any]:
    """Return what a conversion says about a table and its files."""
    actions = [json.loads(line) for line in log.splitlines()]
    named = {name: action for each in actions for name, action in each.items() if name != "add"}
    info, metadata = named["commitInfo"], named["metaData"]
    adds = [each["add"] for each in actions if "add" in each]
    files = [(add["path"], add["partitionValues"], add["size"], json.loads(add["stats"])) for add in adds]
    return {
        "add": sorted(files, key=lambda file: str(file[0])),
        "schema": metadata["schemaString"],
        "partitions": metadata["partitionColumns"],
        "protocol": named["protocol"],
        "operation": info["operation"],
        "parameters": {name: str(value).lower() for name, value in info["operationParameters"].items()},
        "metrics": info["operationMetrics"],
    }


def test_spark_runs_statements_on_names_of_its_own(spark: SparkSession):
    spark.sql("create or replace temporary view numbers as select 1 as id")
    try:
        with pytest.raises(SPARK_ERRORS):
            dvs.sql(spark, "delete from numbers where id = 1")
        assert dvs.sql(spark, "drop view numbers").collect() == []
        assert dvs.sql(spark, "create table plain (id int) using parquet").collect() == []
    finally:
        spark.catalog.dropTempView("numbers")
        spark.sql("drop table if exists plain")


def test_a_name_of_the_catalog_and_its_cached_rows(spark_with_delta: SparkSession):
    spark = spark_with_delta
    spark.sql("create table kept (id bigint, n int) using delta")
    try:
        spark.sql("cache table kept")
        dvs.sql(spark, "insert into default.kept values (1, 5), (2, 6)")
        dvs.sql(spark, "update spark_catalog.default.kept set n = kept.n + 1 where default.kept.id = 1")
        dvs.sql(spark, "update default.kept set n = n + 2 where spark_catalog.default.kept.id = 2")
        assert spark.sql("select * from kept order by id").collect() == [Row(id=1, n=6), Row(id=2, n=8)]
        # Spark has more clauses of ALTER TABLE than this package.
        dvs.sql(spark, "alter table kept alter column n comment 'a number'")
        assert "a number" in str(spark.sql("describe kept").collect())
    finally:
        spark.sql("drop table kept")


EARLIER = (
    "select id, n from {} version as of 1 order by id",
    "select k.id, k.n from {} for version as of 1 as k where k.n > 1",
    "select a.id, b.n from {} version as of 1 a join {} b on a.id = b.id order by 1, 2",
    "select count(*) as n, v:a::int as a from {} timestamp as of '{time}' group by all order by 2",
    "select id, _change_type from table_changes('{}', 1, 2) order by 1, 2",
    "select c.id, c._commit_version from table_changes('{}', 1) as c where c._commit_version > 2 order by 1",
)


def test_queries_of_earlier_versions_and_of_changes(spark_with_delta: SparkSession):
    spark = spark_with_delta
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"create table past (id bigint, n int, v variant) using delta {feed}")
    try:
        spark.sql("insert into past values (1, 1, parse_json('{\"a\": 1}')), (2, 2, null)")
        time = spark.sql("describe history past limit 1").collect()[0].timestamp
        spark.sql("update past set n = 5 where id = 2")
        spark.sql("delete from past where id = 1")
        for text in EARLIER:
            query = text.replace("{}", "past").replace("{time}", str(time))
            expected = spark.sql(query).collect()
            assert dvs.sql(spark, query).collect() == expected
            assert expected
            there = f"delta.`{spark.sql('describe detail past').collect()[0].location}`"
            here = query.replace("past", there).replace(f"'{there}'", repr(there))
            assert dvs.sql(spark, here).collect() == expected
            assert [tuple(row.values()) for row in dv.sql(here).to_pylist()] == [*map(tuple, expected)]
        for moment in ("timestamp as of now() - interval 1 day", "version as of 'x'"):
            with pytest.raises(ExpressionError, match="cannot read past AS OF an expression"):
                dvs.sql(spark, f"select id from past {moment}")
    finally:
        spark.sql("drop table past")


TEXTS = (
    "insert into t values (1, default), (2, 'x')",
    "insert overwrite table t partition (p) by name select 1 as a",
    "insert into t replace where a = 1 select 1 as a",
    "insert into t replace a = 1 select 1 as a",
    "with a as (select 1) insert into t select * from a",
    "update t as x set x.a = 1, b = default where x.c is null",
    "update t where a = 1",
    "update t set a = 1 b = 2",
    "delete t where a = 1",
    "delete from t as x where x.a in (1, 2)",
    "merge into t using s on t.id = s.id when matched then update set * when not matched then insert *",
    "merge into t using s on t.id = s.id when not matched by source then delete",
    "merge into t using s on t.id = s.id when matched then insert *",
    "merge into t using s on t.id = s.id when not matched by source then update set *",
    "merge into t using s when matched then delete",
    "merge with schema evolution into t using (select 1) as s on true when not matched then insert *",
    "create table t (id bigint not null comment 'k', n int) using delta partitioned by (n) comment 'x'",
    "create table if not exists t using delta location '/x' as select 1 as a",
    "create table t (id bigint) using delta using delta",
    "alter table t add columns (z int, y struct<a: int>)",
    "alter table t rename column z zz",
    "optimize t where p = 'x' zorder by (id)",
    "reorg table t apply (purge)",
    "reorg table t",
    "vacuum t retain 200 hours dry run",
    "vacuum t retain hours",
    "restore table t to version as of 1",
    "restore table t to version 1",
    "describe history t limit 5",
    "describe history '/a/b'",
    "show tblproperties t ('a')",
    "describe t",
    "desc table t",
)


@pytest.mark.classic("RDDs and other objects of the JVM")
@pytest.mark.parametrize("text", TEXTS)
def test_what_spark_cannot_parse_is_an_error_and_the_rest_is_not(spark_with_delta: SparkSession, text: str):
    parser = spark_with_delta._jsparkSession.sessionState().sqlParser()  # type: ignore[operator, union-attr]
    try:
        parser.parsePlan(text)
        is_valid = True
    except Exception:
        is_valid = False
    found = find_statement(text, {})
    try:
        is_parsed = found is not None and found.parsed is not None
    except ExpressionError:
        is_parsed = False
    assert is_parsed == is_valid
