"""Few changed rows of a rewritten file are replaced in their place. Others do not pass through the change."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import convert_to_deltalake, write_deltalake
from support.tables import list_files, read_actions

import delta_variant as dv
from delta_variant import _native
from delta_variant.errors import CastError
from delta_variant.write import changed_rows
from delta_variant.write.assignment import replace_rows

ROWS = 1_000
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "n": pa.int32(),
        "f": pa.float64(),
        "s": pa.string(),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(10, 2),
        "l": pa.list_(pa.int32()),
        "st": pa.struct({"a": pa.int32(), "b": pa.string()}),
    }
)

Row = dict[str, Any]


def row(number: int) -> Row:
    """Return a row, every seventh of which has nulls in all columns but one."""
    if number % 7 == 3:
        return {**dict.fromkeys(SCHEMA.names), "id": number}
    return {
        "id": number,
        "n": number % 100,
        "f": number / 4,
        "s": f"text {number}",
        "d": date(2026, 1, 1 + number % 28),
        "t": datetime(2026, 1, 1, number % 24, tzinfo=timezone.utc),
        "price": Decimal(number) / 4,
        "l": [None, number][: number % 3],
        "st": {"a": None if number % 5 == 0 else number, "b": "x" * (number % 4)},
    }


def write_by_pyarrow(table: Path, rows: pa.Table) -> None:
    table.mkdir()
    pq.write_table(rows, table / "a.parquet", data_page_size=1_000, write_page_index=True)
    convert_to_deltalake(table)


def write_by_duckdb(table: Path, rows: pa.Table) -> None:
    table.mkdir()
    with duckdb.connect() as connection:
        connection.register("given", rows)
        connection.execute(f"copy given to '{table / 'a.parquet'}' (format parquet)")
    convert_to_deltalake(table)


WRITERS: dict[str, Callable[[Path, pa.Table], object]] = {
    "this library": dv.write_table,
    "deltalake": write_deltalake,
    "pyarrow": write_by_pyarrow,
    "DuckDB": write_by_duckdb,
}


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of rows in the batches that pass through a change from now on."""
    found: list[int] = []
    read = changed_rows._read_after

    def record(*arguments: Any) -> Any:
        for before, after, moving in read(*arguments):
            found.append(len(after.remaining))
            yield before, after, moving

    monkeypatch.setattr(changed_rows, "_read_after", record)
    return found


def new_rows(table: Path) -> list[Row]:
    """Return the rows of the only file, in their order, as pyarrow reads it."""
    (path,) = dv.load_snapshot(table).files["path"].to_pylist()
    return pq.read_table(table / path).to_pylist()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_merge_of_few_rows_keeps_the_place_and_the_values_of_all_others(
    tmp_path: Path, writer: str, passed: list[int]
):
    table = tmp_path / "t"
    WRITERS[writer](table, pa.Table.from_pylist([row(n) for n in range(ROWS)], SCHEMA))
    new = {n: {**row(n + ROWS), "id": n} for n in (17, 500, 501, 999)}
    source = pa.Table.from_pylist([*new.values(), row(0), row(700)], SCHEMA)
    merge = dv.merge(table, source, "target.id = source.id").when_matched_delete("source.id in (0, 700)")
    result = merge.when_matched_update_all().execute()
    assert (result.rows_updated, result.rows_deleted, result.rows_copied) == (4, 2, ROWS - 6)
    assert new_rows(table) == [new.get(n, row(n)) for n in range(ROWS) if n not in (0, 700)]
    assert sum(passed) == 6
    (added,) = read_actions(table, "add", result.version)
    stats = json.loads(added["stats"])
    assert (stats["numRecords"], stats["minValues"]["id"], stats["maxValues"]["id"]) == (ROWS - 2, 1, 999)
    # 1,999 is the greatest number of the new rows.
    assert (stats["maxValues"]["f"], stats["maxValues"]["price"]) == (1999 / 4, 499.75)
    assert stats["nullCount"]["s"] == sum(n["s"] is None for n in new_rows(table))
    assert dv.audit_table(table, data=True).is_clean


