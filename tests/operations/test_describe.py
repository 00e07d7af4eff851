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
from delta_variant.operations.describe.sample import distinct_values

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


def test_booleans_are_written_as_in_json(tmp_path: Path):
    dv.write_table(tmp_path, [{"v": {"ok": each}} for each in (True, False, True)], variant_columns=["v"])
    [_, path] = dv.describe(tmp_path).paths
    assert (path.min, path.max, path.examples) == ("false", "true", ("true", "false"))


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
    assert lines[0].endswith("4,000 rows, ~ estimated from 400 of them")
    assert max(map(len, lines[1:])) <= 80


def test_of_many_paths_those_in_most_rows_are_printed(tmp_path: Path):
    rows = [
        {"v": {"often": 1, **{f"n{number}": 1 for number in range(each * 100, each * 100 + 100)}}}
        for each in range(3)
    ]
    dv.write_table(tmp_path, rows, variant_columns=["v"])
    summary = dv.describe(tmp_path)
    lines = str(summary).splitlines()
    assert len(summary.paths) == summary.to_table().num_rows == 302
    assert lines[0].endswith("3 rows; 200 of 302 paths; to_table() has all")
    assert len(lines) == 202
    assert [line.split()[0] for line in (lines[2], lines[-1])] == ["v", "v:often"]
    assert summary._repr_html_().count("<tr>") == 201


