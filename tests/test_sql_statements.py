"""Statements of `sql` in one process: rows, results, and what they reject."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import delta_variant as dv
from delta_variant.errors import (
    CastError,
    DeltaVariantError,
    ExpressionError,
    PredicateViolationError,
    SchemaError,
    TableNotFoundError,
)
from delta_variant.expressions.literals import literal_text

Run = Callable[..., list[dict[str, Any]]]
COLUMNS = "id bigint, n int, s string, v variant"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a statement over a table `t`, which has two rows."""
    path = tmp_path / "t"

    def run(text: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        return dv.sql(text, parameters, t=path).to_pylist()

    run(f"create table t ({COLUMNS})")
    run("""insert into t values (1, 2, 'a', parse_json('{"a":1}')), (2, 3, 'b', null)""")
    return run


def rows(run: Run) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in run("select id, n, s, to_json(v) as v from t order by id, n")]


FIRST = [(1, 2, "a", '{"a":1}'), (2, 3, "b", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What Spark 4.2 with Delta 4.4 makes of the same statement.
        ("insert into t values (3, '4', 5, parse_json('1'))", [*FIRST, (3, 4, "5", "1")]),
        ("insert into t (id) values (9)", [*FIRST, (9, None, None, None)]),
        ("insert into t (id, v) values (10, 'text')", [*FIRST, (10, None, None, '"text"')]),
        ("insert into t by name select 5 as n, 6L as id", [*FIRST, (6, 5, None, None)]),
        ("insert into t (n, id) select id, id + 5 from t where id = 1", [*FIRST, (6, 1, None, None)]),
        ("insert into table t (id, s) values (9, default)", [*FIRST, (9, None, None, None)]),
        ("with q as (select 7L as id) insert into t (id) select id from q", [*FIRST, (7, None, None, None)]),
        (
            "with q as (select 7L as id where 1 < 2) insert into t (id) select * from q",
            [*FIRST, (7, None, None, None)],
        ),
        ("insert overwrite t values (1, 2, 'a', null)", [(1, 2, "a", None)]),
        ("insert overwrite table t (id) values (1)", [(1, None, None, None)]),
        ("insert into t replace where id = 1 select 1L, 9, 'x', null", [(1, 9, "x", None), FIRST[1]]),
    ],
)
def test_insert_writes_the_rows_of_spark(run: Run, text: str, expected: list[tuple[Any, ...]]):
    assert run(text) == []
    assert rows(run) == expected


@pytest.mark.parametrize(
    ("text", "affected", "expected"),
    [
        ("update t set n = n + 1 where id = 1", 1, [(1, 3, "a", '{"a":1}'), FIRST[1]]),
        ("update t set t.n = t.n + 1 where t.id = 1", 1, [(1, 3, "a", '{"a":1}'), FIRST[1]]),
        (
            "update t as x set x.n = '7', s = x.s || 'b' where x.v:a::int = 1",
            1,
            [(1, 7, "ab", '{"a":1}'), FIRST[1]],
        ),
        ("update t x set n = default where id > 0", 2, [(1, None, "a", '{"a":1}'), (2, None, "b", None)]),
        ("update t set v = 5", 2, [(1, 2, "a", "5"), (2, 3, "b", "5")]),
        ("delete from t x where x.s = 'a'", 1, FIRST[1:]),
        ("delete from t x where (`id`) = 1 and (not (x.n > 2))", 1, FIRST[1:]),
        ("update t set n = ((t.n) + 1) where (id) = 1", 1, [(1, 3, "a", '{"a":1}'), FIRST[1]]),
        ("delete from t where id = 77", 0, FIRST),
        ("delete from t", 2, []),
    ],
)
def test_update_and_delete_return_the_number_of_rows(
    run: Run, text: str, affected: int, expected: list[tuple[Any, ...]]
):
    assert run(text) == [{"num_affected_rows": affected}]
    assert rows(run) == expected