@pytest.mark.parametrize("has_feed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_changed_rows_are_replaced_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, has_feed: bool
):
    read, parts = changed_rows.read_updated_rows, []

    def one_by_one(*arguments: Any) -> Any:
        for numbers, is_updated, new in read(*arguments):
            first = 0
            for place, each in enumerate(is_updated.to_pylist()):
                parts.append(place)
                yield numbers.slice(place, 1), is_updated.slice(place, 1), new.slice(first, int(each))
                first += each

    monkeypatch.setattr(changed_rows, "read_updated_rows", one_by_one)
    monkeypatch.setattr(changed_rows, "COPIED_BYTES", 1)
    table, source = tmp_path / "t", random.Random(seed)
    rows = pa.Table.from_pylist([row(n) for n in range(ROWS)], SCHEMA)
    feed = {"delta.enableChangeDataFeed": "true"} if has_feed else None
    dv.write_table(table, rows, configuration=feed)
    changed = source.sample(range(ROWS), source.randint(1, ROWS // 16))
    deleted = {n for n in changed if source.random() < 0.4}
    new = {n: {**row(n + ROWS), "id": n} for n in changed}
    merge = dv.merge(table, pa.Table.from_pylist(list(new.values()), SCHEMA), "target.id = source.id")
    merge = merge.when_matched_delete(f"source.id in ({', '.join(map(str, [-1, *deleted]))})")
    result = merge.when_matched_update_all().execute()
    assert new_rows(table) == [new.get(n, row(n)) for n in range(ROWS) if n not in deleted]
    assert (result.rows_deleted, result.rows_updated) == (len(deleted), len(new) - len(deleted))
    assert len(parts) == len(changed)
    if has_feed:
        found = dv.read_changes(table, start=result.version).to_table()
        kinds = Counter(found["_change_type"].to_pylist())
        updated = len(new) - len(deleted)
        assert kinds == +Counter(delete=len(deleted), update_preimage=updated, update_postimage=updated)
        assert sorted(found["id"].to_pylist()) == sorted([*changed, *(new.keys() - deleted)])


def test_large_new_values_are_not_in_memory_at_once(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"id": range(10_000), "s": ["a"] * 10_000}))
    before = pa.total_allocated_bytes()
    peak = 0

    def record(*arguments: Any) -> Any:
        nonlocal peak
        for part in read(*arguments):
            peak = max(peak, pa.total_allocated_bytes() - before)
            yield part

    read = changed_rows._changed_parts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_rows, "_changed_parts", record)
        dv.update(tmp_path / "t", {"s": f"'{'x' * 1_000_000}'"}, "id < 600")
    assert 60_000_000 < peak < 300_000_000
    lengths = dv.sql("select sum(length(s)) as n from t", t=tmp_path / "t").to_pylist()
    assert lengths == [{"n": 600_000_000 + 9_400}]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_delete_of_few_rows_passes_none_through_the_change(tmp_path: Path, writer: str, passed: list[int]):
    table = tmp_path / "t"
    WRITERS[writer](table, pa.Table.from_pylist([row(n) for n in range(ROWS)], SCHEMA))
    assert dv.delete(table, "id % 100 = 50").rows_deleted == 10
    assert new_rows(table) == [row(n) for n in range(ROWS) if n % 100 != 50]
    assert passed == []


@pytest.mark.usefixtures("small_files_are_shredded")
def test_an_update_of_few_rows_keeps_the_bytes_of_a_shredded_variant(tmp_path: Path, passed: list[int]):
    table = tmp_path / "t"
    texts = [f'{{"n": {n}, "s": "x{n}"}}' if n % 9 else None for n in range(ROWS)]
    data = pa.table({"id": list(range(ROWS)), "k": [0] * ROWS, "event": pa.array(texts, pa.string())})
    dv.write_table(table, data, variant_columns=["event"])
    before = dv.read_table(table).to_table()["event"].to_pylist()
    assert dv.update(table, {"k": "id"}, "id in (3, 998)").rows_updated == 2
    after = dv.read_table(table).to_table()
    assert after["event"].to_pylist() == before
    assert after["k"].to_pylist() == [n if n in (3, 998) else 0 for n in range(ROWS)]
    dv.update(table, {"event:n": "-id"}, "id in (4, 9)")
    after = dv.read_table(table, columns={"text": "to_json(event)"}).to_table()["text"].to_pylist()
    assert after[4] == '{"n":-4,"s":"x4"}'
    assert after[9] == '{"n":-9}'
    assert [after[n] for n in range(ROWS) if n not in (4, 9)] == [
        text and text.replace(" ", "") for n, text in enumerate(texts) if n not in (4, 9)
    ]
    assert sum(passed) < 30


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_an_update_that_fails_in_a_later_file_leaves_no_file(tmp_path: Path, vectors: str):
    table = tmp_path / "t"
    for first in (0, ROWS):
        texts = [str(n) if n < ROWS + 90 else "no number" for n in range(first, first + ROWS)]
        configuration = None if first else {"delta.enableDeletionVectors": vectors}
        data = pa.table({"id": list(range(first, first + ROWS)), "s": texts})
        dv.write_table(table, data, mode="append", configuration=configuration)
    before = list_files(table, "*")
    with pytest.raises(CastError, match="no number"):
        dv.update(table, {"id": "s::bigint"}, "id in (5, 1001, 1990)")
    assert list_files(table, "*") == before


def test_lists_are_replaced_whatever_the_name_of_their_elements():
    named = [pa.array([[1], [2]], pa.list_(pa.field(name, pa.int32()))) for name in ("element", "item")]
    before, after = ({"l": column} for column in named)
    (merged,) = replace_rows(before, pa.array([False, True]), {"l": after["l"][:1]}, ())
    assert merged.to_pylist() == [[1], [1]]
    assert merged.type.field(0).name == "element"


ARRAYS = {
    "numbers": pa.array([1, None, 3, 4], pa.int64()),
    "text": pa.array(["a", None, "ccc", ""]),
    "booleans": pa.array([True, None, False, True]),
    "lists": pa.array([[1], None, [], [2, None]], pa.list_(pa.int32())),
    "structs": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 4, "b": None}]),
    "dictionaries": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "nulls": pa.nulls(4),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_rows_are_replaced_by_their_numbers(name: str):
    column, numbers = ARRAYS[name], pa.array([10, 12, 15, 20])
    other, replaced = column.take([3, 2, 1, 0, 0]), pa.array([9, 12, 13, 20, 21])
    merged = _native.replace_rows(column, numbers, other, replaced)
    values, others = column.to_pylist(), other.to_pylist()
    assert merged.to_pylist() == [values[0], others[1], values[2], others[3]]
    empty = _native.replace_rows(column[:0], numbers[:0], other, replaced)
    assert empty.to_pylist() == []


def test_rows_of_another_type_are_rejected():
    with pytest.raises(dv.errors.SchemaError, match="expected rows of type Int64, got Utf8"):
        _native.replace_rows(pa.array([1]), pa.array([0]), pa.array(["a"]), pa.array([0]))
