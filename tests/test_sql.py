"""`sql`: each clause, names, errors, parameters, time travel and the forms of tables and results.

The expected rows follow from the rows of the tables. `spark/test_sql_on_spark.py` compares random queries
with those of Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.errors import CastError, ExpressionError

EVENTS = [
    {"id": 0, "event": {"type": "buy", "price": 3, "tags": ["x", "y"]}},
    {"id": 1, "event": {"type": "view", "price": 1, "tags": []}},
    {"id": 2, "event": {"type": "buy", "price": 5, "tags": ["x"]}},
    {"id": 3, "event": {"type": None, "price": 2}},
]
KINDS = pa.table({"kind": ["buy", "view", "lend"], "weight": [2.5, 1.0, None]})


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("sql") / "events")
    dv.write_table(path, EVENTS, variant_columns=["event"])
    return path


@pytest.fixture
def ask(events: str) -> Callable[..., list[tuple[Any, ...]]]:
    def ask(query: str, *arguments: Any, **tables: Any) -> list[tuple[Any, ...]]:
        result = dv.sql(query, *arguments, **{"events": events, "kinds": KINDS, **tables})
        return [tuple(row.values()) for row in result]

    return ask


Ask = Callable[..., list[tuple[Any, ...]]]

TYPE = "event:type::string"
LONG_KEYS = ", ".join(f"id + {number}" for number in range(40))
PRICE = "event:price::int"

ROWS = {
    "select id from events where event:price::int > 2 order by id": [(0,), (2,)],
    "select * except (event) from events order by id desc limit 2": [(3,), (2,)],
    "select id from events order by id limit 2 offset 1": [(1,), (2,)],
    f"select {TYPE} as t, count(*), sum({PRICE}) from events group by all order by t": [
        (None, 1, 2),
        ("buy", 2, 8),
        ("view", 1, 1),
    ],
    f"select t from (select {TYPE} as t, count(*) from events group by all) order by all limit 1": [(None,)],
    f"select {TYPE} as t, id from events order by all desc nulls last limit 3": [
        ("view", 1),
        ("buy", 2),
        ("buy", 0),
    ],
    "select id from events union select 9 order by all desc limit 1": [(9,)],
    f"select {TYPE}, max(id) + 1 from events group by 1 having count(*) > 1": [("buy", 3)],
    f"select {TYPE} as t from events group by t having min({PRICE}) < 2": [("view",)],
    f"select upper({TYPE}) as t, sum(id) * 2 as s from events group by {TYPE} order by s, t": [
        ("VIEW", 2),
        ("BUY", 4),
        (None, 6),
    ],
    f"select distinct {TYPE} as t from events order by t desc": [("view",), ("buy",), (None,)],
    f"select count(distinct {TYPE}), count({TYPE}), count(*) from events": [(2, 3, 4)],
    "select count(*), sum(id), max(id) from events where id > 99": [(0, None, None)],
    "select sum(id) from events where id > 99 group by id": [],
    f"select sum(id) filter (where {TYPE} = 'buy') from events": [(2,)],
    f"select e.id, k.weight from events e join kinds k on {TYPE} = k.kind order by e.id": [
        (0, 2.5),
        (1, 1.0),
        (2, 2.5),
    ],
    f"select id, weight from events left join kinds on {TYPE} = kind and id < 2 order by id": [
        (0, 2.5),
        (1, 1.0),
        (2, None),
        (3, None),
    ],
    f"select id, kind from events right join kinds on {TYPE} = kind where weight is null": [(None, "lend")],
    f"select count(*) from events full join kinds on {TYPE} = kind": [(5,)],
    f"select id from events semi join kinds on {TYPE} = kind order by 1": [(0,), (1,), (2,)],
    f"select id from events anti join kinds on {TYPE} = kind": [(3,)],
    "select count(*) from events, kinds where id < 1": [(3,)],
    "select count(*) from events cross join kinds": [(12,)],
    "select count(*) from (select a.id from events a cross join kinds limit 5)": [(5,)],
    "select id from events cross join kinds order by id limit 1 offset 3": [(1,)],
    "with n as (select double('Infinity') as x) select isnan(stddev_pop(x)), isnan(var_pop(x)) from n": [
        (True, True)
    ],
    "select id from (select id, event:none as v from events union all select 9, event from events) "
    "where v is null order by id": [(0,), (1,), (2,), (3,)],
    "select x:a::int from (select parse_json('{\"a\": 1}') as x union all select null union all select null) "
    "order by 1 nulls last limit 2": [(1,), (None,)],
    "select a.id, b.id as other from events a join events b on a.id < b.id where b.id < 2": [(0, 1)],
    "select id, count(*) from events a join events b using (id) group by id order by id": [
        (number, 1) for number in range(4)
    ],
    "select * from (select id, id > 1 as more from events) natural full join (select 2L as n, 9L as ID, "
    "false as more) order by id": [
        (0, False, None),
        (1, False, None),
        (2, True, None),
        (3, True, None),
        (9, False, 2),
    ],
    "select * from (select id from events) natural join (select kind from kinds where weight is null)": [
        (number, "lend") for number in range(4)
    ],
    "with t as (select id, event from events where id < 2) select t.event:price::int from t order by 1": [
        (1,),
        (3,),
    ],
    "select n from (select id + 1 as n from events) where n > 3": [(4,)],
    "select lag(event) over (order by id):type::string, lead(event, 2, event) over (order by id):price::int, "
    "nth_value(event, 2) over (order by id):price::int from events order by id": [
        (None, 5, None),
        ("buy", 2, 1),
        ("view", 5, 1),
        ("buy", 2, 1),
    ],
    "select id from events qualify last_value(event) over (order by id):type::string = 'view'": [(1,)],
    f"select string_agg({TYPE}, ''', ') within group (order by id desc), listagg(id) within group (order by "
    f"{TYPE}, id), string_agg(distinct {TYPE}, '-') within group (order by {TYPE} desc), "
    f"string_agg({TYPE}) filter (where id = 1), string_agg(id) filter (where id > 3) from events": [
        ("buy', view', buy", "3021", "view-buy", "view", None)
    ],
    f"select percentile_cont(0.5) within group (order by {PRICE}) from events": [(2.5,)],
    f"select mode({TYPE}), mode({PRICE} % 2, true), mode(id), mode(id) filter (where id > 3) from events": [
        ("buy", 1, 0, None)
    ],
    f"select kind from kinds where kind in (select {TYPE} from events) order by 1": [("buy",), ("view",)],
    f"select kind from kinds where kind not in (select {TYPE} from events)": [],
    f"select kind from kinds k where exists (select 1 from events where {TYPE} = k.kind and id > 1)": [
        ("buy",)
    ],
    f"select kind from kinds where not exists (select * from events where {TYPE} = kind)": [("lend",)],
    "select id from events e where exists (select 1 from events where e.id = id + 3)": [(3,)],
    "select (select max(id) from events) + 1": [(4,)],
    "select kind from kinds where not exists (select 1 from events where id > 3) limit 1": [("buy",)],
    "select id from events where id < 1 union all select 7 union all select 0 order by id": [
        (0,),
        (0,),
        (7,),
    ],
    "select 1 union select 1 union select 2.5 order by 1": [(Decimal("1.0"),), (Decimal("2.5"),)],
    "table kinds union all table kinds order by kind limit 1": [("buy", 2.5)],
    f"select kind from kinds intersect select {TYPE} from events order by 1": [("buy",), ("view",)],
    f"select kind from kinds except select {TYPE} from events": [("lend",)],
    f"select id, row_number() over (partition by {TYPE} order by {PRICE} desc) from events order by id": [
        (0, 2),
        (1, 1),
        (2, 1),
        (3, 1),
    ],
    "select id, lag(id, 1, -1) over (order by id) from events order by id limit 2": [(0, -1), (1, 0)],
    "select id from events qualify row_number() over (order by id desc) = 1": [(3,)],
    f"select {TYPE}, rank() over (order by sum(id) desc) as r from events group by 1 order by r": [
        (None, 1),
        ("buy", 2),
        ("view", 3),
    ],
    "select sum(id) over (order by id rows between 1 preceding and current row) from events order by 1": [
        (0,),
        (1,),
        (3,),
        (5,),
    ],
    "select id, pos, tag.value::string from events, lateral variant_explode(event:tags) as tag "
    "order by id, pos": [(0, 0, "x"), (0, 1, "y"), (2, 0, "x")],
    "select id, t from events, lateral variant_explode_outer(event:tags) as x(p, k, t) where p is null "
    "order by id": [(1, None), (3, None)],
    "select collect_list(id) from events where id > 1": [([2, 3],)],
    "select collect_list(id), collect_set(id) from events where id > 9": [([], [])],
    "select percentile(id, 0.25), median(id), stddev_pop(id) from events where id < 3": [
        (0.5, 1.0, (2 / 3) ** 0.5)
    ],
    "select min_by(kind, weight), max_by(kind, weight) from kinds": [("view", "buy")],
    "select count_if(id > 1), bool_or(id > 2), every(id > 2) from events": [(2, True, False)],
    "select weight from kinds order by weight": [(None,), (1.0,), (2.5,)],
    "select weight from kinds order by weight desc nulls first": [(None,), (2.5,), (1.0,)],
    "select a + 1 as b, b * 2 as c from (select 1 as a)": [(2, 4)],
    "select avg(x), sum(x) from (select 1.5 as x union all select 2.0 union all select 1.0)": [
        (Decimal("1.50000"), Decimal("4.5"))
    ],
    "select event:price::int as p from events where event:type is null": [],
    f"select count(*) from events where {' and '.join(['id >= 0'] * 500)}": [(4,)],
    "SELECT `id` FROM events -- a comment\n WHERE id = 3;": [(3,)],
    # Words of clauses are aliases where an item ends, with and without AS.
    "select id order, id + 1 timestamp from events filter order by order desc limit 1": [(3, 4)],
    "select version.id group from (select id from events) version where id > 2": [(3,)],
    # Parentheses around queries and joins.
    "select id from events where id in ((select 1) union all (select 2)) order by id": [(1,), (2,)],
    "select 1 where exists ((select 1 from events where id = 3)) and ((select 1) + 1) = 2": [(1,)],
    "select e.id from ((select id from events) e join kinds k on e.id = k.weight)": [(1,)],
    "select e.id from ((events e join kinds k on e.id = k.weight) join kinds on e.id < 2) limit 1": [(1,)],
    "with e (n) (select id from events) select max(n) from e": [(3,)],
    "select * from values 1, 2 as t(n) order by n": [(1,), (2,)],
    # The names in HAVING are keys of groups, then items of SELECT, then other columns.
    "select kind, count(*) as weight from kinds group by kind having weight > 2": [],
    "select upper(kind) as kind, count(*) from kinds group by kind having kind = 'buy'": [("BUY", 1)],
    # A name in ORDER BY and HAVING is an item of SELECT, also if it is several columns.
    "select b.id, count(*) as n from events a join events b on a.id < b.id group by b.id having id > 1 "
    "order by id desc": [(3, 3), (2, 2)],
    # Spark tests a value by a subquery as a join does: no match is FALSE, also of NULL.
    "select weight in (select id from events) as a, not (weight in (select null)) as b, "
    "(weight in (select 1)) is null as c from kinds order by kind": [
        (False, False, False),
        (False, False, False),
        (True, False, False),
    ],
    # Bags of rows
    "select 1 from events except all select 1": [(1,), (1,), (1,)],
    "select 1 from events intersect all (select 1 from kinds)": [(1,), (1,), (1,)],
    "select sum(all id), count(all id) from events": [(6, 4)],
    # Windows by name, and functions that skip NULLs
    "select id, sum(id) over w, rank() over (w) from events window w as (order by id desc) order by id": [
        (0, 6, 4),
        (1, 6, 3),
        (2, 5, 2),
        (3, 3, 1),
    ],
    "select id, row_number() over w as n from events window w as (order by id) qualify n = 2": [(1, 1 + 1)],
    f"select id, last_value({TYPE}) ignore nulls over w, lag({TYPE}) ignore nulls over w from events "
    "window w as (order by id) order by id desc limit 2": [(3, "buy", "buy"), (2, "buy", "view")],
    f"select {TYPE} as t, id > 1 as b, count(*), grouping(id > 1), grouping_id() from events "
    "group by rollup (t, (id > 1)) order by all": [
        (None, None, 1, 1, 1),
        (None, None, 4, 1, 3),
        (None, True, 1, 0, 0),
        ("buy", None, 2, 1, 1),
        ("buy", False, 1, 0, 0),
        ("buy", True, 1, 0, 0),
        ("view", None, 1, 1, 1),
        ("view", False, 1, 0, 0),
    ],
    f"select {TYPE} as t, count(*) from events where id < 0 group by grouping sets ((t), ())": [],
    "select count(*) from events where id < 0 group by grouping sets (())": [(0,)],
    "select first(weight) ignore nulls, last(weight) from (select * from kinds order by kind desc)": [
        (1.0, 2.5)
    ],
    "select max_by(event, -id):type::string as t from events where id > 0": [("view",)],
    "select w:type::string as t from (select first(event) as w from events group by id) order by t limit 2": [
        (None,),
        ("buy",),
    ],
    "select any_value(event) filter (where id > 9) is null, size(collect_list(event)) from events": [
        (True, 4)
    ],
}


@pytest.mark.parametrize("query", ROWS)
def test_a_query_returns_the_rows_that_follow_from_those_of_its_tables(query: str, ask: Ask):
    assert ask(query) == ROWS[query]


ERRORS = {
    "select foo(id) from events": "the function `foo` is not supported",
    "select id from events where sum(id) > 1": r"`sum\(id\)` is not allowed here",
    f"select id, count(*) from events group by {TYPE}": "`id` is not in GROUP BY",
    "select id from events tablesample (1 rows)": "got `tablesample`",
    "select * from events pivot (count(*) for id in (1))": "got `pivot`",
    "select grouping(id) from events group by id": "`grouping` needs ROLLUP, CUBE or GROUPING SETS",
    f"select grouping({TYPE}) from events group by rollup (id)": "is not a key of GROUP BY",
    f"select grouping_id({TYPE}, id) from events group by cube (id, {TYPE})": "in their order, or none",
    "select grouping(id) over () from events group by cube (id)": "`grouping` has no window",
    f"select 1 from events group by cube ({LONG_KEYS})": "more than 65,535 grouping sets",
    f"select 1 from events group by {LONG_KEYS} with cube": "more than 65,535 grouping sets",
    f"select 1 from events group by rollup ({LONG_KEYS}), rollup ({LONG_KEYS}), rollup ({LONG_KEYS}), "
    f"rollup ({LONG_KEYS})": "more than 65,535 grouping sets",
    "select id from events group by cube (id) with rollup": "got `with`",
    "select id from events a natural semi join events": "got `natural`",
    "select a.id from events a natural join events b": "is a Variant, which cannot be compared",
    "select event from events order by event": "is a Variant, which cannot be compared",
    "select count(distinct event) from events": "is a Variant, which cannot be compared",
    "select collect_set(event) from events": "is a Variant, which cannot be compared",
    "select max(event) over (order by id) from events": "is a Variant, which cannot be compared",
    "select string_agg(distinct id) within group (order by id) from events": r"is `cast\(id as string\)`",
    "select string_agg(id, id) from events": "`string_agg`: expected constant text, got `id`",
    "select sum(id) within group (order by id) from events": "`sum` has no `within group`",
    "select listagg(id) within group (order by id) over () from events": "no `within group` over a window",
    "select listagg(id) within group (order by event) from events": "is a Variant, which cannot be compared",
    f"select percentile_cont(0.5) within group (order by {PRICE} desc) from events": "ascending, got `from`",
    "select string_agg(id) within group (id) from events": "expected `order by`",
    f"select mode({PRICE}::double) from events": "not floating-point numbers",
    "select lag(event, 1, 5) over (order by id) from events": "`lag`: cast the Variant `event`",
    "select event, count(*) from events group by event": "is a Variant, which cannot be compared",
    "select nothing from events": "`nothing` does not exist; the columns are events.id, events.event",
    "select id from events a join events b on a.id = b.id": "`id` matches 2 columns",
    "select * from missing": "unknown table `missing`: pass it as an argument",
    "select type from events": "the columns are events.id, events.event; did you mean `event:type`",
    "select id, id from events": "two columns are named 'id'",
    "select id from events union select id, 1 from events": "expected queries of as many columns",
    "values ('1', 1), (2, 1)": "a column of type string with one of type int: cast one of them",
    "select id from events e where id = (select max(x.id) from events x where x.id = e.id)": "`e.id`",
    "select (select id from events)": "more than one row",
    "select id from events where id > :least": "the parameter `least` has no value",
    "select sum(id) ignore nulls from events": "`sum` has no `ignore nulls`",
    "select last(id) filter (where id > 2) over (order by id) from events": "`last` over a window has no",
    "select id * 2 as id, row_number() over (order by id) from events qualify id = 6": "rename the item",
    "select kind as weight, count(*) from kinds group by kind having weight = 'buy'": "rename the item",
    "select id + 1 as n from events qualify n = 2": "expected a window function in SELECT or QUALIFY",
    "select id from events where exists (select 1 from kinds where weight = id) or id = 0": "write a join",
    "select percentile(id, id) from events": "expected a constant from 0 to 1",
    "select row_number() over (partition by id) from events": "needs `order by`",
    "select sum(event:type) from events": "cast it",
    "select sum(id) over w from events window x as (order by id)": "the window `w` is not defined",
    "with recursive t as (select 1) select * from t": "recursive queries are not supported",
    "select a.id from events a left join events b on a.id + b.id = 3": "is not supported in a left join",
    "select row_number() over (order by all) from events": "`all` does not exist",
    "select percentile_approx(id, 0.5) from events": "`percentile_approx` is not supported",
}


@pytest.mark.parametrize("query", ERRORS)
def test_a_construct_that_is_not_supported_is_an_error_that_names_it(query: str, ask: Ask):
    with pytest.raises(ExpressionError, match=ERRORS[query]):
        ask(query)


def test_a_value_that_cannot_be_cast_is_an_error_unless_its_row_is_excluded(ask: Ask):
    with pytest.raises(CastError, match="cannot cast"):
        ask("select event:type::int from events")
    query = "select a.event:type::int from events a join events b on a.id = b.id where a.event:type is null"
    assert ask(query) == []
    narrow = "select a.event:type::int from events a join kinds on a.id = weight where a.id > 2"
    assert ask(narrow) == []


def test_a_sum_that_does_not_fit_its_type_is_an_error(ask: Ask):
    with pytest.raises(CastError, match="does not fit its type"):
        ask("select sum(x) from (select 9223372036854775807 as x union all select 1)")


def test_results_have_the_types_of_spark(events: str):
    query = (
        "select count(*) as n, sum(id) as s, avg(id) as a, sum(cast(id as decimal(10,2))) as d, "
        "avg(cast(id as decimal(10,2))) as e, sum(event:price::float) as f, min(event:price::smallint) as m, "
        "collect_list(event:type::string) as l, row_number() over (order by count(*)) as r from events"
    )
    assert dv.sql(query, events=events).schema.types == [
        pa.int64(),
        pa.int64(),
        pa.float64(),
        pa.decimal128(20, 2),
        pa.decimal128(14, 6),
        pa.float64(),
        pa.int16(),
        pa.list_(pa.string()),
        pa.int32(),
    ]


def test_zeros_of_both_signs_are_one_group_and_nan_is_another(ask: Ask):
    numbers = pa.table({"x": [0.0, -0.0, float("nan"), float("nan"), None]})
    assert sorted(count for _, count in ask("select x, count(*) from n group by x", n=numbers)) == [1, 2, 2]
    assert ask("select count(distinct x) from n", n=numbers) == [(2,)]
    assert ask("select count(*) from n a join n b on a.x = b.x", n=numbers) == [(8,)]


def test_parameters_are_constants_of_the_types_of_their_python_objects(ask: Ask):
    assert ask("select id from events where id > :n and event:type::string = :t", {"n": 1, "t": "buy"}) == [
        (2,)
    ]
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    row = ask("select typeof(:a), typeof(:b), typeof(:c), :c", {"a": 1, "b": 2**40, "c": noon})[0]
    assert row == ("int", "bigint", "timestamp", noon)
    with pytest.raises(dv.ArgumentTypeError, match="'c': expected a datetime with a time zone"):
        ask("select :c", {"c": dt.datetime(2026, 1, 1)})


def test_tables_are_paths_handles_snapshots_frames_or_rows(events: str, ask: Ask):
    for table in (events, Path(events), dv.Table(events), dv.load_snapshot(events)):
        assert ask("select count(*) from t", t=table) == [(4,)]
    assert ask(f"select count(*) from delta.`{events}`") == [(4,)]
    assert ask("select sum(x) from t", t=pl.DataFrame({"x": [1, 2]})) == [(3,)]
    assert ask("select x from t", t=[{"x": 1}]) == [(1,)]
    assert ask("select event:price::int from t where id = 2", t=dv.read_table(events).to_table()) == [(5,)]


def test_an_earlier_version_is_read_by_its_number_or_its_time(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    query = "select count(*) as n from t version as of 0"
    assert dv.sql(query, t=table).to_pylist() == [{"n": 1}]
    moment = dv.history(table)[-1].timestamp.isoformat()
    result = dv.sql(f"select a.id from t a join t timestamp as of '{moment}' b on a.id = b.id", t=table)
    assert result.to_pylist() == [{"id": 1}]


def test_local_times_are_those_of_the_time_zone(ask: Ask):
    result = dv.sql("select hour(timestamp '2026-01-01 00:00:00Z') as h", timezone="Europe/Berlin")
    assert result.to_pylist() == [{"h": 1}]


def test_a_result_has_the_forms_of_a_scan(events: str):
    result = dv.sql("select id, event from events where id = 0", events=events)
    assert repr(result) == "<QueryResult of 1 row: id bigint, event variant>"
    assert result.to_pylist(variants="json")[0]["event"] == '{"price":3,"tags":["x","y"],"type":"buy"}'
    assert result.to_polars()["id"].to_list() == [0]
    assert result.to_pandas()["event"][0] == EVENTS[0]["event"]
    assert pa.table(result).num_rows == len(result) == 1
    assert "variant" in result._repr_html_()


def test_conditions_skip_files(tmp_path: Path):
    """A file that is not there shows that it is not read."""
    table = dv.Table(tmp_path / "t")
    for number in range(2):
        table.append([{"id": number, "event": {"n": number}}], variant_columns=["event"])
    (path,) = [
        each["path"]
        for each in table.snapshot().files.to_pylist()
        if '"id":1' in each["stats"].split("maxValues")[0]
    ]
    (tmp_path / "t" / path).unlink()
    queries = (
        "select sum(event:n::int) as n from t where id = 0",
        "select count(*) - 1 as n from t join (select 0 as k) on id = k where id = 0",
        "select n from (select id, event:n::int as n from t) where id = 0",
    )
    for query in queries:
        assert dv.sql(query, t=table).to_pylist() == [{"n": 0}]


def test_an_error_above_an_aggregate_names_it():
    rows = {"rows": [{"a": "x", "A b": 1}, {"a": "y", "A b": 2}]}
    with pytest.raises(dv.CastError, match=r"`cast\(max\(a\) as int\)`: cannot cast 'y' to int"):
        dv.sql("select max(a)::int as m from rows", **rows)
    with pytest.raises(dv.CastError, match=r"row_number\(\) as double\) / 0.0\)`: divide by zero"):
        dv.sql("select row_number() over (order by a) / 0 as n from rows", **rows)


def test_aggregates_whose_texts_are_alike_are_told_apart():
    rows = {"rows": [{"a": "x", "count(*)": 5}, {"a": "X", "count(*)": 6}]}
    query = """
        select max(concat(a, 'k')) as lower, max(concat(a, 'K')) as upper, count(*) as n,
            count(distinct a) as d, count(a) filter (where a = 'x') as one
        from rows
    """
    assert dv.sql(query, **rows).to_pylist() == [{"lower": "xk", "upper": "xK", "n": 2, "d": 2, "one": 1}]
    windows = "select `count(*)` as own, count(*) over () as n from rows order by own"
    assert dv.sql(windows, **rows).to_pylist() == [{"own": 5, "n": 2}, {"own": 6, "n": 2}]


def test_an_unknown_name_proposes_the_nearest():
    rows = [{"event": 1}]
    with pytest.raises(dv.ExpressionError, match=r"`evnt` does not exist; .*; did you mean `event`\?"):
        dv.sql("select evnt from rows", rows=rows)
    with pytest.raises(dv.ExpressionError, match=r"the tables are rows; did you mean rows\?"):
        dv.sql("select event from row", rows=rows)
