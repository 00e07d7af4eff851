"""Variants as Python objects: each type of the encoding (VariantEncoding.md, Primitive types)."""

from __future__ import annotations

import struct
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.errors import raises_at

from delta_variant import Scan, aggregate, read_table, write_table
from delta_variant.errors import ArgumentTypeError, CastError, MalformedVariantError
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


# Columns whose values Python does not have. 253402300800 is the first second of the year 10000.

SECONDS = pa.array([0, None, 253_402_300_800])
DAYS = pa.array([0, None, 2_932_897], pa.int32()).cast(pa.date32())
OUT_OF_RANGE = {
    "timestamp": pc.multiply(SECONDS, 1_000_000).cast(pa.timestamp("us", "UTC")),
    "timestamp_ntz": pc.multiply(SECONDS, 1_000_000).cast(pa.timestamp("us")),
    "date": DAYS,
    "year zero": pa.array([0, None, -719_529], pa.int32()).cast(pa.date32()),
    "struct": pa.StructArray.from_arrays([DAYS], ["day"]),
    "list": pa.ListArray.from_arrays([0, 1, 2, 3], DAYS),
    "map": pa.MapArray.from_arrays([0, 1, 2, 3], ["a", "b", "c"], DAYS),
}


def rows_of(tmp_path: Path, values: Any) -> Scan:
    write_table(tmp_path / "t", pa.table({"id": [1, 2, 3], "at": values}))
    return read_table(tmp_path / "t", columns=["at"])


@pytest.mark.parametrize("kind", OUT_OF_RANGE)
def test_a_moment_that_python_lacks_is_an_error_with_column_and_row(tmp_path: Path, kind: str):
    values = OUT_OF_RANGE[kind]
    scan = rows_of(tmp_path, values)
    with raises_at(CastError, "cast the column to string, or read it with to_table", column="at", row=2):
        scan.to_pylist()
    assert scan.to_table()["at"].combine_chunks().equals(values)
    assert scan._repr_html_() is None


def test_the_row_of_the_error_counts_from_the_first_row_of_the_result(tmp_path: Path):
    write_table(tmp_path / "t", pa.table({"at": pa.array([0] * 10, pa.int32()).cast(pa.date32())}))
    write_table(tmp_path / "t", pa.table({"at": DAYS}), mode="append")
    scan = read_table(tmp_path / "t")
    row = scan.to_table()["at"].cast(pa.int32()).index(2_932_897).as_py()
    with raises_at(CastError, "10000-01-01", column="at", row=row):
        scan.to_pylist()
    with raises_at(CastError, "10000-01-01", column="at", row=row):
        scan.to_pandas()


@pytest.mark.parametrize("kind", ["date", "struct", "list"])
def test_pandas_has_the_same_error_for_python_objects(tmp_path: Path, kind: str):
    with raises_at(CastError, column="at", row=2):
        rows_of(tmp_path, OUT_OF_RANGE[kind]).to_pandas()


def test_an_aggregate_is_an_arrow_value_where_python_has_none(tmp_path: Path):
    rows_of(tmp_path, DAYS)
    found = aggregate(tmp_path / "t", {"last": "max(at)", "first": "min(at)"})
    with raises_at(CastError, "10000-01-01", column="last"):
        _ = found.values
    assert found.table["last"].cast(pa.int32()).to_pylist() == [2_932_897]
    assert "10000-01-01" in str(found)


@pytest.mark.parametrize("values", [[1, 2**70], [-(2**63) - 1], [[2**70]]])
def test_an_integer_of_pandas_that_arrow_lacks_is_an_error_with_its_column(tmp_path: Path, values: Any):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": range(len(values)), "n": pd.Series(values, dtype=object)})
    with raises_at(ArgumentTypeError, "column 'n': convert it to text or decimals", column="n"):
        write_table(tmp_path / "t", frame)
    assert not (tmp_path / "t").exists()
