"""DuckDB reads the same rows for `dv.sql` as are read here; other tests compare these with Spark."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.planting import plant_vector

import delta_variant as dv
from delta_variant.queries import direct, relations

UTC = dt.timezone.utc
TYPES = {
    "text": pa.string(),
    "small": pa.int16(),
    "number": pa.int64(),
    "price": pa.decimal128(9, 2),
    "ratio": pa.float64(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
}
VALUES: dict[str, list[Any]] = {
    "text": ["", "a", "it's", "B", "ü", "\U0001f600", "zz"],
    "small": [-32768, -1, 0, 7, 32767],
    "number": [-(2**63), -99_999_999_999_999_999, -1, 0, 7, 1_700_000_000_123_456, 2**63 - 1],
    "price": [Decimal("-9999999.99"), Decimal("0.00"), Decimal("7.50"), Decimal("9999999.99")],
    "ratio": [float("-inf"), -0.0, 0.0, 0.5, float("inf"), float("nan")],
    "flag": [True, False],
    "day": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "at": [
        dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc),
        dt.datetime(2024, 2, 29, 23, 5, 6, 7, dt.timezone.utc),
    ],
    "local": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29)],
}
LITERALS = {
    "text": lambda each: "'" + each.replace("'", "''") + "'",
    "flag": lambda each: str(each).lower(),
    "ratio": lambda each: f"double('{each}')",
    "day": lambda each: f"date '{each.isoformat()}'",
    "at": lambda each: f"timestamp '{each:%Y-%m-%d %H:%M:%S.%f}Z'".replace("'1-", "'0001-"),
    "local": lambda each: f"timestamp_ntz '{each.isoformat(sep=' ')}'",
}
SQL_TYPES = {
    "text": "string",
    "small": "smallint",
    "number": "bigint",
    "price": "decimal(9,2)",
    "ratio": "double",
    "flag": "boolean",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let DuckDB read small files as well; return whether it could, for each relation."""
    used: list[bool] = []
    of = direct.DirectRows.of

    def spy(*arguments: Any) -> direct.DirectRows | None:
        made = of(*arguments)
        used.append(made is not None)
        return made

    monkeypatch.setattr(direct, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(relations.DirectRows, "of", spy)
    return used


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write columns and paths of each type, in partitions, with names of column mapping."""
    path = tmp_path_factory.mktemp("direct") / "t"
    source = random.Random(5)
    shredding = dv.ShreddingSchema.of(TYPES)
    for _ in range(3):
        values = {name: [source.choice([None, *VALUES[name]]) for _ in range(60)] for name in TYPES}
        plain = {name: pa.array(values[name], TYPES[name]) for name in TYPES}
        structs = pa.StructArray.from_arrays(list(plain.values()), names=list(TYPES))
        columns = {f"c_{name}": source.sample(array.to_pylist(), 60) for name, array in plain.items()}
        batch = pa.table(
            {
                "part": [source.choice(["x", "y/ü", None]) for _ in range(60)],
                **{name: pa.array(each, TYPES[name[2:]]) for name, each in columns.items()},
                "event": structs,
            }
        )
        dv.write_table(
            path,
            batch,
            mode="append",
            variant_columns=["event"],
            shredding=shredding,
            partition_by=["part"],
            configuration={"delta.columnMapping.mode": "name"},
        )
    return path


class Queries:
    """Random queries of conditions, groups and orders that DuckDB may read itself, and of others."""

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)

    def query(self) -> str:
        keys = [self.value()[0] for _ in range(self.source.randrange(3))]
        aggregates = [self.aggregate() for _ in range(self.source.randrange(1, 3))]
        items = [f"{each} as v{number}" for number, each in enumerate([*keys, *aggregates])]
        where = f" where {self.condition(2)}" if self.source.random() < 0.8 else ""
        group = " group by all" if keys else ""
        order = ", ".join(str(number + 1) for number in range(len(items)))
        return f"select {', '.join(items)} from t{where}{group} order by {order}"

    def aggregate(self) -> str:
        value, name = self.value()
        if name == "at" and self.source.random() < 0.4:
            return f"max(date({value}))"
        if self.source.random() < 0.1:
            return f"max(coalesce({value}, {self.literal(name)}))"
        if name == "number" and self.source.random() < 0.4:
            return self.source.choice(["min({})", "max(hour({}))"]).format(f"timestamp_micros({value})")
        return self.source.choice(
            ["count(*)", "count({})", "min({})", "max({})", "count(distinct {})"]
        ).format(value)

    def value(self) -> tuple[str, str]:
        name = self.source.choice(list(TYPES))
        if self.source.random() < 0.1:
            return "part", "text"
        return self.source.choice([f"c_{name}", f"event:{name}::{SQL_TYPES[name]}"]), name

    def literal(self, name: str) -> str:
        show: Callable[[Any], str] = LITERALS.get(name, str)
        return show(self.source.choice(VALUES[name]))

    def condition(self, depth: int) -> str:
        if depth and self.source.random() < 0.5:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return self.source.choice([f"({left} and {right})", f"({left} or {right})", f"not ({left})"])
        value, name = self.value()
        if self.source.random() < 0.1:
            return f"{value} is {self.source.choice(['', 'not '])}null"
        if self.source.random() < 0.2:
            return f"{value} in ({self.literal(name)}, {self.literal(name)})"
        if name == "day" and self.source.random() < 0.3:
            return f"{self.source.choice(['year', 'month', 'day'])}({value}) < 1000"
        if name in ("number", "ratio") and self.source.random() < 0.2:
            return f"{value} {self.source.choice('+-*')} {self.literal(name)} > {self.literal(name)}"
        if name in ("at", "number") and self.source.random() < 0.3:
            moment = value if name == "at" else f"timestamp_micros({value})"
            return f"{self.source.choice(['year', 'month', 'day', 'hour'])}({moment}) > 5"
        operator = self.source.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        return f"{value} {operator} {self.literal(name)}"


def outcome(query: str, table: Path) -> Any:
    try:
        found = dv.sql(query, t=table).to_table()
    except dv.DeltaVariantError as error:
        return type(error)
    # Python has only the years 1 to 9999, and NaN is equal to itself in a repr.
    shown = [each.cast(pa.int64()) if pa.types.is_timestamp(each.type) else each for each in found.columns]
    # Which of 0.0 and -0.0 is the smaller one depends on the order of the rows.
    return found.schema, repr([each.to_pylist() for each in shown]).replace("-0.0", "0.0")


@pytest.mark.parametrize("seed", range(4))
def test_random_queries_have_the_same_rows(
    table: Path, seed: int, found: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = Queries(seed)
    for _ in range(50):
        query = queries.query()
        direct_rows = outcome(query, table)
        with monkeypatch.context() as patch:
            patch.setattr(relations.DirectRows, "of", lambda *_: None)
            assert direct_rows == outcome(query, table), query
    assert sum(found) > 25


def test_a_value_that_duckdb_cannot_compute_is_computed_here(tmp_path: Path, found: list[bool]) -> None:
    rows = [{"x": -(2**63)}, {"x": 2**63 - 1}, {"x": 5}]
    dv.write_table(tmp_path / "t", rows)
    query = "select hour(timestamp_micros(x)) as h, count(*) as n from t group by 1 order by 1"
    # -9223372036854775808 and 9223372036854775807 microseconds are 19:59:05.224192 and 04:00:54.775807.
    assert dv.sql(query, t=tmp_path / "t").to_pylist() == [{"h": h, "n": 1} for h in (0, 4, 19)]
    assert found == [True]


@pytest.mark.parametrize(
    "condition",
    ["v:a::double > 1", "v:a::string = '1'", "v:a[0]::bigint = 1", "v:b::bigint = 1", "x + 1 > 1"],
)
def test_other_rows_are_read_here(tmp_path: Path, condition: str, found: list[bool]) -> None:
    schema = ["x bigint", "v variant"]
    dv.create_table(tmp_path / "t", schema)
    shredding = dv.ShreddingSchema.of({"a": pa.int64(), "b": pa.int64()})
    dv.write_table(
        tmp_path / "t",
        [{"x": 1, "v": {"a": 2, "b": 1}}, {"x": 2, "v": {"a": 3, "b": "1"}}],
        mode="append",
        shredding=shredding,
    )
    expected = {row["x"] for row in dv.read_table(tmp_path / "t", columns=["x"], where=condition)}
    assert {
        r["x"] for r in dv.sql(f"select x from t where {condition} order by x", t=tmp_path / "t")
    } == expected
    assert found == [False]


def test_rows_are_not_read_by_duckdb_with_a_deletion_vector_or_without_fsspec(
    tmp_path: Path, found: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    dv.write_table(
        tmp_path / "t",
        [{"x": n} for n in range(4)],
        configuration={"delta.enableDeletionVectors": "true"},
    )
    query = "select sum(x) as n from t"
    monkeypatch.setattr(direct, "find_spec", lambda name: None)
    assert dv.sql(query, t=tmp_path / "t").to_pylist() == [{"n": 6}]
    monkeypatch.undo()
    plant_vector(tmp_path / "t", 0, 1)
    assert dv.sql(query, t=tmp_path / "t").to_pylist() == [{"n": 5}]
    assert found == [False]


def test_a_misspelt_path_is_still_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shredding = dv.ShreddingSchema.of({"kind": pa.string()})
    dv.write_table(tmp_path / "t", [{"v": {"kind": "a"}}], variant_columns=["v"], shredding=shredding)
    assert dv.sql("select count(*) as n from t where v:kimd::string = 'a'", t=tmp_path / "t").to_pylist() == [
        {"n": 0}
    ]
    assert "did you mean `v:kind`" in caplog.text
