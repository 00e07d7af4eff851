"""`delta_variant.spark.sql` returns what Spark does, and reads what the query needs."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from spark.queries import TABLES, ZONES, QueryGenerator, differences, outcome, write_tables
from spark.tables import listed_files

import delta_variant as dv
from delta_variant import spark as dvs
from delta_variant.errors import TableNotFoundError

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Return a function that changes a setting of the session until the test ends."""
    before: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture
def bronze(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Return a table of two files with the view `bronze`; the user of row 15 is not a number."""
    table = tmp_path / "bronze"
    for start in (0, 10):
        append(table, range(start, start + 10))
    dvs.create_view(spark, "bronze", table)
    yield table
    dvs.drop_view(spark, "bronze")


def append(table: Path, ids: range) -> None:
    texts = [
        json.dumps(
            {"type": ["buy", "view"][n % 2], "user": {"id": n if n != 15 else "n/a"}, "tags": ["a", n]}
        )
        for n in ids
    ]
    dv.write_table(table, pa.table({"id": ids, "value": pa.array(texts, pa.json_())}), mode="append")


@pytest.fixture
def steps(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return a function that returns what was logged about queries since its last call."""
    caplog.set_level(logging.DEBUG, "delta_variant.spark.queries.execution")

    def logged() -> list[str]:
        found = [each.getMessage() for each in caplog.records if each.name.endswith("queries.execution")]
        caplog.clear()
        return found

    return logged


def rows(spark: SparkSession, text: str, args: object = None) -> list[tuple[object, ...]]:
    return [tuple(row) for row in dvs.sql(spark, text, args).collect()]  # type: ignore[arg-type]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5))
def test_random_queries_have_the_results_of_spark(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, str], None], seed: int
):
    source = random.Random(seed)
    setting(ZONE, ZONES[seed % len(ZONES)])
    setting("spark.sql.ansi.enabled", "false" if seed == 4 else "true")
    dirty = seed % 2 == 1
    write_tables(spark, tmp_path, source, dirty=dirty)
    try:
        generator = QueryGenerator(source, strict=not dirty or seed == 3)
        assert list(differences(spark, iter(generator.query, None), 20)) == []
    finally:
        for name in TABLES:
            dvs.drop_view(spark, name)
            spark.catalog.dropTempView(name)


def test_tasks_extract_the_paths_and_select_the_rows(
    spark: SparkSession, bronze: Path, steps: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]
):
    query = "SELECT b.value:user.id::bigint, value:type::string AS t FROM bronze b WHERE b.id < 3 ORDER BY 1"
    df = dvs.sql(spark, query)
    assert df.columns == ["id", "t"]
    assert [tuple(row) for row in df.collect()] == [(0, "buy"), (1, "view"), (2, "buy")]
    (step,) = steps()
    assert "coalesce(extracted0_0, cast(extracted0_failed[0] AS bigint)), coalesce(extracted0_1" in step
    df.explain()
    plan = capsys.readouterr().out
    assert "id#" in plan
    assert "value#" not in plan


@pytest.mark.parametrize(
    ("query", "step"),
    [
        (
            "with e as (select * from bronze where id < 3) "
            "select max(e.value:user.id::bigint) from e where value:type::string = 'buy'",
            "select * from {t0} AS `bronze` where",
        ),
        (
            "with e as (select id, value as v from bronze) select max(b.v:user.id::bigint) from e a join e b "
            "on a.id = b.id where a.v:type::string = 'buy' and b.id < 3 and a.id < 3",
            "select id, extracted0_0, extracted0_failed, extracted0_1 from {t0}",
        ),
        (
            "select max(k) from (select value:user.id::bigint as k, value from "
            "(select `value`, day from (select *, 1 as day from bronze where id < 3)) order by k limit 9) s "
            "where s.value:type::string = 'buy'",
            "select extracted0_0, extracted0_failed, extracted0_1, day from (select *, 1 as day",
        ),
        (
            "select max(id) from "
            "(select value:user.id::bigint, count(*) from bronze where id < 3 group by 1)",
            "AS bigint)) AS `id`, count(*)",
        ),
        (
            "select /*+ BROADCAST(b) */ max(b.value:user.id::bigint) from bronze b "
            "join (select id from bronze) c on b.id = c.id where b.id < 3",
            "max(coalesce(extracted0_0",
        ),
    ],
)
def test_paths_are_followed_through_derived_tables(
    spark: SparkSession, bronze: Path, steps: Callable[[], list[str]], query: str, step: str
):
    dvs.sql(spark, query)
    (found,) = steps()
    assert step in found
    assert "value:" not in found
    assert rows(spark, query) == [(2,)]


