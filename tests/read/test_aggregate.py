"""Aggregates of a table: equal to those of its rows, and from the log where statistics are exact."""

from __future__ import annotations

import datetime
import json
import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.planting import inline_vector, rewrite_commit

import delta_variant as dv
from delta_variant.errors import ArgumentTypeError, CastError, ExpressionError

ARGUMENTS = {
    "n": "n",
    "day": "day",
    "price": "price",
    "wide": "wide",
    "text": "text",
    "real": "real",
    "at": "at",
    "ok": "ok",
    "inner": "s.x",
    "p": "p",
    "half": "n % 7",
    "year": "year(day)",
    "constant": "1",
    "int": "v:int::bigint",
    "dec": "try_cast(v:dec as decimal(20,3))",
    "rounded": "try_cast(v:dec as int)",
    "str": "v:str::string",
    "mixed": "try_cast(v:mixed as bigint)",
    "double": "try_cast(v:double as double)",
    "missing": "v:missing::string",
}
COUNTED = {**ARGUMENTS, "variant": "v", "path": "v:mixed", "struct": "s", "is_null": "n is null"}


def key_of(value: Any) -> Any:
    """Return a key in whose order NaN is the greatest number."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)


def expected_of(values: list[Any]) -> tuple[Any, Any, int]:
    known = [value for value in values if value is not None]
    return min(known, key=key_of, default=None), max(known, key=key_of, default=None), len(known)


def is_equal(one: Any, other: Any) -> bool:
    both_nan = all(isinstance(each, float) and math.isnan(each) for each in (one, other))
    return both_nan or one == other


def random_row(source: random.Random, start: int) -> dict[str, Any]:
    number = start + source.randrange(50)
    document = {
        "int": number,
        "dec": source.choice([Decimal(number) / 8, 10**16 + number]),
        "str": chr(97 + number % 26) * source.choice([1, 40]),
        "mixed": source.choice([number, str(number), "x", None, 2.5]),
        "double": source.choice([number / 3, 1e300, -0.0]),
    }
    kept = {name: value for name, value in document.items() if source.random() < 0.9}
    row = {
        "n": number,
        "day": datetime.date(2020, 1, 1) + datetime.timedelta(days=number),
        "price": Decimal(number) / 4,
        "wide": Decimal(10**17 + number) / 1000,
        "text": document["str"],
        "real": source.choice([number / 3, math.nan, -0.0, 0.0, math.inf]),
        "at": datetime.datetime(2020, 1, 1) + datetime.timedelta(microseconds=number),
        "ok": source.random() < 0.5,
        "s": {"x": number},
        "v": source.choice([json.dumps(kept, default=float), "null", "7"]),
    }
    return {name: value if source.random() < 0.9 else None for name, value in row.items()}


TYPES = {
    "n": pa.int32(),
    "day": pa.date32(),
    "price": pa.decimal128(10, 2),
    "wide": pa.decimal128(30, 3),
    "text": pa.string(),
    "real": pa.float64(),
    "at": pa.timestamp("us", "UTC"),
    "ok": pa.bool_(),
    "s": pa.struct({"x": pa.int64()}),
    "v": pa.string(),
}


def rows_of(source: random.Random, start: int, count: int, part: str | None) -> pa.Table:
    rows = [random_row(source, start) for _ in range(count)]
    if source.random() < 0.2:
        name = source.choice(list(TYPES))
        rows = [{**row, name: None} for row in rows]
    table = pa.Table.from_pylist(rows, schema=pa.schema(TYPES))
    return table.append_column("p", pa.repeat(pa.scalar(part, pa.string()), count))


def drop_statistics(add: dict[str, Any]) -> None:
    add.pop("stats", None)


def drop_null_counts(add: dict[str, Any]) -> None:
    add["stats"] = json.dumps({**json.loads(add["stats"]), "nullCount": {}})


def widen(add: dict[str, Any]) -> None:
    """Replace bounds of integers by lower and higher ones, which are not tight."""
    statistics = json.loads(add["stats"])
    statistics |= {"tightBounds": False}
    for side, step in (("minValues", -3), ("maxValues", 3)):
        if "n" in statistics[side]:
            statistics[side]["n"] += step
    add["stats"] = json.dumps(statistics)


def delete_rows(add: dict[str, Any]) -> None:
    """Add a deletion vector of the first rows; the bounds become wide ones, as by Spark."""
    deleted = json.loads(add["stats"])["numRecords"] // 2
    add["deletionVector"] = inline_vector(*range(deleted))
    add["stats"] = json.dumps({**json.loads(add["stats"]), "tightBounds": False})


EDITS: list[Callable[[dict[str, Any]], None]] = [drop_statistics, drop_null_counts, widen, delete_rows]


def write_random_table(path: Path, source: random.Random) -> None:
    configuration = {"delta.enableDeletionVectors": "true"}
    schema = dv.ShreddingSchema.of(
        {"int": pa.int64(), "dec": pa.decimal128(38, 3), "str": pa.string(), "double": pa.float64()}
    )
    for number in range(5):
        rows = rows_of(source, number * source.choice([5, 60]), 40, source.choice(["a", "b", None]))
        dv.write_table(
            path,
            rows,
            mode="append",
            variant_columns=["v"],
            partition_by="p",
            configuration=configuration if number == 0 else None,
            shredding=source.choice(["infer", schema]),
        )
    for log in sorted((path / "_delta_log").glob("*.json")):
        if source.random() < 0.6:
            edit_adds(log, source.choice(EDITS))


def edit_adds(log: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change the files of a commit."""
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        if "add" in action:
            edit(action["add"])
    rewrite_commit(log, actions)


