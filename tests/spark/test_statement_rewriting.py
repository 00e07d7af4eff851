"""`rewrite` replaces the paths of a query by columns that tasks read, and finds the rows that it needs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_variant.errors import ExpressionError
from delta_variant.expressions.tree import Expression
from delta_variant.protocol.schema.arrow import variant_field
from delta_variant.read.scope import Scope
from delta_variant.spark.queries.parsing import parse_query
from delta_variant.spark.queries.rewriting import Rewriting, rewrite

COLUMNS = Scope(
    pa.schema([("id", pa.int64()), ("n", pa.int32()), ("at", pa.date32()), variant_field("value")]),
    ("value",),
    "UTC",
)


def rewritten(text: str, *, with_conditions: bool = True) -> Rewriting:
    """Return a query over the tables `a`, `b` and `c` with equal columns; other tables are Spark's."""
    query = parse_query(text)
    assert query is not None
    tables = {number: COLUMNS for number, each in enumerate(query.tables) if each.parts[-1] in "abc"}
    return rewrite(query, tables, with_conditions=with_conditions)


def conditions(text: str) -> list[Expression | None]:
    """Return the condition on the rows of each table."""
    return [each.predicate for each in rewritten(text).reads.values()]


def bound(text: str) -> Expression | None:
    return COLUMNS.predicate(text)


def strict(name: str, type_name: str, number: int = 0, prefix: str = "") -> str:
    """Return the text of the strict cast of a column of a table."""
    failed = f"{prefix}{name.split('_')[0]}_failed[{number}]"
    return f"coalesce({prefix}{name}, cast({failed} AS {type_name}))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select value:x::int as k from a where value:y::string = 'b'",
            f"select {strict('extracted0_0', 'int')} as k from {{t0}} AS `a` "
            f"where {strict('extracted0_1', 'string', 1)} = 'b'",
        ),
        (
            "select try_cast(value:x as int), variant_get(value, '$.y'), a.value:x from a",
            "select extracted0_2, extracted0_0, extracted0_1 from {t0} AS `a`",
        ),
        (
            "select s.a.value:x, s.a.id from s.a where s.a.n = 1",
            "select extracted0_0, a.id from {t0} AS `a` where a.n = 1",
        ),
        # Spark takes the first path for that of the field y of x.
        (
            "select value:`x.y`::int, value:`x y`, value:['x.y'] from a where value:`x.y`::int = 1",
            "select value:`x.y`::int, extracted0_0, extracted0_1 from {t0} AS `a` where value:`x.y`::int = 1",
        ),
        (
            "select value:x::array<int>, to_json(value:y) from a",
            "select extracted0_0::array<int>, to_json(extracted0_1) from {t0} AS `a`",
        ),
        (
            "select c.s.a.value:x, s.a.at.y from c.s.a where C.`s`.A.n = 1",
            "select extracted0_0, a.at.y from {t0} AS `a` where A.n = 1",
        ),
        ("select S.A.*, s.a.n from c.s.a", "select A.*, a.n from {t0} AS `a`"),
        # Schemas distinguish two tables of one name, in one SELECT or in nested SELECTs.
        (
            "select r.a.id, s.a.value:x from r.a, s.a",
            "select `r.a`.id, `s.a`.value:x from {t0} AS `r.a`, {t1} AS `s.a`",
        ),
        (
            "select id from r.a where exists (select * from s.a where r.a.id = a.id)",
            "select id from {t0} AS `r.a` where exists (select * from {t1} AS `a` where `r.a`.id = a.id)",
        ),
        # A name without its schema is of the innermost of them.
        (
            "select id from a where exists (select a.* from s.a where s.a.id = 1 and A.n = 2) and a.n = 3",
            "select id from {t0} AS `a` where exists "
            "(select `s.a`.* from {t1} AS `s.a` where `s.a`.id = 1 and `s.a`.n = 2) and a.n = 3",
        ),
        (
            "select a.id, r.a.n from a join r.a using (id)",
            "select a.id, `r.a`.n from {t0} AS `a` join {t1} AS `r.a` using (id)",
        ),
        (
            "select r.a.id, a.n from r.a where id in (select a.id from s.a where r.a.n = a.n)",
            "select `r.a`.id, `r.a`.n from {t0} AS `r.a` "
            "where id in (select a.id from {t1} AS `a` where `r.a`.n = a.n)",
        ),
        (
            "select a.id, r.a.n from r.a union all select id, n from s.a",
            "select a.id, a.n from {t0} AS `a` union all select id, n from {t1} AS `a`",
        ),
        ("select value:x, id from a, other", "select extracted0_0, id from {t0} AS `a`, other"),
        # The names of the columns are not those of the query, and braces stay braces.
        ("select extracted0_0, value:x from a", "select extracted0_0, extracted_0_0 from {t0} AS `a`"),
        ("select '{value}', value:x from a", "select '{{value}}', extracted0_0 from {t0} AS `a`"),
        (
            "select value:x from a as `{b}` where `{b}`.n = 1",
            "select extracted0_0 from {t0} as `{{b}}` where `{{b}}`.n = 1",
        ),
        # A subquery reads its own table, and that of the query around it.
        (
            "select b.value:x, (select max(c.value:y) from a c where c.id = b.id) from b",
            "select extracted0_0, (select max(extracted1_0) from {t1} c where c.id = b.id) from {t0} AS `b`",
        ),
        (
            "select value:x from a where exists (select * from c where c.id = a.id and a.value:z = 1)",
            "select extracted0_0 from {t0} AS `a` "
            "where exists (select * from {t1} AS `c` where c.id = a.id and extracted0_1 = 1)",
        ),
    ],
)
def test_paths_and_casts_become_columns(text: str, expected: str):
    assert rewritten(text).text == expected


