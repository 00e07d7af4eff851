"""A rewrite copies pages of other writers too, and states what is true of them."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, convert_to_deltalake, write_deltalake
from support.tables import read_actions

import delta_variant as dv
from delta_variant.data_file import writer as file_writer
from delta_variant.write import changed_rows, stored_rows

GROUP, GROUPS = 40, 3
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "small": pa.int16(),
        "f": pa.float64(),
        "g": pa.float32(),
        "s": pa.string(),
        "b": pa.binary(),
        "flag": pa.bool_(),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(12, 2),
        "wide": pa.decimal128(30, 5),
        "l": pa.list_(pa.float64()),
        "st": pa.struct({"a": pa.float64(), "b": pa.string()}),
        "place": pa.struct({"x": pa.int32(), "names": pa.struct({"y": pa.string()})}),
    }
)


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let row groups of any size be copied."""
    monkeypatch.setattr(stored_rows, "MIN_COPIED_BYTES", 1)


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the names of the columns that get new values, for each row group that is copied."""
    found: list[list[str]] = []
    copy = file_writer._FileWriter.copy

    def record(writer: Any, file: Any, row_group: int, values: Any = None) -> bool:
        copied = copy(writer, file, row_group, values)
        found.extend([[writer.schema.names[each] for each in values.positions] if values else []] * copied)
        return copied

    monkeypatch.setattr(file_writer._FileWriter, "copy", record)
    return found


def random_row(source: random.Random, number: int) -> dict[str, Any]:
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e300]
    floating = source.choice([*special, source.uniform(-9, 9), source.uniform(-9, 9)])
    text = source.choice(["", "é" * source.randint(1, 90), "a" * 70 + str(number), str(number)])
    values = {
        "id": number,
        "small": source.randint(-9, 9),
        "f": floating,
        "g": struct.unpack("f", struct.pack("f", source.uniform(-1, 1)))[0],
        "s": text,
        "b": text.encode(),
        "flag": source.random() < 0.5,
        "d": date(1969, 12, 25) + timedelta(source.randint(0, 20)),
        "t": datetime(1969, 12, 31, 23, tzinfo=timezone.utc) + timedelta(seconds=source.randint(0, 7200)),
        "price": Decimal(source.randint(-999, 999)) / 100,
        "wide": Decimal(source.randint(-(10**20), 10**20)) / 100_000,
        "l": [floating, None][: source.randint(0, 2)],
        "st": {"a": floating, "b": text},
        "place": {"x": number, "names": {"y": text}},
    }
    nulls = [name for name in values if name != "id" and source.random() < 0.1]
    return {**values, **dict.fromkeys(nulls)}


def random_rows(seed: int) -> pa.Table:
    source = random.Random(seed)
    empty = source.choice(SCHEMA.names[1:])
    rows = [{**random_row(source, number), empty: None} for number in range(GROUP * GROUPS)]
    return pa.Table.from_pylist(rows, SCHEMA)


def by_deltalake(table: Path, rows: pa.Table) -> None:
    write_deltalake(
        table, rows, writer_properties=WriterProperties(compression="SNAPPY", max_row_group_size=GROUP)
    )


def by_pyarrow(table: Path, rows: pa.Table) -> None:
    table.mkdir()
    file, options = table / "a.parquet", {"row_group_size": GROUP, "write_page_index": True}
    pq.write_table(rows, file, **options, data_page_version="2.0", compression="gzip", data_page_size=90)
    convert_to_deltalake(table)


def without_index(table: Path, rows: pa.Table) -> None:
    table.mkdir()
    pq.write_table(rows, table / "a.parquet", row_group_size=GROUP, data_page_size=90, write_batch_size=9)
    convert_to_deltalake(table)


WRITERS: dict[str, Callable[[Path, pa.Table], object]] = {
    "deltalake": by_deltalake,
    "pyarrow": by_pyarrow,
    "without an index": without_index,
}


def bits(value: Any) -> Any:
    """Return a value that is equal to another one only if both have the same bits."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, list):
        return [bits(each) for each in value]
    return {name: bits(each) for name, each in value.items()} if isinstance(value, dict) else value


def only_file(table: Path) -> Path:
    (path,) = dv.load_snapshot(table).files["path"].to_pylist()
    return table / path


def decoded(change: Callable[[Path], Any], table: Path) -> None:
    """Change a table without copying any row group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_rows, "copyable_row_groups", lambda *_, **__: ())
        change(table)


def delete_one(table: Path) -> dv.RewriteResult:
    return dv.delete(table, f"id = {GROUP + 3}")


def update_one(table: Path) -> dv.RewriteResult:
    return dv.update(table, {"price": "1234.5", "flag": "not flag"}, f"id = {GROUP + 3}")


def update_small(table: Path) -> dv.RewriteResult:
    return dv.update(table, {"small": "77"}, f"id = {GROUP + 4}")


def merge_some(table: Path) -> dv.MergeResult:
    """Change three columns, one of them only by the sign of a zero or a NaN."""
    changed = [
        {**each, "f": -(each["f"] or 0.0), "s": f"new {each['id']}", "st": {"a": 0.0, "b": None}}
        for each in dv.read_table(table, where="id % 20 = 1").to_table().to_pylist()
    ]
    merging = dv.merge(table, pa.Table.from_pylist(changed, SCHEMA), "target.id = source.id")
    return merging.when_matched_update_all().execute()


CHANGES: dict[str, tuple[Callable[[Path], Any], list[set[str]]]] = {
    "delete": (delete_one, [set(), set()]),
    "update": (update_one, [set(), {"flag", "price"}, set()]),
    # Floating-point numbers in lists and structs are not compared.
    "merge": (merge_some, [{"f", "s", "l", "st"}] * GROUPS),
}

CONVERTED = {"deltalake": {"l"}, "pyarrow": {"price"}, "without an index": {"l", "price"}}
"""Columns of another type in Parquet, in which the elements of lists have another name, or decimals another
width; and lists whose pages have no index."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("writer", WRITERS)
def test_rows_and_statistics_are_those_of_decoded_pages(
    tmp_path: Path, replaced: list[list[str]], writer: str, change: str, seed: int
):
    copied, other = tmp_path / "copied", tmp_path / "decoded"
    for table in (copied, other):
        WRITERS[writer](table, random_rows(seed))
    apply, expected = CHANGES[change]
    apply(copied)
    assert [set(each) for each in replaced] == [each | CONVERTED[writer] for each in expected]
    decoded(apply, other)
    assert len(replaced) == len(expected)
    # Now this library has written the file, with pages of the other writer.
    update_small(copied)
    assert replaced[len(expected) :] == [[], ["small"], []]
    decoded(update_small, other)
    before, after = (dv.read_table(table).to_table().to_pylist() for table in (other, copied))
    assert bits(after) == bits(before)
    for version in (1, 2):
        (wanted,), (added,) = (read_actions(table, "add", version) for table in (other, copied))
        assert json.loads(added["stats"]) == json.loads(wanted["stats"])
    assert dv.audit_table(copied, data=True).is_clean


