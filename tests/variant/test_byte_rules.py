"""Rules of the encoding and of shredding for functions of this library (ids: docs/audit-rules.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant.errors import MalformedVariantError, SchemaError
from delta_variant.protocol.schema.arrow import variant_field
from delta_variant.variant import shredding
from delta_variant.variant import values as variant_values
from delta_variant.variant.shredding import ShreddingSchema

A_TO_C = bytes.fromhex("0103000102 03616263")
# {"a": 1, "b": <a value of type 21>, "c": 2}
WITH_UNKNOWN = bytes.fromhex("0203000102 00020406 0c01 54ff 0c02")


def variants(*rows: tuple[bytes, bytes]) -> pa.StructArray:
    return pa.array(
        [{"metadata": metadata, "value": value} for metadata, value in rows], variant_values.VARIANT_TYPE
    )


def test_a_value_of_an_unknown_type_does_not_affect_its_siblings():  # E-V4
    row = dv.Variant(A_TO_C, WITH_UNKNOWN)
    paths = {name: row.get(f"$.{name}") for name in "abc"}
    assert {name: found and found.value.hex() for name, found in paths.items()} == {
        "a": "0c01",
        "b": "54ff",
        "c": "0c02",
    }
    assert dv.variant_get(variants((A_TO_C, WITH_UNKNOWN)), "$.c", "bigint").to_pylist() == [2]


@pytest.mark.parametrize("spec", [{"a": pa.int64()}, {"b": pa.int64()}, {"b": None, "c": pa.int64()}, None])
def test_a_value_of_an_unknown_type_survives_shredding(spec: Any):  # E-V4
    rows = variants((A_TO_C, WITH_UNKNOWN))
    back = shredding.unshred(shredding.shred(rows, ShreddingSchema.of(spec)))
    assert dv.Variant(*back[0].as_py().values()).get("$.b") == dv.Variant(A_TO_C, b"\x54\xff")


def test_a_value_of_an_unknown_type_cannot_be_printed():  # E-V4
    with pytest.raises(MalformedVariantError, match="primitive type 21, which this version does not know"):
        dv.to_json(variants((A_TO_C, WITH_UNKNOWN)))


NUMBERS = ("0c01", "100200", "1403000000", "180400000000000000", "200132000000")


@pytest.mark.parametrize(
    ("numeric", "kept"),
    [
        ("strict", NUMBERS),
        ("value", [f"18{number:02x}{'00' * 7}" for number in (1, 2, 3, 4, 5)]),
    ],
)
def test_strictly_shredded_numbers_keep_their_type(numeric: Any, kept: Any, tmp_path: Path):
    rows = variants(*((b"\x01\x00\x00", bytes.fromhex(value)) for value in NUMBERS))
    table = pa.table([rows], schema=pa.schema([variant_field("v")]))
    schema = ShreddingSchema.of(pa.int64())
    dv.write_table(tmp_path / "table", table, shredding=schema, files=dv.FileOptions(numeric=numeric))
    back = dv.read_table(tmp_path / "table").to_table()["v"].to_pylist()
    assert [row["value"].hex() for row in back] == list(kept)


def test_files_of_one_table_may_have_different_shredding_schemas(tmp_path: Path):
    table = tmp_path / "table"
    schemas = [{"a": pa.int64()}, {"a": pa.string()}, {"b": {"a": pa.int64()}}, [pa.int64()], None]
    for number, spec in enumerate(schemas):
        text = pa.table({"v": [f'{{"a": {number}, "b": {{"a": "{number}"}}}}']})
        mode = "append" if number else "error"
        dv.write_table(table, text, variant_columns=["v"], shredding=ShreddingSchema.of(spec), mode=mode)
    columns = {"a": "v:a::bigint", "b": "v:b.a::string"}
    rows = sorted(dv.read_table(table, columns=columns).to_table().to_pylist(), key=lambda row: row["a"])
    assert rows == [{"a": number, "b": str(number)} for number in range(len(schemas))]


@pytest.mark.parametrize("extra", ["_spark_x", "_metadata_key_paths", "typed_value"])
def test_a_struct_with_other_members_is_not_written_as_a_variant(extra: str, tmp_path: Path):
    row = {"metadata": b"\x01\x00\x00", "value": b"\x00", extra: b""}
    table = pa.table({"v": pa.array([row])})
    with raises_at(SchemaError, "to Variant: expected JSON text or struct", column="v"):
        dv.write_table(tmp_path / "table", table, variant_columns=["v"])


def test_an_object_without_fields_has_no_typed_value():
    schema = ShreddingSchema.of({"a": {}, "b": pa.int64()})
    shredded = shredding.shred(dv.parse_json(['{"a": {"c": 1}, "b": 2}']), schema)
    fields = shredded.type.field("typed_value").type
    assert {field.name: [part.name for part in field.type] for field in fields} == {
        "a": ["value"],
        "b": ["value", "typed_value"],
    }
    assert dv.to_json(shredded).to_pylist() == ['{"a":{"c":1},"b":2}']
