"""Functions reject arrays with invalid offsets, views, keys and text, which Arrow does not check."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.errors import raises_at

import delta_variant as dv
from delta_variant import functions
from delta_variant.errors import SchemaError

EMPTY = pa.array([b"\x01\x00\x00"] * 4)
NULLS = pa.nulls(4, pa.binary())


def column(arrow_type: pa.DataType, part: bytes, data: bytes, children: list[Any] | None = None) -> Any:
    """Return an array of four rows with these offsets or views."""
    buffers: Any = [None, pa.py_buffer(part), *([] if children else [pa.py_buffer(data)])]
    return pa.Array.from_buffers(arrow_type, 4, buffers, children=children)


def view(length: int, buffer: int, offset: int) -> bytes:
    return struct.pack("<i4sii", 1, b"x", 0, 0) + struct.pack("<i4sii", length, b"xxxx", buffer, offset) * 3


def parts(value: Any = NULLS, typed_value: Any = None, metadata: Any = EMPTY) -> Any:
    columns = {"metadata": metadata, "value": value}
    columns |= {} if typed_value is None else {"typed_value": typed_value}
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def elements(offsets: bytes) -> Any:
    group = pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["typed_value"])
    return parts(typed_value=column(pa.list_(group.type), offsets, b"", [group]))


def keys(*positions: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(positions, pa.int32()), EMPTY, safe=False)


BOOLEANS = b"\x04\x08\x04\x08"
INVALID: dict[str, tuple[Any, int]] = {
    "descending offsets": (parts(column(pa.binary(), struct.pack("<5i", 0, 1, 3, 2, 4), BOOLEANS)), 2),
    "a negative offset": (parts(column(pa.binary(), struct.pack("<5i", 0, 1, -2, 3, 4), BOOLEANS)), 1),
    "an offset after the end": (
        parts(column(pa.large_binary(), struct.pack("<5q", 0, 1 << 40, 2, 3, 4), BOOLEANS)),
        0,
    ),
    "offsets of metadata": (
        parts(metadata=column(pa.binary(), struct.pack("<5i", 0, 3, 1 << 30, 9, 12), b"\x01\0\0" * 4)),
        1,
    ),
    "offsets of a list": (elements(struct.pack("<5i", 0, 1, 900, 3, 3)), 1),
    "a view of another buffer": (parts(column(pa.binary_view(), view(100, 5, 0), BOOLEANS)), 1),
    "a negative view": (parts(column(pa.string_view(), view(-4, 0, 0), BOOLEANS)), 1),
    "a key after the dictionary": (parts(metadata=keys(0, 1, 99, 3)), 2),
    "a negative key": (parts(metadata=keys(0, 1, 2, -1)), 3),
    "text": (parts(typed_value=column(pa.string(), struct.pack("<5i", 0, 1, 2, 3, 4), b"abc\xff")), 3),
}


@pytest.mark.parametrize(("array", "row"), INVALID.values(), ids=INVALID)
def test_an_invalid_array_is_rejected_with_its_first_row(array: Any, row: int):
    with raises_at(SchemaError, "invalid array of type struct", row=row):
        dv.to_json(array)


CALLS: dict[str, Callable[[Any], Any]] = {
    "array": functions.array,
    "infer": dv.infer_shredding_schema,
    "insert": lambda array: functions.variant_insert(dv.parse_json(["{}"] * 4), "$.a", array),
    "is_valid": functions.is_valid_variant,
    "to_variant_object": functions.to_variant_object,
    "unshred": dv.unshred,
    "variant_get": lambda array: dv.variant_get(array, "$.a", "int"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_kind_of_function_rejects_an_invalid_array(call: Callable[[Any], Any]):
    with pytest.raises(SchemaError, match="non-monotonic offset"):
        call(INVALID["descending offsets"][0])


def test_invalid_text_is_not_parsed():
    text = column(pa.string(), struct.pack("<5i", 0, 1, 1 << 29, 3, 4), b"1234")
    with raises_at(SchemaError, "invalid array of type string", row=1):
        dv.parse_json(text)


@pytest.mark.parametrize("name", ["descending offsets", "a view of another buffer"])
def test_an_invalid_array_is_not_written(tmp_path: Path, name: str):
    with pytest.raises(SchemaError, match="the column 'c' has an invalid value"):
        dv.write_table(tmp_path / "t", pa.table({"c": INVALID[name][0]}), variant_columns=["c"])


def test_values_outside_of_a_slice_are_not_checked():
    array = parts(column(pa.binary(), struct.pack("<5i", 0, 1, 2, 9, 4), BOOLEANS))
    assert dv.to_json(array.slice(0, 2)).to_pylist() == ["true", "false"]