@pytest.mark.parametrize(
    ("query", "is_skipped"),
    [
        ("with e as (select * from bronze) select count(*) from e where id = 3", True),
        (
            "with e as (select id as k, value:type::string as t from bronze) "
            "select count(*) from e where k = 3 and t = 'view'",
            True,
        ),
        ("select count(*) from (select * from (select id as k from bronze) where k < 4) where k > 2", True),
        (
            "with e as (select id, value from bronze) select count(*) from e a join e b "
            "on a.id = b.id + 1 where a.id = 3 and b.id < 9",
            True,
        ),
        ("with e as (select * from bronze limit 99) select count(*) from e where id = 3", False),
        (
            "with e as (select *, sum(id) over (order by id) as s from bronze) "
            "select count(*) from e where id = 3",
            False,
        ),
        (
            "with e as (select b.id from (select 3 as k) left join bronze b on b.id = k) "
            "select count(*) from e where id = 3",
            False,
        ),
        (
            "with e as (select * from bronze) select count(*) from e a where id = 3 "
            "and exists (select 1 from e b where b.id >= a.id)",
            False,
        ),
        (
            "with e as (select * from bronze) select count(*) from e a join e b using (id) where b.id = 3",
            False,
        ),
    ],
)
def test_conditions_on_a_derived_table_skip_files_if_its_rows_do_not_depend_on_others(
    spark: SparkSession, bronze: Path, query: str, is_skipped: bool
):
    assert rows(spark, query) == [(1,)]
    (first,) = dv.load_snapshot(bronze, 0).files["path"].to_pylist()
    (last,) = listed_files(bronze) - {first}
    (bronze / last).unlink()
    if is_skipped:
        assert rows(spark, query) == [(1,)]
    else:
        with pytest.raises(PySparkException, match=r"No such file|PATH_NOT_FOUND"):
            rows(spark, query)


def test_conditions_on_a_path_of_a_derived_table_skip_files(spark: SparkSession, tmp_path: Path):
    for number in (1, 2):
        value = pa.array([json.dumps({"n": number})], pa.json_())
        shredding = dv.ShreddingSchema.of({"n": pa.int64()})
        dv.write_table(tmp_path, pa.table({"value": value}), mode="append", shredding=shredding)
    query = f"with e as (select value:n::int as n from delta.`{tmp_path}`) select n from e where n = 1"
    (first,) = dv.load_snapshot(tmp_path, 0).files["path"].to_pylist()
    (last,) = listed_files(tmp_path) - {first}
    (tmp_path / last).unlink()
    assert rows(spark, query) == [(1,)]


def test_a_name_in_order_by_is_of_the_result_first(spark: SparkSession, bronze: Path):
    spark.sql(
        "select id as k, parse_json(concat('{\"user\": {\"id\": ', -id, '}}')) as value from range(20)"
    ).createOrReplaceTempView("others")
    try:
        query = (
            "select o.* from bronze b join others o on b.id = o.k where b.id < 3 order by value:user.id::int"
        )
        assert [row[0] for row in rows(spark, query)] == [2, 1, 0]
    finally:
        spark.catalog.dropTempView("others")


def test_an_error_has_the_text_of_the_query(spark: SparkSession, bronze: Path):
    with pytest.raises(AnalysisException, match="missing") as caught:
        rows(spark, "select missing from bronze")
    assert "CAST(NULL" not in str(caught.value)
    with pytest.raises(AnalysisException, match="PARSE_SYNTAX_ERROR") as caught:
        rows(spark, "select id from bronze union all by id select 1")
    assert "CAST(NULL" not in str(caught.value)


def test_files_are_skipped_by_the_conditions_of_the_query(spark: SparkSession, bronze: Path):
    (first,) = dv.load_snapshot(bronze, 0).files["path"].to_pylist()
    (last,) = listed_files(bronze) - {first}
    (bronze / last).unlink()
    assert rows(spark, "select max(value:type::string) from bronze where id = 3") == [("view",)]
    with pytest.raises(PySparkException, match=f"{last}: the file does not exist"):
        rows(spark, "select max(value:type::string) from bronze where id = 13")


