"""Random filters and projections that engines push into a dataset, each from a seed, against a plain oracle.

`PYTHONPATH=tests python tests/support/pushdown.py --count 100000` compares that many queries, and
`--seed 1234` prints one of them. The same seed gives the same query. The oracle evaluates filters row by row
in Python, over the values that the table was written from.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import delta_variant as dv
from delta_variant.variant.values import VARIANT_TYPE
from support.planting import plant_vector

FILES = 8
ROWS_PER_FILE = 24
DELETED = {2: (0, 5, 23), 5: (7,)}
"""For some commits, the rows of their file that a deletion vector marks."""

TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "day": pa.string(),
    "small": pa.int32(),
    "price": pa.decimal128(9, 2),
    "ratio": pa.float64(),
    "word": pa.string(),
    "flag": pa.bool_(),
    "born": pa.date32(),
    "moment": pa.timestamp("us", "UTC"),
    "raw": pa.binary(),
    "s.x": pa.int64(),
    "n": pa.int64(),
    "t": pa.string(),
    "f": pa.float64(),
    "p": pa.decimal128(12, 3),
    "odd": pa.int64(),
}
"""The columns of the dataset, and the field of a struct column."""

STORED = ("id", "day", "small", "price", "ratio", "word", "flag", "born", "moment", "raw")
PATHS = {
    "n": "event:n::bigint",
    "t": "event:t::string",
    "f": "event:deep.f::double",
    "p": "event:p::decimal(12,3)",
    "odd": "try_cast(event:odd as bigint)",
}
COLUMNS = {**{name: name for name in STORED}, "s": "s", **PATHS}

SHREDDINGS: Sequence[Mapping[str, Any] | None] = (
    {"n": pa.int64(), "t": pa.string(), "deep": {"f": pa.float64()}, "p": pa.decimal128(9, 3)},
    {"n": pa.int32(), "deep": None, "odd": pa.int64()},
    None,
    {"n": pa.decimal128(18, 0), "t": pa.int64(), "odd": pa.string(), "p": pa.decimal128(18, 3)},
)
"""How the files are shredded, in turn: paths, their types and their number differ."""

WORDS = ("", "a", "b", "ba", "%", "Ω", "it's", 'say "no"', "line\nbreak", "z" * 40)
FLOATS = (0.0, -0.0, math.nan, math.inf, -math.inf)
EPOCH = dt.datetime(2026, 11, 1, tzinfo=dt.timezone.utc)

Row = dict[str, Any]
Test = Callable[[Row], "bool | None"]


@dataclass(frozen=True)
class Filter:
    """A filter in the languages of the engines, and as a function of a row, which may return None."""

    arrow: pc.Expression
    polars: pl.Expr
    sql: str
    test: Callable[[Row, bool], bool | None]


@dataclass(frozen=True)
class Source:
    """A scan with its dataset, and its rows in Python."""

    scan: dv.Scan
    dataset: Any
    rows: Sequence[Row]


# The table.


def write_table(table: Path) -> list[Row]:
    """Write the table, and return its rows with the values of the columns of the dataset."""
    draw = Random(7)
    kept: list[Row] = []
    for number in range(FILES):
        rows = [_row(draw, number, index) for index in range(ROWS_PER_FILE)]
        shredding = SHREDDINGS[number % len(SHREDDINGS)]
        dv.write_table(
            table,
            _arrow([(row, _event(draw, row)) for row in rows]),
            mode="append",
            partition_by="day",
            variant_columns=["event"],
            shredding=dv.ShreddingSchema.of(shredding),
            configuration=None if number else {"delta.enableDeletionVectors": "true"},
        )
        deleted = DELETED.get(number, ())
        if deleted:
            plant_vector(table, number, *deleted)
        kept += [row for index, row in enumerate(rows) if index not in deleted]
    return kept


def _row(draw: Random, number: int, index: int) -> Row:
    base = number * 10

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.15 else value

    return {
        "id": number * ROWS_PER_FILE + index,
        "day": None if number == 6 else f"d{number % 3}",
        "small": maybe(base + draw.randrange(10)),
        "price": maybe(Decimal(draw.randrange(base * 100, base * 100 + 900)) / 100),
        "ratio": maybe(draw.choice(FLOATS) if draw.random() < 0.2 else base + draw.random()),
        "word": maybe(draw.choice(WORDS)),
        "flag": maybe(draw.random() < 0.5),
        "born": maybe(EPOCH.date() + dt.timedelta(days=base + draw.randrange(10))),
        "moment": maybe(EPOCH + dt.timedelta(hours=base, microseconds=draw.randrange(10**6))),
        "raw": maybe(bytes([number, draw.randrange(4)])),
        "s.x": maybe(base - draw.randrange(5)),
        # Whole files without a value, or with nothing else.
        "n": None if number == 3 else maybe(base + draw.randrange(10)),
        "t": maybe(draw.choice(WORDS)),
        "f": maybe(draw.choice(FLOATS) if draw.random() < 0.2 else base / 4),
        "p": maybe(Decimal(base * 1000 + draw.randrange(5000)) / 1000),
        "odd": None if number == 4 else maybe(base),
    }


def _event(draw: Random, row: Row) -> dict[str, Any] | None:
    """Return the Variant of a row: None is missing or a JSON null, or has a value that cannot be cast."""
    event = {name: row[name] for name in ("n", "t", "p", "odd") if row[name] is not None}
    if row["odd"] is None:
        event["odd"] = draw.choice(["seven", [1], {"k": 1}, None])
    if row["n"] is None and draw.random() < 0.5:
        event["n"] = None
    if row["f"] is not None:
        event["deep"] = {"f": row["f"], "other": 1}
    return event if event or draw.random() < 0.5 else None


def _arrow(rows: Sequence[tuple[Row, Any]]) -> pa.Table:
    stored = {name: pa.array([row[name] for row, _ in rows], TYPES[name]) for name in STORED}
    structs = pa.array([{"x": row["s.x"]} for row, _ in rows], pa.struct([("x", pa.int64())]))
    events = [None if event is None else dv.Variant.from_python(event) for _, event in rows]
    bytes_ = [each and {"metadata": each.metadata, "value": each.value} for each in events]
    return pa.table({**stored, "s": structs, "event": pa.array(bytes_, VARIANT_TYPE)})


def sources(table: Path) -> list[Source]:
    """Return scans of the table: all rows, and rows that the scan itself filters."""
    rows = write_table(table)
    wheres: dict[str | None, Callable[[Row], bool]] = {
        None: lambda row: True,
        "day = 'd1'": lambda row: row["day"] == "d1",
        "event:n::bigint >= 30": lambda row: row["n"] is not None and row["n"] >= 30,
    }
    found = []
    for where, test in wheres.items():
        scan = dv.read_table(table, columns=COLUMNS, where=where)
        dataset = scan.to_dataset(string_views=where is not None)
        found.append(Source(scan, dataset, [row for row in rows if test(row)]))
    return found


# Filters.


def draw_filter(draw: Random, rows: Sequence[Row], depth: int = 3) -> Filter:
    """Return a random filter, whose literals are close to values of the rows."""
    kind = draw.choice(["not", "and", "or", "test", "test"]) if depth else "test"
    if kind == "not":
        inner = draw_filter(draw, rows, depth - 1)
        return Filter(
            ~inner.arrow, ~inner.polars, f"(not {inner.sql})", lambda row, nan: _not(inner.test(row, nan))
        )
    if kind in ("and", "or"):
        return _connect(kind, draw_filter(draw, rows, depth - 1), draw_filter(draw, rows, depth - 1))
    name = draw.choice(list(TYPES))
    kinds = ["null", *["compare"] * 4]
    if not pa.types.is_floating(TYPES[name]):
        kinds += ["in"]
    if name in ("word", "t"):
        kinds += ["length"]
    if name == "flag":
        kinds += ["itself"]
    return TESTS[draw.choice(kinds)](draw, rows, name)


def _connect(kind: str, left: Filter, right: Filter) -> Filter:
    is_and = kind == "and"

    def test(row: Row, nan: bool) -> bool | None:
        found = left.test(row, nan), right.test(row, nan)
        decisive = not is_and
        return decisive if decisive in found else None if None in found else is_and

    return Filter(
        left.arrow & right.arrow if is_and else left.arrow | right.arrow,
        left.polars & right.polars if is_and else left.polars | right.polars,
        f"({left.sql} {kind} {right.sql})",
        test,
    )


def _null(draw: Random, rows: Sequence[Row], name: str) -> Filter:
    is_null = draw.random() < 0.5
    arrow, polars, sql = _column(name)
    return Filter(
        arrow.is_null() if is_null else arrow.is_valid(),
        polars.is_null() if is_null else polars.is_not_null(),
        f"({sql} is {'' if is_null else 'not '}null)",
        lambda row, nan: (row[name] is None) == is_null,
    )


def _compare(draw: Random, rows: Sequence[Row], name: str) -> Filter:
    value = _value(draw, rows, name)
    arrow, polars, sql = _column(name)
    operator = draw.choice(list(OPERATORS)[: 2 if name == "flag" else None])
    apply = OPERATORS[operator]
    literal = pa.scalar(value, _literal_type(draw, name, value))
    flipped = draw.random() < 0.2

    def test(row: Row, nan: bool) -> bool | None:
        if row[name] is None:
            return None
        if isinstance(value, float) and nan:
            return bool(apply(_ordered(row[name]), _ordered(value)))
        return bool(apply(row[name], value))

    return Filter(
        FLIPPED[operator](pc.scalar(literal), arrow) if flipped else apply(arrow, literal),
        apply(polars, _polars_literal(name, value)),
        f"({sql} {operator} {_sql_literal(name, value)})",
        test,
    )


def _in(draw: Random, rows: Sequence[Row], name: str) -> Filter:
    values = [_value(draw, rows, name) for _ in range(draw.choice([1, 2, 5]))]
    if draw.random() < 0.02:
        values = [_value(draw, rows, name) for _ in range(150)]
    arrow, polars, sql = _column(name)
    texts = ", ".join(_sql_literal(name, value) for value in values)

    def test(row: Row, nan: bool) -> bool | None:
        return None if row[name] is None else row[name] in values

    return Filter(
        # In pyarrow, null is not an element of a list.
        pc.if_else(
            arrow.is_valid(),
            arrow.isin(pa.array(values, TYPES[name])),
            pc.scalar(pa.scalar(None, pa.bool_())),
        ),
        polars.is_in(pl.lit(pl.Series(values, dtype=POLARS_TYPES[name]).implode())),
        f"({sql} in ({texts}))",
        test,
    )


def _length(draw: Random, rows: Sequence[Row], name: str) -> Filter:
    least = draw.randrange(4)
    arrow, polars, sql = _column(name)
    return Filter(
        pc.utf8_length(arrow) > least,
        polars.str.len_chars() > least,
        f"(length({sql}) > {least})",
        lambda row, nan: None if row[name] is None else len(row[name]) > least,
    )


def _itself(draw: Random, rows: Sequence[Row], name: str) -> Filter:
    arrow, polars, sql = _column(name)
    return Filter(arrow, polars, sql, lambda row, nan: row[name])


TESTS = {"null": _null, "compare": _compare, "in": _in, "length": _length, "itself": _itself}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
FLIPPED = {
    **OPERATORS,
    "<": OPERATORS[">"],
    "<=": OPERATORS[">="],
    ">": OPERATORS["<"],
    ">=": OPERATORS["<="],
}
POLARS_TYPES = {name: pl.from_arrow(pa.array([], arrow_type)).dtype for name, arrow_type in TYPES.items()}


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _ordered(value: float) -> tuple[bool, float]:
    """Return a key in the order of DuckDB and Polars, in which NaN is equal to itself and the greatest."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def _column(name: str) -> tuple[pc.Expression, pl.Expr, str]:
    first, _, field = name.partition(".")
    if field:
        return pc.field(first, field), pl.col(first).struct.field(field), f'"{first}"."{field}"'
    return pc.field(name), pl.col(name), f'"{name}"'