def test_a_name_of_two_tables_in_one_select_is_rejected_where_their_schemas_distinguish_them():
    with pytest.raises(ExpressionError, match=r"a\.n may be of several tables"):
        rewritten("select r.a.id, a.n from r.a, s.a")
    with pytest.raises(ExpressionError, match=r"a\.\* may be of several tables"):
        rewritten("select r.a.id, a.* from r.a join s.a using (id)")


@pytest.mark.parametrize(
    "text",
    [
        # The query needs all columns, also of a sample and of earlier versions.
        "select *, value:x from a",
        "select value:x from a tablesample (10 percent)",
        "select value:x, to_json(struct(*)) from a",
        # The name is that of several tables, of an unknown one, or of a column of the result.
        "select value:x from a d join a e on d.id = e.id",
        "select id as value from a order by value:x",
        "select value:x from (select id as value from a)",
        # The rows depend on the columns, or the names of columns on their positions.
        "select value:x from (select distinct id, value from a)",
        "select value:x from (select id, value from a group by all)",
        "select value:x from (select id, value from a order by 1)",
        "select d.x:y from (select id, value from a) d(k)",
        "select d.y:y from (select explode(array(1)), value from a) d(x, y)",
        "select d.y:y from (select * from a join b using (id)) d(i, n, at, y, m, bt, w)",
    ],
)
def test_other_paths_stay(text: str):
    found = rewritten(text).text
    assert "extracted" not in found
    for table in "abc":
        found = found.replace(f"{{t0}} AS `{table}`", table).replace(f"{{t1}} AS `{table}`", table)
    assert found.replace("{t0}", "a").replace("{t1}", "a") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select value:x from (select * from a)", "select extracted0_0 from (select * from {t0} AS `a`)"),
        (
            "select d.value:x::int from (select id, value from a) d",
            f"select {strict('extracted0_0', 'int', prefix='`d`.')} "
            "from (select NULL AS extracted_unused, extracted0_0, extracted0_failed from {t0} AS `a`) d",
        ),
        (
            "with e as (select id, value from a) select e.value:x, f.value:y from e join e f on e.id = f.id",
            "with e as (select id, extracted0_0, extracted0_1 from {t0} AS `a`) "
            "select `e`.extracted0_0, `f`.extracted0_1 from e join e f on e.id = f.id",
        ),
        (
            "with e as (select value as v, value:y as w from a) select v:x, w:z, v from e",
            "with e as (select value as v, extracted0_0, extracted0_1 as w from {t0} AS `a`) "
            "select `e`.extracted0_0, w:z, v from e",
        ),
        (
            "select max(x) from (select value:x, count(*) from a group by 1)",
            "select max(x) from (select extracted0_0 AS `x`, count(*) from {t0} AS `a` group by 1)",
        ),
        (
            "select d.x:y from (select id, value from a) d(k, x) where k = 1",
            "select `d`.extracted0_0 from (select id, extracted0_0 from {t0} AS `a`) "
            "d(`k`, extracted0_0) where k = 1",
        ),
        (
            "with e(k, m, t, x) as (select * from a) select x:y::int, t from e",
            f"with e(extracted_unused, extracted_unused, `t`, extracted0_0, extracted0_failed) as "
            "(select NULL AS extracted_unused, NULL AS extracted_unused, `a`.`at`, extracted0_0, "
            f"extracted0_failed from {{t0}} AS `a`) "
            f"select {strict('extracted0_0', 'int', prefix='`e`.')}, t from e",
        ),
    ],
)
def test_derived_tables_pass_the_columns_that_are_used(text: str, expected: str):
    assert rewritten(text).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select * except (value), value:x from a",
            "select `a`.`id`, `a`.`n`, `a`.`at`, extracted0_0 from {t0} AS `a`",
        ),
        (
            "select c.* except (at, value), b.value:x from a b join c on b.id = c.id",
            "select `c`.`id`, `c`.`n`, extracted0_0 from {t0} b join {t1} AS `c` on b.id = c.id",
        ),
        (
            "with e as (select * except (value), value:x as x from a) select n, x from e",
            "with e as (select `a`.`n`, extracted0_0 as x from {t0} AS `a`) select n, x from e",
        ),
        # These sources do not have all of their columns in the result, or unknown ones.
        (
            "select * except (id) from a join b using (id)",
            "select * except (id) from {t0} AS `a` join {t1} AS `b` using (id)",
        ),
        (
            "select * except (id) from a left semi join b on a.id = b.id",
            "select * except (id) from {t0} AS `a` left semi join {t1} AS `b` on a.id = b.id",
        ),
        ("select * except (id) from a, other", "select * except (id) from {t0} AS `a`, other"),
        (
            "select * except (id) from a lateral view explode(array(1)) as k",
            "select * except (id) from {t0} AS `a` lateral view explode(array(1)) as k",
        ),
    ],
)
def test_a_star_with_exceptions_becomes_its_columns(text: str, expected: str):
    assert rewritten(text).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select value:x from (select id, value from a union all select * except (n, at) from b)",
            "select extracted_0 from (select NULL AS extracted_unused, extracted0_0 AS extracted_0 "
            "from {t0} AS `a` union all select NULL AS extracted_unused, extracted1_0 AS extracted_0 "
            "from {t1} AS `b`)",
        ),
        (
            "with u as (select value as v, id from a union all (select value, n from b)) "
            "select u.v:x, u.v:x::int from u where id = 1",
            "with u as (select extracted0_0 AS extracted_0, extracted0_1 AS extracted_1, "
            "extracted0_failed[0] AS extracted_1_failed, id from {t0} AS `a` union all "
            "(select extracted1_0 AS extracted_0, extracted1_1 AS extracted_1, "
            "extracted1_failed[0] AS extracted_1_failed, n from {t1} AS `b`)) select `u`.extracted_0, "
            "coalesce(`u`.extracted_1, cast(`u`.extracted_1_failed AS int)) from u where id = 1",
        ),
        # One of two equal columns of a branch, as different ones of the other.
        (
            "select v:x, w:x from (select value v, value w from a "
            "union all select value, value from b union all select value, value from b) u(v, w)",
            "select `u`.extracted_0, `u`.extracted_0 from (select extracted1_0 AS extracted_0, "
            "NULL AS extracted_unused from {t1} AS `a` union all select extracted2_0 AS extracted_0, "
            "NULL AS extracted_unused from {t2} AS `b` union all select extracted0_0 AS extracted_0, "
            "NULL AS extracted_unused from {t0} AS `b`) u(extracted_0, extracted_unused)",
        ),
        # The inner result has the name of the outer one.
        (
            "select value:x from (select * from (select value from a union all select value from b) d "
            "union all select value from c)",
            "select extracted_0 from (select `d`.extracted_0 from (select extracted1_0 AS extracted_0 "
            "from {t1} AS `a` union all select extracted2_0 AS extracted_0 from {t2} AS `b`) d "
            "union all select extracted0_0 AS extracted_0 from {t0} AS `c`)",
        ),
    ],
)
def test_each_branch_of_a_union_all_passes_the_same_columns(text: str, expected: str):
    assert rewritten(text).text == expected


