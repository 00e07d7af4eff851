"""`Scan`: what `read_table` and `read_changes` return, its forms of rows, counts and limits."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.archives import unpack_spark_table
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import (
    ArgumentTypeError,
    CastError,
    DataFileError,
    ExpressionError,
    MalformedVariantError,
)
from delta_variant.variant.objects import rows_of
from delta_variant.variant.values import VARIANT_TYPE

EVENTS = ['{"n": 1, "s": "one"}', '{"n": 2.50}', "null", None]
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two files with two rows each, and a change data feed."""
    for first in (0, 2):
        rows = pa.table({"id": [first, first + 1], "event": pa.array(EVENTS[first : first + 2], pa.json_())})
        dv.write_table(tmp_path / "t", rows, mode="append", configuration=None if first else FEED)
    return tmp_path / "t"


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


# Forms.


def test_rows_come_as_python_objects(table: Path):
    assert in_order(dv.read_table(table).to_pylist()) == [
        {"id": 0, "event": {"n": 1, "s": "one"}},
        {"id": 1, "event": {"n": Decimal("2.50")}},
        {"id": 2, "event": None},
        {"id": 3, "event": None},
    ]


def test_variants_come_as_json_or_bytes(table: Path):
    texts = [row["event"] for row in in_order(dv.read_table(table).to_pylist(variants="json"))]
    assert texts == ['{"n":1,"s":"one"}', '{"n":2.5}', "null", None]
    parts = [row["event"] for row in in_order(dv.read_table(table).to_pylist(variants="bytes"))]
    assert [part and dv.Variant(**part).to_json() for part in parts] == texts


def nested_table(root: Path) -> Path:
    marked = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
    field = pa.field("v", VARIANT_TYPE, metadata=marked)
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("s", pa.struct([field, pa.field("x", pa.int64())])),
            pa.field("l", pa.list_(field.with_name("element"))),
            pa.field("m", pa.map_(pa.string(), field.with_name("value"))),
        ]
    )
    one, two = (dv.parse_json([text])[0].as_py() for text in ('{"a":1}', "[2]"))
    rows = [
        {"id": 0, "s": {"v": one, "x": 5}, "l": [one, None, two], "m": [("k", two)]},
        {"id": 1, "s": {"v": None, "x": 6}, "l": [], "m": [("k", None)]},
        {"id": 2, "s": None, "l": None, "m": None},
    ]
    dv.write_table(root, pa.Table.from_pylist(rows, schema))
    return root


def test_variants_within_structs_lists_and_maps_are_converted(tmp_path: Path):
    scan = dv.read_table(nested_table(tmp_path / "t"))
    assert scan.to_pylist() == [
        {"id": 0, "s": {"v": {"a": 1}, "x": 5}, "l": [{"a": 1}, None, [2]], "m": [("k", [2])]},
        {"id": 1, "s": {"v": None, "x": 6}, "l": [], "m": [("k", None)]},
        {"id": 2, "s": None, "l": None, "m": None},
    ]
    assert scan.to_pylist(variants="json")[0] == {
        "id": 0,
        "s": {"v": '{"a":1}', "x": 5},
        "l": ['{"a":1}', None, "[2]"],
        "m": [("k", "[2]")],
    }


def test_rows_without_columns_are_empty_dicts(table: Path):
    assert dv.read_table(table, columns=[]).to_pylist() == [{}] * 4


def test_pandas_gets_objects_text_or_bytes(table: Path):
    pytest.importorskip("pandas")
    scan = dv.read_table(table)
    frame = scan.to_pandas().sort_values("id")
    assert frame["id"].to_list() == [0, 1, 2, 3]
    assert frame["event"].to_list() == [{"n": 1, "s": "one"}, {"n": Decimal("2.50")}, None, None]
    texts = scan.to_pandas(variants="json").sort_values("id")["event"].to_list()
    assert texts == ['{"n":1,"s":"one"}', '{"n":2.5}', "null", None]
    assert set(scan.to_pandas(variants="bytes").sort_values("id")["event"][0]) == {"metadata", "value"}


def test_polars_gets_text_or_bytes(tmp_path: Path):
    pl = pytest.importorskip("polars")
    scan = dv.read_table(nested_table(tmp_path / "t"), columns=["id", "s", "l"])
    frame = scan.to_polars()
    assert frame.schema["s"] == pl.Struct({"v": pl.String, "x": pl.Int64})
    assert frame["l"].to_list() == [['{"a":1}', None, "[2]"], [], None]
    assert frame["s"].to_list() == [{"v": '{"a":1}', "x": 5}, {"v": None, "x": 6}, None]
    assert pl.DataFrame(scan)["id"].to_list() == [0, 1, 2]
    first = scan.to_polars(variants="bytes")["s"].to_list()[0]["v"]
    assert dv.Variant(**first).to_python() == {"a": 1}