@pytest.mark.parametrize(
    ("clauses", "counts", "expected"),
    [
        (
            "when matched then update set n = s.n when not matched then insert (id, n) values (s.id, s.n)",
            (1, 0, 1),
            [FIRST[0], (2, 20, "b", None), (3, 30, None, None)],
        ),
        ("when matched and (s.n) > (t.n) then delete", (0, 1, 0), FIRST[:1]),
        ("when not matched by source then delete", (0, 1, 0), FIRST[1:]),
        (
            "when matched then update set t.s = default "
            "when not matched by source then update set t.n = t.id",
            (2, 0, 0),
            [(1, 1, "a", '{"a":1}'), (2, 3, None, None)],
        ),
        ("when matched then update set * when not matched then insert *", (1, 0, 1), None),
    ],
)
def test_merge(run: Run, clauses: str, counts: tuple[int, int, int], expected: list[tuple[Any, ...]] | None):
    columns = "id, n" if expected else "id, n, cast(null as string) as s, cast(null as variant) as v"
    source = f"(select {columns} from values (2L, 20), (3L, 30) as r(id, n) where id < 9)"
    found = run(f"merge into t using {source} s on t.id = s.id {clauses}")
    names = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    assert found == [dict(zip(names, (sum(counts), *counts), strict=True))]
    assert rows(run) == (expected or [FIRST[0], (2, 20, None, None), (3, 30, None, None)])


def test_a_clause_of_a_merge_about_one_table_reads_its_columns_without_qualifiers(run: Run):
    on = "merge into t using (select 5L as id, 6 as n) as s on t.id = s.n"
    run(f"{on} when not matched and id > 4 and N = 6 then insert (id, n) values (id, n + 1)")
    run(f"{on} when not matched by source and id = 2 then update set n = n + id, s = concat(`s`, '!')")
    assert rows(run) == [FIRST[0], (2, 5, "b!", None), (5, 7, None, None)]
    with pytest.raises(ExpressionError, match="'id' is ambiguous"):
        run(f"{on} or t.id = 1 when matched then update set n = id")


def test_merge_takes_a_table_as_its_source(run: Run, tmp_path: Path):
    dv.write_table(tmp_path / "u", [{"id": 1, "n": 5}])
    source = f"delta.`{tmp_path / 'u'}` as u"
    text = f"merge into t using {source} on t.id = u.id when matched then update set n = u.n"
    assert run(text)[0]["num_updated_rows"] == 1
    assert rows(run)[0] == (1, 5, "a", '{"a":1}')


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # What Spark 4.2 with Delta 4.4 sets.
        ("(select max(n) from t)", 3),
        ("(select max(n) from t where id = 1) + 1", 3),
        ("n * (select count(*) from t where id > :one)", 2),
        ("coalesce((select n from t where id = 9), (select 7))", 7),
        ("(select max(n) from t x where x.id = id)", 3),
        ("length((select 'a\\\\)(' || s from t where id = 2))", 5),
        ("year((select timestamp_ntz '2026-01-02 03:04:05.000006'))", 2026),
    ],
)
def test_set_takes_subqueries_of_one_value(run: Run, value: str, expected: int):
    text = f"update t set n = {value}, s = (select null) where id = :one"
    assert run(text, {"one": 1}) == [{"num_affected_rows": 1}]
    assert rows(run) == [(1, expected, None, '{"a":1}'), FIRST[1]]


def test_fields_of_structs_are_set(tmp_path: Path):
    table = tmp_path / "s"
    struct = "named_struct('a', 1, 'c', named_struct('x', 5, 'v', parse_json('[1]')))"
    dv.sql(f"create table t as select 1L as id, {struct} as s", t=table)
    dv.sql("insert into t (id) values (2)", t=table)

    def state() -> list[tuple[Any, ...]]:
        text = "select s.a as a, s.c.x as x, to_json(s.c.v) as v from t order by id"
        return [tuple(row.values()) for row in dv.sql(text, t=table).to_pylist()]

    # Spark makes a struct of a NULL, too.
    dv.sql("update t set s.a = '7', t.s.c.X = id + 1", t=table)
    assert state() == [(7, 2, "[1]"), (7, 3, None)]
    source = "(select 1L as id, 9 as n, 'other' as s)"
    dv.sql(f"merge into t using {source} q on t.id = q.id when matched then update set s.c.x = n", t=table)
    assert state() == [(7, 9, "[1]"), (7, 3, None)]
    for sets, message in {
        "s.a = 1, s = null": "'s' is set twice",
        "s = null, s.a = 1": "set twice",
        "s.a = 1, s.A = 2": "'s.A' is set twice",
        "id.x = 1": "not in a struct",
        "s.zz = 1": "unknown column 'zz'",
    }.items():
        with pytest.raises(ExpressionError, match=message):
            dv.sql(f"update t set {sets}", t=table)


