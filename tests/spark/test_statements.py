"""The parts that `parse_query` finds in a query: tables, scopes, paths and conditions, with their text."""

from __future__ import annotations

import pytest

from delta_variant.expressions.parse import parse
from delta_variant.spark.queries.parsing import parse_query
from delta_variant.spark.queries.parts import Conjunct, Query, Scope


def parsed(text: str, parameters: dict[str, str] | list[str] | tuple[()] = ()) -> Query:
    query = parse_query(text, parameters)
    assert query is not None
    return query


def texts_of_extracts(query: Query) -> list[list[str]]:
    return [[query.text[each.span[0] : each.span[1] + 1] for each in found] for _, found in query.extracts]


def conditions(
    text: str, parameters: dict[str, str] | list[str] | tuple[()] = ()
) -> list[tuple[int, Conjunct]]:
    return parsed(text, parameters).conjuncts


def condition(text: str, *sources: str, scope: int = 0) -> tuple[int, Conjunct]:
    return scope, Conjunct(parse(text), frozenset(sources))


def scope_of(text: str, number: int = 0) -> Scope:
    return parsed(text).scopes[number]


@pytest.mark.parametrize(
    "text",
    ["insert into t select 1", "with e as (select 1) insert into t select * from e", "drop table t", "'", ""],
)
def test_a_statement_other_than_a_query_has_no_parts(text: str):
    assert parse_query(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1 from bronze", [("bronze", None, True, True)]),
        ("(select 1 from bronze)", [("bronze", None, True, True)]),
        ("from bronze select 1", [("bronze", None, True, True)]),
        ("\n from bronze", [("bronze", None, False, True)]),
        ("select 1 from c.s.`a b` as x", [("c.s.`a b`", "x", True, False)]),
        (
            "select 1 from a, b y join c",
            [("a", None, True, True), ("b", "y", True, False), ("c", None, True, True)],
        ),
        ("select 1 from a tablesample (10 percent)", [("a", None, False, False)]),
        ("select 1 from a version as of 3", [("a version as of 3", None, True, True)]),
        ("select 1 from a for version as of 3 x", [("a for version as of 3", "x", True, False)]),
        ("select 1 from a timestamp as of current_date()", [("a", None, False, False)]),
        (
            "select 1 from a timestamp as of date'2026-01-02' x",
            [("a timestamp as of date'2026-01-02'", "x", True, False)],
        ),
        ("select 1 from a for system_version as of 3", [("a for system_version as of 3", None, False, True)]),
        ("select * from a pivot (sum(n) for k in (1, 2))", [("a", None, False, True)]),
        ("select 1 from a x(i, v)", [("a", "x", False, False)]),
        ("select 1 from a where n in (select n from b)", [("a", None, True, True), ("b", None, True, True)]),
        ("select /*+ broadcast(b) */ 1 from a", [("a", None, True, True)]),
        ("select 1 from range(3)", []),
        # A common table expression hides a table from the queries that see it.
        ("with a as (select 1) select * from a", []),
        ("with a as (select 1), b as (select * from A) select * from s.a", [("s.a", None, True, True)]),
        ("with a as (select * from a) select * from a", [("a", None, True, True)]),
        ("select * from (with a as (select 1) select * from a) join a", [("a", None, True, True)]),
        ("with recursive a as (select 1 union all select * from a) select * from a", []),
        # Queries that cannot be parsed, and those whose parsed form does not have their text.
        ("select value:a from a |> where n = 1", [("a", None, False, True)]),
        ("from a version as of 3 |> limit 1", [("a version as of 3", None, False, True)]),
        ("from a version as of 3 x |> limit 1", [("a version as of 3", None, False, False)]),
        ("table c.a", [("c.a", None, False, False)]),
        ("select 1 from a x join b as y on where", [("a", None, False, False), ("b", None, False, False)]),
        ("with e as (select from a) select from e join (select 1", [("a", None, False, True)]),
    ],
)
def test_tables_have_their_text_and_alias(text: str, expected: list[tuple[str, str | None, bool, bool]]):
    query = parsed(text)
    found = [
        (text[each.span[0] : each.span[1] + 1], each.alias, each.is_plain, each.takes_alias)
        for each in query.tables
    ]
    assert found == expected


