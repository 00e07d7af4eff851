"""Optimize moves the rows of small row groups in the kernel, with the outcome of reading and writing them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.planting import rewrite_commit
from support.tables import append_events, commit_path, read_by_id

import delta_variant as dv
from delta_variant.data_file import writer as file_writer
from delta_variant.data_file.options import WriteOptions
from delta_variant.operations.optimize import layout, optimize

SCHEMA = dv.ShreddingSchema.of(
    {"n": pa.int64(), "s": pa.string(), "l": pa.list_(pa.string()), "o": {"f": pa.float64()}}
)
OTHER = dv.ShreddingSchema.of({"n": pa.string()})


@contextmanager
def optimizing(*, transfers: bool, is_clean: bool = True) -> Iterator[list[bool]]:
    """Let optimize open files at their first row; return for each row group whether it was transferred."""
    found: list[bool] = []
    transfer = file_writer._FileWriter.transfer

    def record(writer: Any, *arguments: Any) -> bool:
        found.append(transfers and transfer(writer, *arguments))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_writer._FileWriter, "transfer", record)
        patch.setattr(optimize, "WriteOptions", partial(WriteOptions, sample_bytes=1))
        if is_clean:
            for module in (file_writer, layout):
                patch.setattr(module, "MIN_SEPARATED_BYTES", 0)
        yield found


def contents(table: Path) -> list[tuple[Any, ...]]:
    """Return for each file of the latest version its statistics, whether it is residual, and its rows."""
    found = []
    for row in dv.load_snapshot(str(table)).files.select(["path", "stats", "tags"]).to_pylist():
        ids = pq.read_table(table / row["path"], columns=["id"])["id"].to_pylist()
        found.append((ids, bool(row["tags"]), json.loads(row["stats"])))
    return sorted(found, key=str)


def read_by_duckdb(table: Path) -> dict[int, Any]:
    paths = [str(table / path) for path in dv.load_snapshot(str(table)).files["path"].to_pylist()]
    with duckdb.connect() as connection:
        rows = connection.execute("select id, event::json::varchar from read_parquet($1)", [paths]).fetchall()
    return {number: None if text is None else json.loads(text) for number, text in rows}


def parsed(texts: dict[int, Any]) -> dict[int, Any]:
    return {number: None if text is None else json.loads(text) for number, text in texts.items()}


def test_small_row_groups_are_transferred(tmp_path: Path):
    for first in range(0, 50, 10):
        rows = [f'{{"n": {number}, "s": "{number % 3}"}}' for number in range(first, first + 10)]
        append_events(tmp_path / "t", rows, first, shredding=SCHEMA)
    before = read_by_id(tmp_path / "t")
    with optimizing(transfers=True) as transferred:
        dv.optimize(tmp_path / "t")
    assert transferred == [True] * 4
    ((ids, _, stats),) = contents(tmp_path / "t")
    # The files are in the order of their random names.
    assert sorted(ids[start : start + 10] for start in range(0, 50, 10)) == [
        list(range(first, first + 10)) for first in range(0, 50, 10)
    ]
    assert stats["numRecords"] == 50
    assert read_by_id(tmp_path / "t") == before
    assert read_by_duckdb(tmp_path / "t") == parsed(before)
    assert dv.Table(tmp_path / "t").audit(data=True).findings == ()


def test_residual_rows_of_transferred_row_groups_are_separated(tmp_path: Path):
    for first in range(0, 50, 10):
        rows = [f'{{"n": {number}}}' for number in range(first, first + 10)]
        rows[3] = '{"n": "odd", "more": 1}'
        append_events(
            tmp_path / "t", rows, first, shredding=SCHEMA, files=dv.FileOptions(residual_rows="inline")
        )
    before = read_by_id(tmp_path / "t")
    with optimizing(transfers=True) as transferred:
        dv.optimize(tmp_path / "t")
    assert transferred == [True] * 4
    assert [(is_residual, sorted(ids)) for ids, is_residual, _ in contents(tmp_path / "t")] == [
        (False, [number for number in range(50) if number % 10 != 3]),
        (True, [3, 13, 23, 33, 43]),
    ]
    assert read_by_id(tmp_path / "t") == before
    assert read_by_duckdb(tmp_path / "t") == parsed(before)


def test_rows_of_a_file_with_another_type_or_without_a_column_are_read(tmp_path: Path):
    rows = pa.table({"id": [0], "event": ['{"n": 0}']})
    dv.write_table(tmp_path / "t", rows, variant_columns=["event"], shredding=SCHEMA)
    dv.add_columns(tmp_path / "t", {"more": "string"})
    for number in range(1, 4):
        rows = pa.table({"id": [number], "event": [f'{{"n": {number}}}'], "more": [str(number)]})
        dv.write_table(tmp_path / "t", rows, mode="append", variant_columns=["event"], shredding=SCHEMA)
    with optimizing(transfers=True) as transferred:
        dv.optimize(tmp_path / "t")
    assert len(transferred) == 3
    found = dv.read_table(tmp_path / "t").to_table().sort_by("id")
    assert found["more"].to_pylist() == [None, "1", "2", "3"]


def as_spark_writes(table: Path, version: int) -> None:
    """Write the file of a commit again, its Variant in the order of Spark and not annotated."""
    commit = commit_path(table, version)
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    rows = pq.read_table(table / add["path"])
    event = rows["event"].combine_chunks()
    parts = {name: event.field(name) for name in ("value", "metadata")}
    fields = [pa.field(name, part.type, nullable=False) for name, part in parts.items()]
    group = pa.StructArray.from_arrays(list(parts.values()), fields=fields, mask=event.is_null())
    pq.write_table(rows.set_column(1, "event", group), table / add["path"])
    add["size"] = (table / add["path"]).stat().st_size
    rewrite_commit(commit, actions)


def test_rows_of_unshredded_files_are_transferred_whatever_the_layout(tmp_path: Path):
    texts = [None, '{"n": 1}', "null", '[{"a": "b"}]', "1.5", '"text"', "{}", "[]", "true", '{"n": {"m": 2}}']
    for version, first in enumerate(range(0, 50, 10)):
        append_events(tmp_path / "t", texts, first, shredding=None)
        if version % 2:
            as_spark_writes(tmp_path / "t", version)
    before = read_by_id(tmp_path / "t")
    assert parsed(before) == {
        number: None if texts[number % 10] is None else json.loads(texts[number % 10] or "")
        for number in range(50)
    }
    with optimizing(transfers=True) as transferred:
        dv.optimize(tmp_path / "t")
    assert transferred == [True] * 4
    assert read_by_id(tmp_path / "t") == before
    assert read_by_duckdb(tmp_path / "t") == parsed(before)
    assert dv.Table(tmp_path / "t").audit(data=True).findings == ()


def test_a_broken_page_is_an_error_that_names_its_file(tmp_path: Path):
    for first in range(0, 30, 10):
        append_events(tmp_path / "t", [f'{{"n": {first}}}'] * 10, first, shredding=SCHEMA)
    paths = dv.load_snapshot(str(tmp_path / "t")).files.sort_by("path")["path"].to_pylist()
    broken = tmp_path / "t" / paths[-1]
    data = bytearray(broken.read_bytes())
    data[4:40] = bytes(36)
    broken.write_bytes(data)
    with optimizing(transfers=True), pytest.raises(dv.DataFileError) as raised:
        dv.optimize(tmp_path / "t")
    assert raised.value.file == paths[-1]
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 3


def test_writing_stops_at_the_size_of_a_file(tmp_path: Path):
    for first in range(0, 60, 10):
        append_events(
            tmp_path / "t",
            [f'{{"n": {number}}}' for number in range(first, first + 10)],
            first,
            shredding=SCHEMA,
        )
    size = max(file.stat().st_size for file in (tmp_path / "t").glob("*.parquet"))
    with optimizing(transfers=True):
        dv.optimize(tmp_path / "t", files=dv.FileOptions(target_file_size=size * 3))
    assert sorted(number for ids, _, _ in contents(tmp_path / "t") for number in ids) == list(range(60))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("nsox"), inner, max_size=3),
    max_leaves=4,
)
typed = st.fixed_dictionaries(
    {"n": st.integers(0, 9)},
    optional={"s": st.text(max_size=5), "l": st.lists(st.text(max_size=3), max_size=3)},
)
texts = st.lists(st.none() | typed.map(json.dumps) | values.map(json.dumps), min_size=1, max_size=30)
schemas = st.sampled_from([*[SCHEMA] * 8, OTHER, None])


@pytest.mark.parametrize("is_clean", [True, False])
@given(st.lists(st.tuples(schemas, texts), min_size=1, max_size=5))
def test_random_files_have_the_same_outcome_whether_their_rows_are_transferred_or_read(is_clean, files):
    with TemporaryDirectory() as folder:
        tables = [Path(folder) / name for name in ("transferred", "read")]
        first = 0
        for schema, rows in [(SCHEMA, ['{"n": 1}']), *files]:
            options = dv.FileOptions(residual_rows="inline")
            append_events(tables[0], rows, first, shredding=schema, files=options)
            first += len(rows)
        shutil.copytree(*tables)
        before = read_by_id(tables[0])
        for table in tables:
            with optimizing(transfers=table.name == "transferred", is_clean=is_clean):
                dv.optimize(table)
            assert read_by_id(table) == before
            assert read_by_duckdb(table) == parsed(before)
            assert dv.Table(table).audit(data=True).findings == ()
        assert contents(tables[0]) == contents(tables[1])