def test_figures_of_all_rows_come_from_the_log(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    schema = dv.ShreddingSchema.of({"id": pa.int64(), "n": pa.int64()})
    for first in range(0, 300, 100):
        numbers = range(first, first + 100)
        # The last value of `n` is not an integer, and no row of the sample has it.
        texts = [json.dumps({"id": each, "n": 7.5 if each == 299 else 7}) for each in numbers]
        day = [None if each % 2 else dt.date(2026, 1, 1) + dt.timedelta(each) for each in numbers]
        rows = pa.table({"day": day, "v": texts})
        table.append(rows, variant_columns=["v"], shredding=schema)
    day, _, id_, n = table.describe(sample_rows=3).paths
    assert (day.filled, day.nulls, day.min, day.max) == (0.5, 0.5, "2026-01-01", "2026-10-26")
    assert set(day.exact) == {"filled", "nulls", "min", "max"}
    assert (id_.min, id_.max, id_.exact) == ("0", "299", ("min", "max"))
    assert (n.min, n.max, n.exact) == ("7", "7", ())
    table.delete("day = date'2026-10-26'")
    assert table.describe(sample_rows=3).paths[0].max <= "2026-10-24"


def test_each_path_without_a_column_has_the_reason(tmp_path: Path):
    def reasons(rows: list[Any], **options: Any) -> dict[str, str | None]:
        table = dv.Table(tmp_path / f"t{len(list(tmp_path.iterdir()))}")
        table.append([{"v": row} for row in rows], variant_columns=["v"], **options)
        return {each.path: each.reason for each in table.describe().paths if each.reason}

    assert reasons([{"a": 1}], shredding=None) == {"v:a": "not shredded"}
    kinds = [1, "x", True]
    rows: list[Any] = [{"a": each, "tags": ["x"], "mixed": kinds[each % 3]} for each in range(1000)]
    rows[5]["rare"] = 1
    found = reasons(rows[:50])
    assert found["v:a"] == "small file"
    assert found["v:tags[]"] == "in an array"
    assert found["v:mixed"] == "mixed types"
    assert reasons(rows)["v:rare"] == "too rare"
    assert "v:a" not in reasons(rows, shredding=dv.ShreddingSchema.of({"a": pa.int64()}))
    deep: Any = 1
    for _ in range(40):
        deep = {"d": deep}
    assert set(reasons([{"top": deep}] * 50).values()) == {"too deep"}
    assert "too many" in reasons([{f"k{each}": each for each in range(400)}] * 50).values()


def test_drift_names_new_changed_and_vanished_paths(tmp_path: Path):
    table = dv.Table(tmp_path)
    table.append([{"v": {"same": 1, "kind": 1, "lost": 1}}], variant_columns=["v"])
    table.overwrite([{"v": {"same": 2, "kind": "x", "new": True}}], variant_columns=["v"])
    summary = table.describe(since=0)
    changes = {each.path: each.change for each in summary.paths}
    assert changes == {"v": None, "v:same": None, "v:kind": "changed", "v:new": "new", "v:lost": "vanished"}
    assert summary.since == 0
    assert summary.title.endswith("; paths since version 0: 1 changed, 1 new, 1 vanished")
    assert table.describe(version=1).paths[0].change is None
    with pytest.raises(ValueError, match="earlier than 1, got 1"):
        table.describe(since=1)


def test_values_that_python_lacks_are_described_by_their_text(tmp_path: Path):
    days = pa.array([2932897, 0, None, -719529], pa.date32())
    table = dv.Table(tmp_path / "columns")
    table.append(pa.table({"d": days}))
    [column] = table.describe().paths
    assert (column.types, column.filled, column.max) == ({"date": 1.0}, 0.75, "10000-01-01")
    variants = dv.Table(tmp_path / "variants")
    objects = "to_variant_object(named_struct('d', d, 'list', array(1, 2)))"
    variants.append(table.scan(columns={"v": objects}))
    paths = {each.path: each for each in variants.describe().paths}
    assert paths["v:d"].types == {"date": 1.0}
    assert (paths["v:d"].max, paths["v:d"].distinct) == ("+10000-01-01", 3)
    assert (paths["v:list[]"].min, paths["v:list[]"].max) == ("1", "2")


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
    assert distinct_values(0, 0, 0, 100) == 0
    assert distinct_values(3, 2, 4, 4) == 3
    # d = 3, f1 = 2, N / n = 100 / 4.
    assert distinct_values(3, 2, 4, 100) == 5 * 2 + 1
    assert distinct_values(2, 0, 4, 1000) == 2
    # There are never more distinct values than values.
    assert distinct_values(10, 10, 10, 12) == pytest.approx(10.95, abs=0.01)
    assert distinct_values(1, 1, 1, 0) == 1


def test_sorted_rows_are_sampled_over_the_whole_table(tmp_path: Path):
    rows = [{"v": {"kind": "abcdefgh"[n // 1000], "day": n // 100, "odd": n % 2}} for n in range(8000)]
    dv.write_table(tmp_path, rows, variant_columns=["v"])
    summary = dv.describe(tmp_path, sample_rows=400)
    paths = {each.path: each for each in summary.paths}
    assert (summary.sampled_rows, paths["v:kind"].max, paths["v:odd"].distinct) == (400, "h", 2)
    # Each range has one kind, and several ranges have it.
    assert paths["v:kind"].distinct == 8
    # 80 days: 32 ranges have one day or two, and the estimate is at most off by the square root of 20.
    assert 80 / math.sqrt(20) <= paths["v:day"].distinct <= 80 * math.sqrt(20)


def test_a_sample_has_the_rows_that_are_left_of_a_file_of_which_most_are_deleted(tmp_path: Path):
    table = dv.Table(tmp_path)
    rows = [{"v": {"n": n}} for n in range(5000)]
    table.append(rows, variant_columns=["v"], configuration={"delta.enableDeletionVectors": "true"})
    table.delete("v:n::int between 10 and 4979")
    summary = table.describe(sample_rows=100)
    assert (summary.rows, summary.sampled_rows) == (30, 30)
    table.restore(version=0)
    table.delete("v:n::int % 10 <> 0")
    sampled = table.describe(sample_rows=100)
    assert sampled.rows == 500
    assert 50 <= sampled.sampled_rows <= 150


def test_a_csv_file_is_described_before_it_is_loaded(tmp_path: Path):
    file = tmp_path / "towns.csv"
    file.write_text("town,people,notes\nOslo,5,{}\nBergen,3,\nOslo,,{}\n")
    assert [each.path for each in dv.describe(file).paths] == ["town", "people", "notes"]
    assert dv.describe(str(file)).title == f"{file}: 3 rows"
    summary = dv.describe(dv.read_csv(file, variant_columns=["notes"]))
    assert (summary.rows, summary.sampled_rows) == (3, 3)
    towns, people, notes = summary.paths
    assert (towns.path, towns.types, towns.distinct, towns.min, towns.max) == (
        "town",
        {"string": 1.0},
        2,
        "Bergen",
        "Oslo",
    )
    assert (people.filled, people.nulls, people.max) == (2 / 3, 1 / 3, "5")
    assert (notes.path, notes.types) == ("notes", {"object": 1.0})
    first = dv.describe(dv.read_csv(file), sample_rows=2)
    assert (first.rows, first.sampled_rows) == (None, 2)


def test_json_text_of_a_frame_may_be_null(tmp_path: Path):
    rows = pa.table({"event": pa.array(['{"n": 1}', None], pa.json_())})
    assert dv.sql("select event:n::int as n, event from rows", rows=rows).to_pylist() == [
        {"n": 1, "event": {"n": 1}},
        {"n": None, "event": None},
    ]
    described = {each.path: each.nulls for each in dv.describe(rows.to_reader()).paths}
    assert described == {"event": 0.5, "event:n": 0.0}


def test_a_value_that_nests_as_deeply_as_variants_can(tmp_path: Path):
    depth = 1000
    rows = pa.table({"m": ['{"a":' * depth + "1" + "}" * depth]})
    dv.write_table(tmp_path / "t", rows, variant_columns=["m"])
    assert dv.describe(tmp_path / "t").paths[-1].types == {"bigint": 1.0}