@pytest.mark.parametrize("seed", range(12))
def test_aggregates_are_those_of_the_rows(tmp_path, seed):
    source = random.Random(seed)
    write_random_table(tmp_path / "t", source)
    for where in (
        None,
        "p = 'a'",
        "p is null or p = 'b'",
        "n > 40",
        "p = 'a' and v:int::bigint > 100",
        "n > 900",
    ):
        rows = dv.read_table(tmp_path / "t", columns=COUNTED, where=where).to_table()
        aggregates = {"all": "count(*)"}
        expected: dict[str, Any] = {"all": rows.num_rows}
        for name, text in COUNTED.items():
            least, greatest, count = expected_of(rows[name].to_pylist() if name in ARGUMENTS else [])
            aggregates[f"count {name}"] = f"count({text})"
            expected[f"count {name}"] = count if name in ARGUMENTS else rows.num_rows - rows[name].null_count
            if name in ARGUMENTS:
                aggregates |= {f"min {name}": f"min({text})", f"max {name}": f"max({text})"}
                expected |= {f"min {name}": least, f"max {name}": greatest}
        chosen = source.sample(sorted(aggregates), 20)
        for names in (list(aggregates), chosen, *([name] for name in chosen[:4])):
            found = dv.aggregate(tmp_path / "t", {name: aggregates[name] for name in names}, where)
            assert list(found.values) == names
            wrong = {
                name: (value, expected[name])
                for name, value in found.values.items()
                if not is_equal(value, expected[name])
            }
            assert wrong == {}, where


@pytest.fixture
def table(tmp_path: Path) -> dv.Table:
    """Return a table of four files whose values follow each other."""
    events = dv.Table(tmp_path / "t")
    for start in range(0, 40, 10):
        rows = [
            {
                "n": number,
                "text": f"{number:03}" * 20,
                "real": float(number),
                "p": f"{start}",
                "v": {"n": number, "text": f"{number:03}" * 20, "mixed": number if number % 3 else "x"},
            }
            for number in range(start, start + 10)
        ]
        events.append(rows, variant_columns=["v"], partition_by="p", shredding=SCHEMA)
    return events


SCHEMA = dv.ShreddingSchema.of({"n": pa.int64(), "text": pa.string()})


@pytest.mark.parametrize(
    ("aggregates", "where", "values", "files_read"),
    [
        (["count(*)", "count(n)", "min(n)", "max(n)"], None, [40, 40, 0, 39], 0),
        (["min(v:n::bigint)", "max(v:n::int)", "count(v)"], None, [0, 39, 40], 0),
        (["max(n)", "count(*)", "count(p)", "max(p)"], "p in ('0', '10')", [19, 20, 20, "10"], 0),
        (["max(p)", "min(p::int)", "count(p)"], None, ["30", 0, 40], 0),
        # A bound of text is a prefix: only the file with the greatest bound can have the greatest text.
        (["max(text)"], None, ["039" * 20], 1),
        (["min(text)", "max(text)"], None, ["000" * 20, "039" * 20], 2),
        (["min(v:text::string)"], None, ["000" * 20], 1),
        # NaN may be greater than the bound, and not less.
        (["min(real)"], None, [0.0], 1),
        (["max(real)"], None, [39.0], 4),
        (["count(v:n)"], None, [40], 4),
        (["max(v:mixed::string)"], None, ["x"], 4),
        # Bounds prove only that a file has no greater value, whatever its rows that match.
        (["max(n)"], "n % 10 = 3", [33], 1),
        (["max(n)", "count(*)"], "n between 12 and 14", [14, 3], 1),
        (["max(n)", "count(*)"], "n > 100", [None, 0], 0),
        (["max(n + 1)"], None, [40], 4),
        (["count(n is null)"], None, [40], 4),
    ],
)
def test_only_the_files_that_statistics_leave_open_are_read(table, aggregates, where, values, files_read):
    found = table.aggregate(aggregates, where)
    assert list(found.values.values()) == values
    assert (found.files, found.files_read) == (4, files_read)