@pytest.mark.parametrize(
    "union",
    [
        # These compare whole rows, or take some of them by their position.
        "select value from a union select value from b",
        "select value from a intersect all select value from b",
        "select value from a except select value from b",
        "(select value from a union select value from b) union all select value from c",
        "select value from a union all select value from b limit 3",
        "select value from a union all select value from b order by 1",
        # One branch has another value, another number of columns, or an unknown one.
        "select value from a union all select parse_json('1') from b",
        "select value from a union all select value from other",
        "select value from a union all select value, n from b",
        "select id, value from a union all select explode(array(1)), value from b",
    ],
)
def test_a_path_into_another_set_operation_stays(union: str):
    assert rewritten(f"select value:x from ({union})").text.startswith("select value:x from (")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select * from a where id = 1 and value:x::int > 2 or n = 3",
            ["id = 1 and value:x::int > 2 or n = 3"],
        ),
        ("select id from a where id = 1 and soundex(n) = 'X' and n > 2", ["id = 1 and n > 2"]),
        ("select id from a where upper(n) = 'X' and n > 2", ["upper(n) = 'X' and n > 2"]),
        ("select id from a where id = 1 and rand() < 0.5", ["id = 1"]),
        ("select id from a where n = 'x' and value:x::int = 2", ["value:x::int = 2"]),
        ("select * from a tablesample (3 rows) where id = 1", [None]),
        ("select * from a where id = 1 and id = (select max(id) from b where n = 2)", ["id = 1", "n = 2"]),
        # Joins: rows of an optional side are needed where they make others NULL.
        ("select * from a join b on a.id = b.id and b.n = 2 where a.n = 3", ["a.n = 3", "b.n = 2"]),
        (
            "select * from a left join b on a.n = 1 and b.n = 2 where a.n = 3 and b.id = 4",
            ["a.n = 3", "b.n = 2"],
        ),
        ("select * from a full join b on a.n = 1 and b.n = 2 where a.n = 3", [None, None]),
        ("select * from a left anti join b on b.n = 2 and a.n = 1 where a.n = 3", ["a.n = 3", "b.n = 2"]),
    ],
)
def test_conditions_select_the_rows_of_their_table(text: str, expected: list[str | None]):
    without_alias = [
        None if each is None else bound(each.replace("a.", "").replace("b.", "")) for each in expected
    ]
    assert conditions(text) == without_alias
    assert [each.predicate for each in rewritten(text, with_conditions=False).reads.values()] == [None] * len(
        expected
    )