@pytest.mark.parametrize("text", ["select value:a::int from t |> where n = 1", "select value:a::int from"])
def test_a_query_that_cannot_be_parsed_has_only_tables(text: str):
    query = parsed(text)
    assert (query.scopes, query.extracts, query.conjuncts, query.names) == ([], [], [], [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value:a", [["value:a"]]),
        ("t.value:a.b[0]['x y']:c", [["t.value:a.b[0]['x y']:c"]]),
        ("value : a :: int", [["value : a :: int", "value : a"]]),
        (
            "value:a::decimal(9, 2)::string",
            [["value:a::decimal(9, 2)::string", "value:a::decimal(9, 2)", "value:a"]],
        ),
        ("CAST(value:a AS int) + 1", [["CAST(value:a AS int)", "value:a"]]),
        ("try_cast(`value`:`a` as date)", [["try_cast(`value`:`a` as date)", "`value`:`a`"]]),
        ("variant_get(value, '$.a', 'int')", [["variant_get(value, '$.a', 'int')"]]),
        (
            "try_variant_get(t.value, '$.a')::int",
            [["try_variant_get(t.value, '$.a')::int", "try_variant_get(t.value, '$.a')"]],
        ),
        ("value:a:b || value:c", [["value:a:b"], ["value:c"]]),
        # Not of a column, not with a constant path, and not at a position of the text.
        ("parse_json(s):a", []),
        ("variant_get(value, p, 'int')", []),
        ("value", []),
        ("to_json(value)", []),
    ],
)
def test_extracts_are_paths_and_their_casts_with_the_outermost_first(text: str, expected: list[list[str]]):
    assert texts_of_extracts(parsed(f"select {text} from t")) == expected


def test_an_extract_has_the_expression_of_its_text():
    ((scope, (cast, path)),) = parsed("select (select max(b.value:a.b::int) from b) from a").extracts
    assert scope == 1
    assert (cast.expression, path.expression) == (parse("b.value:a.b::int"), parse("b.value:a.b"))


def test_only_order_and_having_see_the_columns_of_the_result():
    text = (
        "select value:a::int from t where value:b::int = 1 group by value:c::int "
        "having max(value:d::int) > 1 order by value:e::int"
    )
    found = {texts[0].expression: texts[0].sees_outputs for _, texts in parsed(text).extracts}
    assert found == {parse(f"value:{name}::int"): name in "de" for name in "abcde"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1 from t where a = 1 and (b = 2 and c = 3)", ["a = 1", "b = 2 and c = 3"]),
        ("select 1 from t where a = 1 or b = 2 and c = 3", ["a = 1 or b = 2 and c = 3"]),
        ("select 1 from t where (a = 1 or b = 2) and c = 3", ["a = 1 or b = 2", "c = 3"]),
        (
            "select 1 from t where case when a between 1 and 2 then b end = 1 and c = 3",
            ["case when a between 1 and 2 then b end = 1", "c = 3"],
        ),
        ("select 1 from t where a between 1 and 2 and b = 3", ["a between 1 and 2", "b = 3"]),
        (
            "select 1 from t where case when a = 1 and b = 2 then true end and c",
            ["case when a = 1 and b = 2 then true end", "c"],
        ),
        (
            "select 1 from t where a between 1 and case when b then 2 end and c = 3",
            ["a between 1 and case when b then 2 end", "c = 3"],
        ),
        ("select 1 from t where value:a::int > 1 group by b having c = 1", ["value:a::int > 1"]),
        ("select 1 from t where soundex(a) = 'X' and b like 'x%' order by b limit 3", ["b like 'x%'"]),
        ("select 1 from t where upper(a) = 'X' and b = 2", ["upper(a) = 'X'", "b = 2"]),
        ("select 1 from t where not (a = 1)", ["not (a = 1)"]),
        # Conditions without a column, of functions that this package does not evaluate, or with a subquery.
        ("select 1 from t where 1 = 1 and rand() < a and b = uuid()", []),
        ("select 1 from t where a in (select a from u) and b = 2", ["b = 2"]),
        ("select 1 from t where exists (select 1) and b = 2", ["b = 2"]),
        ("select 1 from t natural join u where a = 1", []),
    ],
)
def test_conditions_are_the_operands_of_and(text: str, expected: list[str]):
    assert [each.expression for _, each in conditions(text)] == [parse(each) for each in expected]


@pytest.mark.parametrize(
    ("join", "on", "where"),
    [
        ("join", ("a", "b"), ("a", "b")),
        ("inner join", ("a", "b"), ("a", "b")),
        ("left join", ("b",), ("a",)),
        ("right join", ("a",), ("b",)),
        ("full join", (), ()),
        ("left semi join", ("b",), ("a",)),
        ("left anti join", ("b",), ("a",)),
    ],
)
def test_a_condition_leaves_out_rows_of_the_sources_that_an_outer_join_does_not_keep(
    join: str, on: tuple[str, ...], where: tuple[str, ...]
):
    found = conditions(f"select a.id from a {join} b on a.x = 1 where a.y = 2")
    expected = [condition("a.y = 2", *where)] if where else []
    assert found == expected + ([condition("a.x = 1", *on)] if on else [])


