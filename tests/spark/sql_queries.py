"""Random queries by `delta_variant.sql` over tables of this package, and by Spark over its own copies.

    python tests/spark/sql_queries.py [--count 10000] [--seed 0]

compares more of them than the tests do, and prints each difference. The same seed gives the same queries. A
query that this package rejects is counted and not compared: it cannot mean another thing.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from spark.queries import TABLES, ZONES, QueryGenerator, write_tables

import delta_variant as dv
from delta_variant.errors import CastError, ExpressionError
from delta_variant.expressions.types import type_name
from delta_variant.variant.objects import is_variant

NUMBERS = ("count", "sum", "avg", "min", "max", "stddev", "var_pop", "median")
WINDOWS = ("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)")
FRAMES = (
    "",
    "rows between 1 preceding and 1 following",
    "rows between unbounded preceding and current row",
    "range between unbounded preceding and current row",
    "rows 2 preceding",
    "rows between current row and unbounded following",
)


class SqlQueries(QueryGenerator):
    """Queries of the clauses and the functions that `sql` has; a final ORDER BY is by all columns."""

    def query(self) -> str:
        """Return a query."""
        kinds = (self._aggregates, self._windows, self._joins, self._sets, self._subqueries, self._nested)
        return self._one(super().query, super().query, *kinds)()

    def _value(self, prefix: str) -> str:
        number = self._number(prefix)
        return self._one(
            number,
            f"{number} * 2 - {prefix}id",
            f"cast({number} as decimal(12, 3))",
            f"cast({number} as double) / 4",
            f"cast({prefix}n as smallint)",
            f"cast({prefix}id as float)",
            f"length({self._text(prefix)})",
        )

    def _aggregate(self, prefix: str) -> str:
        value, condition = self._value(prefix), self._condition(prefix, 0)
        return self._one(
            "count(*)",
            *(f"{function}({value})" for function in NUMBERS),
            f"{self._one('count', 'sum', 'max', 'avg')}(distinct {value})",
            f"count(distinct {value}, {self._text(prefix)})",
            f"count({value}, {self._text(prefix)})",
            f"count_if({condition})",
            f"{self._one('bool_and', 'bool_or', 'every', 'some', 'any')}({condition})",
            f"{self._one('min', 'max')}({self._text(prefix)})",
            f"{self._one('min', 'max')}({prefix}at)",
            f"{self._one('min_by', 'max_by')}({self._text(prefix)}, {prefix}id)",
            f"sort_array(collect_list({value}))",
            f"size(collect_set({self._text(prefix)}))",
            f"percentile({value}, {self._one('0', '0.25', '0.5', '1')})",
            f"string_agg({self._text(prefix)}, ';') within group (order by {prefix}n desc, {prefix}id)",
            f"mode({prefix}{self._one('n', 'day')}, true)",
            f"sum({value}) filter (where {condition})",
            f"count(*) filter (where {condition})",
        )

    def _computed(self, prefix: str) -> str:
        """Return an expression of aggregates."""
        return self._one(
            self._aggregate(prefix),
            self._aggregate(prefix),
            f"sum({prefix}id) / count(*)",
            f"coalesce(sum({prefix}n), 0) + max({prefix}id)",
            f"cast(avg({prefix}n) as decimal(10, 2))",
            f"case when count(*) > 2 then min({self._text(prefix)}) else 'few' end",
            f"round(avg({prefix}id), 1)",
            f"concat(max({self._text(prefix)}), '/', count(*))",
        )

    def _keys(self, prefix: str) -> list[str]:
        keys = [self._text(prefix), f"{prefix}day", f"{prefix}n", f"{prefix}n % 2", f"hour({prefix}at)"]
        keys += [f"cast({prefix}n as double) * 0.5", f"{prefix}id > 9", f"date({prefix}at)"]
        return self._source.sample(keys, self._source.randrange(3))

    def _aggregates(self) -> str:
        keys = self._keys("")
        items = [f"{key} as k{number}" for number, key in enumerate(keys)]
        items += [f"{self._computed('')} as a{number}" for number in range(self._source.randrange(1, 4))]
        having = f" having {self._one('count(*) > 1', 'max(id) >= 10', 'min(n) is not null')}"
        group = self._one(
            ", ".join(keys),
            ", ".join(str(number + 1) for number in range(len(keys))),
            ", ".join(f"k{number}" for number in range(len(keys))),
            "all",
        )
        if keys and self._source.random() < 0.3:
            group = self._grouping_sets(keys)
            items[-1] += f", {self._one('grouping_id()', f'grouping({keys[0]}) + 1')} as g"
        text = f"select {', '.join(items)} from bronze{self._where('')}"
        text += f" group by {group}" if keys else ""
        text += having if self._source.random() < 0.3 else ""
        return self._ordered(text, len(items) + items[-1].endswith(" as g"))

    def _grouping_sets(self, keys: list[str]) -> str:
        """Return what groups by several sets, each of which has some of the keys."""
        listed, some = ", ".join(keys), ", ".join(keys[1:] or keys)
        return self._one(
            f"rollup ({listed})",
            f"cube ({listed})",
            f"rollup (({listed}), {keys[0]})",
            f"{keys[0]}, cube ({some})",
            f"grouping sets (({listed}), ({some}), ())",
            f"grouping sets ({keys[0]}, rollup ({some}), ({listed}))",
            f"{listed} with {self._one('rollup', 'cube')}",
            f"{listed} grouping sets (({listed}), {keys[-1]})",
        )

    def _ordered(self, text: str, count: int) -> str:
        """Return a query with an order by all its columns, so that it is total."""
        if self._source.random() < 0.4:
            return text
        direction = ("", " desc", " asc nulls last", " desc nulls first")
        keys = ", ".join(f"{number + 1}{self._one(*direction)}" for number in range(count))
        limit = self._one("", "", f" limit {self._source.randrange(8)}", " limit 5 offset 2")
        return f"{text} order by {keys}{limit}"

    def _window(self, prefix: str) -> str:
        order = f"order by {prefix}n{self._one('', ' desc', ' nulls last')}, {prefix}id"
        partition = self._one("", f"partition by {prefix}day ", f"partition by {self._text(prefix)} ")
        value = self._value(prefix)
        if self._source.random() < 0.4:
            order = self._one(order, f"order by {prefix}n")
            functions = (
                ("rank()", "dense_rank()", "percent_rank()", "cume_dist()") if "id" not in order else WINDOWS
            )
            return f"{self._one(*functions)} over ({partition}{order})"
        if self._source.random() < 0.4:
            function = self._one(
                f"lag({value})",
                f"lead({value}, 2)",
                f"lag({value}, 1, {prefix}n)",
                f"first_value({value})",
                f"last_value({value})",
                f"nth_value({value}, 2)",
            )
            return f"{function} over ({partition}{order})"
        function = self._one(f"{self._one(*NUMBERS[:5])}({value})", "count(*)")
        if self._source.random() < 0.3:
            return f"{function} over ({partition})"
        return f"{function} over ({partition}{order} {self._one(*FRAMES)})"

    def _windows(self) -> str:
        items = [
            "id",
            *(f"{self._window('')} as w{number}" for number in range(self._source.randrange(1, 3))),
        ]
        text = f"select {', '.join(items)} from bronze{self._where('')}"
        if self._source.random() < 0.3:
            test = self._one("w0 is not null", "row_number() over (partition by day order by id) = 1")
            text = f"{text} qualify {test}"
        elif self._source.random() < 0.3:
            rank = f"rank() over (order by {self._one('sum(id)', 'count(*)')} desc)"
            return self._ordered(f"select day as d, {rank} as r from bronze group by day", 2)
        return self._ordered(text, len(items))

    def _joins(self) -> str:
        kind = self._one("join", "left join", "right join", "full join", "left semi join", "left anti join")
        is_half = "semi" in kind or "anti" in kind
        on = self._one(
            "a.id = b.id",
            "a.n = b.n and a.day <=> b.day",
            f"{self._text('a.')} = {self._text('b.')}",
            f"a.id = b.id and {self._condition('b.', 1)}",
            f"a.id = b.id and {self._condition('a.', 1)}",
            "a.id + 1 = b.id and a.n < b.n",
            "a.id = b.id and coalesce(a.n, 1) >= b.n",
            "cast(a.id as double) = b.n",
        )
        right = self._one(
            "other b", "(select *, 'x' as tag from other) b", "(select * from other limit 99) b"
        )
        tables = f"bronze a {kind} {right} on {on}"
        if self._source.random() < 0.15 and not is_half:
            tables = f"bronze a {kind} {right} using ({self._one('id', 'id, day')})"
        where = self._where(self._one("a.", "a." if is_half else "b."))
        if self._source.random() < 0.1 and not is_half:
            columns = self._one("id, n", "n, day, id")
            natural = f"(select id, n, day from bronze) natural {kind} (select {columns} from other)"
            return self._ordered(f"select * from {natural}", 3)
        if self._source.random() < 0.3:
            key = "a.day" if is_half or "using" in tables else self._one("a.day", "b.day")
            return self._ordered(
                f"select {key} as k, {self._aggregate('a.')} as s from {tables}{where} group by {key}", 2
            )
        tag = ", b.tag" if "tag" in right and not is_half else ""
        other = f", b.id as i, {self._value('b.')} as y{tag}" if not is_half else ""
        return f"select a.id as h, {self._value('a.')} as x{other} from {tables}{where}"

    def _sets(self) -> str:
        operation = self._one("union", "union all", "intersect", "except", "minus")
        columns = self._one("day, n", "n, id", f"{self._text('')} as t, n", "cast(n as double) as f, day")

        def swapped(found: re.Match[str]) -> str:
            return {"n": "id", "id": "n"}[found[0]]

        others = self._one(columns, columns, re.sub(r"\b(n|id)\b", swapped, columns))
        branches = [
            f"select {each} from {table}{self._where('')}"
            for each, table in ((columns, "bronze"), (others, "other"))
        ]
        return self._ordered(f" {operation} ".join(branches), 2)

    def _subqueries(self) -> str:
        inner = f"select {self._one('id', 'n')} from other{self._where('')}"
        value = f"(select {self._one('max(id)', 'min(n)', 'count(*)')} from other{self._where('')})"
        test = self._one(
            f"{self._one('id', 'n')} {self._one('', 'not ')}in ({inner})",
            f"id < {value}",
            f"{self._one('', 'not ')}exists ({inner})",
        )
        return self._ordered(f"select id, {self._one('n', value)} as x from bronze where {test}", 2)

    def _nested(self) -> str:
        """Return a query over a query with aggregates, windows, DISTINCT or an order."""
        inner = self._one(
            f"select day as d, {self._computed('')} as v, count(*) as c from bronze group by day",
            f"select distinct day as d, {self._value('')} as v, n as c from bronze",
            f"select day as d, {self._value('')} as v, row_number() over (order by id) as c from bronze",
            f"select day as d, {self._value('')} as v, n as c from bronze order by id limit 9",
        )
        outer = self._one(
            f"select d, v, c from ({inner}){self._one('', ' where c > 1', ' where d is not null')}",
            f"with q as ({inner}) select a.d, a.c, b.c as e from q a join q b on a.d = b.d and a.c < b.c",
            f"select d, max(c) as m, count(v) as v from ({inner}) group by d",
        )
        return self._ordered(outer, 3)


def outcome_here(query: str, zone: str, tables: dict[str, Path]) -> Any:
    """Return the types and the rows of a query here, or its error."""
    try:
        result = dv.sql(query, timezone=zone, **tables)
    except (CastError, ExpressionError) as error:
        return error
    types = ["variant" if is_variant(field) else type_name(field.type, quote="") for field in result.schema]
    variants = {field.name for field in result.schema if is_variant(field)}
    return types, [
        tuple(
            _json(cell) if name in variants and cell is not None else _plain(cell)
            for name, cell in row.items()
        )
        for row in result.to_pylist(variants="json")
    ]


def outcome_in_spark(spark: SparkSession, query: str) -> Any:
    """Return the types and the rows of a query in Spark, or its error."""
    try:
        frame = spark.sql(query)
        return [kind for _, kind in frame.dtypes], [tuple(map(_plain, row)) for row in frame.collect()]
    except PySparkException as error:
        return error


def _json(text: str) -> str:
    """Return JSON text with numbers in one form."""
    return json.dumps(json.loads(text, parse_int=float))


def _plain(cell: Any) -> Any:
    if hasattr(cell, "toJson"):
        # PySpark writes numbers as Python does.
        return _json(cell.toJson())
    if isinstance(cell, float):
        # Sums of floating-point numbers depend on the order of the rows.
        return f"{cell + 0.0:.9g}"
    if isinstance(cell, dt.datetime) and cell.tzinfo is not None:
        return cell.astimezone().replace(tzinfo=None)
    return cell


def kind_of_difference(query: str, here: Any, spark: Any) -> str:
    """Return how the results of a query compare."""
    if isinstance(here, ExpressionError):
        return "rejected here"
    if isinstance(spark, AnalysisException):
        return "rejected by Spark"
    if isinstance(spark, Exception):
        # Files and rows that are left out may avoid an error.
        return "an error in both" if isinstance(here, Exception) else "an error in Spark"
    if isinstance(here, Exception) or here[0] != spark[0]:
        return "different"
    is_ordered = "order by 1" in query.rpartition(")")[2]
    rows, expected = (each[1] if is_ordered else sorted(map(repr, each[1])) for each in (here, spark))
    return "equal" if rows == expected else "different"


def differences(
    spark: SparkSession, seed: int, count: int, folder: Path, found: Counter[str]
) -> Iterator[str]:
    """Yield a text for each of some random queries that has another result than in Spark."""
    source = random.Random(seed)
    zone = ZONES[seed % len(ZONES)]
    spark.conf.set("spark.sql.session.timeZone", zone)
    dirty = seed % 3 == 1
    write_tables(spark, folder, source, dirty=dirty)
    generator = SqlQueries(source, strict=not dirty)
    tables = {name: folder / name for name in TABLES}
    for _ in range(count):
        query = generator.query()
        here = outcome_here(query, zone, tables)
        spark_has = None if isinstance(here, ExpressionError) else outcome_in_spark(spark, query)
        kind = kind_of_difference(query, here, spark_has)
        found[kind] += 1
        if kind == "different":
            yield f"{query}\n  Spark: {_shown(spark_has)}\n  here:  {_shown(here)}"
        elif kind.startswith("rejected"):
            found[f"  {kind}: {_shown(here if kind == 'rejected here' else spark_has)[:100]}"] += 1


def _shown(result: Any) -> str:
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {' '.join(str(result).split())}"[:600]
    types, rows = result
    return f"{types} {sorted(rows, key=repr)}"[:1200]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found = Counter[str]()
    for start in range(0, options.count, 50):
        with tempfile.TemporaryDirectory() as folder:
            for text in differences(spark, options.seed + start // 50, 50, Path(folder), found):
                print(f"seed {options.seed + start // 50}:", text, flush=True)
        kinds = {kind: number for kind, number in found.items() if not kind.startswith(" ")}
        print(start + 50, kinds, file=sys.stderr, flush=True)
    for kind, number in found.most_common():
        print(f"{number:6} {kind}", file=sys.stderr)
    spark.stop()


if __name__ == "__main__":
    main()