@pytest.mark.parametrize(
    ("derived", "passes"),
    [
        ("select * from a", True),
        ("select n, id from a where true", True),
        ("select a.* from a left join other on a.id = other.k", True),
        ("select a.id, other.n from a right join other on a.id = other.k", False),
        ("select a.id from other left join a on a.id = other.k", False),
        ("select id, count(*) from a group by id", False),
        ("select distinct id from a", False),
        ("select id from a limit 3", False),
        ("select id, sum(n) over (order by id) as s from a", False),
        ("select id + 1 as id from a", True),
        ("select id from a, lateral (select 1 as k)", True),
    ],
)
def test_conditions_on_a_derived_table_select_its_rows(derived: str, passes: bool):
    expected = bound("id + 1 = 1" if "id + 1" in derived else "id = 1") if passes else None
    found = conditions(f"select * from ({derived}) where id = 1")
    assert found == ([None] if "id + 1" in derived else [expected])


def test_a_table_has_the_rows_that_any_use_of_it_needs():
    text = "with e as (select * from a where n = 0) select * from e x join e y on x.id = y.id"
    assert conditions(f"{text} where x.n = 1 and y.id = 2") == [bound("n = 0 and (n = 1 or id = 2)")]
    assert conditions(f"{text} where x.n = 1") == [bound("n = 0")]
    assert conditions("with e as (select id, n from a) select * from e e(x, y) where y = 1") == [None]
    assert conditions("with e(x, y) as (select id, n from a) select * from e where y = 1") == [bound("n = 1")]


@pytest.mark.parametrize(
    "operation", ["union all", "union", "intersect", "intersect all", "except", "except all"]
)
def test_a_condition_on_a_set_operation_selects_the_rows_of_its_branches(operation: str):
    union = f"select id, n from a where n = 0 {operation} select id, id as k from b"
    assert conditions(f"select * from ({union}) where id = 1") == [bound("n = 0 and id = 1"), bound("id = 1")]
    # The other column is wider than that of the first branch.
    assert conditions(f"select * from ({union}) where n = 1") == [bound("n = 0"), None]
    assert conditions(f"select * from ({union} limit 3) where id = 1") == [bound("n = 0"), None]


def test_a_task_reads_what_the_query_uses():
    text = (
        "select e.value:x::int, o.n from (select * from a) e join b o on e.id = o.id "
        "where try_cast(e.value:y as int) = 2"
    )
    second, first = rewritten(text).reads.values()
    assert first.outputs is not None
    assert [*first.outputs] == ["id", "n", "extracted1_0", "extracted1_1"]
    assert (first.failed, first.predicate) == ("extracted1_failed", bound("try_cast(value:y as int) = 2"))
    # Spark itself reads a table of which no path or condition is known.
    assert (second.outputs, second.failed, second.predicate) == (None, None, None)
    (rows,) = rewritten("select count(*) from a where n = 1 and n = 2 and true").reads.values()
    assert rows.outputs is not None
    assert [*rows.outputs] == ["n"]
    (none,) = rewritten("select count(*) from (select * from a) where value:x::int = 1").reads.values()
    assert none.outputs is not None
    assert [*none.outputs] == ["extracted0_0"]


def test_fields_of_structs_are_resolved():
    struct = pa.struct([("k", pa.int64())])
    scope = Scope(pa.schema([("id", pa.int64()), ("s", struct), variant_field("value")]), ("value",), "UTC")
    text = "select value:x from (select s as r, value from a) d where d.r.k = 1 and r.k > 0 and value.k = 2"
    query = parse_query(text)
    assert query is not None
    (read,) = rewrite(query, {0: scope}, with_conditions=True).reads.values()
    assert read.predicate == scope.predicate("s.k = 1 and s.k > 0")