def _value(draw: Random, rows: Sequence[Row], name: str) -> Any:
    known = [row[name] for row in rows if row[name] is not None]
    value = draw.choice(known)
    if draw.random() < 0.5:
        return value
    step = draw.choice([-1, 1])
    if isinstance(value, bool | str | bytes):
        return value if isinstance(value, bool) else value[:-1]
    if isinstance(value, dt.date):
        return value + dt.timedelta(days=step)
    return value + step


def _literal_type(draw: Random, name: str, value: Any) -> pa.DataType:
    """Return the type of the column, or another one with which pyarrow compares it."""
    arrow_type = TYPES[name]
    if draw.random() < 0.7:
        return arrow_type
    if pa.types.is_integer(arrow_type):
        return draw.choice([pa.int64(), pa.int32(), pa.float64()])
    if pa.types.is_string(arrow_type):
        return pa.large_string()
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("ns", "UTC")
    return arrow_type


def _polars_literal(name: str, value: Any) -> pl.Expr:
    return pl.lit(value, dtype=POLARS_TYPES[name])


def _sql_literal(name: str, value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::blob"
    if isinstance(value, dt.datetime):
        return f"timestamptz '{value.isoformat()}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, float):
        return f"'{value}'::double"
    if isinstance(value, Decimal):
        return f"{value:f}::{str(TYPES[name]).replace('decimal128', 'decimal')}"
    return str(value)


# Engines.


def read_by_pyarrow(source: Source, condition: Filter, names: Sequence[str], draw: Random) -> pa.Table:
    if draw.random() < 0.1:
        return source.dataset.to_table(
            columns={name: pc.field(name) for name in names}, filter=condition.arrow
        )
    return source.dataset.to_table(columns=list(names), filter=condition.arrow)


def read_by_fragments(source: Source, condition: Filter, names: Sequence[str], draw: Random) -> pa.Table:
    parts = source.dataset.get_fragments(condition.arrow)
    empty = source.dataset.schema.empty_table().select(names)
    return pa.concat_tables(
        [empty, *(part.to_table(columns=list(names), filter=condition.arrow) for part in parts)]
    )


def read_by_duckdb(source: Source, condition: Filter, names: Sequence[str], draw: Random) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        dictionaries = draw.sample(["day", "word", "t"], draw.randrange(4))
        connection.register("source", source.scan.to_dataset(read_dictionary=dictionaries))
        columns = ", ".join(f'"{name}"' for name in names)
        return connection.sql(f"select {columns} from source where {condition.sql}").to_arrow_table()


def read_by_polars(source: Source, condition: Filter, names: Sequence[str], draw: Random) -> pa.Table:
    return source.scan.to_lazyframe().filter(condition.polars).select(names).collect().to_arrow()


ENGINES = {
    "pyarrow": read_by_pyarrow,
    "fragments": read_by_fragments,
    "duckdb": read_by_duckdb,
    "polars": read_by_polars,
}
NAN_IS_GREATEST = {"duckdb", "polars"}


def difference(seed: int, all_sources: Sequence[Source], *, verbose: bool = False) -> str | None:
    """Run the query of a seed, and return how its rows differ from those of the oracle, None if not."""
    draw = Random(seed)
    source = draw.choice(all_sources)
    engine = draw.choice(list(ENGINES))
    condition = draw_filter(draw, all_sources[0].rows)
    names = draw.sample(list(COLUMNS), draw.randrange(1, 5))
    text = f"seed {seed}: {engine}, {', '.join(names)} where {condition.sql}"
    if verbose:
        print(text)
    found = _counted(ENGINES[engine](source, condition, names, draw).to_pylist())
    nan = engine in NAN_IS_GREATEST
    expected = _counted(
        {name: {"x": row["s.x"]} if name == "s" else row[name] for name in names}
        for row in source.rows
        if condition.test(row, nan) is True
    )
    if found == expected:
        return None
    return f"{text}: missing {expected - found}, unexpected {found - expected}"


def _counted(rows: Any) -> Counter[str]:
    # NaN differs from itself, its text does not.
    return Counter(repr({name: _plain(value) for name, value in row.items()}) for row in rows)


def _plain(value: Any) -> Any:
    """Return a value without the digits and the kind of time zone in which engines differ."""
    if isinstance(value, Decimal):
        return value.normalize()
    return value.astimezone(dt.timezone.utc) if isinstance(value, dt.datetime) else value


def differences(seeds: Iterator[int] | range, all_sources: Sequence[Source]) -> Iterator[str]:
    """Yield the differences of the queries of some seeds."""
    for seed in seeds:
        found = difference(seed, all_sources)
        if found is not None:
            yield found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many queries to compare")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first of them")
    parser.add_argument("--seed", type=int, help="run and print the query of this seed only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = sources(Path(folder) / "t")
        if options.seed is not None:
            print(difference(options.seed, known, verbose=True))
            return 0
        begin = time.perf_counter()
        failed = 0
        for text in differences(range(options.first, options.first + options.count), known):
            failed += 1
            print(text)
        print(f"{options.count:,} queries, {failed} differences, {time.perf_counter() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