def test_a_deletion_vector_leaves_the_extremes_of_its_file_open(table):
    table.set_properties({"delta.enableDeletionVectors": "true"})
    edit_adds(Path(table.table_uri) / "_delta_log" / f"{3:020}.json", delete_rows)
    found = table.aggregate(["min(n)", "max(n)", "count(n)", "count(*)"])
    assert list(found.values.values()) == [0, 39, 35, 35]
    assert found.files_read == 1
    edit_adds(Path(table.table_uri) / "_delta_log" / f"{0:020}.json", delete_rows)
    # A handle does not read a commit twice, so that it would not see that one was edited.
    assert dv.aggregate(table.table_uri, ["min(n)", "count(v)"]).values == {"min(n)": 5, "count(v)": 30}


def test_the_types_are_those_of_spark(table):
    found = table.aggregate(
        {"rows": "count(*)", "n": "min(v:n::int)", "r": "max(real)", "none": "max(null)"}
    ).table
    assert found.schema.types == [pa.int64(), pa.int32(), pa.float64(), pa.null()]


def test_a_table_without_rows_has_no_extremes(tmp_path):
    dv.write_table(tmp_path / "t", pa.table({"n": pa.array([], pa.int32())}))
    found = dv.aggregate(tmp_path / "t", ["count(*)", "count(n) as c", "min(n) as low"])
    assert found.values == {"count(*)": 0, "c": 0, "low": None}


def test_an_earlier_version_is_aggregated(table):
    assert table.as_of(version=1).aggregate(["count(*)"]).values == {"count(*)": 20}
    assert dv.aggregate(table, ["max(n)"], version=0).values == {"max(n)": 9}


def test_an_aggregation_is_printed(table):
    text = str(table.aggregate({"last": "max(n)", "none": "max(null)"}))
    assert text.splitlines() == ["last   39", "none   null", "files  0 of 4 read"]


def test_a_value_that_cannot_be_cast_is_an_error(table):
    with pytest.raises(CastError):
        table.aggregate(["max(v:mixed::bigint)"])
    assert table.aggregate(["max(try_cast(v:mixed as bigint)) as m"]).values == {"m": 38}


@pytest.mark.parametrize(
    ("aggregates", "message"),
    [
        (["sum(n)"], r"expected count\(\*\), count\(expression\), min\(expression\) or max\(expression\)"),
        (["n"], r"expected count"),
        (["count(distinct n)"], "expected count"),
        (["count(n, p)"], "expected count"),
        (["max(n, 1)"], "expected count"),
        (["max(*)"], r"expected an expression, got `\*`"),
        (["count(*) over ()"], r"got `\(`"),
        (["max(n) + 1"], "expected count"),
        (["count(*) filter (where n > 1)"], r"got `\(`"),
        (["max(v:n)"], "`max`: expected values that can be compared, got `v:n` of type variant; cast it"),
        (["max(nothing)"], "does not exist"),
        (["count(*)", "count(*)"], r"two aggregates are named 'count\(\*\)'"),
        ([], "expected at least one aggregate"),
    ],
)
def test_other_aggregates_are_rejected(table, aggregates, message):
    with pytest.raises(ExpressionError, match=message):
        table.aggregate(aggregates)


def test_aggregates_are_texts(table):
    with pytest.raises(ArgumentTypeError):
        table.aggregate("count(*)")
    with pytest.raises(ArgumentTypeError):
        table.aggregate({1: "count(*)"})


@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("files", [[[math.nan], [0.5]], [[0.5], [math.nan]], [[None, math.nan], [2.0, 0.5]]])
def test_nan_of_one_file_is_greater_than_the_numbers_of_another(tmp_path, arrow_type, files):
    for values in files:
        dv.write_table(tmp_path, pa.table({"x": pa.array(values, arrow_type)}), mode="append")
    found = dv.aggregate(tmp_path, {"least": "min(x)", "greatest": "max(x)"}).values
    assert found["least"] == 0.5
    assert math.isnan(found["greatest"])
