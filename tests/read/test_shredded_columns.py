"""`shredded_columns`: the typed paths of all files, as columns of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.tables import list_files

import delta_variant as dv
from delta_variant.errors import CastError


def append(table: Path, value: Any, shredding: Mapping[str, Any] | None, **options: Any) -> None:
    schema = dv.ShreddingSchema.of(shredding)
    rows = [{"v": value}]
    dv.write_table(table, rows, mode="append", variant_columns=["v"], shredding=schema, **options)


def types_of(table: Path) -> dict[str, str]:
    """Return the SQL type of each path, by the name of its column."""
    columns = dv.shredded_columns(table)
    return {
        name: text.rpartition(", '")[2].removesuffix("')") for name, text in columns.items() if "get(" in text
    }


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (pa.int64(), pa.int64(), "bigint"),
        (pa.int32(), pa.int64(), "bigint"),
        (pa.int64(), pa.decimal128(9, 2), "decimal(22,2)"),
        (pa.int64(), pa.float64(), "double"),
        (pa.date32(), pa.timestamp("us"), "timestamp_ntz"),
        (pa.int64(), pa.bool_(), "string"),
        (pa.int64(), pa.string(), "string"),
        (pa.int64(), pa.time64("us"), "string"),
        (pa.int64(), {"b": pa.int64()}, "string"),
        (pa.int64(), None, "bigint"),
    ],
    ids=str,
)
def test_a_path_has_the_common_type_of_its_files(one: Any, other: Any, expected: str, tmp_path: Path):
    for each in (one, other):
        append(tmp_path / "t", {}, {"a": each})
    assert types_of(tmp_path / "t")["v.a"] == expected


def test_objects_and_arrays_are_not_columns(tmp_path: Path):
    append(tmp_path / "t", {}, {"a": {"b": {"c": pa.int64()}}, "e": [pa.int64()], "f": None})
    assert list(dv.shredded_columns(tmp_path / "t")) == ["v", "v.a.b.c"]


def test_a_value_of_another_type_is_an_error_or_null(tmp_path: Path):
    table = tmp_path / "t"
    append(table, {"a": 1}, {"a": pa.int64()})
    append(table, {"a": "x"}, {"a": pa.int64()})
    with pytest.raises(CastError) as caught:
        dv.read_table(table, columns=dv.shredded_columns(table)).to_pylist()
    assert caught.value.path == "$['a']"
    lenient = dv.shredded_columns(table, strict=False)
    assert [row["v.a"] for row in dv.read_table(table, columns=lenient).to_pylist()] == [1, None]
    assert dv.shredded_columns(table, version=0) == dv.shredded_columns(table)


def test_unusual_names_are_read(tmp_path: Path):
    table = tmp_path / "t"
    names = ["", "a.b", "it's", 'q"', "x\\y", "x\\'", "Ω", "a b", "select", "1"]
    append(table, {name: number for number, name in enumerate(names)}, dict.fromkeys(names, pa.int64()))
    columns = dv.shredded_columns(table)
    del columns["v"]
    (row,) = dv.read_table(table, columns=columns).to_pylist()
    assert sorted(row.values()) == list(range(len(names)))
    assert row["v['a.b']"] == 1
    assert row["v.Ω"] == 6


def test_a_name_that_no_path_can_quote_is_left_out(tmp_path: Path):
    append(tmp_path / "t", {"a": 1}, {"a": pa.int64(), "'\"": pa.int64()})
    assert list(dv.shredded_columns(tmp_path / "t")) == ["v", "v.a"]


def test_a_path_does_not_replace_a_column(tmp_path: Path):
    rows = pa.table({"v.a": [5], "v": ['{"a": 1}']})
    schema = dv.ShreddingSchema.of({"a": pa.int64()})
    dv.write_table(tmp_path / "t", rows, variant_columns=["v"], shredding=schema)
    assert dv.shredded_columns(tmp_path / "t") == {"v.a": "`v.a`", "v": "`v`"}


def test_variants_within_structs_and_renamed_columns_are_found(tmp_path: Path):
    table = tmp_path / "t"
    inner = dv.parse_json(['{"a": 1.5}'])
    field = pa.field("v", inner.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    rows = pa.table({"s": pa.StructArray.from_arrays([inner], fields=[field])})
    schema = dv.ShreddingSchema.of({"a": pa.decimal128(9, 1)})
    mapping = {"delta.columnMapping.mode": "name"}
    dv.write_table(table, rows, shredding=schema, configuration=mapping)
    dv.rename_column(table, "s", "t")
    columns = dv.shredded_columns(table)
    assert columns["t.v.a"] == "variant_get(`t`.`v`, '$.a', 'decimal(9,1)')"
    assert dv.read_table(table, columns=[columns["t.v.a"] + " as a"]).to_pylist() == [{"a": Decimal("1.5")}]


def test_a_table_without_variants_has_its_columns(tmp_path: Path):
    dv.write_table(tmp_path / "t", pa.table({"a`b": [1]}))
    assert dv.shredded_columns(tmp_path / "t") == {"a`b": "`a``b`"}
    assert dv.read_table(tmp_path / "t", columns=dv.shredded_columns(tmp_path / "t")).count() == 1
    assert len(list_files(tmp_path / "t", "*.parquet")) == 1
