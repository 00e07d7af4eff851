"""`variants="shredded"`: Variant columns as Arrow data with `typed_value`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.errors import raises_at
from support.planting import plant_vector

import delta_variant as dv
from delta_variant.errors import ShreddingError

SPEC = {"a": pa.int64(), "b": {"c": pa.string()}}
TEXTS = ['{"a":1,"b":{"c":"x"}}', '{"a":"odd","d":[1]}', None, "null", "[1,2]"]


def append(table: Path, texts: Any = TEXTS, spec: Any = SPEC, first: int = 0, **options: Any) -> None:
    rows = pa.table({"id": range(first, first + len(texts)), "v": pa.array(texts, pa.string())})
    schema = dv.ShreddingSchema.of(spec)
    dv.write_table(table, rows, variant_columns=["v"], mode="append", shredding=schema, **options)


def test_variants_are_returned_as_files_store_them(tmp_path: Path):
    for _ in range(2):
        append(tmp_path / "t")
    scan = dv.read_table(tmp_path / "t", variants="shredded")
    field = scan.schema.field("v")
    expected = dv.shred(dv.parse_json(TEXTS), dv.ShreddingSchema.of(SPEC))
    assert field.type == expected.type
    assert field.metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    table = scan.to_table()
    assert table.schema == scan.schema
    assert table["v"].combine_chunks().to_pylist() == 2 * expected.to_pylist()
    assert dv.to_json(dv.unshred(table["v"])).to_pylist() == 2 * TEXTS


def test_other_forms_and_conditions_see_the_same_values(tmp_path: Path):
    append(tmp_path / "t")
    scan = dv.read_table(tmp_path / "t", where="id <> 1 and v is not null", variants="shredded")
    assert scan.to_pylist(variants="json") == [
        {"id": 0, "v": TEXTS[0]},
        {"id": 3, "v": "null"},
        {"id": 4, "v": "[1,2]"},
    ]
    assert scan.to_polars()["v"].to_list() == [TEXTS[0], "null", "[1,2]"]
    assert scan.to_dataset().to_table(columns=["v"]).schema.field("v") == scan.schema.field("v")
    paths = {"a": "v:a::string", "v": "v"}
    found = dv.read_table(tmp_path / "t", columns=paths, variants="shredded").to_table()
    assert found["a"].to_pylist() == ["1", "odd", None, None, None]


def test_a_cast_that_fails_late_keeps_the_form(tmp_path: Path):
    append(tmp_path / "t")
    columns = {"n": "v:a::bigint", "v": "v"}
    scan = dv.read_table(tmp_path / "t", columns=columns, where="id = 0", variants="shredded")
    assert scan.to_table()["v"].to_pylist()[0]["typed_value"]["a"]["typed_value"] == 1


def test_deleted_rows_and_files_without_the_column_are_read(tmp_path: Path):
    table = tmp_path / "t"
    dv.write_table(table, [{"id": -1}], configuration={"delta.enableDeletionVectors": "true"})
    dv.set_properties(table, {"delta.enableVariantShredding": "true"})
    append(table, schema_mode="merge")
    plant_vector(table, 2, 0)
    found = dv.read_table(table, variants="shredded").to_pylist(variants="json")
    assert sorted(found, key=lambda row: row["id"]) == [
        {"id": -1, "v": None},
        *({"id": index, "v": text} for index, text in enumerate(TEXTS) if index),
    ]


def test_a_table_without_files_has_the_plain_type(tmp_path: Path):
    append(tmp_path / "t")
    dv.delete_all(tmp_path / "t")
    scan = dv.read_table(tmp_path / "t", variants="shredded")
    assert scan.schema == dv.read_table(tmp_path / "t").schema
    assert scan.to_table().num_rows == 0


@pytest.mark.parametrize(
    ("other", "path"),
    [
        ({"a": pa.string(), "b": {"c": pa.string()}}, "$['a']"),
        ({"a": pa.int64(), "b": {"c": pa.int64()}}, "$['b']['c']"),
        ({"a": pa.int64(), "b": {"c": pa.string(), "d": None}}, "$['b']['d']"),
        ({"a": pa.int64()}, "$['b']"),
        ({"a": pa.int64(), "b": pa.string()}, "$['b']"),
        (None, "$"),
    ],
    ids=str,
)
def test_files_that_differ_are_an_error_with_the_path(other: Any, path: str, tmp_path: Path):
    table = tmp_path / "t"
    append(table)
    append(table, spec=other)
    with raises_at(ShreddingError, "differ", column="v", path=path):
        dv.read_table(table, variants="shredded")
    assert dv.read_table(table, variants="shredded", columns=["id"]).count() == 10


def test_files_that_are_skipped_may_differ(tmp_path: Path):
    append(tmp_path / "t", TEXTS[:1])
    append(tmp_path / "t", ['{"a":9}', '{"a":8}'], None, first=100)
    scan = dv.read_table(tmp_path / "t", where="id < 100", variants="shredded")
    with pytest.raises(ShreddingError):
        dv.read_table(tmp_path / "t", variants="shredded")
    assert scan.to_pylist() == [{"id": 0, "v": {"a": 1, "b": {"c": "x"}}}]


def test_other_forms_are_rejected(tmp_path: Path):
    append(tmp_path / "t")
    with pytest.raises(ValueError, match="variants"):
        dv.read_table(tmp_path / "t", variants="json")  # type: ignore[arg-type]
