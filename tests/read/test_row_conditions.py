"""Conditions that the kernel tests before it extracts the other values of a row: no row is lost or added."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.expressions.parse import parse
from delta_variant.expressions.tree import Expression
from delta_variant.log.load import load_latest
from delta_variant.read.predicate import leading_conditions
from delta_variant.read.scope import Scope

ROWS = 3_000
WORDS = ("buy", "view", "", "ärger", "zzz")

# Each has placeholders for an operator, a number and a word.
TERMS = (
    "n {op} {number}",
    "{number} {op} n",
    "word {op} '{word}'",
    "day {op} date'2024-01-0{digit}'",
    "amount {op} {number}.25",
    "event:word::string {op} '{word}'",
    "event:word::string in ('{word}', 'buy')",
    "event:x::bigint {op} {number}",
    "try_cast(event:odd as bigint) {op} {number}",
    "try_cast(event:odd as string) {op} '{word}'",
    "event:at::timestamp {op} timestamp'2024-01-0{digit} 00:00:00Z'",
    "event:ratio::double {op} {number}",
    "event:nested.x::int {op} {number}",
    "event:nested.x::int is not null",
    "event:list[1]::int {op} {number}",
    "event:missing::int {op} {number}",
    "event:flag::boolean = true",
    "n is not null",
    "n in ({number}, 3, null)",
    "n % 3 = 1",
    "not (n {op} {number})",
)


def event(random_: random.Random) -> dict[str, Any]:
    number = random_.randrange(10)
    values = {
        "word": random_.choice(WORDS),
        "x": number,
        "odd": random_.choice([number, str(number), "text", None]) if random_.random() < 0.1 else number,
        "at": f"2024-01-0{1 + number % 9}T00:00:00Z",
        "ratio": random_.choice([0.5, -0.0, 3]),
        "nested": random_.choice([{"x": number}, {"x": number, "y": "late"}, None, 7]),
        "list": [number] * random_.randrange(3),
        "flag": random_.random() < 0.5,
    }
    return {name: value for name, value in values.items() if random_.random() < 0.9}


@pytest.fixture(scope="module", params=["infer", None], ids=["shredded", "unshredded"])
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    random_ = random.Random(7)
    rows = pa.table(
        {
            "id": pa.array(range(ROWS)),
            "n": [random_.choice([None, *range(10)]) for _ in range(ROWS)],
            "word": [random_.choice([None, *WORDS]) for _ in range(ROWS)],
            "day": [dt.date(2024, 1, random_.randrange(1, 10)) for _ in range(ROWS)],
            "amount": pa.array([random_.randrange(1000) for _ in range(ROWS)]).cast(pa.decimal128(21, 2)),
            "event": [json.dumps(event(random_)) for _ in range(ROWS)],
        }
    )
    path = tmp_path_factory.mktemp("table") / "events"
    options: Any = {"variant_columns": ["event"], "shredding": request.param}
    configuration = {"delta.enableDeletionVectors": "true"}
    dv.write_table(path, rows.slice(0, 2_000), configuration=configuration, **options)
    dv.write_table(path, rows.slice(2_000), mode="append", **options)
    dv.delete(path, "id % 17 = 3")
    return path


def predicate(random_: random.Random) -> str:
    terms = [
        random_.choice(TERMS).format(
            op=random_.choice(["=", "<>", "<", "<=", ">", ">="]),
            number=random_.randrange(-1, 11),
            word=random_.choice(WORDS),
            digit=random_.randrange(1, 10),
        )
        for _ in range(random_.randrange(1, 4))
    ]
    return f" {random_.choice(['and', 'and', 'or'])} ".join(terms)


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_those_for_which_the_predicate_is_true(table: Path, seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(4):
        where = predicate(random_)
        # As an output, the predicate is evaluated for all rows.
        kept = dv.read_table(table, columns={"id": "id", "kept": where}).to_table()
        expected = kept.filter(kept["kept"])["id"].to_pylist()
        columns = random_.choice(
            [{"id": "id"}, {"id": "id", "event": "event"}, {"id": "id", "t": "to_json(event)"}]
        )
        found = dv.read_table(table, columns=columns, where=where).to_table()
        assert found["id"].to_pylist() == expected, where
        assert sum(
            batch.num_rows for batch in dv.read_table(table, columns=[], where=where).to_batches()
        ) == len(expected)


def test_values_of_the_rows_are_their_own(table: Path) -> None:
    everything = dv.read_table(table, columns={"id": "id", "text": "to_json(event)"}).to_table()
    texts = dict(zip(everything["id"].to_pylist(), everything["text"].to_pylist(), strict=True))
    columns = {"id": "id", "text": "to_json(event)", "word": "event:word::string"}
    found = dv.read_table(table, columns=columns, where="event:word::string = 'buy'").to_table()
    assert found.num_rows > 100
    assert {row["id"]: row["text"] for row in found.to_pylist()} == {
        number: texts[number] for number in found["id"].to_pylist()
    }
    assert set(found["word"].to_pylist()) == {"buy"}


def bound(table: Path, where: str) -> Expression:
    return Scope.of(load_latest(table).configuration).bind(parse(where))


@pytest.mark.parametrize(
    ("where", "operators"),
    [
        ("n > 3 and event:x::bigint <= 4 and word = 'buy'", [">", "<=", "="]),
        ("3 < n", [">"]),
        ("word in ('buy', 'view')", ["="]),
        ("event:x::int is not null", ["is not null"]),
        # A row that the second operand excludes can raise an error in the first.
        ("n % 3 = 1 and n > 3", []),
        ("n > 3 and n % 3 = 1 and word = 'buy'", [">"]),
        ("n > 3 or n < 1", []),
        # Arrow distinguishes -0.0 from 0.0.
        ("event:ratio::double = 0.0", []),
        ("n = null", []),
        ("event:x::tinyint < 1000", []),
        ("to_json(event:x) = '1'", []),
    ],
)
def test_the_leading_comparisons_are_conditions(table: Path, where: str, operators: list[str]) -> None:
    assert [each.operator for each in leading_conditions(bound(table, where))] == operators


def test_all_rows_that_are_decoded_are_reported(table: Path) -> None:
    explained = dv.read_table(table, columns=["id"], where="event:word::string = 'no such word'").explain()
    assert explained.rows == 0
    assert explained.rows_decoded == ROWS - len(range(3, ROWS, 17))


def test_a_failed_cast_of_a_row_that_a_condition_drops_is_no_error(tmp_path: Path) -> None:
    lines = [{"kind": "number", "v": 1}, {"kind": "text", "v": "one"}] * 500
    rows = {"id": list(range(1000)), "event": [json.dumps(line) for line in lines]}
    dv.write_table(tmp_path, pa.table(rows), variant_columns=["event"])
    where = "event:kind::string = 'number' and event:v::int = 1"
    assert dv.read_table(tmp_path, columns=["id"], where=where).to_table().num_rows == 500
    with pytest.raises(dv.CastError) as raised:
        dv.read_table(tmp_path, columns=["id"], where="event:v::int = 1").to_table()
    assert raised.value.row == 1


def counted(table: Path, where: str) -> int:
    return sum(batch.num_rows for batch in dv.read_table(table, columns=[], where=where).to_batches())


def test_rows_are_counted_by_conditions_on_partition_columns(tmp_path: Path) -> None:
    rows = pa.table({"part": ["a", "b"] * 50, "n": range(100)})
    dv.write_table(tmp_path, rows, partition_by=["part"])
    assert counted(tmp_path, "n > 9 and part = 'a'") == 45
    assert counted(tmp_path, "part = 'b' and n < 10") == 5
    assert counted(tmp_path, "part = 'b'") == 50
    assert counted(tmp_path, "part > 'a' and part in ('a', 'c')") == 0


def test_rows_are_counted_in_files_of_another_type(tmp_path: Path) -> None:
    dv.write_table(
        tmp_path,
        pa.table({"n": pa.array(range(100), pa.int32())}),
        configuration={"delta.enableTypeWidening": "true"},
    )
    dv.change_type(tmp_path, "n", "bigint")
    dv.write_table(tmp_path, pa.table({"n": pa.array(range(100, 200), pa.int64())}), mode="append")
    assert counted(tmp_path, "n >= 90 and n <> 150") == 109