def test_a_failing_cast_fails_where_spark_evaluates_it_and_nowhere_else(spark: SparkSession, bronze: Path):
    cast = "select sum(value:user.id::bigint) from bronze"
    with pytest.raises(PySparkException, match="INVALID_VARIANT_CAST"):
        rows(spark, cast)
    assert rows(spark, f"{cast} where id < 15") == [(105,)]
    assert rows(spark, f"{cast} where value:type::string = 'buy'") == [(90,)]
    guarded = "case when id = 15 then -1 else value:user.id::bigint end"
    assert rows(spark, f"select min({guarded}), max({guarded}) from bronze") == [(-1, 19)]
    either = "where schema_of_variant(value:user.id) = 'STRING' or value:user.id::bigint = 3"
    assert rows(spark, f"select id from bronze {either} order by id") == [(3,), (15,)]
    assert rows(spark, "select count(*) from bronze where try_cast(value:user.id as int) is null") == [(1,)]
    with pytest.raises(PySparkException, match="INVALID_VARIANT_CAST"):
        rows(spark, "select id from bronze where value:user.id::bigint = 99 or id = -1")


def test_a_view_has_the_rows_of_the_latest_version(spark: SparkSession, bronze: Path):
    query = "select count(*), max(value:user.id::bigint) from bronze where id >= 16"
    assert rows(spark, query) == [(4, 19)]
    append(bronze, range(20, 30))
    assert rows(spark, query) == [(14, 29)]
    dv.delete(bronze, "id > 25")
    assert rows(spark, query) == [(10, 25)]
    assert dvs.read_table(spark, "bronze").count() == 26


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select count(*) from BRONZE", [(20,)]),
        ("select VALUE:user.id::int, `value`:`user`['id']::string from bronze where ID = 3", [(3, "3")]),
        ("select value:Type::string from bronze where id = 3", [(None,)]),
        ("select * except (value) from bronze where value:user.id::string = '7'", [(7,)]),
        ("select id, '{value}' as `{}` from bronze where id = 1 -- {", [(1, "{value}")]),
        ("select bronze.id from bronze, (select 3 as k) s where bronze.value:user.id::string = s.k", None),
        ("with bronze as (select id + 100 as id from bronze) select min(id) from bronze", [(100,)]),
        (
            "with b as (select * from bronze where id < 2) select value:type::string from b",
            [("buy",), ("view",)],
        ),
        (
            "select id from bronze where id = 1 union select id from bronze where id = 2 order by id",
            [(1,), (2,)],
        ),
        (
            "select pos, e.value::string from bronze b, lateral variant_explode(b.value:tags) e where id = 4",
            [(0, "a"), (1, "4")],
        ),
        (
            "select t from bronze lateral view explode(cast(value:tags as array<string>)) as t where id = 4",
            [("a",), ("4",)],
        ),
        (
            "select a.id, b.id from bronze a left join bronze b on a.id = b.id "
            "and b.value:type::string = 'buy' where a.id < 3 and b.value:type::string is null",
            [(1, None)],
        ),
        (
            "select id from bronze o where id = (select max(id) from bronze i where i.id <= o.id) and id = 5",
            [(5,)],
        ),
        ("select value:type::string as id from bronze where id = 4 order by id", [("buy",)]),
        (
            "select value:user as value from bronze where id in (2, 3) order by value:id::int desc limit 1",
            None,
        ),
        ("select transform(array(1), value -> value + id) from bronze where id = 4", [([5],)]),
        ("select value:user.id?::int from bronze where id = 15", None),
        ("select count(*) from bronze tablesample (100 percent) where id = 1", [(1,)]),
        ("from bronze |> where id = 4 |> select value:type::string", [("buy",)]),
        ("table bronze", None),
        ("select id from bronze where value:nothing::int is null and id = 2", [(2,)]),
        ("select 1 from bronze where id = 1 having count(*) = 1", None),
        (
            "select value:type::string as k, count(*) from bronze group by all having max(id) > 18",
            None,
        ),
        ("select missing from bronze", None),
        ("select value:id from bronze b join bronze c on b.id = c.id", None),
    ],
)
def test_a_query_has_the_rows_and_the_error_of_spark(
    spark: SparkSession, bronze: Path, query: str, expected: list[tuple[object, ...]] | None
):
    dvs.read_table(spark, bronze).createOrReplaceTempView("bronze")
    try:
        by_spark = outcome(spark.sql, query)
    finally:
        spark.catalog.dropTempView("bronze")
    assert outcome(lambda text: dvs.sql(spark, text), query) == by_spark
    if expected is not None:
        assert rows(spark, query) == expected