def test_merge_with_schema_evolution_adds_columns(run: Run):
    source = "(select 100L as id, 5 as n, 'x' as extra)"
    run(f"merge with schema evolution into t using {source} s on t.id = s.id when not matched then insert *")
    assert run("select id, extra from t where id = 100") == [{"id": 100, "extra": "x"}]


def test_an_insert_matches_the_fields_of_structs_by_position(tmp_path: Path):
    table = f"delta.`{tmp_path / 's'}`"
    nested = "s struct<a: int, b: string>, l array<struct<a: int>>, m map<string, struct<x: int, y: int>>"
    dv.sql(f"create table {table} (id int, {nested})")
    values = "struct(1 as b, 'x' as a), array(struct(2)), map('k', struct(1 as y, 2 as x))"
    dv.sql(f"insert into {table} values (1, {values}), (2, null, null, null)")
    dv.sql(f"insert into {table} by name select 3 as id, struct(5, 'z') as s")
    found = dv.sql(f"select * from {table} order by id").to_pylist()
    assert found[0] == {"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"a": 2}], "m": [("k", {"x": 1, "y": 2})]}
    assert [row["s"] for row in found[1:]] == [None, {"a": 5, "b": "z"}]
    for value, error in {
        "struct('x' as b, 1 as a)": "INSERT: the values of 's': cannot cast 'x' to int",
        "struct(1 as a)": "INSERT: cannot cast the values of 's' from struct<`a`:int> to struct",
    }.items():
        with pytest.raises(DeltaVariantError, match=error):
            dv.sql(f"insert into {table} (s) select {value}")


def test_an_insert_casts_the_parts_of_nested_values(tmp_path: Path):
    table = f"delta.`{tmp_path / 's'}`"
    nested = (
        "l array<int>, m map<string, date>, s struct<`a b`: decimal(5,2), `c``d`: array<struct<v: variant>>>"
    )
    dv.sql(f"create table {table} ({nested}) tblproperties ('delta.columnMapping.mode' = 'name')")
    values = "array('1', null), map(7, '2026-01-02'), struct(1.239, array(struct(parse_json('[1]'))))"
    dv.sql(f"insert into {table} values ({values}), (array(), null, null)")
    first = {
        "l": [1, None],
        "m": [("7", dt.date(2026, 1, 2))],
        "s": {"a b": Decimal("1.24"), "c`d": [{"v": [1]}]},
    }
    assert dv.sql(f"select * from {table}").to_pylist() == [first, {"l": [], "m": None, "s": None}]


def test_an_insert_matches_the_fields_of_structs_by_name(tmp_path: Path):
    table = f"delta.`{tmp_path / 's'}`"
    dv.sql(
        f"create table {table} (id int, s struct<a:string, b:struct<c:int, d:int>>, l array<struct<a:int>>)"
    )
    swapped = "struct(struct(4 as d, 3 as c) as b, 'x' as a) as s"
    # As in Delta, rows with the columns of the table and their types; BY NAME also casts.
    dv.sql(f"insert into {table} select 1 as id, {swapped}, array(struct(5 as a)) as l")
    dv.sql(
        f"insert into {table} by name select struct(struct(4L as D, '3' as C) as b, 'x' as A) as s, 2L as id"
    )
    expected = {"a": "x", "b": {"c": 3, "d": 4}}
    assert [row["s"] for row in dv.sql(f"select s from {table}").to_pylist()] == [expected, expected]


LAST = [{"a": 11, "p": None}, {"a": 12, "p": "7"}]


def test_partitions_of_an_insert(tmp_path: Path):
    table = f"delta.`{tmp_path / 'p'}`"
    for text in (
        f"create table {table} partitioned by (p) as select 1 as a, 'x' as p",
        f"insert overwrite {table} partition (p = 'y') values (5), (6)",
        f"insert into {table} partition (p) values (7, 'z')",
        f"insert overwrite {table} partition (p = 'y') values (8)",
        f"insert into {table} values (9, null), (10, '7')",
        f"insert overwrite {table} partition (p = null) values (11)",
        f"insert overwrite {table} partition (p = 7) values (12)",
    ):
        assert len(dv.sql(text)) == 0
    found = dv.sql(f"select a, p from {table} order by a").to_pylist()
    assert found == [{"a": 1, "p": "x"}, {"a": 7, "p": "z"}, {"a": 8, "p": "y"}, *LAST]
    with pytest.raises(ExpressionError, match="'a' is not a partition column"):
        dv.sql(f"insert into {table} partition (a = 1) values ('x')")


def test_partition_columns_in_backquotes(tmp_path: Path):
    table, settings = f"delta.`{tmp_path / 'p'}`", "tblproperties ('delta.columnMapping.mode' = 'name')"
    dv.sql(f"create table {table} (a int, `p q` int, `b``c` int) partitioned by (`p q`, `B``C`) {settings}")
    dv.sql(f"insert into {table} partition (`p q` = 1, `b``c`) values (2, 3)")
    assert dv.load_snapshot(tmp_path / "p").partition_columns == ("p q", "b`c")
    assert dv.sql(f"select * from {table}").to_pylist() == [{"a": 2, "p q": 1, "b`c": 3}]
    with pytest.raises(ExpressionError, match="expected `\\)`, got `int`"):
        dv.sql(f"create table {table} (a int, p int) partitioned by (p int)")


def test_the_rows_of_an_insert_are_in_the_order_of_the_table(tmp_path: Path):
    table = f"delta.`{tmp_path / 'p'}`"
    dv.sql(f"create table {table} (id int, p string, n int, q string) partitioned by (p, q)")
    dv.sql(f"insert into {table} partition (q, p) values (1, 'p', 2, 'q')")
    dv.sql(f"insert into {table} partition (q = 'x', p) values (3, 'y', 4)")
    found = dv.sql(f"select * from {table} order by id").to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, "p", 2, "q"), (3, "y", 4, "x")]
    with pytest.raises(ExpressionError, match="PARTITION has the value of 'p'"):
        dv.sql(f"insert into {table} partition (p = 'x') (id, p) values (1, 'y')")