def test_bounds_of_other_writers_that_leave_nan_out_are_not_passed_on(tmp_path: Path) -> None:
    table = tmp_path / "t"
    table.mkdir()
    numbers = [float(number) for number in range(40_000)]
    rows = pa.table(
        {"id": pa.array(range(40_000), pa.int64()), "x": [float("nan"), *numbers[1:]], "s": ["a"] * 40_000}
    )
    pq.write_table(rows, table / "a.parquet", write_page_index=True)
    convert_to_deltalake(str(table))
    dv.update(table, {"s": "'b'"}, "id = 3")
    group = pq.read_metadata(only_file(table)).row_group(0)
    assert [group.column(leaf).has_column_index for leaf in range(2)] == [True, False]
    assert [group.column(leaf).statistics.has_min_max for leaf in range(2)] == [True, False]
    assert group.column(1).statistics.null_count == 0
    assert dv.read_table(table, where="x > 50000").to_table()["id"].to_pylist() == [0]


@pytest.mark.parametrize("writer", WRITERS)
def test_other_engines_read_pages_of_several_codecs(tmp_path: Path, writer: str):
    table = tmp_path / "t"
    WRITERS[writer](table, random_rows(7))
    rows = dv.read_table(table).to_table().to_pylist()
    merge_some(table)
    footer = pq.read_metadata(only_file(table)).row_group(1)
    codecs = {footer.column(leaf).compression for leaf in range(footer.num_columns)}
    assert codecs == {"GZIP" if writer == "pyarrow" else "SNAPPY", "ZSTD"}
    names = [name for name in SCHEMA.names if name not in ("f", "s", "l", "st")]
    expected = [{name: each[name] for name in names} for each in rows]
    file = only_file(table)
    assert pq.read_table(file, columns=names).to_pylist() == expected
    assert pl.read_parquet(file, columns=names).to_dicts() == expected
    columns = "id, s, price, strlen(b::varchar) as n"
    found = duckdb.sql(f"select {columns} from '{file}' order by id").fetchall()
    assert [(row[0], row[2]) for row in found] == [(row["id"], row["price"]) for row in rows]
    assert [row[1] for row in found if row[0] % 20 == 1] == [f"new {n}" for n in range(1, GROUP * GROUPS, 20)]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_row_that_does_not_change_is_in_the_change_data(
    tmp_path: Path, replaced: list[list[str]], writer: str
):
    WRITERS[writer](tmp_path / "t", random_rows(1))
    dv.set_properties(tmp_path / "t", {"delta.enableChangeDataFeed": "true"})
    rows = random_rows(1).to_pylist()
    same = pa.Table.from_pylist([rows[2], rows[GROUP]], SCHEMA)
    merging = dv.merge(tmp_path / "t", same, "target.id = source.id")
    # Floating-point numbers in lists and structs are not compared.
    result = merging.when_matched_update_all(except_cols=["l", "st"]).execute()
    assert [set(each) for each in replaced] == [CONVERTED[writer]] * GROUPS
    assert result.rows_updated == 2
    changes = dv.read_changes(tmp_path / "t", start=result.version).to_table()
    assert sorted(zip(changes["_change_type"].to_pylist(), changes["id"].to_pylist(), strict=True)) == [
        ("update_postimage", 2),
        ("update_postimage", GROUP),
        ("update_preimage", 2),
        ("update_preimage", GROUP),
    ]
    assert bits(dv.read_table(tmp_path / "t").to_table().to_pylist()) == bits(rows)


def test_optimize_encodes_pages_of_another_writer_again(tmp_path: Path, replaced: list[list[str]]):
    by_deltalake(tmp_path / "t", random_rows(2))
    write_deltalake(tmp_path / "t", random_rows(3), mode="append")
    dv.optimize(tmp_path / "t")
    assert replaced == []
    footer = pq.read_metadata(only_file(tmp_path / "t"))
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    assert {group.column(0).compression for group in groups} == {"ZSTD"}


def test_the_codec_of_the_table_is_that_of_all_pages(tmp_path: Path, replaced: list[list[str]]):
    by_deltalake(tmp_path / "t", random_rows(4))
    dv.set_properties(tmp_path / "t", {"delta.parquet.compression.codec": "zstd"})
    update_one(tmp_path / "t")
    assert replaced == []
    footer = pq.read_metadata(only_file(tmp_path / "t"))
    assert {footer.row_group(0).column(leaf).compression for leaf in range(footer.num_columns)} == {"ZSTD"}
