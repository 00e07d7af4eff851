"""Random filters, projections and groups over files of views and exports in five engines, and `read_table`.

    PYTHONPATH=tests python tests/views/view_queries.py [--count 100000] [--seed 0]

compares more of them than the tests do, and prints each difference. The same seed gives the same queries.
DataFusion and chdb take part if they are installed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from support.planting import plant_vector

import delta_variant as dv
from delta_variant.expressions.types import type_name
from delta_variant.views import files as view_files
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
LISTS: Mapping[str, pa.DataType] = {
    "l": pa.list_(pa.string()),
    "o.items": pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int32()))])),
}
"""Paths that queries return and do not compare."""

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


@dataclass(frozen=True)
class Query:
    """The values at some paths of the rows that satisfy a condition, or if there is a key, their groups."""

    condition: Condition
    paths: Sequence[str]
    key: str | None

    @property
    def columns(self) -> list[str]:
        """Return the columns that the query reads for its result."""
        return [self.key or "number", *self.paths]


Rows = list[tuple[Any, ...]]
"""The number of a row and its values, or the key of a group, the number of its rows, and for each path the
number of values, the least and the greatest."""


def random_query(source: random.Random) -> Query:
    """Return a query."""
    # Engines differ in whether -0.0 and 0.0 are a group, and the least of infinities is finite in DataFusion.
    grouped = [path for path in PATHS if path != "f"]
    key = source.choice(grouped) if source.random() < 0.3 else None
    paths = [*PATHS, *LISTS] if key is None else [path for path in grouped if path != key]
    return Query(random_condition(source), source.sample(paths, source.choice((0, 1, 1, 2, 4))), key)


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


def random_list(source: random.Random, path: str) -> list[Any]:
    def element() -> Any:
        if source.random() < 0.1:
            return None
        if path == "l":
            return source.choice(("", "a", "x" * 80))
        return {"a": source.randrange(9), "b": [source.randrange(9)] * source.choice((0, 1, 3))}

    return [element() for _ in range(source.choice((0, 1, 2, 5)))]


def random_rows(source: random.Random, count: int, first: int) -> list[dict[str, Any]]:
    """Return rows whose Variants lack some paths, have Variant null at others, or are NULL."""
    rows = []
    for number in range(first, first + count):
        event: dict[str, Any] = {}
        for path, arrow_type in {**PATHS, **LISTS}.items():
            *parents, last = path.split(".")
            parent = event
            for name in parents:
                parent = parent.setdefault(name, {})
            kind = source.random()
            if kind < 0.75:
                parent[last] = random_list(source, path) if path in LISTS else VALUES[arrow_type](source)
            elif kind < 0.85:
                parent[last] = None
        if source.random() < 0.2:
            event["other"] = source.choice((1, [1], {"a": 1}))
        rows.append({"number": number, "event": None if source.random() < 0.1 else event})
    return rows


def write_table(source: random.Random, path: Path) -> None:
    """Write a file that shreds all paths, one with a deletion vector, and one of another shredding."""
    columns: dict[str, Any] = {}
    for name, arrow_type in {**PATHS, **LISTS}.items():
        *parents, last = name.split(".")
        parent = columns
        for step in parents:
            parent = parent.setdefault(step, {})
        parent[last] = arrow_type
    shredding = dv.ShreddingSchema.of(columns)
    configuration = {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": source.choice(("none", "name", "id")),
        "delta.parquet.format.version": source.choice(("1.0.0", "2.12.0")),
    }
    for part in range(3):
        rows = random_rows(source, 50, part * 50)
        options: dict[str, Any] = {"shredding": shredding}
        if part == 2:
            options = {"shredding": dv.ShreddingSchema.of({"i": pa.int64(), "s": pa.string()})}
        created = {} if part else {"configuration": configuration}
        dv.write_table(path, rows, mode="append", variant_columns=["event"], **options, **created)
    plant_vector(path, 1, *source.sample(range(50), 10))


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


def sql(condition: Condition, name: Callable[[str], str], literal: Callable[[Any], str] = _literal) -> str:
    """Return a condition as SQL, with the names of columns of an engine."""

    def text(test: Test) -> str:
        operand = "" if test.value is None else f" {literal(test.value)}"
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


def ours(table: dv.Snapshot, query: Query) -> Rows:
    """Return the rows by `read_table`, and their groups in plain Python."""
    where = sql(query.condition, lambda path: _typed(path))
    columns = {name: "number" if name == "number" else _typed(name) for name in query.columns}
    found = dv.read_table(table, columns=columns, where=where).to_pylist()
    rows = [tuple(row.values()) for row in found]
    if query.key is None:
        return rows
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for key, *values in rows:
        groups.setdefault(key, []).append(tuple(values))
    return [(key, len(group), *_aggregates(zip(*group, strict=True))) for key, group in groups.items()]


def _aggregates(columns: Iterable[Sequence[Any]]) -> Iterator[Any]:
    for column in columns:
        values = [value for value in column if value is not None]
        yield from (len(values), min(values, default=None), max(values, default=None))


Run = Callable[[Query], Rows]


Places = Mapping[str, Sequence[str]]
"""Where files have a path: a column and the fields below it."""


def engines(table: Path, folder: Path, *, is_flat: bool) -> Iterator[tuple[str, Run]]:
    """Yield engines that return the rows of a table that a query asks for.

    They read the files of a view, or if these are flat, those of an export with a column for each path.
    """
    columns = {"number": "number", **{path: _typed(path) for path in (*PATHS, *LISTS)}}
    connection = duckdb.connect(config={"threads": 1})
    places: Places
    if is_flat:
        dv.export(table, folder.with_name("export"), columns=columns)
        for number, path in enumerate(folder.with_name("export").glob("*.parquet")):
            path.rename(folder / f"{number}.parquet")
        places = {name: (name,) for name in columns}
        connection.execute(f"create view view as from read_parquet('{folder}/*.parquet')")
    else:
        view = View.of(table, columns)
        for number, file in enumerate(view.files):
            with file.open() as source:
                (folder / f"{number}.parquet").write_bytes(source.read())
        places = view.shape.places
        dv.to_duckdb(connection, "view", table, columns=columns)

    def by_duckdb(query: Query) -> Rows:
        return connection.execute(select(query, lambda path: f'"{path}"', "view")).fetchall()

    yield from {
        "duckdb": by_duckdb,
        "pyarrow": _pyarrow(places, folder),
        "polars": _polars(places, folder),
    }.items()
    if find_spec("datafusion") is not None:
        yield "datafusion", _datafusion(places, folder)
    if find_spec("chdb") is not None:
        yield "chdb", _chdb(places, folder)


def _pyarrow(places: Places, folder: Path) -> Run:
    dataset = ds.dataset([str(file) for file in folder.iterdir()])

    def run(query: Query) -> Rows:
        where = expression(
            query.condition,
            lambda path: ds.field(*places[path]),
            lambda column: (column.is_null(), column.is_valid()),
        )
        columns = {str(at): ds.field(*places[name]) for at, name in enumerate(query.columns)}
        found = dataset.to_table(columns=columns, filter=where, use_threads=False)
        if query.key is not None:
            of_paths: list[Any] = [
                (str(at), function)
                for at in range(1, len(query.columns))
                for function in ("count", "min", "max")
            ]
            grouped = found.group_by("0", use_threads=False).aggregate([([], "count_all"), *of_paths])
            names = ["0", "count_all", *("_".join(each) for each in of_paths)]
            found = grouped.select(names)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    return run


def _polars(places: Places, folder: Path) -> Run:
    frame = pl.scan_parquet(folder / "*.parquet")

    def column(path: str) -> pl.Expr:
        first, *steps = places[path]
        return reduce(lambda found, step: found.struct.field(step), steps, pl.col(first))

    def run(query: Query) -> Rows:
        where = expression(query.condition, column, lambda found: (found.is_null(), found.is_not_null()))
        first, *others = (column(name).alias(str(at)) for at, name in enumerate(query.columns))
        found = frame.filter(where)
        if query.key is None:
            return found.select(first, *others).collect().rows()
        aggregates = [
            aggregate.name.suffix(str(at))
            for each in others
            for at, aggregate in enumerate((each.count(), each.min(), each.max()))
        ]
        return found.group_by(first).agg(pl.len(), *aggregates).collect().rows()

    return run


def _datafusion(places: Places, folder: Path) -> Run:
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_parquet("view", str(folder))

    def name(path: str) -> str:
        first, *steps = places[path]
        return f'"{first}"' + "".join(f"['{step}']" for step in steps)

    def run(query: Query) -> Rows:
        found = context.sql(select(query, name, "view")).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    return run


def _chdb(places: Places, folder: Path) -> Run:
    import chdb

    connection = chdb.connect(":memory:")
    connection.query(f"create table view engine = File(Parquet, '{folder}/*.parquet')")

    def name(path: str) -> str:
        return ".".join(f"`{step}`" for step in places[path])

    def run(query: Query) -> Rows:
        text = select(query, name, "view", _clickhouse_literal)
        answer = connection.query(f"{text} settings max_threads = 1", "ArrowStream")
        found = pa.ipc.open_stream(answer.bytes()).read_all()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    return run


def select(
    query: Query, name: Callable[[str], str], table: str, literal: Callable[[Any], str] | None = None
) -> str:
    """Return a query as SQL, with the names of columns of an engine."""
    outputs = list(map(name, query.columns))
    where = sql(query.condition, name, literal or _literal)
    if query.key is None:
        return f"select {', '.join(outputs)} from {table} where {where}"
    key, *others = outputs
    aggregates = "".join(f", count({each}), min({each}), max({each})" for each in others)
    return f"select {key}, count(*){aggregates} from {table} where {where} group by {key}"


def _clickhouse_literal(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return f"toDateTime64('{value:%Y-%m-%d %H:%M:%S.%f}', 6, 'UTC')"
    if isinstance(value, dt.date):
        return f"toDate32('{value}')"
    if isinstance(value, float):
        return f"toFloat64('{value}')"
    return _literal(value)


def _typed(path: str) -> str:
    arrow_type = {**PATHS, **LISTS}[path]
    return f"variant_get(event, '$.{path}', '{type_name(arrow_type)}')"


def in_clickhouse(query: Query, rows: Rows) -> Rows:
    """Return rows as ClickHouse has them: its arrays and tuples are empty instead of NULL."""

    def filled(value: Any, arrow_type: Any) -> Any:
        if pa.types.is_list(arrow_type):
            return [filled(element, arrow_type.value_type) for element in value or ()]
        if pa.types.is_struct(arrow_type):
            return {field.name: filled((value or {}).get(field.name), field.type) for field in arrow_type}
        return value

    if query.key is not None:
        return rows
    types: list[Any] = [pa.int64(), *({**PATHS, **LISTS}[path] for path in query.paths)]
    return [tuple(map(filled, row, types)) for row in rows]


def normalized(rows: Rows) -> list[str]:
    """Return rows in an order, as texts that do not depend on the engine."""

    def normalize(value: Any) -> Any:
        if isinstance(value, dt.datetime):
            return value.astimezone(dt.timezone.utc).replace(tzinfo=dt.timezone.utc)
        return value

    return sorted(repr(tuple(map(normalize, row))) for row in rows)


def differences(seed: int, count: int, folder: Path) -> Iterator[str]:
    """Yield a text for each engine that returns other rows for one of some queries."""
    source = random.Random(seed)
    write_table(source, folder / "t")
    (folder / "files").mkdir()
    snapshot = dv.Table(folder / "t").snapshot()
    found = list(engines(folder / "t", folder / "files", is_flat=seed % 2 == 1))
    for _ in range(count):
        query = random_query(source)
        rows = ours(snapshot, query)
        for name, run in found:
            expected = normalized(in_clickhouse(query, rows) if name == "chdb" else rows)
            if (returned := normalized(run(query))) != expected:
                text = select(query, str, "view")
                yield f"seed {seed}, {name}: {text}: {returned} instead of {expected}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    for start in range(0, options.count, 500):
        with tempfile.TemporaryDirectory() as folder:
            os.environ[view_files.FOLDER] = f"{folder}/cache"
            for text in differences(options.seed + start // 500, 500, Path(folder)):
                print(text, flush=True)
        print(start + 500, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
