"""`sql` returns the rows and the types of Spark, for random queries and for one of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark.queries import TABLES
from spark.sql_queries import differences, kind_of_difference, outcome_here, outcome_in_spark

from delta_variant import spark as dvs

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Return the session, without the views and the time zone of the test afterwards."""
    zone = spark.conf.get(ZONE)
    yield spark
    spark.conf.set(ZONE, zone)
    for name in TABLES:
        dvs.drop_view(spark, name)
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("seed", range(6))
def test_random_queries_return_what_spark_returns(session: SparkSession, tmp_path: Path, seed: int):
    found = Counter[str]()
    assert list(differences(session, seed, 50, tmp_path, found)) == []
    assert found["equal"] > 25


KINDS = {
    "a join of Variants": "select a.id, b.value:b::string from bronze a join other b on a.value:a::int = b.n",
    "VALUES": "select * from values (1), (2.5) as t(n)",
    "a CTE": "with c as (select id, value from bronze) select c.value:a::int from c where c.id < 9",
    "a CTE with the name of a table": "with other as (select id from bronze) select * from other",
    "a window": "select id, sum(id) over (partition by day order by id) from bronze",
    "QUALIFY": "select id from bronze qualify rank() over (partition by day order by id) = 1",
    "variant_explode": "select id, e.pos from bronze, lateral variant_explode(value:arr) as e",
    "variant_explode_outer": "select id, e.pos from bronze, lateral variant_explode_outer(value:arr) e",
    "a subquery as a value": "select id, (select max(id) from other) as m from bronze",
    "IN": "select id from bronze where id in (select id from other)",
    "NOT IN": "select id from bronze where id not in (select n from other)",
    "EXISTS": "select id from bronze where exists (select 1 from other where id > 3)",
    "a correlated EXISTS": "select id from bronze b where exists (select 1 from other o where o.id = b.id)",
    "a correlated NOT EXISTS": "select id from bronze b where not exists (select 1 from other where n = b.n)",
    "GROUP BY ALL": "select day as d, count(*) as n from bronze group by all",
    "HAVING": "select day as d from bronze group by day having count(*) > 3",
    "DISTINCT": "select distinct value:b::string as b from bronze",
    "UNION": "select id from bronze union select id from other",
    "INTERSECT": "select id from bronze intersect select id from other",
    "EXCEPT": "select id from bronze except select id from other",
    "a semi join": "select id from bronze a left semi join other b on a.id = b.id",
    "an anti join": "select id from bronze a left anti join other b on a.id = b.id",
    "a full join": "select a.id as i, b.id as j from bronze a full join other b on a.id = b.id + 5",
    "a natural join": "select * from (select id, n, day from bronze) natural join (select at, N, id "
    "from other)",
    "a natural left join": "select * from (select n, id from bronze) natural left join (select id, at "
    "from other) natural join (select at, day from bronze)",
    "a natural right join": "select * from (select id, n, day from bronze) a natural right join "
    "(select at, n, id from other)",
    "a natural full join": "select * from (select id, n, day from bronze) natural full outer join "
    "(select at, n, id from other)",
    "a natural join without common columns": "select * from (select id from bronze) natural join "
    "(select n from other)",
    "a lateral alias": "select id + 1 as b, b * 2 as c from bronze",
    "a filter of an aggregate": "select count(*) filter (where id > 3) as n from bronze",
    "a hint": "select /*+ broadcast(o) */ b.id from bronze b join other o on b.id = o.id",
    "a raw string": r"select id from bronze where value:b::string = r'buy'",
    "FROM without an alias": "select n from (select id as n from bronze) where n > 3",
    "a named window": "select id, sum(id) over w as s from bronze window w as (order by id)",
    "IGNORE NULLS": "select id, lag(n) ignore nulls over (order by id) as a, last(n) ignore nulls over "
    "(order by id) as b from bronze",
    "a window of Variants": "select id, lag(value) over w:b::string, lead(value, 1, value) over w, "
    "first_value(value) over w, last_value(value) ignore nulls over w, nth_value(value, 2) over w "
    "from bronze qualify lag(value, 1, null) over w:a::string is not null "
    "window w as (partition by day order by id)",
    "texts of a group": "select n, string_agg(day, ', ') within group (order by id desc), listagg(id) "
    "within group (order by day nulls last, id) filter (where id > 9), "
    "string_agg(distinct day, '/') within group (order by day) from bronze group by n",
    "a percentile": "select day, percentile_cont(0.3) within group (order by n) "
    "filter (where id > 3) from bronze group by day",
    "texts of a window": "select id, string_agg(id, ',') over (partition by day order by id) from bronze",
    "the most frequent value": "select mode(day), mode(n, true), mode(at, true) filter (where id < 5) "
    "from bronze",
    "EXCEPT ALL": "select n from bronze except all select n from other",
    "INTERSECT ALL": "select n from bronze intersect all select n from other",
    "an item of HAVING": "select day, count(*) as id from bronze group by day having id > 3",
    "a key in HAVING": "select upper(day) as day, count(*) as c from bronze group by day having day > 'd'",
    "an item that is two columns": "select b.id, b.n from bronze a join other b on a.id = b.id order by id",
    "IN as a value": "select id, n in (select n from other) as a, not (n in (select n from other) or id = 4) "
    "as b, (n in (select n from other)) is null as c from bronze",
    "clauses as aliases": "select id order, n timestamp from bronze version order by order, timestamp",
    "queries in parentheses": "select id from bronze where exists ((select 1)) and id in ((select 1) union "
    "(select id from other))",
    "joins in parentheses": "select a.id from ((select id from bronze) a join (other b join bronze c "
    "on b.id = c.id) on a.id = b.id)",
    "VALUES without parentheses": "with v (n) (select * from values 1, 2) select * from v",
    "an order of NULLs": "select n as a, id as b from bronze order by 1 desc nulls first, 2 limit 5",
    "ROLLUP": "select day, n, count(*), grouping_id(day, n) from bronze group by rollup (day, n)",
    "CUBE": "select day, n, grouping(n) from bronze group by day, n with cube",
    "GROUPING SETS": "select day, n, sum(id) from bronze group by grouping sets ((day, n), (day), ())",
    "one grouping set": "select count(*) from bronze where id < 0 group by grouping sets (())",
    "grouping sets of no rows": "select day, count(*) from bronze where id < 0 group by rollup (day)",
}
REJECTED = {
    "a correlated value": "select id, (select max(o.n) from other o where o.id = b.id) from bronze b",
    "a correlated IN": "select id from bronze b where id in (select o.n from other o where o.id = b.id)",
    "a lambda": "select transform(array(id), x -> x + 1) from bronze",
    "a lateral view": "select id, x from bronze lateral view explode(array(1, 2)) t as x",
    "PIVOT": "select * from (select day, n from bronze) pivot (sum(n) for day in ('a', 'b'))",
    "UNPIVOT": "select * from (select id, n from bronze) unpivot (v for k in (n))",
    "TABLESAMPLE": "select * from bronze tablesample (10 rows)",
    "a pipe": "from bronze |> where id > 3",
    "recursion": "with recursive r as (select 1 as n union all select n + 1 from r) select * from r limit 3",
    "a Hive FROM": "from bronze select id",
    "a natural join by a Variant": "select * from bronze natural join other",
    "a window of values": "select sum(id) over (order by id range 1 preceding) from bronze",
    "an approximate percentile": "select percentile_approx(id, 0.5) from bronze",
    "an unknown function": "select soundex(day) from bronze",
    "a sort of partitions": "select id from bronze sort by id",
}


def test_a_query_of_each_kind_returns_what_spark_returns_or_is_rejected(
    session: SparkSession, tmp_path: Path
):
    list(differences(session, 0, 0, tmp_path, Counter()))
    tables = {name: tmp_path / name for name in TABLES}

    def compare(query: str) -> str:
        here: Any = outcome_here(query, "UTC", tables)
        return kind_of_difference(query, here, outcome_in_spark(session, query))

    assert {name: compare(query) for name, query in KINDS.items()} == dict.fromkeys(KINDS, "equal")
    assert {name: compare(query) for name, query in REJECTED.items()} == dict.fromkeys(
        REJECTED, "rejected here"
    )