@pytest.mark.parametrize(
    ("condition", "args"),
    [
        ("value:type::string = :kind and id < :most", {"kind": "buy", "most": 3}),
        ("value:type::string = ? and id < ?", ["buy", 3]),
        ("value:type::string in (:kind, null) and id < :most::int", {"kind": "buy", "most": Decimal("3.0")}),
        ("value:type::string = :it and id < 3", {"it": "it's \\ 'buy'"}),
        (
            "array_contains(:kinds, value:type::string) and value:user.id::double < :x",
            {"x": 2.5, "kinds": ["buy"]},
        ),
    ],
)
def test_parameters_have_the_values_of_the_call(
    spark: SparkSession, bronze: Path, condition: str, args: object
):
    try:
        spark.sql("select :one", {"one": 1})
    except AnalysisException:
        pytest.skip("the parser of Delta's JARs does not pass parameters on")
    expected = [] if "it" in str(args) and isinstance(args, dict) and "it" in args else [(0,), (2,)]
    assert rows(spark, f"select id from bronze where {condition} order by id", args) == expected


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_are_in_the_time_zone_of_the_session(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, str], None], zone: str
):
    setting(ZONE, zone)
    texts = [json.dumps({"ts": each}) for each in ("2024-01-01 12:00:00", "2024-01-01T12:00:00Z")]
    dv.write_table(tmp_path, pa.table({"value": pa.array(texts, pa.json_())}))
    query = (
        f"select unix_seconds(value:ts::timestamp) as s, value:ts::date as d from delta.`{tmp_path}` "
        "where value:ts::timestamp >= timestamp'2024-01-01 12:00:00' order by s"
    )
    local, utc = {"UTC": 0, "America/Los_Angeles": 8, "Asia/Tokyo": -9}[zone] * 3600 + 1704110400, 1704110400
    found = [row[0] for row in rows(spark, query)]
    assert found == sorted(each for each in (local, utc) if each >= local)


def test_tables_of_the_catalog_are_read_by_name(
    spark_with_delta: SparkSession, tmp_path: Path, steps: Callable[[], list[str]]
):
    spark = spark_with_delta
    append(tmp_path / "t", range(3))
    spark.sql("CREATE SCHEMA IF NOT EXISTS shop")
    spark.sql(f"CREATE TABLE shop.events USING delta LOCATION '{tmp_path / 't'}'")
    try:
        query = "select shop.events.value:user.id::int from shop.events where shop.events.id > 1"
        assert rows(spark, query) == [(2,)]
        assert "runs as 'select coalesce(extracted0_0" in steps()[-1]
        assert dvs.read_table(spark, "spark_catalog.shop.events", where="id > 1").count() == 1
        assert dvs.read_table(spark, "`shop`.`events`").count() == 3
        spark.range(1).createOrReplaceTempView("events")
        joined = "select events.id, e.value:type::string from events join shop.events e on events.id = e.id"
        assert rows(spark, joined) == [(0, "buy")]
    finally:
        spark.catalog.dropTempView("events")
        spark.sql("DROP TABLE shop.events")
        spark.sql("DROP SCHEMA shop")
    with pytest.raises(TableNotFoundError):
        dvs.read_table(spark, "shop.events")


@pytest.fixture
def views(
    spark_with_delta: SparkSession, tmp_path: Path, setting: Callable[[str, str], None]
) -> Iterator[SparkSession]:
    """Return a session with a schema of the tables `rows` and `others`, for the test to add views."""
    spark = spark_with_delta
    setting(ZONE, "Asia/Tokyo")
    setting("spark.sql.ansi.enabled", "true")
    write_tables(spark, tmp_path, random.Random(5), dirty=False)
    for name in TABLES:
        dvs.drop_view(spark, name)
        spark.catalog.dropTempView(name)
    spark.sql("CREATE SCHEMA shop")
    try:
        spark.sql(f"CREATE TABLE shop.rows USING delta LOCATION '{tmp_path / 'bronze'}'")
        spark.sql(f"CREATE TABLE shop.others USING delta LOCATION '{tmp_path / 'other'}'")
        yield spark
    finally:
        spark.sql("USE SCHEMA default")
        spark.sql("DROP SCHEMA shop CASCADE")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2))
def test_random_queries_of_views_have_the_results_of_spark(views: SparkSession, seed: int):
    bronze = [
        "SELECT * FROM rows WHERE value:a::int < 5 -- others",
        "SELECT id, day, n, at, value FROM shop.rows r UNION ALL SELECT * FROM spark_catalog.shop.others",
    ]
    views.sql("USE SCHEMA shop")
    views.sql(f"CREATE VIEW bronze AS {bronze[seed]}")
    views.sql("CREATE VIEW below (k, d, m, t, v) AS SELECT id, day, n, at, value FROM shop.others")
    views.sql("CREATE VIEW other AS SELECT k AS id, d AS day, m AS n, t AS at, v AS value FROM below b")
    generator = QueryGenerator(random.Random(seed), strict=True)
    assert list(differences(views, iter(generator.query, None), 15)) == []


