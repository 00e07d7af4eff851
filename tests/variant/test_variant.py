"""Variants: JSON parsing and printing, access by path, and Python objects."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at
from support.strategies import Encoded, json_values, meaning, meanings, variant_array, variants

from delta_variant import Variant, _native, parse_json, to_json, try_variant_get, variant_get
from delta_variant.errors import (
    CastError,
    InvalidJsonError,
    InvalidStatisticsError,
    MalformedVariantError,
    SchemaError,
)
from delta_variant.protocol.statistics import decode_bound


def as_json(value: Any) -> Any:
    """Return a Variant as JSON values, without a difference between kinds of numbers."""
    if isinstance(value, dict):
        return {key: as_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_json(part) for part in value]
    if isinstance(value, tuple):
        return value[1] if value[0] == "string" else {"null": None, "true": True, "false": False}[value[0]]
    return value


def dump(value: Any) -> str:
    """Return JSON text with all digits of Decimals, which the standard library cannot write."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{dump(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)


@given(st.lists(json_values(), min_size=1, max_size=3))
def test_parse_json_gives_every_value_of_json(values: list[Any]):
    assert [as_json(each) for each in meanings(parse_json(list(map(dump, values))))] == values


@given(st.lists(json_values(), min_size=1, max_size=3))
def test_parse_json_undoes_to_json(values: list[Any]):
    once = parse_json(list(map(dump, values)))
    assert meanings(parse_json(to_json(once))) == meanings(once)


@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=4))
def test_to_json_of_any_variant_is_json(rows: list[Encoded | None]):
    for text, row in zip(to_json(variant_array(rows)).to_pylist(), rows, strict=True):
        assert (text is None) == (row is None)
        if text is not None:
            json.loads(text)


@given(variants(), st.data())
def test_any_change_of_the_bytes_is_read_or_rejected(row: Encoded, data: st.DataObject):
    """Malformed bytes never cause a crash, a hang or another exception."""
    both = bytearray(row.metadata + row.value)
    position = data.draw(st.integers(0, len(both) - 1))
    both[position] = data.draw(st.integers(0, 255))
    changed = Encoded(bytes(both[: len(row.metadata)]), bytes(both[len(row.metadata) :]), None)
    with suppress(MalformedVariantError):
        to_json(variant_array([changed]))


@given(variants())
def test_every_truncation_is_rejected(row: Encoded):
    """A value needs all of its bytes."""
    for length in range(len(row.value)):
        with raises_at(MalformedVariantError, row=0):
            to_json(variant_array([Encoded(row.metadata, row.value[:length], None)]))


@given(variants())
def test_every_field_and_element_is_found_at_its_path(row: Encoded):
    array = variant_array([row])
    whole = row.meaning
    parts = whole.items() if isinstance(whole, dict) else enumerate(whole) if isinstance(whole, list) else ()
    for step, expected in parts:
        path = f"$[{step}]" if isinstance(step, int) else f"$[{json.dumps(step, ensure_ascii=False)}]"
        (found,) = meanings(variant_get(array, path))
        # As in Spark's variant_get, a Variant null becomes SQL NULL only in a cast.
        assert found == expected


NUMBERS = [
    ("0", "0c00"),
    ("-128", "0c80"),
    ("128", "108000"),
    ("-32769", "14ff7fffff"),
    ("2147483648", "180000008000000000"),
    ("9223372036854775807", "18ffffffffffffff7f"),
    ("9223372036854775808", "2800" + "0000000000000080" + "00" * 8),
    ("1.10", "20026e000000"),
    ("-0.5", "2001fbffffff"),
    ("12345678901.5", "2401" + (123456789015).to_bytes(8, "little").hex()),
    ("1e3", "1c0000000000408f40"),
    ("1.5E0", "1c000000000000f83f"),
    ("-0", "0c00"),
]


