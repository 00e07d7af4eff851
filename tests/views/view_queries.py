"""Random conditions over the files of views in five engines, and over the table by `read_table`.

    python tests/views/view_queries.py [--count 100000] [--seed 0]

compares more of them than the tests do, and prints each difference. The same seed gives the same conditions.
DataFusion takes part if it is installed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from importlib.util import find_spec
from operator import and_, eq, ge, gt, le, lt, ne, or_
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

import delta_variant as dv
from delta_variant.expressions.types import type_name
from delta_variant.views import rewritten
from delta_variant.views.files import View

PATHS: Mapping[str, pa.DataType] = {
    "i": pa.int64(),
    "n": pa.int32(),
    "s": pa.string(),
    "d": pa.decimal128(9, 2),
    "f": pa.float64(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "o.x": pa.int64(),
    "o.p.y": pa.string(),
}
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
DAY = dt.date(2026, 11, 20)
VALUES: Mapping[pa.DataType, Callable[[random.Random], Any]] = {
    pa.int64(): lambda source: source.choice((0, -1, 2**40, source.randrange(50))),
    pa.int32(): lambda source: source.randrange(50),
    pa.string(): lambda source: source.choice(("", "a", "Z", "ä𝄞", f"{source.randrange(30)}", "x" * 80)),
    pa.decimal128(9, 2): lambda source: Decimal(source.randrange(-3000, 3000)).scaleb(-2),
    pa.float64(): lambda source: source.choice((0.0, -0.0, float("inf"), source.randrange(-40, 40) / 4)),
    pa.bool_(): lambda source: source.random() < 0.5,
    pa.date32(): lambda source: DAY + dt.timedelta(days=source.randrange(-20000, 20)),
    pa.timestamp("us", "UTC"): lambda source: (
        dt.datetime(2026, 11, 20, tzinfo=dt.timezone.utc)
        + dt.timedelta(microseconds=source.randrange(-(10**15), 10**9))
    ),
}


@dataclass(frozen=True)
class Test:
    """A comparison of the values at a path with a value, or a test for NULL if there is no value."""

    path: str
    comparison: str
    value: Any = None


Condition = Sequence[Sequence[Test]]
"""A disjunction of conjunctions."""


def random_condition(source: random.Random) -> Condition:
    """Return a condition."""

    def test() -> Test:
        path = source.choice(list(PATHS))
        if source.random() < 0.15:
            return Test(path, source.choice(("is null", "is not null")))
        value = VALUES[PATHS[path]](source)
        # DataFusion holds `f = -0.0 and f = 0.0` for false, whatever file it reads.
        return Test(
            path, source.choice(list(COMPARISONS)), 0.0 if value == 0 and isinstance(value, float) else value
        )

    return [[test() for _ in range(source.choice((1, 1, 2, 3)))] for _ in range(source.choice((1, 1, 2)))]


def random_rows(source: random.Random, count: int, first: int) -> list[dict[str, Any]]:
    """Return rows whose values are similar within a file, so that statistics exclude some files."""
    rows = []
    for number in range(first, first + count):
        event: dict[str, Any] = {}
        for path, arrow_type in PATHS.items():
            *parents, last = path.split(".")
            parent = event
            for name in parents:
                parent = parent.setdefault(name, {})
            kind = source.random()
            if kind < 0.75:
                parent[last] = VALUES[arrow_type](source)
            elif kind < 0.85:
                parent[last] = None
        if source.random() < 0.2:
            event["other"] = source.choice((1, [1], {"a": 1}))
        rows.append({"number": number, "event": None if source.random() < 0.1 else event})
    return rows


def write_table(source: random.Random, path: Path) -> None:
    """Write some files, the last ones of another shredding or with values of other types."""
    columns: dict[str, Any] = {}
    for name, arrow_type in PATHS.items():
        *parents, last = name.split(".")
        parent = columns
        for step in parents:
            parent = parent.setdefault(step, {})
        parent[last] = arrow_type
    shredding = dv.ShreddingSchema.of(columns)
    configuration = {"delta.parquet.format.version": "2.12.0"} if source.random() < 0.3 else {}
    for part in range(4):
        rows = random_rows(source, 40, part * 40)
        options: dict[str, Any] = {"shredding": shredding}
        if part == 3:
            options = {"shredding": dv.ShreddingSchema.of({"i": pa.int64(), "s": pa.string()})}
        created = {} if part else {"configuration": configuration}
        dv.write_table(path, rows, mode="append", variant_columns=["event"], **options, **created)


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    if isinstance(value, float):
        return f"cast('{value}' as double)"
    if isinstance(value, Decimal):
        # DataFusion takes the digits alone for a double.
        return f"cast('{value}' as decimal(9, 2))"
    return str(value).lower()


def sql(condition: Condition, name: Callable[[str], str]) -> str:
    """Return a condition as SQL, with the names of columns of an engine."""

    def text(test: Test) -> str:
        operand = "" if test.value is None else f" {_literal(test.value)}"
        return f"{name(test.path)} {test.comparison}{operand}"

    return " or ".join("(" + " and ".join(map(text, tests)) + ")" for tests in condition)


def expression(
    condition: Condition, column: Callable[[str], Any], nulls: Callable[[Any], tuple[Any, Any]]
) -> Any:
    """Return a condition as an expression of a library; `nulls` tests a column for NULL, and for others."""

    def built(test: Test) -> Any:
        found = column(test.path)
        if test.value is None:
            return nulls(found)[test.comparison == "is not null"]
        return COMPARISONS[test.comparison](found, test.value)

    return reduce(or_, [reduce(and_, map(built, tests)) for tests in condition])


def ours(path: Path, condition: Condition) -> list[int]:
    def name(path: str) -> str:
        return f"variant_get(event, '$.{path}', '{type_name(PATHS[path])}')"

    found = dv.read_table(path, columns=["number"], where=sql(condition, name))
    return sorted(found.to_table()["number"].to_pylist())


Find = Callable[[Condition], list[int]]


def engines(table: Path, folder: Path) -> Iterator[tuple[str, Find]]:
    """Yield engines that find the numbers of the rows of a table by a condition."""
    view = View.of(table, {"number": "number", **{path: _typed(path) for path in PATHS}})
    files = []
    for number, file in enumerate(view.files):
        files.append(folder / f"{number}.parquet")
        with file.open() as source:
            files[-1].write_bytes(source.read())
    connection = duckdb.connect()
    dv.to_duckdb(connection, "view", table, columns={"number": "number", **{p: _typed(p) for p in PATHS}})

    def by_duckdb(condition: Condition) -> list[int]:
        where = sql(condition, lambda path: f'"{path}"')
        return sorted(row[0] for row in connection.sql(f"select number from view where {where}").fetchall())

    dataset = ds.dataset([str(file) for file in files])

    def by_pyarrow(condition: Condition) -> list[int]:
        where = expression(
            condition,
            lambda path: ds.field(*view.places[path]),
            lambda column: (column.is_null(), column.is_valid()),
        )
        return sorted(dataset.to_table(columns=["number"], filter=where)["number"].to_pylist())

    def by_polars(condition: Condition) -> list[int]:
        def column(path: str) -> pl.Expr:
            first, *steps = view.places[path]
            return reduce(lambda found, step: found.struct.field(step), steps, pl.col(first))

        where = expression(condition, column, lambda column: (column.is_null(), column.is_not_null()))
        return sorted(pl.scan_parquet(files).filter(where).select("number").collect()["number"].to_list())

    yield from {"duckdb": by_duckdb, "pyarrow": by_pyarrow, "polars": by_polars}.items()
    if find_spec("datafusion") is not None:
        from datafusion import SessionContext

        context = SessionContext()
        context.register_parquet("view", str(folder))

        def by_datafusion(condition: Condition) -> list[int]:
            def name(path: str) -> str:
                first, *steps = view.places[path]
                return f'"{first}"' + "".join(f"['{step}']" for step in steps)

            found = context.sql(f"select number from view where {sql(condition, name)}")
            return sorted(row["number"] for row in found.to_pylist())

        yield "datafusion", by_datafusion


def _typed(path: str) -> str:
    return f"variant_get(event, '$.{path}', '{type_name(PATHS[path])}')"


def differences(seed: int, count: int, folder: Path) -> Iterator[str]:
    """Yield a text for each engine that finds other rows by one of some conditions."""
    source = random.Random(seed)
    write_table(source, folder / "t")
    (folder / "files").mkdir()
    found = list(engines(folder / "t", folder / "files"))
    for _ in range(count):
        condition = random_condition(source)
        expected = ours(folder / "t", condition)
        for name, find in found:
            if (rows := find(condition)) != expected:
                yield f"seed {seed}, {name}: {sql(condition, str)}: {rows} instead of {expected}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    for start in range(0, options.count, 100):
        with tempfile.TemporaryDirectory() as folder:
            os.environ[rewritten.FOLDER] = f"{folder}/cache"
            for text in differences(options.seed + start // 100, 100, Path(folder)):
                print(text, flush=True)
        print(start + 100, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
