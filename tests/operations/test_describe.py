"""`describe`: the types, fill and values of columns and paths, compared with counts in plain Python."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant.operations.describe import distinct_values

NAMES = ("a", "b c", "d")


def document(random: Random, depth: int = 2) -> Any:
    """Return a random value of JSON."""
    kind = random.randrange(8 if depth else 5)
    if kind < 5:
        number = random.randrange(1, 9)
        return random.choice([None, True, number, Decimal(number) / 8, "xyz"[number % 3]])
    if kind < 7:
        return {name: document(random, depth - 1) for name in NAMES if random.random() < 0.6}
    return [document(random, depth - 1) for _ in range(random.randrange(3))]


KINDS = {bool: "boolean", int: "bigint", Decimal: "decimal", str: "string", dict: "object", list: "array"}


def expected(documents: list[Any]) -> dict[tuple[str | None, ...], tuple[Counter[str], int, int]]:
    """Return the types of each path, the rows with a value, and those with nulls alone."""
    types: dict[Any, Counter[str]] = defaultdict(Counter)
    filled, null = Counter[Any](), Counter[Any]()
    for each in documents:
        found: dict[Any, bool] = {}
        stack = [((), each)]
        while stack:
            path, value = stack.pop()
            found[path] = found.get(path, False) or value is not None
            if value is not None:
                types[path][KINDS[type(value)]] += 1
            if isinstance(value, dict):
                stack += [((*path, name), member) for name, member in value.items()]
            if isinstance(value, list):
                stack += [((*path, None), element) for element in value]
        filled.update(path for path, has_value in found.items() if has_value)
        null.update(path for path, has_value in found.items() if not has_value)
    return {path: (types[path], filled[path], null[path]) for path in {*types, *filled, *null}}


def text(path: tuple[str | None, ...]) -> str:
    steps = "".join("[]" if step is None else "['b c']" if step == "b c" else f".{step}" for step in path)
    return f"v:{steps.removeprefix('.')}" if steps else "v"


@pytest.mark.parametrize("seed", range(3))
def test_types_fill_and_nulls_are_those_that_python_counts(tmp_path: Path, seed: int):
    random = Random(seed)
    documents = [document(random) for _ in range(400)]
    table = tmp_path / "t"
    rows = [{"v": dv.Variant.from_python(each)} for each in documents]
    dv.write_table(table, rows, variant_columns=["v"])
    lines = tmp_path / "lines.ndjson"
    lines.write_text("".join(json.dumps(each, default=float) + "\n" for each in documents))
    right = expected(documents)
    for summary in (dv.describe(table), dv.describe(dv.read_json(lines, column="v"))):
        assert (summary.rows, summary.sampled_rows, summary.invalid) == (400, 400, 0)
        paths = {each.path: each for each in summary.paths}
        assert paths.keys() == {text(path) for path in right}
        for path, (types, filled, nulls) in right.items():
            each = paths[text(path)]
            assert each.types == pytest.approx({kind: n / types.total() for kind, n in types.items()})
            assert (each.filled, each.nulls) == pytest.approx((filled / 400, nulls / 400))


def test_values_of_a_path_are_counted_and_ordered_by_their_type(tmp_path: Path):
    values = [3, Decimal("2.5"), 3, "b", None, 10]
    dv.write_table(tmp_path, [{"v": {"n": each}} for each in values], variant_columns=["v"])
    [_, path] = dv.describe(tmp_path).paths
    assert (path.path, path.min, path.max, path.distinct) == ("v:n", "2.5", "10", 4)
    assert path.examples[0] == "3"
    assert path.nulls == pytest.approx(1 / 6)


def test_columns_have_the_types_of_the_table(tmp_path: Path):
    data = {"day": [dt.date(2026, 1, 2), None], "s": [{"a": 1}, {"a": 2}]}
    dv.write_table(tmp_path, pa.table(data))
    day, struct = dv.describe(tmp_path).paths
    assert (day.path, day.types, day.filled, day.nulls) == ("day", {"date": 1.0}, 0.5, 0.5)
    assert (day.min, day.max, day.distinct, day.column) == ("2026-01-02", "2026-01-02", 1, None)
    assert (struct.types, struct.min, struct.distinct) == ({"struct<a: bigint>": 1.0}, None, None)


def test_a_path_with_a_column_has_its_type(tmp_path: Path):
    schema = dv.ShreddingSchema.of({"id": pa.int64()})
    rows = [{"v": {"id": 1, "other": "x"}}]
    dv.write_table(tmp_path, rows, variant_columns=["v"], shredding=schema)
    columns = {each.path: each.column for each in dv.describe(tmp_path).paths}
    assert columns == {"v": None, "v:id": "bigint", "v:other": None}


def test_a_sample_says_how_many_rows_it_has_and_estimates_distinct_values(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    for first in range(0, 4000, 1000):
        table.append([{"v": {"id": first + each}} for each in range(1000)], variant_columns=["v"])
    summary = table.describe(sample_rows=400)
    assert (summary.rows, summary.sampled_rows) == (4000, 400)
    # The square root of 10, times the 400 values that occur once.
    assert summary.paths[1].distinct == 1265
    assert int(summary.paths[1].max) >= 3000
    lines = str(summary).splitlines()
    assert lines[0].endswith("4,000 rows, 400 of them sampled")
    assert max(map(len, lines[1:])) <= 80


def test_json_that_is_not_valid_is_counted(tmp_path: Path):
    lines = tmp_path / "dirty.ndjson"
    lines.write_text('{"a": 1}\n{"a": \n{"a": "x"}\n')
    summary = dv.describe(dv.read_json(lines))
    assert (summary.rows, summary.invalid) == (2, 1)
    assert str(summary).splitlines()[0] == f"{lines}: 2 rows, 1 value not JSON"


def test_a_summary_is_an_arrow_stream_and_html(tmp_path: Path):
    dv.write_table(tmp_path, [{"id": 1}, {"id": 2}])
    summary = dv.describe(tmp_path)
    frame = pl.DataFrame(summary)
    assert frame.select("path", "filled", "min", "max").rows() == [("id", 1.0, "1", "2")]
    assert pa.table(summary) == summary.to_table()
    assert re.findall(r"<td[^>]*>([^<]*)</td>", summary._repr_html_()) == list(summary.cells()[0])


def test_a_table_without_rows_has_its_columns(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"id": pa.array([], pa.int64())}))
    [column] = dv.describe(tmp_path).paths
    assert (column.path, column.types, column.filled, column.distinct) == ("id", {}, 0, None)


def test_nan_is_one_value_without_an_order(tmp_path: Path):
    dv.write_table(tmp_path, pa.table({"f": [math.nan, math.nan, 1.0, 2.0]}))
    [column] = dv.describe(tmp_path).paths
    assert (column.distinct, column.min, column.max, column.examples[0]) == (3, "1.0", "2.0", "nan")


def test_an_empty_file_has_its_name_and_no_rows(tmp_path: Path):
    file = tmp_path / "empty.ndjson"
    file.touch()
    assert dv.describe(dv.read_json(file)).title == f"{file}: 0 rows"


def test_a_sample_has_at_least_one_row(tmp_path: Path):
    with pytest.raises(ValueError, match="sample_rows"):
        dv.describe(tmp_path, sample_rows=0)


def test_distinct_values_are_exact_for_all_values_and_scaled_for_a_sample():
    assert distinct_values({}, 100) == 0
    assert distinct_values({"1": 1, "2": 1, "3": 2}, 4) == 3
    # d = 3, f1 = 2, N / n = 100 / 4.
    assert distinct_values({"1": 1, "2": 1, "3": 2}, 100) == 5 * 2 + 1
    assert distinct_values({"1": 2, "2": 2}, 1000) == 2
    # There are never more distinct values than values.
    assert distinct_values({str(number): 1 for number in range(10)}, 12) == pytest.approx(10.95, abs=0.01)
    assert distinct_values({"1": 1}, 0) == 1