def test_create_and_replace(tmp_path: Path):
    text = """create table if not exists c (
            id bigint generated always as identity, n int not null, g int generated always as (n + 1),
            s string default 'none' comment 'text', x struct<a: int, b: map<string, int>>,
            constraint c check (n < 100 and n > 0)
        ) using delta cluster by (n) comment 'all' tblproperties (
            'delta.appendOnly' = false, 'delta.feature.domainMetadata' = 'supported')"""
    for _ in range(2):
        dv.sql(text, c=tmp_path / "c")
    dv.sql("insert into c (n) values (:n)", {"n": 4}, c=tmp_path / "c")
    assert dv.sql("select * from c", c=tmp_path / "c").to_pylist() == [
        {"id": 1, "n": 4, "g": 5, "s": "none", "x": None}
    ]
    detail = dv.sql("describe detail c", c=tmp_path / "c").to_pylist()[0]
    assert (detail["description"], detail["clusteringColumns"], detail["numFiles"]) == ("all", ["n"], 1)
    replaced = tmp_path / "replaced"
    dv.sql("create table r partitioned by (p) as select 1 as a, 2 as p", r=replaced)
    dv.sql("create or replace table r as select 1 as b", r=replaced)
    assert dv.sql("select * from r", r=replaced).to_pylist() == [{"b": 1}]