def test_arrow_and_duckdb_read_a_scan(table: Path):
    import duckdb

    rows = dv.read_table(table, columns={"id": "id", "n": "event:n::double"})
    assert sorted(pa.table(rows)["id"].to_pylist()) == [0, 1, 2, 3]
    assert pa.RecordBatchReader.from_stream(rows).schema == rows.schema
    for _ in range(2):
        assert duckdb.sql("select count(*), sum(n) from rows where id < 2").fetchall() == [(2, 3.5)]


def test_a_scan_is_a_source_of_a_write_and_a_merge(table: Path, tmp_path: Path):
    dv.write_table(tmp_path / "copy", dv.read_table(table))
    assert in_order(dv.read_table(tmp_path / "copy").to_pylist()) == in_order(
        dv.read_table(table).to_pylist()
    )
    merge = dv.merge(tmp_path / "copy", dv.read_table(table, where="id = 1"), "target.id = source.id")
    assert merge.when_matched_delete().execute().rows_deleted == 1


def test_a_scan_yields_its_rows_as_dicts(table: Path):
    scan = dv.read_table(table, where="id > 1")
    assert [row["id"] for row in scan] == scan.to_table()["id"].to_pylist() != []
    assert list(dv.Table(table)) == dv.read_table(table).to_pylist()


@pytest.mark.parametrize("call", ["to_pylist", "to_pandas", "to_polars"])
def test_an_unknown_form_is_rejected(table: Path, call: str):
    if call == "to_polars":
        pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"variants: expected one of .*, got 'text'"):
        getattr(dv.read_table(table), call)(variants="text")


def test_a_value_that_python_cannot_represent_names_its_row(tmp_path: Path):
    far = pa.table({"day": pa.array([0, 10_000_000], pa.date32())})
    dv.write_table(tmp_path / "t", pa.table({"id": [0, 1]}))
    variants = dv.unshred(
        pa.StructArray.from_arrays(
            [pa.array([b"\x01\x00\x00"] * 2), pa.nulls(2, pa.binary()), far["day"].chunk(0)],
            ["metadata", "value", "typed_value"],
        )
    )
    dv.write_table(tmp_path / "v", pa.table({"v": variants}), variant_columns=["v"])
    with raises_at(CastError, "outside of the years", row=1):
        dv.read_table(tmp_path / "v").to_pylist()
    assert dv.read_table(tmp_path / "v").to_pylist(variants="json")[0] == {"v": '"1970-01-01"'}


# Reading again, later, and errors.


def test_a_scan_is_read_any_number_of_times_from_its_version(table: Path):
    scan = dv.read_table(table, columns=["id"])
    changes = dv.read_changes(table, columns=["id"])
    dv.delete(table, "id >= 0")
    assert (scan.version, changes.version) == (1, 1)
    for _ in range(2):
        assert sorted(scan.to_table()["id"].to_pylist()) == [0, 1, 2, 3]
        assert sorted(changes.to_table()["id"].to_pylist()) == [0, 1, 2, 3]
        assert (scan.count(), changes.count()) == (4, 4)
    assert dv.read_table(table).to_pylist() == []


def test_errors_in_arguments_come_when_a_scan_is_created(table: Path, opened: list[str]):
    with pytest.raises(ExpressionError):
        dv.read_table(table, where="nothing = 1")
    with pytest.raises(ValueError, match=r"limit: expected an integer from 0 to .*, got -1"):
        dv.read_table(table, limit=-1)
    with pytest.raises(ArgumentTypeError, match="limit: expected an integer"):
        dv.read_changes(table, limit="5")  # type: ignore[arg-type]
    dv.read_table(table, where="id = 1")
    assert opened == []


def test_errors_in_rows_come_when_they_are_read(table: Path):
    scan = dv.read_table(table, columns={"n": "event:s::int"})
    for read in (scan.to_table, scan.to_pylist, scan.explain, lambda: list(scan.to_batches())):
        with raises_at(CastError, 'cannot cast "one"', row=0, column="event", path="$['s']"):
            read()
    # The number of rows does not depend on their values.
    assert scan.count() == 4


# Counts.


def test_rows_are_counted_without_a_file(table: Path, opened: list[str]):
    dv.delete(table, "id = 0")
    opened.clear()
    assert dv.read_table(table).count() == 3
    assert dv.read_table(table, version=1, columns={"n": "event:n::int"}).count() == 4
    assert opened == []
    assert dv.read_table(table, where="id > 1").count() == 2
    assert len(opened) == 1