@pytest.mark.parametrize(("text", "value"), NUMBERS)
def test_numbers_are_typed_as_sparks_parse_json_types_them(text: str, value: str):
    """VariantEncoding.md, "Encoding types"."""
    assert Variant.from_json(text).value.hex() == value


def test_numbers_of_more_than_38_digits_are_doubles():
    assert Variant.from_json("1" * 38).value[0] == 0x28
    assert Variant.from_json("1" * 39).value[0] == 0x1C
    assert Variant.from_json("0." + "0" * 37 + "1").value[0] != 0x1C
    assert Variant.from_json("0." + "0" * 38 + "1").value[0] == 0x1C


def test_every_number_with_a_fraction_may_be_a_double():
    (row,) = parse_json(["1.5"], floats="double").to_pylist()
    assert row["value"].hex() == "1c000000000000f83f"
    assert Variant.from_json("1.5", floats="double").value == row["value"]
    assert Variant.from_json("3", floats="double").value.hex() == "0c03"


def test_fields_are_sorted_by_the_bytes_of_their_names():
    """U+FFFF sorts before U+10000, unlike in UTF-16."""
    row = Variant.from_json('{"\U00010000":1,"\uffff":2,"b":3,"a":4}')
    assert list(meaning(row.metadata, row.value)) == ["a", "b", "\uffff", "\U00010000"]


def test_a_variant_has_its_bytes_its_text_and_its_parts():
    """An empty object has no field ids and one offset."""
    assert Variant.from_json("{}") == Variant(b"\x01\x00\x00", b"\x02\x00\x00")
    row = Variant.from_json('{"a":{"b":[1,2.50,"x"]}}')
    assert row.to_json() == '{"a":{"b":[1,2.5,"x"]}}'
    part = row.get("$.a.b[2]")
    assert part is not None
    assert part.to_json() == '"x"'
    assert row.get("$.a.c") is None
    assert row.get("$.a.b[9]") is None
    assert repr(Variant.from_json("[1]")) == "Variant.from_json('[1]')"


def test_null_text_is_sql_null_and_the_text_null_is_variant_null():
    rows = parse_json([None, "null"])
    assert rows.to_pylist() == [None, {"metadata": b"\x01\x00\x00", "value": b"\x00"}]
    assert to_json(rows).to_pylist() == [None, "null"]
    assert parse_json([None]).to_pylist() == [None]
    assert parse_json([]).to_pylist() == []


@pytest.mark.parametrize(
    "text",
    [
        pa.array(["1"], pa.large_string()),
        pa.array(["1"], pa.string_view()),
        pa.array([b"1"], pa.binary()),
        pa.chunked_array([["1"], []]),
        pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1"])),
        pa.array(["1"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["1"], pa.string_view())),
        pa.RunEndEncodedArray.from_arrays([1], pa.array(["1"], pa.string_view())),
    ],
    ids=["large text", "text view", "bytes", "chunks", "arrow.json", "dictionary", "views", "runs"],
)
def test_text_of_every_kind_is_parsed(text: Any):
    assert to_json(parse_json(text)).to_pylist() == ["1"]


def test_the_first_invalid_row_is_an_attribute():
    with raises_at(InvalidJsonError, "byte 3 of the text", row=2):
        parse_json(["1", None, "[1", "{"])


def test_variant_get_casts_as_spark_does():
    rows = parse_json(['{"a":"12","b":1.5}', '{"a":"x"}', '{"a":null}', None])
    assert try_variant_get(rows, "$.a", "bigint").to_pylist() == [12, None, None, None]
    assert variant_get(rows, "$.b", "decimal(10,2)").to_pylist() == [Decimal("1.50"), None, None, None]
    assert variant_get(rows, "$.b", pa.float64()).to_pylist() == [1.5, None, None, None]
    with raises_at(CastError, "try_variant_get", row=1, path="$['a']"):
        variant_get(rows, "$.a", "bigint")


