"""Conversion of Parquet files and Delta tables of other writers to tables with shredded Variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_variant as dv
from delta_variant import convert
from delta_variant.errors import InvalidJsonError, SchemaError, SourceError, SourceNotFoundError

EVENTS = [{"user": {"id": number}, "action": "buy"} for number in range(20)]
TEXTS = [json.dumps(event) for event in EVENTS]


def write_parquet(path: Path, **columns: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def events(table: Path) -> list[object]:
    rows = dv.read_table(table, columns=["event"]).to_table()["event"].combine_chunks()
    return [json.loads(text) for text in dv.to_json(rows).to_pylist()]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_json_text_in_parquet_becomes_a_shredded_variant_with_one_commit(tmp_path: Path):
    write_parquet(tmp_path / "in" / "a.parquet", id=range(20), event=TEXTS)
    write_parquet(tmp_path / "in" / "_hidden.parquet", other=[1])
    result = convert(tmp_path / "in", tmp_path / "t", variant_columns=["event"])
    assert (result.version, result.rows) == (0, 20)
    assert {path.path for path in result.files[0].variants["event"]} == {("action",), ("user", "id")}
    assert events(tmp_path / "t") == EVENTS


@pytest.mark.parametrize("names", [[], ["event"]])
def test_columns_of_the_type_json_become_variants(tmp_path: Path, names: list[str]):
    query = """select 7 as id, '{"user": {"id": 7}}'::json as event"""
    duckdb.sql(f"copy ({query}) to '{tmp_path / 'a.parquet'}' (format parquet)")
    expected = [{"id": 7, "event": {"user": {"id": 7}}}]
    convert(tmp_path / "a.parquet", tmp_path / "converted", variant_columns=names)
    dv.write_table(tmp_path / "written", tmp_path / "a.parquet", variant_columns=names)
    for table in ("converted", "written"):
        assert dv.read_table(tmp_path / table).to_pylist() == expected


def test_hive_folders_become_partition_columns(tmp_path: Path):
    write_parquet(tmp_path / "in" / "year=2025" / "city=K%C3%B6ln" / "a.parquet", n=[1, 2])
    write_parquet(tmp_path / "in" / "year=2026" / "city=007" / "b.parquet", n=[3])
    write_parquet(tmp_path / "in" / "year=2026" / "city=__HIVE_DEFAULT_PARTITION__" / "c.parquet", n=[4])
    convert(tmp_path / "in", tmp_path / "t")
    assert dv.load_snapshot(tmp_path / "t").partition_columns == ("year", "city")
    rows = sorted(dv.read_table(tmp_path / "t").to_pylist(), key=lambda row: row["n"])
    assert [(row["n"], row["year"], row["city"]) for row in rows] == [
        (1, 2025, "Köln"),
        (2, 2025, "Köln"),
        (3, 2026, "007"),
        (4, 2026, None),
    ]


def test_files_with_different_columns_become_one_table(tmp_path: Path):
    write_parquet(tmp_path / "a.parquet", n=[1])
    write_parquet(tmp_path / "b.parquet", n=[2], text=["x"])
    convert([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "t")
    assert dv.read_table(tmp_path / "t").to_pylist() == [
        {"n": 1, "text": None},
        {"n": 2, "text": "x"},
    ]
    write_parquet(tmp_path / "c.parquet", n=["x"])
    with pytest.raises(SchemaError, match="columns have different types"):
        convert([tmp_path / "a.parquet", tmp_path / "c.parquet"], tmp_path / "u")
    assert not (tmp_path / "u").exists()


def test_a_table_of_deltalake_is_converted_with_its_partitions(tmp_path: Path):
    data = pa.table({"day": ["a", "b"] * 10, "event": TEXTS})
    deltalake.write_deltalake(tmp_path / "source", data, partition_by=["day"])
    deltalake.DeltaTable(tmp_path / "source").delete("day = 'b'")
    result = convert(tmp_path / "source", tmp_path / "t", variant_columns=["event"])
    assert result.rows == 10
    assert dv.load_snapshot(tmp_path / "t").partition_columns == ("day",)
    assert events(tmp_path / "t") == EVENTS[::2]
    with pytest.raises(SourceError, match="together with other sources"):
        convert([tmp_path / "source", tmp_path / "t"], tmp_path / "u")


def test_a_table_may_be_a_file_uri(tmp_path: Path):
    dv.write_table(
        tmp_path / "a b", [{"n": 1}, {"n": 2}], configuration={"delta.enableDeletionVectors": "true"}
    )
    dv.delete(tmp_path / "a b", "n = 1")
    convert((tmp_path / "a b").as_uri(), tmp_path / "t")
    assert dv.read_table(tmp_path / "t").to_pylist() == [{"n": 2}]


@pytest.mark.usefixtures("small_files_are_shredded")
def test_unshredded_and_shredded_variants_are_converted(tmp_path: Path):
    rows = pa.table({"event": TEXTS})
    dv.write_table(tmp_path / "source", rows, variant_columns=["event"], shredding=None)
    (unshredded,) = (tmp_path / "source").glob("*.parquet")
    for number, source in enumerate((tmp_path / "source", unshredded)):
        result = convert(source, tmp_path / f"t{number}")
        assert result.files[0].variants["event"]
        assert events(tmp_path / f"t{number}") == EVENTS
    (shredded,) = (tmp_path / "t0").glob("*.parquet")
    assert convert(shredded, tmp_path / "u", shredding=None).files[0].variants["event"] == ()
    assert events(tmp_path / "u") == EVENTS


@pytest.mark.parametrize("typed", [{}, {"typed_value": pa.int64()}], ids=["unshredded", "shredded"])
def test_null_variants_of_files_with_an_optional_value_are_converted(tmp_path: Path, typed: dict[str, Any]):
    # `value` is optional in the files of DuckDB, and in every shredded file.
    fields = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary())]
    stored = pa.struct([*fields, *(pa.field(name, each) for name, each in typed.items())])
    null, five = {"metadata": b"\x01\0\0", "value": b"\0"}, {"metadata": b"\x01\0\0", "value": b"\x0c\5"}
    write_parquet(tmp_path / "a.parquet", v=pa.array([None, null, five], stored))
    convert(tmp_path / "a.parquet", tmp_path / "t")
    assert dv.read_table(tmp_path / "t").to_pylist(variants="json") == [
        {"v": None},
        {"v": "null"},
        {"v": "5"},
    ]


def test_null_variants_of_duckdb_are_converted(tmp_path: Path):
    query = (
        "select i, case i % 3 when 0 then {'a': i}::variant when 1 then i::variant end v from range(9) t(i)"
    )
    duckdb.sql(f"copy ({query}) to '{tmp_path / 'a.parquet'}'")
    convert(tmp_path / "a.parquet", tmp_path / "t")
    assert dv.read_table(tmp_path / "t").to_pylist() == [
        {"i": i, "v": [{"a": i}, i, None][i % 3]} for i in range(9)
    ]


def test_a_parquet_file_that_cannot_be_decompressed_is_named(tmp_path: Path):
    write_parquet(tmp_path / "a.parquet", n=range(10_000))
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[50:4000] = bytes(3950)
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"^cannot read .*a\.parquet: (?!.*Traceback)"):
        convert(tmp_path / "a.parquet", tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_a_file_with_two_columns_of_one_name_is_rejected(tmp_path: Path):
    pq.write_table(pa.table([[1], [2]], names=["n", "n"]), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match=r"a\.parquet because it has several columns 'n': rename them$"):
        convert(tmp_path / "a.parquet", tmp_path / "t")


def test_a_failed_conversion_leaves_no_table(tmp_path: Path):
    write_parquet(tmp_path / "a.parquet", event=["{"])
    with pytest.raises(InvalidJsonError):
        convert(tmp_path / "a.parquet", tmp_path / "t", variant_columns=["event"])
    (tmp_path / "b.parquet").write_bytes(b"text")
    with pytest.raises(SourceError, match=r"cannot read .*b\.parquet"):
        convert(tmp_path / "b.parquet", tmp_path / "t")
    for absent in ("absent.parquet", "x*.parquet", "."):
        with pytest.raises(SourceNotFoundError):
            convert(tmp_path / "empty" / absent, tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_a_table_at_the_target_is_never_replaced(tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(table, [{"id": 1}])
    with pytest.raises(dv.TableExistsError, match=r"choose another location$"):
        dv.convert(table, table)
    assert dv.history(table)[0].version == 0
