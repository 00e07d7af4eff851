"""Random queries over tables of this package, and the same in Spark over its own copies of the rows.

    python tests/spark/queries.py [--count 2000] [--seed 0]

compares more of them than the tests do, and prints each difference.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.planting import plant_vector

import delta_variant as dv
from delta_variant import spark as dvs

SCHEMA = "id bigint, day string, n int, at timestamp, value string"
ZONES = ("UTC", "America/Los_Angeles", "Asia/Tokyo")
TABLES = ("bronze", "other")
# An error within Spark, such as a column that its optimizer has lost, has no exception of PySpark.
SPARK_FAILURES = (PySparkException, Py4JJavaError)
CONDITION = re.compile(r"\[([A-Z][A-Z_.]+)\]")


def random_rows(source: random.Random, first: int, count: int, *, dirty: bool) -> list[dict[str, Any]]:
    """Return rows with a Variant of a changing type where `dirty`, with NULLs and missing paths anyway."""
    return [
        {
            "id": first + number,
            "day": source.choice(["a", "b", None]),
            "n": source.choice([None, *range(5)]),
            "at": source.choice([None, 1711846800, 1711850400, 1704067199, 1704067200]),
            "value": random_value(source, dirty=dirty),
        }
        for number in range(count)
    ]


def random_value(source: random.Random, *, dirty: bool) -> str | None:
    if source.random() < 0.08:
        return None
    odd = [None, "x", "12", 1.5, True, {"q": 1}, [1]] if dirty else [None]
    value: dict[str, Any] = {
        "a": source.randrange(6),
        "b": source.choice(["buy", "sell", "Buy", ""]),
        "c": {"d": source.choice([0.5, 1.5, -2.0, 1e10]), "n": source.randrange(100)},
        "ts": source.choice(["2024-03-31 02:30:00", "2024-01-01", "2023-12-31T23:59:59Z"]),
        "ok": source.random() < 0.5,
        "arr": [source.randrange(3) for _ in range(source.randrange(3))],
        "x y": source.choice(["u", "v"]),
    }
    for name in list(value):
        if source.random() < 0.1:
            value[name] = source.choice(odd)
        elif source.random() < 0.08:
            del value[name]
    return json.dumps(value)


def write_tables(spark: SparkSession, folder: Path, source: random.Random, *, dirty: bool) -> None:
    """Write two tables with views of both kinds: of this package, and of Spark over its own Variants."""
    features: Mapping[str, dict[str, Any]] = {
        "bronze": {"configuration": {"delta.columnMapping.mode": "name"}, "partition_by": ["day"]},
        "other": {"configuration": {"delta.enableDeletionVectors": "true"}},
    }
    for name, options in features.items():
        rows: list[dict[str, Any]] = []
        for number in range(2):
            part = random_rows(source, number * 20, 20, dirty=dirty and number == 1)
            dv.write_table(folder / name, _arrow(part), mode="append", **(options if number == 0 else {}))
            rows += part
        if name == "other":
            plant_vector(folder / name, 0, 3, 4)
            deleted = dv.read_table(folder / name, columns=["id"]).to_table()["id"].to_pylist()
            rows = [row for row in rows if row["id"] in deleted]
        plain = spark.createDataFrame(
            [(r["id"], r["day"], r["n"], r["at"], r["value"]) for r in rows],
            SCHEMA.replace("timestamp", "bigint"),
        )
        plain.selectExpr(
            "id", "day", "n", "timestamp_seconds(at) AS at", "parse_json(value) AS value"
        ).createOrReplaceTempView(name)
        dvs.create_view(spark, name, folder / name)


def _arrow(rows: list[dict[str, Any]]) -> pa.Table:
    types = {
        "id": pa.int64(),
        "day": pa.string(),
        "n": pa.int32(),
        "at": pa.timestamp("s", "UTC"),
        "value": pa.json_(),
    }
    return pa.table({name: pa.array([row[name] for row in rows], each) for name, each in types.items()})


class QueryGenerator:
    """Queries of all kinds of clauses, each from the numbers of one source."""

    def __init__(self, source: random.Random, *, strict: bool) -> None:
        self._source = source
        self._strict = strict

    def query(self) -> str:
        """Return a query."""
        pick = self._source.random()
        if pick < 0.15:
            return self._with_cte()
        if pick < 0.25:
            return f"{self._simple()} union all {self._simple()}"
        if pick < 0.5:
            return self._of_derived()
        if pick < 0.7:
            return self._of_set_operation()
        return self._select()

    def _simple(self) -> str:
        return f"select {self._number('')}, {self._text('')} from bronze where {self._condition('')}"

    def _with_cte(self) -> str:
        inner = f"select id, value, {self._text('')} as kind, {self._number('')} as k from bronze"
        name = self._one("c", "bronze")
        return (
            f"with {name} as ({inner} where {self._condition('')}) "
            f"select x.kind, x.k, o.{self._path_text()} from {name} x {self._join('other o', 'x', 'o')} "
            f"where {self._condition('o.')}"
        )

    def _of_derived(self) -> str:
        """Return a query over common table expressions and subqueries that pass Variants on."""
        table = self._one("bronze", "bronze b", "(select * from bronze)", "(select * from bronze) s")
        ctes = [f"c0 as ({self._passing(table)})"]
        for number in range(1, self._source.randrange(1, 4)):
            ctes.append(f"c{number} as ({self._passing(f'c{number - 1}')})")
        last = f"c{len(ctes) - 1}"
        text = f"with {', '.join(ctes)} "
        pick = self._source.random()
        if pick < 0.2:
            kind = self._one("join", "left join", "right join", "full join")
            return (
                f"{text}select {self._of('a.')} as x, {self._of('b.')} as y from {last} a {kind} {last} b "
                f"on a.id = b.id and {self._test('b.')} where {self._test(self._one('a.', 'b.'))}"
            )
        if pick < 0.3:
            test = (
                f"select {self._one('1', '*', 'i.id')} from {last} i where i.id = o.id and {self._test('i.')}"
            )
            return (
                f"{text}select o.id, {self._of('o.')} from {self._one(last, 'bronze')} o "
                f"where {self._one('', 'not ')}exists ({test}) and {self._test('o.')}"
            )
        if pick < 0.4:
            ids = f"select id from {last} where {self._test('')}"
            return f"{text}select {self._of('')} from {last} where id {self._one('', 'not ')}in ({ids})"
        if pick < 0.5:
            branches = [f"select id, {self._of('')} as x from {each}" for each in (last, "c0")]
            return (
                f"{text}select x from ({' union all '.join(branches)}) u where {self._one('id > 9', 'x > 0')}"
            )
        if pick < 0.6:
            return (
                f"{text}select {self._of('')} as k, count(*) as n, max(id) from {last} "
                f"where {self._test('')} group by 1"
            )
        if pick < 0.7:
            return f"{text}select * from {last} where {self._test('')}"
        if pick < 0.8:
            return (
                f"{text}select x.id, (select max({self._of('m.')}) from {last} m where m.id <= x.id) as m "
                f"from (select id from {last}) x"
            )
        return f"{text}select {self._of('')}, {self._of(f'{last}.')} from {last} where {self._test('')}"

    def _of_set_operation(self) -> str:
        """Return a query over a set operation or a list of names, which pass columns by their position."""
        pick = self._source.random()
        if pick < 0.2:
            operation = self._one("union", "intersect", "except", "except all", "union all")
            branches = [
                f"select id, {self._of('')} as x from {each}{self._where('')}" for each in ("bronze", "other")
            ]
            return (
                f"select id, x from ({f' {operation} '.join(branches)}) where {self._one('id > 9', 'x > 0')}"
            )
        names = self._one("", "", "(i, d, m, t, v)")
        count = self._one(1, 2, 2, 3) if names else self._one(2, 2, 3)
        branches = [self._branch(is_named=number == 0 and not names) for number in range(count)]
        if count > 2 and self._source.random() < 0.3:
            branches = [f"select * from ({' union all '.join(branches[:2])}) s", *branches[2:]]
        union = self._one(" union all ", " UNION ALL ").join(branches)
        source, prefix = self._one(
            (f"({union}) u{names}", self._one("", "u.")),
            (f"(({union})) u{names}", "u."),
            ("u", self._one("", "u.")),
        )
        text = f"with u{names} as ({union}) " if source == "u" else ""
        rename = _renamed if names else str
        key, value = ("i", "v") if names else ("id", "value")
        of, test = rename(self._of(prefix)), rename(self._test(prefix))
        pick = self._source.random()
        if pick < 0.25:
            return f"{text}select {of} as k, count(*) as c, max({key}) from {source} where {test} group by 1"
        if pick < 0.45 and text:
            join = self._one("join", "left join", "full join")
            return f"{text}select a.{key}, b.{value}:b::string from u a {join} u b on a.{key} = b.{key} + 1"
        if pick < 0.6:
            return f"{text}select * from {source} where {test}"
        if pick < 0.7:
            return f"{text}select * except ({value}), {of} as x from {source} where {test}"
        return f"{text}select {of}, {prefix}{key} from {source} where {test}"

    def _branch(self, *, is_named: bool) -> str:
        """Return a SELECT of `id`, `day`, `n`, `at` and `value`, in this order."""
        table = self._one("bronze", "other", "bronze b", "(select * from bronze)", "(select * from other) o")
        value = self._one("value", "value", "parse_json('{\"a\": 1}')", "value:c")
        items = [self._one("id", "id", "n", "id + 0.5"), "day", "n", "at", value]
        names = ("id", "day", "n", "at", "value") if is_named else ("id", "d", "n", "at", "v")
        listed = ", ".join(f"{item} as {name}" for item, name in zip(items, names, strict=True))
        star = self._one("*", "* except (value), value", "* except (n, at, value), n, at, VALUE")
        return f"select {self._one('*', star, listed)} from {table}{self._where('')}"

    def _where(self, prefix: str) -> str:
        return f" where {self._test(prefix)}" if self._source.random() < 0.4 else ""

    def _passing(self, source: str) -> str:
        """Return a SELECT with the columns `id`, `n`, `day`, `at` and `value`, and others maybe."""
        is_filtered = self._source.random() < 0.4
        if source.startswith("c") and self._source.random() < 0.2:
            other = "select id as k, value:b::string from bronze where id > 3"
            where = f" where {self._test('l.')}" if is_filtered else ""
            return f"select l.* from {source} l left join ({other}) r on l.id = r.k{where}"
        if source == "bronze" and self._source.random() < 0.3:
            on = f"b.id = o.id and {self._test('o.')}"
            return f"select b.* from bronze b {self._one('left ', 'right ', '')}join other o on {on}"
        where = f" where {self._test('')}" if is_filtered else ""
        pick = self._source.random()
        if pick < 0.3:
            return f"select * from {source}{where}"
        if pick < 0.4:
            return (
                f"select id, n, day, at, to_json(value) as j, parse_json('1') as value from {source}{where}"
            )
        if pick < 0.5:
            return f"select * except (value), value as value from {source}{where}"
        if pick < 0.6:
            return f"select *, row_number() over (partition by day order by id) as r from {source}{where}"
        if pick < 0.7:
            return f"select * from {source}{where} order by {self._one('id', 'value:c.n::int, id')} limit 12"
        if pick < 0.75:
            return f"select * from {source}{where} union all select * from {source}"
        items = ["id", "n", "day", "at", self._one("value", "value as VALUE", "`value`", "value as `value`")]
        if "." not in source and self._source.random() < 0.4:
            items.append(
                self._one("value:b::string as kind", "value:a::string", "try_cast(value:a as int) as id2")
            )
        self._source.shuffle(items)
        return f"select {', '.join(items)} from {source}{where}"

    def _of(self, prefix: str) -> str:
        return self._one(self._number, self._number, lambda p: f"try_cast({p}value:c.n as bigint)")(prefix)

    def _test(self, prefix: str) -> str:
        return self._condition(prefix, 1)

    def _select(self) -> str:
        alias = self._one("", "b", "B")
        source, prefix = f"bronze {alias}".strip(), f"{alias}." if alias else self._one("", "bronze.")
        joined = self._source.random() < 0.35
        if joined:
            source, prefix = f"bronze b {self._join(self._one('other o', 'bronze o'), 'b', 'o')}", "b."
        where = f" where {self._condition(prefix)}" if self._source.random() < 0.8 else ""
        if where and self._source.random() < 0.15:
            test = f"select 1 from other s where s.id = {prefix or 'bronze.'}id and {self._condition('s.')}"
            where += f" and {self._one('', 'not ')}exists ({test})"
        pick = self._source.random()
        if pick < 0.1:
            star = self._one("*", f"* except (value), {self._number(prefix)} as x")
            return f"select {prefix if joined else ''}{star} from {source}{where}"
        if pick < 0.4:
            return self._grouped(source, prefix, where)
        if pick < 0.5:
            order = f"partition by {self._text(prefix)} order by {prefix}id"
            extra = ", o.id as o" if joined else ""
            tail = ", o.id" if joined else ""
            return (
                f"select {prefix}id, row_number() over ({order}{tail}) as r, {self._number(prefix)}{extra} "
                f"from {source}{where}"
            )
        if pick < 0.6 and not joined:
            return (
                f"select {prefix}id, e.pos, e.value::string from {source}, "
                f"lateral variant_explode({prefix or 'bronze.'}value:{self._one('arr', 'c')}) as e{where}"
            ).replace("where ", "where ")
        items = [self._item(prefix) for _ in range(self._source.randrange(1, 4))]
        if joined:
            items.append(f"o.{self._path_text()} as other")
        order = f" order by {prefix}id, 1" if self._source.random() < 0.3 else ""
        return f"select {', '.join(items)} from {source}{where}{order}"

    def _grouped(self, source: str, prefix: str, where: str) -> str:
        key = self._one(self._text(prefix), self._number(prefix), f"{prefix}day")
        value = self._number(prefix)
        having = f" having count(*) > {self._source.randrange(3)}" if self._source.random() < 0.3 else ""
        if self._source.random() < 0.2:
            having = f" having max({value}) > 1"
        return (
            f"select {key} as k, count(*) as n, sum({value}) as s, min({self._text(prefix)}) as t "
            f"from {source}{where} group by {self._one(key, '1')}{having}"
        )

    def _join(self, other: str, left: str, right: str) -> str:
        kind = self._one("join", "left join", "right join", "full join", "left semi join", "cross join")
        if kind == "left semi join":
            # The columns of the right side are not visible afterwards.
            kind = "inner join"
        if kind == "cross join":
            return f"{kind} {other}"
        equal = f"{left}.id = {right}.id"
        if self._source.random() < 0.4:
            equal += f" and {self._condition(f'{right}.')}"
        return f"{kind} {other} on {equal}"

    def _item(self, prefix: str) -> str:
        alias = self._one("", "", f" as c{self._source.randrange(9)}")
        pick = self._one(
            self._number,
            self._text,
            self._time,
            lambda p: f"to_json({p}value:c)",
            lambda p: (
                f"{p}value:ok::boolean" if self._strict else f"try_variant_get({p}value, '$.ok', 'boolean')"
            ),
            lambda p: f"schema_of_variant({p}value:a)",
            lambda p: f"is_variant_null({p}value:b)",
        )
        return f"{pick(prefix)}{alias}"

    def _number(self, prefix: str) -> str:
        strict = [
            "value:a::bigint",
            "value:c.n::int",
            "cast(value:a as double)",
            "variant_get(value, '$.c.d', 'double')",
        ]
        lenient = [
            "try_variant_get(value, '$.a', 'bigint')",
            "try_cast(value:c.n as int)",
            "try_variant_get(value, '$.arr[0]', 'int')",
        ]
        text = self._one(*(strict if self._strict else []), *lenient, "n", "id")
        return self._case(_prefixed(text, prefix))

    def _text(self, prefix: str) -> str:
        return self._case(_prefixed(self._path_text(), prefix))

    def _path_text(self) -> str:
        return self._one(
            "value:b::string", "value:['x y']::string", "value:a::string", "value:c::string", "day"
        )

    def _time(self, prefix: str) -> str:
        strict = ["value:ts::timestamp", "value:ts::date", "value:ts::timestamp_ntz"]
        lenient = ["try_variant_get(value, '$.ts', 'timestamp')", "try_cast(value:ts as date)", "at"]
        text = self._one(*(strict if self._strict else []), *lenient)
        return f"cast({_prefixed(text, prefix)} as string)"

    def _case(self, text: str) -> str:
        """Write a column in another case, or quoted."""
        return text.replace("value", self._one("value", "value", "VALUE", "`value`"), 1)

    def _condition(self, prefix: str, depth: int = 2) -> str:
        pick = self._source.random()
        if depth and pick < 0.35:
            parts = [self._condition(prefix, depth - 1) for _ in range(2)]
            return f" {self._one('and', 'and', 'or')} ".join(
                f"({part})" if " or " in part else part for part in parts
            )
        if depth and pick < 0.42:
            return f"not ({self._condition(prefix, depth - 1)})"
        number, text = self._number(prefix), self._text(prefix)
        return self._one(
            f"{number} {self._one('=', '<', '>=', '<>', '<=>')} {self._source.randrange(6)}",
            f"{number} between 1 and {self._source.randrange(4)}",
            f"{number} in (1, 2, null)",
            f"{text} {self._one('=', '<>', '<')} 'buy'",
            f"{text} in ('buy', '1', 'u')",
            f"{text} like '{self._one('b%', '_uy', '%1%')}'",
            f"{text} is {self._one('', 'not ')}null",
            f"upper({text}) = 'BUY'",
            f"{prefix}at >= timestamp'2024-03-31 02:00:00'",
            f"hour({prefix}at) < 12",
            f"case when {number} > 2 and {prefix}n = 1 then true else {prefix}id > 3 end",
            f"coalesce({number}, 3) = 3",
        )

    def _one(self, *options: Any) -> Any:
        return self._source.choice(options)


def _prefixed(text: str, prefix: str) -> str:
    """Return an expression with a prefix before its column."""
    for column in ("value", "day", "at", "id"):
        if column in text:
            head, tail = text.split(column, 1) if column == "value" else ("", text[len(column) :])
            return f"{head}{prefix}{column}{tail}"
    return f"{prefix}{text}"


def _renamed(text: str) -> str:
    """Return an expression over the columns `i, d, m, t, v` instead of `id, day, n, at, value`."""
    names = {"id": "i", "day": "d", "n": "m", "at": "t", "value": "v"}
    columns = re.compile(r"(?<![:.'\w$])(u\.)?(id|day|n|at|value)\b(?!')", re.IGNORECASE)
    return columns.sub(lambda found: (found[1] or "") + names[found[2].lower()], text.replace("`", ""))


@dataclass(frozen=True)
class Outcome:
    """The rows of a query without their order, or the condition of its error."""

    rows: list[str] | None
    columns: tuple[Any, ...] = ()
    error: str | None = None


def outcome(run: Callable[[str], DataFrame], query: str) -> Outcome:
    """Run a query and return what comes of it."""
    try:
        df = run(query)
        rows = sorted(repr([_plain(cell) for cell in row]) for row in df.collect())
    except SPARK_FAILURES as error:
        return Outcome(None, error=condition(error))
    return Outcome(rows, tuple(df.dtypes))


def condition(error: Exception) -> str:
    """Return the condition of an error."""
    # Spark Connect has the condition of some errors of tasks only in their text.
    in_text = CONDITION.search(str(error))
    own = error.getCondition() if isinstance(error, PySparkException) else None
    return own or (in_text[1] if in_text else type(error).__name__)


def _plain(cell: Any) -> Any:
    return cell.toJson() if hasattr(cell, "toJson") else cell


def differences(spark: SparkSession, queries: Iterator[str], count: int) -> Iterator[str]:
    """Yield a text for each query that has another result than in Spark."""
    for _ in range(count):
        query = next(queries)
        expected, found = outcome(spark.sql, query), outcome(partial(dvs.sql, spark), query)
        # Files and rows that are left out may avoid an error.
        if found != expected and (expected.error is None or found.error is not None):
            yield f"{query}\n  Spark: {expected}\n  here:  {found}"


def main() -> None:
    import argparse
    import tempfile

    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    number = 0
    for start in range(0, arguments.count, 50):
        seed = arguments.seed + start
        source = random.Random(seed)
        spark.conf.set("spark.sql.session.timeZone", source.choice(ZONES))
        ansi = source.choice(["true", "true", "false"])
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        dirty = source.random() < 0.5
        with tempfile.TemporaryDirectory() as folder:
            write_tables(spark, Path(folder), source, dirty=dirty)
            generator = QueryGenerator(source, strict=not dirty or source.random() < 0.4)
            queries = iter(generator.query, None)
            for text in differences(spark, queries, 50):
                number += 1
                print(f"seed {seed}, ansi {ansi}:", text[:1500], flush=True)
        print(seed + 50, "queries,", number, "differences", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