def test_describe_returns_the_rows_of_spark(tmp_path: Path):
    text = """create table t (id bigint comment 'the id', v variant, r string comment 'region', d date,
        s struct<a: int, b: array<map<string, decimal(5,2)>>>, c char(5)) partitioned by (d, r)"""
    dv.sql(text, t=tmp_path / "t")
    columns = [
        ("id", "bigint", "the id"),
        ("v", "variant", None),
        ("r", "string", "region"),
        ("d", "date", None),
        ("s", "struct<a:int,b:array<map<string,decimal(5,2)>>>", None),
        ("c", "string", None),
    ]
    titles = [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
    for words in ("describe table", "describe", "desc"):
        rows = dv.sql(f"{words} t", t=tmp_path / "t").to_pylist()
        assert list(rows[0]) == ["col_name", "data_type", "comment"]
        assert [tuple(row.values()) for row in rows] == [*columns, *titles, columns[3], columns[2]]


def test_create_leaves_what_it_would_not_replace_as_spark_does(tmp_path: Path):
    table = tmp_path / "kept"
    dv.sql("create table k (id bigint, constraint c check (id > 0)) comment 'old'", k=table)
    feature = "tblproperties ('delta.feature.rowTracking' = 'supported')"
    dv.sql(f"create table if not exists k (id bigint) {feature}", k=table)
    assert dv.load_snapshot(table).version == 0
    for text in (
        "create or replace table k comment 'old' as select 1 as b",
        "create or replace table k as values 1",
    ):
        with pytest.raises(ExpressionError, match=r"would keep .*delta\.constraints\.c"):
            dv.sql(text, k=table)
    dv.sql("alter table k drop constraint c", k=table)
    with pytest.raises(ExpressionError, match=r"would keep the comment .*\(none\)"):
        dv.sql("create or replace table k as select 1 as b", k=table)
    dv.sql("create or replace table k comment 'old' as select 1 as b", k=table)
    assert dv.read_table(table).to_pylist() == [{"b": 1}]


def test_a_new_table_at_a_location(tmp_path: Path):
    dv.sql(f"create table new location '{tmp_path / 'n'}' as select 1 as a")
    assert dv.read_table(tmp_path / "n").to_pylist() == [{"a": 1}]


def test_alter(run: Run):
    for text in (
        "alter table t set tblproperties ('delta.columnMapping.mode' = 'name', a.b = 1)",
        "alter table t add columns (w int, y struct<a: int, b: array<variant>>)",
        "alter table t rename column w to z",
        "alter table t drop column if exists w",
        "alter table t drop column z",
        "alter table t add constraint c check (id > 0)",
        "alter table t drop constraint c",
        "alter table t drop constraint if exists c",
        "alter table t unset tblproperties if exists (a.b, c)",
    ):
        assert run(text) == []
    assert list(run("select * except (v) from t where id = 1")[0]) == ["id", "n", "s", "y"]
    found = run("show tblproperties t ('a.b')")[0]
    assert found["key"] == "a.b"
    assert found["value"].endswith("does not have property: a.b")
    operations = [row["operation"] for row in run("describe history t limit 3")]
    assert operations == ["UNSET TBLPROPERTIES", "DROP CONSTRAINT", "ADD CONSTRAINT"]


def test_maintenance(run: Run, tmp_path: Path):
    run("insert into t values (3, 4, 'c', null)")
    optimized = run("optimize t zorder by (id, n)")
    assert optimized == [{"path": str(tmp_path / "t"), "metrics": {"numFilesAdded": 1, "numFilesRemoved": 2}}]
    assert run("optimize t zorder by n, s")[0]["metrics"]["numFilesAdded"] == 1
    parameters = dict(run("describe history t limit 1")[0]["operationParameters"])
    assert parameters["zOrderBy"] == '["n","s"]'
    assert run("vacuum t retain 200 hours") == [{"path": str(tmp_path / "t")}]
    assert run(f"vacuum '{tmp_path / 't'}' dry run") == []
    restored = run("restore t version as of 1")[0]
    assert (restored["num_of_files_after_restore"], restored["num_removed_files"]) == (1, 1)
    assert rows(run) == FIRST
    run("delete from t where id = 1")
    assert run("reorg table t apply (purge)")[0]["metrics"]["numFilesAdded"] in (0, 1)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("insert into t values (3, 'x', 5, null)", CastError, "cannot cast 'x' to int"),
        ("insert into t values (3, 4)", ExpressionError, "expected the values of id, n, s, v, got 2"),
        ("insert into t (id, n) values (1, 3000000000)", CastError, "not in range"),
        ("insert into t by name select 1 as zzz", ExpressionError, "unknown column 'zzz'"),
        ("insert into t (id, id) values (1, 2)", ExpressionError, "'id' is listed twice"),
        ("insert into t frob", ExpressionError, "expected a query, got `frob`"),
        ("insert into t replace where id = 9 values (8, 1, 'a', null)", PredicateViolationError, "predicate"),
        ("insert into t (id) values (:missing)", ExpressionError, "`missing` has no value"),
        ("update t as x set n = t.n", ExpressionError, "`t.n`: `t` does not exist"),
        ("update t set v:a = 5", ExpressionError, "variant_set"),
        ("update t set n = 1, t.n = 2", ExpressionError, "set twice"),
        ("delete from t where id in (select id from t)", ExpressionError, "MERGE INTO"),
        ("update t set n = 1 where id = (select 1)", ExpressionError, "conditions take no subqueries"),
        ("delete from t where not exists (select 1)", ExpressionError, "conditions take no subqueries"),
        ("update t set n = (select 1, 2)", ExpressionError, "expected one value, got 2 columns"),
        ("update t set n = (select id from t)", ExpressionError, "more than one row"),
        ("update t set v = (select array(1))", ExpressionError, "returned array<int>: use MERGE"),
        ("merge into t using t on 1 = 1", ExpressionError, "expected `when`, got the end"),
        (
            "merge into t using (select 1 as id) s on t.id = s.id when matched then insert *",
            ExpressionError,
            "update",
        ),
        ("optimize t where id = 1", ExpressionError, "partition columns"),
        ("optimize t zorder by (id, v)", ExpressionError, "no order"),
        ("optimize t zorder by id, n)", ExpressionError, "end of the statement"),
        ("optimize t zorder by (id, n", ExpressionError, "expected `\\)`"),
        ("alter table t alter column n set default 4", ExpressionError, r"(?s)got `set`.*for CREATE TABLE"),
        ("alter table t alter column n comment 'a', id comment 'b'", ExpressionError, "end of the statement"),
        ("alter table t alter column n after v.a", ExpressionError, "end of the statement"),
        ("alter table t alter column n after n", SchemaError, "expected one of id, s, v"),
        ("alter table t add column w int after z", SchemaError, "cannot place 'w' after 'z'"),
        ("alter table t add column w int not null", ExpressionError, r"(?s)got `not`.*has no default"),
        ("alter table t drop columns (n, s)", ExpressionError, "one by one"),
        ("alter table t cluster by (id)", ExpressionError, "got `cluster`"),
        ("create or replace table t (id int)", ExpressionError, "needs a query"),
        ("create table t cluster by (a) as select 1 as a", ExpressionError, "CLUSTER BY"),
        ("drop table t", ExpressionError, "expected a query, or a statement"),
        ("insert into nope values (1)", ExpressionError, "unknown table `nope`.*the tables are t"),
        ("vacuum t lite", ExpressionError, "end of the statement"),
    ],
)
def test_what_cannot_run_changes_nothing(run: Run, text: str, error: type[Exception], message: str):
    before = dv.sql("describe history t", t=_path_of(run))
    with pytest.raises(error, match=message):
        run(text)
    assert rows(run) == FIRST
    assert len(dv.sql("describe history t", t=_path_of(run))) == len(before)


