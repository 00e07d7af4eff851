"""Statistics as rows: against deltalake, DuckDB's metadata of Parquet, and the bounds of Databricks."""

from __future__ import annotations

import csv
import io
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, convert_to_deltalake, write_deltalake
from support.planting import Table as Planted
from support.planting import plant_vector
from typer.testing import CliRunner

import delta_variant as dv
from delta_variant.cli.app import app

NOON = datetime(2024, 1, 1, 12, 30, 15, 456_000, tzinfo=timezone.utc)
ROWS = pa.table(
    {
        "day": ["a", "b", None],
        "id": pa.array([1, 2, None], pa.int32()),
        "flag": [True, False, True],
        "x": [1.5, 1e300, -0.0],
        "amount": pa.array([Decimal("1.25"), None, Decimal("7.50")], pa.decimal128(9, 2)),
        "at": pa.array([NOON] * 3, pa.timestamp("us", "UTC")),
        "on": [date(2024, 1, day) for day in (1, 2, 3)],
        "s": [{"n": 1, "t": "é"}, {"n": 2, "t": '"y"'}, None],
    }
)


@pytest.fixture
def events(tmp_path: Path) -> dv.Table:
    """Return a table of two files, in which paths have different types."""
    table = dv.Table(tmp_path / "events")
    for value, kind in ((1, "bigint"), (Decimal("2.50"), "decimal(9,2)")):
        schema = dv.ShreddingSchema.of(
            {"n": kind, "t": "string" if value == 1 else "bigint", "x y": "double"}
        )
        rows = [
            {"id": 1, "event": {"n": value, "t": "a" if value == 1 else 7, "x y": float(each)}}
            for each in (1, 2)
        ]
        table.append(rows, variant_columns=["event"], shredding=schema)
    return table


def test_a_table_of_deltalake_has_what_deltalake_returns(tmp_path: Path):
    write_deltalake(tmp_path / "t", ROWS, partition_by=["day"])
    theirs = pa.table(DeltaTable(tmp_path / "t").get_add_actions(flatten=True)).sort_by("path")
    ours = dv.file_stats(tmp_path / "t").sort_by("path")
    assert set(ours.column_names) - set(theirs.column_names) == {"num_deleted", "tags"}
    times = theirs["modification_time"].cast(pa.timestamp("ms", "UTC"))
    theirs = theirs.set_column(theirs.column_names.index("modification_time"), "modification_time", times)
    for name in theirs.column_names:
        assert ours[name].to_pylist() == theirs[name].to_pylist(), name
        assert ours[name].type == theirs[name].type, name


def test_paths_have_the_common_type_of_their_bounds(events: dv.Table):
    stats = dv.file_stats(events)
    assert stats["null_count.event"].to_pylist() == [0, 0]
    assert stats["min.event.n"].type == pa.decimal128(38, 2)
    assert stats["max.event.n"].to_pylist() == [Decimal(1), Decimal("2.50")]
    assert stats["min.event.t"].to_pylist() == ["a", "7"]
    assert stats["max.event['x y']"].to_pylist() == [2.0, 2.0]
    assert "null_count.event.n" not in stats.column_names


def test_the_long_form_has_a_row_for_each_file_and_column(events: dv.Table):
    rows = dv.file_stats(events, long=True)
    paths = dv.file_stats(events)["path"].to_pylist()
    assert rows["path"].to_pylist() == [path for path in paths for _ in range(5)]
    found = rows.select(["column", "type", "null_count", "min", "max"]).to_pylist()[:5]
    assert [tuple(row.values()) for row in found] == [
        ("id", "bigint", 0, "1", "1"),
        ("event", "variant", 0, None, None),
        ("event.n", "decimal(38,2)", None, "1.00", "1.00"),
        ("event.t", "string", None, "a", "a"),
        ("event['x y']", "double", None, "1.0", "2.0"),
    ]


def test_columns_of_one_name_are_all_there(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"a": [{"b": 1}], "a.b": ["x"]}))
    for level in ("file", "row_group", "page"):
        stats = dv.file_stats(tmp_path / "t", level=level)
        columns = zip(stats.column_names, stats.columns, strict=True)
        assert [each[0].as_py() for name, each in columns if name == "min.a.b"] == [1, "x"]


def test_versions_and_tables_without_files(events: dv.Table):
    assert dv.file_stats(events.as_of(version=0)).num_rows == 1
    assert dv.file_stats(events, version=0)["min.event.t"].to_pylist() == ["a"]
    events.delete_all()
    assert dv.file_stats(events).num_rows == 0
    assert dv.file_stats(events, long=True).num_rows == dv.file_stats(events, level="page").num_rows == 0