def test_a_condition_of_a_join_leaves_out_no_rows_that_an_earlier_outer_join_adds():
    found = conditions("select 1 from a left join b on b.x = 1 join c on b.y = 2 right join d on c.z = 3")
    assert found == [
        condition("b.x = 1", "b"),
        condition("b.y = 2", "a", "c"),
        condition("c.z = 3", "a", "c"),
    ]


def test_conditions_are_those_of_their_own_scope():
    text = "select 1 from a where a.k = 1 and exists (select 1 from b where b.k = a.k and b.n = 2)"
    assert conditions(text) == [
        condition("a.k = 1", "a"),
        condition("b.k = a.k", "b", scope=1),
        condition("b.n = 2", "b", scope=1),
    ]
    derived = (
        "with e as (select * from a where x = 1) select * from (select * from e where y = 2) where z = 3"
    )
    assert sorted(conditions(derived), key=repr) == sorted(
        [
            condition("x = 1", "a", scope=2),
            condition("y = 2", "e", scope=1),
            condition("z = 3", "", scope=0),
        ],
        key=repr,
    )


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("n = :x and k = :y", {"x": "1", "y": "'b'"}, ["n = 1", "k = 'b'"]),
        ("n = :x and k = :y", {"y": "'b'"}, ["k = 'b'"]),
        ("n = ? and k in (?, 'c')", ["1", "'b'"], ["n = 1", "k in ('b', 'c')"]),
        ("n = ? and k = ?", ["1"], ["n = 1"]),
        ("n = ? and k = 2", {"x": "1"}, ["k = 2"]),
        ("value:x::int = 2 and n = :x", {"x": "1"}, ["value:x::int = 2", "n = 1"]),
        (
            "value:x::int = :value and t.value:a::int = 1",
            {"value": "1"},
            ["value:x::int = 1", "t.value:a::int = 1"],
        ),
    ],
)
def test_conditions_have_the_values_of_parameters(
    text: str, parameters: dict[str, str] | list[str], expected: list[str]
):
    found = conditions(f"select 1 from t where {text}", parameters)
    assert [each.expression for _, each in found] == [parse(each) for each in expected]


def test_sources_are_named_by_their_alias():
    scope = scope_of("select 1 from bronze B join s.other join (select 1) d lateral view explode(a) l as x")
    assert scope.sources == {"b": 0, "other": 1, "d": None, "l": None}
    assert scope.derived == {"d": (1,)}
    assert scope_of("select 1 from a x join b x").sources == {"x": None}
    assert scope_of("select 1 from (select 1) x join (select 2) x").derived == {}
    assert scope_of("select 1 from (select 1) x lateral view explode(a) x as y").derived == {}


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("select (select 1 from b) from a", 1, 0),
        ("select 1 from a where exists (select 1 from b)", 1, 0),
        ("with e as (select 1) select 1 from a", 1, None),
        ("select 1 from a where n in (with e as (select 1) select * from e)", 2, None),
        ("select 1 from a, lateral (select a.n)", 1, 0),
    ],
)
def test_a_subquery_sees_the_names_of_the_query_around_it(text: str, number: int, expected: int | None):
    assert scope_of(text, number).parent == expected


@pytest.mark.parametrize(
    ("text", "is_derived"),
    [
        ("select * from (select 1 from a) d(x)", True),
        ("with e(x) as (select 1 from a) select * from e", True),
        ("select * from (select 1 from a) d", True),
        ("with e as (select 1 from a) select * from e join e f", True),
        ("with e as (select 1 from a) select * from e where n in (select n from e)", True),
        # Each of these uses reads all columns, by their positions.
        ("with e as (select 1 from a) select * from e f(x)", False),
        ("with e as (select 1 from a) select * from e pivot (sum(n) for k in (1))", False),
        ("with e as (select 1 from a) select * from e tablesample (3 rows)", False),
        ("with e as (select 1 from a) select * from f(table(e))", False),
        ("with e as (select 1 from a) select * from e union all select 1", True),
        ("select n from t where n in (select 1 from a)", False),
    ],
)
def test_a_scope_is_derived_if_selects_have_all_of_its_uses(text: str, is_derived: bool):
    query = parsed(text)
    (number,) = (n for n, each in enumerate(query.scopes) if [*each.sources] == ["a"])
    assert query.scopes[number].is_derived == is_derived