def _path_of(run: Run) -> str:
    return str(run("describe detail t")[0]["location"])


def test_rows_are_not_a_table_to_change():
    with pytest.raises(ExpressionError, match="expected a table, got list"):
        dv.sql("delete from rows", rows=[{"a": 1}])
    with pytest.raises(TableNotFoundError):
        dv.sql("delete from delta.`/nowhere/at/all` where true")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (-5, "-5"),
        (1 << 64, None),
        (0.1, "0.1D"),
        (1e300, "1e+300D"),
        (float("nan"), "double('nan')"),
        (Decimal("1.50"), "1.50BD"),
        ("it's \\", "'it\\'s \\\\'"),
        (b"\x00\xff", "x'00ff'"),
        (dt.date(2026, 1, 2), "date'2026-01-02'"),
        (dt.datetime(2026, 1, 2, 3), None),
        (dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone.utc), "timestamp'2026-01-02 03:00:00+00:00'"),
        ([1], None),
    ],
)
def test_the_text_of_a_parameter(value: object, text: str | None):
    assert literal_text(value) == text
    if text is not None:
        found = dv.sql(f"select {text} as found").to_pylist()[0]["found"]
        expected = (
            value.replace(tzinfo=dt.timezone.utc)
            if isinstance(value, dt.datetime) and value.tzinfo
            else value
        )
        assert str(found) == str(expected)


@pytest.mark.parametrize(
    ("text", "way"),
    [
        (f"create table t ({COLUMNS})", "CREATE TABLE IF NOT EXISTS"),
        ("create table t as select 1 as id", "INSERT INTO or CREATE OR REPLACE TABLE … AS"),
        (
            "merge into t using (select 9L as id) as s on t.id = s.id when not matched then insert *",
            "a list of columns instead of * or MERGE WITH SCHEMA EVOLUTION",
        ),
        ("vacuum t retain 0 hours", "dv.vacuum with enforce_retention_duration=False"),
    ],
)
def test_the_remedies_of_an_error_are_sql(run: Run, text: str, way: str):
    with pytest.raises(DeltaVariantError) as caught:
        run(text)
    assert str(caught.value).endswith(f": use {way}")
