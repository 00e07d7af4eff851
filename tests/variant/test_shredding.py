"""Unshredding undoes shredding for any Variant and schema; shredded columns follow the specification."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import Encoded, meanings, shredding_schemas, variant_array, variants

import delta_variant as dv
from delta_variant import ShreddingSchema, infer_shredding_schema, parse_json, shred, to_json, unshred
from delta_variant.errors import SchemaError, ShreddingError, ShreddingNotEnabledError

ROWS = st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=4)


@given(ROWS, shredding_schemas())
def test_unshred_undoes_shred_for_any_variant_and_any_schema(rows: list[Encoded | None], schema: pa.DataType):
    """Numbers are equal by value, as VariantEncoding.md defines equivalence classes of types."""
    shredded = shred(variant_array(rows), ShreddingSchema.from_arrow(schema))
    assert meanings(unshred(shredded)) == [row and row.meaning for row in rows]


@given(ROWS)
def test_an_unshredded_variant_keeps_its_bytes(rows: list[Encoded | None]):
    """An unshredded value keeps its bytes."""
    array = variant_array(rows)
    shredded = shred(array, ShreddingSchema.of(None))
    assert unshred(shredded).to_pylist() == array.to_pylist()


@given(ROWS, shredding_schemas())
def test_shredding_a_shredded_column_again_changes_nothing(rows: list[Encoded | None], schema: pa.DataType):
    form = ShreddingSchema.from_arrow(schema)
    once = shred(variant_array(rows), form)
    assert (
        shred(unshred(once), form)
        .field("typed_value" if len(once.type) == 3 else "value")
        .equals(once.field("typed_value" if len(once.type) == 3 else "value"))
    )


@given(ROWS, shredding_schemas())
def test_shredded_columns_keep_the_rules_for_writers(rows: list[Encoded | None], schema: pa.DataType):
    """Check shredded columns against VariantShredding.md with an independent reader."""
    shredded = shred(variant_array(rows), ShreddingSchema.from_arrow(schema)).to_pylist()
    for row in shredded:
        if row is not None:
            check(row, schema, row["metadata"], is_field=False)


def check(group: dict[str, Any], schema: pa.DataType, metadata: bytes, is_field: bool) -> None:
    value, typed = group.get("value"), group.get("typed_value")
    basic_type = None if value is None else value[0] & 3
    assert is_field or value is not None or typed is not None, "only a field of an object may be missing"
    if pa.types.is_struct(schema):
        assert (basic_type == 2) <= (typed is not None), "an object has typed_value"
        assert typed is None or value is None or basic_type == 2, "only objects have both"
        assert value is None or typed is None or value != b"\x02\x00\x00", "`value` is not an empty object"
        for field in schema if typed is not None else ():
            assert typed[field.name] is not None, "the group of a field is present"
            check(typed[field.name], field.type, metadata, is_field=True)
    else:
        assert value is None or typed is None, "only objects have both"
    if pa.types.is_list(schema):
        assert basic_type != 3, "an array has typed_value"
        for element in typed or ():
            check(element, schema.value_type, metadata, is_field=False)


@pytest.mark.parametrize(
    ("text", "leaf", "typed"),
    [
        ("5", pa.int8(), 5),
        ("300", pa.int8(), None),
        ("5.00", pa.int8(), 5),
        ("5.5", pa.int64(), None),
        ("123", pa.decimal128(9, 2), Decimal("123.00")),
        ("1.10", pa.decimal128(9, 1), Decimal("1.1")),
        ("1.11", pa.decimal128(9, 1), None),
        ("12345", pa.decimal128(4, 0), None),
        ("1e0", pa.decimal128(4, 1), None),
        ("1", pa.float64(), None),
        ("1.5", pa.float64(), None),
        ("1.5e0", pa.float64(), 1.5),
        ('"5"', pa.int64(), None),
        ("5", pa.string(), None),
        ("null", pa.int64(), None),
        ("true", pa.bool_(), True),
        ('"2024-01-01"', pa.date32(), None),
    ],
)
def test_a_value_goes_to_typed_value_when_it_is_of_its_class_and_loses_nothing(
    text: str, leaf: pa.DataType, typed: Any
):
    """Exact numbers are shredded without loss; floats, strings and nulls only as their own type."""
    (row,) = shred(parse_json([text]), ShreddingSchema.of(leaf)).to_pylist()
    assert row["typed_value"] == typed
    assert (row["value"] is None) == (typed is not None)


@pytest.mark.parametrize(
    "spec",
    [
        *(pa.uint8(), pa.uint32(), pa.float16(), pa.binary(4), pa.time32("ms"), pa.timestamp("ms")),
        *(pa.map_(pa.string(), pa.int64()), pa.duration("us"), {"a": pa.uint64()}, [pa.time64("ns")]),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_shredded_is_rejected(spec: Any):
    """VariantShredding.md, "Shredded Variant Types"."""
    with pytest.raises(ShreddingError, match=r"\S"):
        ShreddingSchema.of(spec)


def test_two_fields_of_one_name_are_rejected():
    """Names that differ in case are two names."""
    twice = pa.struct([pa.field("a", pa.int64()), pa.field("a", pa.string())])
    with pytest.raises(ShreddingError, match='"a"'):
        ShreddingSchema.from_arrow(twice)
    assert [field.name for field in ShreddingSchema.of({"a": pa.int64(), "A": pa.int64()}).field.type] == [
        "A",
        "a",
    ]


def test_a_schema_is_described_as_values_are():
    spec = {"id": pa.int64(), "tags": [pa.string()], "rest": None}
    expected = pa.struct(
        [pa.field("id", pa.int64()), pa.field("rest", pa.null()), pa.field("tags", pa.list_(pa.string()))]
    )
    schema = ShreddingSchema.of(spec)
    assert [(field.name, str(field.type)) for field in schema.field.type] == [
        (field.name, str(field.type)) for field in ShreddingSchema.from_arrow(expected).field.type
    ]
    assert schema == ShreddingSchema.from_arrow(expected)


def test_inference_takes_the_majority_type_of_each_path():
    texts = ['{"a":1,"b":{"c":"x"},"d":[1]}'] * 90 + ['{"a":"one"}'] * 10
    schema = infer_shredding_schema(parse_json(texts))
    found = {field.name: field.type for field in schema.field.type}
    assert found["a"] == pa.int64()
    assert found["b"].field("c").type == pa.string()
    assert found["d"].value_type == pa.int64()
    assert infer_shredding_schema(texts) == infer_shredding_schema(parse_json(texts)) == schema
    assert infer_shredding_schema(parse_json(texts[::-1])) == schema


def test_inference_keeps_to_its_limits():
    wide = parse_json(["{" + ",".join(f'"k{number}":1' for number in range(50)) + "}"] * 20)
    assert len(infer_shredding_schema(wide, max_leaves=10).field.type) == 10
    deep = parse_json(['{"a":' * 10 + "1" + "}" * 10] * 20)
    form, depth = infer_shredding_schema(deep, max_depth=4).field.type, 0
    while pa.types.is_struct(form):
        form, depth = form.field(0).type, depth + 1
    assert depth <= 4


@given(st.lists(variants(), min_size=1, max_size=6), st.booleans())
def test_an_inferred_schema_can_shred(rows: list[Encoded], spark_compatible: bool):
    array = variant_array([*rows])
    schema = infer_shredding_schema(array, spark_compatible=spark_compatible)
    shredded = shred(array, schema)
    assert meanings(unshred(shredded)) == [row.meaning for row in rows]
    assert to_json(shredded).equals(to_json(unshred(shredded)))


def test_a_name_with_a_nul_character_is_never_a_column(tmp_path: Path):
    texts = pa.array(['{"a\\u0000b":1,"c":2}'] * 3)
    inferred = infer_shredding_schema(texts)
    assert inferred == ShreddingSchema.of({"c": pa.int64()})
    dv.write_table(tmp_path, pa.table({"event": texts}), variant_columns=["event"])
    found = dv.read_table(tmp_path, columns={"text": "to_json(event)"}).to_table()["text"]
    assert found.to_pylist() == ['{"a\\u0000b":1,"c":2}'] * 3
    with pytest.raises(ShreddingError, match="NUL character"):
        ShreddingSchema.of({"s": [{"a\0b": pa.int64()}]})


def test_a_timestamp_is_a_decimal_to_its_last_microsecond():
    latest = pa.array([253_402_300_799_999_999], pa.int64()).cast(pa.timestamp("us", "UTC"))
    empty = pa.array([b"\x01\x00\x00"], pa.binary())
    fields = [pa.field("metadata", pa.binary(), False), pa.field("typed_value", latest.type)]
    variants = unshred(pa.StructArray.from_arrays([empty, latest], fields=fields))
    found = dv.variant_get(variants, "$", "decimal(20,6)")
    assert found.to_pylist() == [Decimal("253402300799.999999")]


USER_ID = ShreddingSchema.of({"user": {"id": pa.int64()}})


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_a_schema_by_column_shreds_this_column_and_the_others_are_inferred(tmp_path: Path, mapping: str):
    kinds = ("buy", "view", "cart")
    rows = [
        {"a": {"user": {"id": n}, "n": n}, "b": {"n": n, "kind": kinds[n * n % 3], "price": n**3 / 7}}
        for n in range(20_000)
    ]
    settings = {"delta.columnMapping.mode": mapping}
    dv.write_table(
        tmp_path / "t",
        rows,
        variant_columns=["a", "b"],
        shredding={"a": USER_ID},
        configuration=settings,
    )
    columns = dv.shredded_columns(tmp_path / "t")
    assert [name for name in columns if name.startswith("a.")] == ["a.user.id"]
    assert "b.kind" in columns
    assert dv.read_table(tmp_path / "t").to_pylist() == rows


@pytest.mark.parametrize("name", ["id", "unknown", "A"])
def test_a_schema_of_another_column_than_a_variant_is_rejected(tmp_path: Path, name: str):
    rows = [{"id": 1, "a": {"user": {"id": 1}}}]
    with pytest.raises(SchemaError, match=rf"got '{name}'; those of .* are a") as caught:
        dv.write_table(tmp_path / "t", rows, variant_columns=["a"], shredding={name: USER_ID})
    assert caught.value.column == name
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_a_schema_by_column_needs_a_table_that_is_shredded(tmp_path: Path):
    rows = [{"a": {"user": {"id": 1}}}]
    dv.write_table(tmp_path / "t", rows, variant_columns=["a"], shredding=None)
    with pytest.raises(ShreddingNotEnabledError):
        dv.write_table(tmp_path / "t", rows, mode="append", shredding={"a": USER_ID})