def test_deleted_rows_are_counted(tmp_path: Path):
    table = dv.Table(tmp_path / "t")
    table.append([{"id": each} for each in range(5)], configuration={"delta.enableDeletionVectors": "true"})
    plant_vector(tmp_path / "t", 0, 1, 3)
    stats = dv.file_stats(tmp_path / "t").select(["num_records", "num_deleted", "max.id"])
    assert stats.to_pylist() == [{"num_records": 5, "num_deleted": 2, "max.id": 4}]


def test_row_groups_have_the_bounds_that_duckdb_finds(tmp_path: Path):
    rows = pa.table({"id": pa.array(range(1000)), "t": [f"n{n % 7}" for n in range(1000)]})
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(rows, folder / "f.parquet", row_group_size=300)
    convert_to_deltalake(folder)
    found = dv.file_stats(folder, level="row_group")
    theirs = duckdb.sql(
        "select path_in_schema, stats_min_value, stats_max_value "
        f"from parquet_metadata('{folder}/f.parquet') order by row_group_id"
    ).fetchall()
    for name in ("id", "t"):
        sides = zip(found[f"min.{name}"].to_pylist(), found[f"max.{name}"].to_pylist(), strict=True)
        assert [(str(least), str(most)) for least, most in sides] == [
            row[1:] for row in theirs if row[0] == name
        ]
    assert found["first_row"].to_pylist() == [0, 300, 600, 900]
    assert found["num_records"].to_pylist() == [300, 300, 300, 100]


def test_pages_have_the_bounds_of_their_rows(tmp_path: Path):
    folder = tmp_path / "t"
    folder.mkdir()
    rows = pa.table({"id": pa.array(range(5000))})
    pq.write_table(
        rows, folder / "f.parquet", write_page_index=True, data_page_size=1000, use_dictionary=False
    )
    convert_to_deltalake(folder)
    pages = dv.file_stats(folder, level="page")
    assert pages.num_rows > 4
    assert pages["min.id"].to_pylist() == pages["first_row"].to_pylist()
    last = zip(pages["first_row"].to_pylist(), pages["num_records"].to_pylist(), strict=True)
    assert pages["max.id"].to_pylist() == [first + rows - 1 for first, rows in last]


def test_a_residual_value_hides_the_bounds_of_its_row_group(tmp_path: Path):
    schema = dv.ShreddingSchema.of({"n": "bigint"})
    for name, last in (("clean", 2), ("residual", "x")):
        table = dv.Table(tmp_path / name)
        table.append([{"e": {"n": 1}}, {"e": {"n": last}}], variant_columns=["e"], shredding=schema)
        stats = table.file_stats(level="row_group")
        assert stats.to_pylist()[0].get("max.e.n") == (2 if name == "clean" else None)


def test_a_bound_that_cannot_be_read_is_unknown(tmp_path: Path):
    table = Planted.write(tmp_path / "t", shredding=dv.ShreddingSchema.of({"n": "bigint"}))
    known = dv.file_stats(table.path)
    table.set_bound("minValues", "~~~~~")
    table.edit_stats(lambda stats: stats["maxValues"].update(id="text"))
    stats = dv.file_stats(table.path)
    lost = {name for name in known.column_names if known[name].null_count < 1} - set(stats.column_names)
    assert lost == {"max.id", *(name for name in known.column_names if name.startswith("min.v"))}


def test_bounds_are_decoded_and_encoded():
    text = "5DI>rbWhTsB7Gwtt(>3b00iMl"
    variant = dv.decode_bound(text)
    assert variant.to_python() == {"$['user']": 7}
    assert dv.encode_bound(variant) == text
    with pytest.raises(dv.InvalidStatisticsError, match="cannot decode"):
        dv.decode_bound("~")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["stats", *arguments])


def test_the_command_line_writes_csv_and_parquet(events: dv.Table, tmp_path: Path):
    rows = list(csv.DictReader(io.StringIO(run(events.table_uri, "--csv", "--long").stdout)))
    assert [row["column"] for row in rows[:3]] == ["id", "event", "event.n"]
    assert run(events.table_uri, "--parquet", str(tmp_path / "s.parquet"), "--limit", "1").exit_code == 0
    assert pq.read_table(tmp_path / "s.parquet")["max.event['x y']"].to_pylist() == [2.0]
    for arguments in (["--long"], ["--csv", "--exact"], ["--csv", "--json"]):
        assert run(events.table_uri, *arguments).exit_code == 2