@pytest.mark.parametrize(
    ("text", "type_name", "value"),
    [
        ('"buy"', "bigint", '"buy" (string)'),
        ('"buy"', "decimal(18,2)", '"buy" (string)'),
        ("300", "tinyint", "300 (smallint)"),
        ("{}", "timestamp", "a value of type object"),
        ("[]", "timestamp_ntz", "a value of type array"),
        ("1", "array<double>", "1 (tinyint)"),
        ("1", "map<string,int>", "1 (tinyint)"),
        ("1", "struct<`a`:array<date>,`b`:boolean>", "1 (tinyint)"),
    ],
)
def test_a_cast_error_names_the_type_as_sql_does(text: str, type_name: str, value: str):
    with pytest.raises(CastError) as caught:
        variant_get(parse_json([text]), "$", type_name)
    assert caught.value.message == (
        f"cannot cast {value} to {type_name}; `try_variant_get` returns null where a cast fails"
    )


# The example of PROTOCOL.md in both encoded forms, and strings of Databricks.
BOUNDS = [
    ("0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu", {"$['a']": "min-string", "$['b']['c']": 1}),
    ("0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K", {"$['a']": "variant", "$['b']['c']": 100}),
    ("0rJl95HpNdvjbtatpi(cu0wW^cTu=P0096c4jMddzy]{KA+PA73&{td", {"$['a']": "min-string", "$['b']['c']": 1}),
    ("0rJlc5f$EczEEx[cTw04cUW9st(>6d00icd1U*?]0000000000", {"$['id']": 0, "$['name']": "1"}),
    ("0rAf3bMW#D00%Fx0000000000", {"$": 0}),
    ("0rr9300000", {}),
]


@pytest.mark.parametrize(("text", "expected"), BOUNDS)
def test_bounds_are_decoded_in_either_printed_form(text: str, expected: dict[str, Any]):
    assert json.loads(decode_bound(text).to_json()) == expected


@pytest.mark.parametrize("text", ["", "0", "0rr93", "#####", "0rr93\u00e9", "a" * 25])
def test_text_without_a_bound_is_rejected(text: str):
    with pytest.raises(InvalidStatisticsError, match=r"\S"):
        decode_bound(text)


@pytest.mark.parametrize(
    ("precision", "scale"), [(1, 1), (5, 2), (15, 0), (16, 3), (18, 18), (38, 0), (38, 38)]
)
def test_shredded_decimals_are_cast_to_the_nearest_double(precision: int, scale: int):
    random = Random(precision + scale)
    digits = [random.randrange(10 ** random.randrange(1, precision + 1)) for _ in range(500)]
    decimals = [
        Decimal(f"{random.choice('+-')}{each}e-{scale}") for each in [*digits, 10**precision - 1, 2**53]
    ]
    values = pa.array([None, *decimals[: None if precision > 16 else -1]], pa.decimal128(precision, scale))
    found = variant_get(shredded_as(values), "$", "double").to_pylist()
    assert found == [None if each is None else float(each) for each in values.to_pylist()]


def test_a_shredded_decimal_with_more_digits_than_its_type_is_malformed():
    unscaled = (7).to_bytes(16, "little") + (99999).to_bytes(16, "little")
    values = pa.Array.from_buffers(pa.decimal128(3, 1), 2, [None, pa.py_buffer(unscaled)])
    with raises_at(SchemaError, "Decimal value 99999 does not fit in precision", row=1):
        variant_get(shredded_as(values), "$", "double")
    # Arrays of data files are not checked before.
    with raises_at(MalformedVariantError, "more digits", row=1):
        _native.variant_get(shredded_as(values), [], pa.float64(), True, "UTC")


def shredded_as(values: pa.Array[Any]) -> pa.StructArray:
    """Return Variants with these values in `typed_value`."""
    names: pa.Array[Any] = pa.array([b"\x01\x00\x00"] * len(values), pa.binary())
    fields = [pa.field("metadata", pa.binary(), False), pa.field("typed_value", values.type)]
    return pa.StructArray.from_arrays([names, values], fields=fields)
