"""Variants as Python objects: each type of the encoding (VariantEncoding.md, Primitive types)."""

from __future__ import annotations

import struct
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from delta_variant.errors import CastError, MalformedVariantError
from delta_variant.variant.values import Variant

EMPTY = b"\x01\x00\x00"
MICROS_PER_DAY = 86_400_000_000


def primitive(type_id: int, data: bytes = b"") -> Variant:
    return Variant(EMPTY, bytes([type_id << 2]) + data)


def int64(number: int) -> bytes:
    return struct.pack("<q", number)


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (primitive(0), None),
        (primitive(1), True),
        (primitive(2), False),
        (primitive(3, b"\x80"), -128),
        (primitive(4, struct.pack("<h", -32_768)), -32_768),
        (primitive(5, struct.pack("<i", 2**31 - 1)), 2**31 - 1),
        (primitive(6, int64(-(2**63))), -(2**63)),
        (primitive(7, struct.pack("<d", 0.1)), 0.1),
        (primitive(8, b"\x02" + struct.pack("<i", -12_300)), Decimal("-123.00")),
        (primitive(9, b"\x12" + int64(1)), Decimal("0.000000000000000001")),
        (primitive(10, b"\x00" + (10**38 - 1).to_bytes(16, "little")), Decimal(10**38 - 1)),
        (primitive(11, struct.pack("<i", -719_162)), date(1, 1, 1)),
        (primitive(11, struct.pack("<i", 2_932_896)), date(9999, 12, 31)),
        (primitive(12, int64(-1)), datetime(1969, 12, 31, 23, 59, 59, 999_999, timezone.utc)),
        (primitive(13, int64(0)), datetime(1970, 1, 1)),
        (primitive(14, struct.pack("<f", 0.5)), 0.5),
        (primitive(15, b"\x02\x00\x00\x00\xff\x00"), b"\xff\x00"),
        (primitive(16, b"\x02\x00\x00\x00\xc3\xa9"), "é"),
        (primitive(17, int64(MICROS_PER_DAY - 1)), time(23, 59, 59, 999_999)),
        (primitive(18, int64(-1000)), datetime(1969, 12, 31, 23, 59, 59, 999_999, timezone.utc)),
        (primitive(19, int64(1_000_001_000)), datetime(1970, 1, 1, 0, 0, 1, 1)),
        (primitive(20, bytes(range(16))), UUID(bytes=bytes(range(16)))),
        (Variant(EMPTY, b"\x05x"), "x"),
        (Variant(EMPTY, b"\x03\x02\x00\x01\x03\x00\x0c\x07"), [None, 7]),
        (Variant(EMPTY, b"\x03\x00\x00"), []),
        (Variant(b"\x01\x01\x00\x01a", b"\x02\x01\x00\x00\x01\x04"), {"a": True}),
    ],
)
def test_each_type_becomes_its_python_object(variant: Variant, expected: Any):
    found = variant.to_python()
    assert (found, type(found), repr(found)) == (expected, type(expected), repr(expected))


def test_nested_values_of_json_become_dicts_and_lists():
    variant = Variant.from_json('{"b": [1, {"c": null}], "a": {"d": 2.50}}')
    assert variant.to_python() == {"a": {"d": Decimal("2.50")}, "b": [1, {"c": None}]}


def test_the_deepest_value_allowed_is_converted():
    value = Variant.from_json("[" * 1000 + "]" * 1000).to_python()
    for _ in range(999):
        (value,) = value
    assert value == []


@pytest.mark.parametrize(
    ("variant", "sentence"),
    [
        (primitive(11, struct.pack("<i", -719_163)), "date 0000-12-31 lies outside of the years 1 to 9999"),
        (primitive(11, struct.pack("<i", 2**31 - 1)), "lies outside of the years 1 to 9999"),
        (primitive(12, int64(253_402_300_800_000_000)), "timestamp .*10000-01-01 00:00:00.* lies outside"),
        (primitive(13, int64(-(2**63))), "timestamp_ntz .* lies outside of the years"),
        (primitive(18, int64(1)), r"timestamp_nanos 1970-01-01 00:00:00.000000001\+00:00 has nanoseconds"),
        (primitive(19, int64(-1)), "timestamp_ntz_nanos .*999999999 has nanoseconds"),
    ],
)
def test_a_value_outside_the_range_of_python_is_a_cast_error(variant: Variant, sentence: str):
    with pytest.raises(CastError, match=sentence):
        variant.to_python()


@pytest.mark.parametrize(
    ("variant", "sentence"),
    [
        (Variant(EMPTY, b""), "it is empty"),
        (Variant(EMPTY, b"\x09a"), "truncated"),
        (Variant(EMPTY, b"\x05\xff"), "not UTF-8"),
        (Variant(EMPTY, b"\x02\x01\x00\x00\x01\x04"), "name id 0, but the metadata has 0 names"),
        (Variant(b"\x02\x00\x00", b"\x00"), "expected version 1, got 2"),
        (primitive(63), "primitive type 63"),
    ],
)
def test_malformed_bytes_are_rejected(variant: Variant, sentence: str):
    with pytest.raises(MalformedVariantError, match=sentence):
        variant.to_python()