def test_rows_of_partitions_are_counted_without_a_file(tmp_path: Path, opened: list[str]):
    days = [dt.date(2026, 1, day) for day in (1, 1, 2, 3)]
    dv.write_table(tmp_path, pa.table({"day": [*days, None], "id": range(5)}), partition_by="day")
    for where, rows in [
        ("day = '2026-01-01'", 2),
        ("day > date '2026-01-01' or day is null", 3),
        ("year(day) = 2025", 0),
        ("1 = 1", 5),
        ("day = '2026-01-01' and id = 1", 1),
    ]:
        assert dv.read_table(tmp_path, where=where).count() == rows, where
        assert dv.read_table(tmp_path, where=where).to_table().num_rows == rows, where
    with pytest.raises(CastError):
        dv.read_table(tmp_path, where="cast(cast(day as string) as int) = 1").count()


def without_num_records(root: Path) -> None:
    (commit,) = (root / "_delta_log").glob("*0.json")
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    adds = [line["add"] for line in lines if "add" in line]
    adds[0].pop("stats")
    adds[1]["stats"] = '{"numRecords": "many"}'
    commit.write_text("\n".join(map(json.dumps, lines)))


def test_files_without_a_number_of_rows_are_opened_to_count(tmp_path: Path, opened: list[str]):
    dv.write_table(tmp_path, pa.table({"p": [1, 1, 2, 3], "id": range(4)}), partition_by="p")
    without_num_records(tmp_path)
    opened.clear()
    assert dv.read_table(tmp_path).count() == 4
    assert len(opened) == 2


def test_rows_of_deletion_vectors_are_not_counted(spark_table_with_vectors: Path, opened: list[str]):
    scan = dv.read_table(spark_table_with_vectors)
    rows = scan.to_table().num_rows
    opened.clear()
    assert scan.count() == rows
    assert opened == []
    vectors = dv.load_snapshot(spark_table_with_vectors).files["deletion_vector"]
    assert vectors.null_count < len(vectors)


@pytest.fixture
def spark_table_with_vectors(corpora: Path, tmp_path: Path) -> Path:
    return unpack_spark_table(corpora, "d_dv", tmp_path)


# Limits.


@pytest.mark.parametrize(
    ("limit", "rows", "files"), [(0, 0, 0), (1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 4, 2), (99, 4, 2)]
)
def test_a_limit_opens_no_more_files_than_needed(
    table: Path, opened: list[str], limit: int, rows: int, files: int
):
    scan = dv.read_table(table, limit=limit)
    assert scan.to_table().num_rows == rows
    assert len(opened) == files
    assert scan.count() == rows
    explained = scan.explain()
    assert (explained.rows, explained.files_read, explained.files) == (rows, files, 2)
    assert len(scan.to_pylist()) == rows
    assert dv.read_changes(table, limit=limit).to_table().num_rows == rows
    assert dv.read_changes(table, limit=limit).count() == rows


def test_a_limit_counts_rows_that_match(table: Path):
    assert dv.read_table(table, where="id > 0", limit=2).to_table().num_rows == 2
    assert dv.read_table(table, where="id > 2", limit=2).to_pylist(variants="json") == [
        {"id": 3, "event": None}
    ]


# Explanations and texts.


def test_changes_are_explained(table: Path):
    explained = dv.read_changes(table, where="_commit_version = 1 and id = 2").explain()
    assert (explained.files, explained.files_read, explained.rows) == (2, 1, 1)
    assert explained.files_by_partition_values == 1
    assert explained.bounded_files == {"id": 2}


def test_a_scan_says_what_it_reads(table: Path):
    assert repr(dv.read_table(table, limit=5)) == f"<Scan of {table} at version 1: id, event, limit=5>"


def test_a_damaged_file_is_an_error_of_the_read(table: Path):
    scan = dv.read_table(table)
    for file in table.glob("*.parquet"):
        file.write_bytes(b"PAR1")
    with pytest.raises(DataFileError):
        scan.to_table()
    assert scan.count() == 4


def test_bytes_that_are_not_a_variant_name_their_row():
    broken = [{"metadata": b"\x01\x00\x00", "value": value} for value in (b"\x0c\x01", b"\x0c")]
    marked = pa.field("v", VARIANT_TYPE, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    batch = pa.record_batch([pa.array(broken, VARIANT_TYPE)], pa.schema([marked]))
    with raises_at(MalformedVariantError, row=1):
        rows_of(batch, "python")


def test_no_more_bytes_are_read_than_there_are(table: Path):
    explained = dv.read_table(table).explain()
    assert 0 < explained.bytes_read <= explained.bytes
    assert "(100.0 %)" in str(explained)