@pytest.mark.parametrize(
    ("select", "passes"),
    [
        ("select * from a where n = 1", True),
        ("select a.*, upper(k) as k from a left join b on a.n = b.n", True),
        ("select /*+ repartition(3) */ n from a", True),
        ("select distinct n from a", False),
        ("select max(n) from a", False),
        ("select n from a group by n", False),
        ("select n from a limit 3", False),
        ("select n from a order by n", False),
        ("select sum(n) over (order by n) as s from a", False),
        ("select explode(n) from a", False),
        ("select n from a lateral view explode(k) as x", False),
        ("select n from a qualify row_number() over (order by n) = 1", False),
    ],
)
def test_a_condition_passes_a_select_whose_rows_do_not_depend_on_each_other(select: str, passes: bool):
    assert scope_of(f"select * from ({select}) where n = 1", 1).passes_rows == passes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id, value as V, a.`x` as y", [("id", ("id",)), ("value as V", ("v",)), ("a.`x` as y", ("y",))]),
        ("value:a.b, value:c::int k", [("value:a.b", ("b",)), ("value:c::int k", ("k",))]),
        ("n + 1 as m, upper(k)", [("", ("m",)), ("", ())]),
        ("stack(1, 2) as (x, y)", [("", ("x", "y"))]),
    ],
)
def test_items_are_the_columns_of_a_select(text: str, expected: list[tuple[str, tuple[str, ...]]]):
    query = parsed(f"select {text} from a")
    items = query.scopes[0].items
    assert items is not None
    assert [(query.text[each.span[0] : each.span[1] + 1], each.names) for each in items] == expected


@pytest.mark.parametrize(
    ("text", "stars", "excluded"),
    [
        ("select * from a join b", ("a", "b"), ()),
        ("select b.* from a join b", ("b",), ()),
        ("select * except (value, N) from a", ("a",), ("value", "n")),
        ("select a.* except (n) from a join b", ("a",), ("n",)),
    ],
)
def test_a_star_has_the_columns_of_its_sources(text: str, stars: tuple[str, ...], excluded: tuple[str, ...]):
    scope = scope_of(text)
    assert scope.items is not None
    (item,) = scope.items
    assert (item.stars, item.excluded) == (stars, frozenset(excluded))
    assert scope.stars == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "select distinct * from a",
        "select * from a group by all",
        "select * from a order by 1",
        "select * except (s.f) from a",
        "select * replace (1 as n) from a",
        "select x.* from a",
    ],
)
def test_a_select_whose_rows_depend_on_its_columns_keeps_them(text: str):
    scope = scope_of(text)
    assert scope.items is None
    assert scope.stars == ({"x"} if "x.*" in text else {"a"})


@pytest.mark.parametrize(
    ("text", "stars"),
    [
        ("select count(*) from a", set()),
        ("select struct(*) as s from a", {"a"}),
        ("select hash(*), n from a", {"a"}),
        ("select coalesce(b.*) from a join b", {"b"}),
        ("select to_json(struct(b.*)) as s from a join b", {"b"}),
        ("select n from a where exists (select * from b)", set()),
    ],
)
def test_stars_are_the_sources_that_functions_read_whole(text: str, stars: set[str]):
    assert scope_of(text).stars == stars
    assert all(not each.stars for each in parsed(text).scopes[1:])


def test_names_are_those_of_the_whole_text_outside_of_strings():
    found = parsed("select `Id`, 'value' from A /* value */").names
    assert [name for _, name in found] == ["select", "id", ",", "from", "a"]


def test_qualified_columns_begin_with_a_table_or_its_schema():
    query = parsed("select c.s.e.value:a, s.e.id, e.n, n from c.s.e where c.s.e.id = 1")
    found = [(query.text[each.starts[0] : each.starts[-1]], each.parts) for each in query.qualified]
    assert sorted(found) == [
        ("c.s.e.", ("c", "s", "e", "id")),
        ("c.s.e.", ("c", "s", "e", "value")),
        ("e.", ("e", "n")),
        ("s.e.", ("s", "e", "id")),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select * from (select value:a.b::int, value:c as d, id, value:['x y'] from t)",
            {"value:a.b::int": "b", "value:['x y']": "x y"},
        ),
        (
            "with e as (select value:a from t union all select value:b from t) select 1",
            {"value:a": "a", "value:b": "b"},
        ),
        ("select value:a from t where id in (select value:b from t)", {}),
    ],
)
def test_paths_without_an_alias_keep_their_name_where_a_query_uses_it(text: str, expected: dict[str, str]):
    query = parsed(text)
    assert {text[start : end + 1]: name for (start, end), name in query.implicit.items()} == expected