def test_columns_have_the_qualifiers_that_spark_accepts(views: SparkSession):
    queries = [
        "select default.rows.id from rows",
        "select shop.rows.id, spark_catalog.shop.rows.value:a::int as a from rows where SHOP.`rows`.id > 3",
        "select spark_catalog.shop.rows.id from shop.rows as rows",
        "select shop.rows.value:a::int, r.others.n from rows join r.others on shop.rows.id = r.others.id",
        "select others.n from others, r.others",
        "select shop.others.n, r.others.id from others, r.others where shop.others.id = r.others.id",
        "select id from others where exists (select 1 from r.others where shop.others.id = r.others.id)",
        "select id from rows where shop.rows.id in (select r.others.id from r.others)",
        "select id from others where exists (select 1 from r.others where r.others.id = 3 and others.id = 4)",
        "select shop.others.id from others where id in (select n from r.others where others.id > 5)",
    ]
    views.sql("CREATE SCHEMA r")
    try:
        views.sql("CREATE TABLE r.others USING parquet AS SELECT id, n FROM shop.others WHERE id > 2")
        views.sql("USE SCHEMA shop")
        found = {text: outcome(lambda each: dvs.sql(views, each), text) for text in queries}
        assert found == {text: outcome(views.sql, text) for text in queries}
    finally:
        views.sql("DROP SCHEMA r CASCADE")


def test_a_permanent_view_of_spark_is_read_as_its_text(
    views: SparkSession, setting: Callable[[str, str], None], steps: Callable[[], list[str]]
):
    views.sql("USE SCHEMA shop")
    views.sql("CREATE VIEW late (k, event) AS SELECT id, value FROM rows WHERE id > 3")
    views.sql("CREATE TEMPORARY VIEW temporary AS SELECT id, value FROM rows")
    views.sql("USE SCHEMA default")
    query = "with rows as (select 1 as one) select late.event:c.n::int as n from shop.late, rows where k < 9"
    try:
        dvs.sql(views, query)
        (step,) = steps()
        assert "value" not in step
        assert "extracted0_0" in step
        assert outcome(lambda text: dvs.sql(views, text), query) == outcome(views.sql, query)
        steps()
        # Spark does not tell with which settings this one was created.
        views.sql("USE SCHEMA shop")
        dvs.sql(views, "select value:a::int from temporary")
        assert steps() == []
        # Spark reads a view with the settings with which it was created.
        setting(ZONE, "UTC")
        time = "select event:ts::timestamp::string as t from shop.late"
        dvs.sql(views, time)
        assert steps() == []
        assert outcome(lambda text: dvs.sql(views, text), time) == outcome(views.sql, time)
    finally:
        views.catalog.dropTempView("temporary")


def test_a_view_whose_table_has_changed_is_read_by_spark(views: SparkSession, steps: Callable[[], list[str]]):
    views.sql("CREATE TABLE shop.small (id INT) USING delta")
    views.sql("INSERT INTO shop.small VALUES (1)")
    views.sql("CREATE VIEW shop.star AS SELECT * FROM shop.small")
    assert rows(views, "select * from shop.star where id = 1") == [(1,)]
    assert "runs as" in steps()[-1]
    views.sql("ALTER TABLE shop.small ADD COLUMN n INT")
    assert rows(views, "select * from shop.star where id = 1") == [(1,)]
    assert steps() == []


def test_a_setting_that_changes_the_language_leaves_the_query_to_spark(
    spark: SparkSession, bronze: Path, setting: Callable[[str, str], None], steps: Callable[[], list[str]]
):
    setting("spark.sql.caseSensitive", "true")
    assert rows(spark, "select value:user.id::int from bronze where id = 3") == [(3,)]
    assert "unchanged" in steps()[-1]
    with pytest.raises(AnalysisException):
        rows(spark, "select VALUE:user.id::int from bronze where id = 3")


def test_views_are_of_a_session_and_can_be_dropped(spark: SparkSession, bronze: Path, tmp_path: Path):
    dvs.create_view(spark, "Other View", bronze)
    assert rows(spark, "select count(*) from `other view`") == [(20,)]
    dvs.drop_view(spark, "OTHER VIEW")
    dvs.drop_view(spark, "OTHER VIEW")
    with pytest.raises(AnalysisException):
        rows(spark, "select count(*) from `other view`")
    with pytest.raises(TableNotFoundError):
        dvs.create_view(spark, "absent", tmp_path / "absent")
    with pytest.raises(ValueError, match="name of a view"):
        dvs.create_view(spark, "", bronze)
    assert rows(spark, "select 1 as one") == [(1,)]
