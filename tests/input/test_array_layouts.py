"""Data in unusual layouts gives the same rows, and invalid data is rejected before a file is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import delta_variant as dv
from delta_variant import functions
from delta_variant.errors import ArgumentTypeError, ExpressionError, SchemaError

ROWS = 23
TEXTS = [None if n % 5 == 2 else f'{{"a":{n},"b":[{n}]}}' for n in range(ROWS)]
VARIANTS = dv.parse_json(TEXTS)
METADATA, VALUES = VARIANTS.flatten()
SCHEMA = dv.ShreddingSchema.of({"a": pa.int64(), "b": pa.list_(pa.int64())})
BUFFERS: list[Any] = [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\4\0\0\0"), pa.py_buffer(b'x"\xff"')]
NOT_TEXT: Any = pa.Array.from_buffers(pa.string(), 2, BUFFERS)


def with_parts(metadata: Any, value: Any) -> Any:
    return pa.StructArray.from_arrays([metadata, value], ["metadata", "value"], mask=VARIANTS.is_null())


LAYOUTS: dict[str, Any] = {
    "plain": VARIANTS,
    "shredded": dv.shred(VARIANTS, SCHEMA),
    "views": with_parts(METADATA.cast(pa.binary_view()), VALUES.cast(pa.binary_view())),
    "large": with_parts(METADATA.cast(pa.large_binary()), VALUES.cast(pa.large_binary())),
    "dictionary": with_parts(METADATA.dictionary_encode(), VALUES),
    "runs": with_parts(pc.run_end_encode(METADATA), VALUES),
    # The encodings that Arrow prefers for metadata.
    "small dictionary": with_parts(METADATA.cast(pa.dictionary(pa.int8(), pa.binary())), VALUES),
    "short runs": with_parts(pc.run_end_encode(METADATA, run_end_type=pa.int16()), VALUES),
    "dictionary of values": with_parts(METADATA, VALUES.dictionary_encode()),
}
ENCODED: dict[str, Callable[[Any], Any]] = {
    "plain": lambda array: array,
    "dictionary": lambda array: pa.DictionaryArray.from_arrays(pa.array(range(ROWS)), array),
    "runs": lambda array: pa.RunEndEncodedArray.from_arrays(pa.array(range(1, ROWS + 1)), array),
    "chunks": lambda array: pa.chunked_array([array[:0], array[:7], array[7:7], array[7:]]),
}


class Streamed:
    """An object with `__arrow_c_stream__` only, like a series of other libraries."""

    def __init__(self, array: Any) -> None:
        self.__arrow_c_stream__ = pa.chunked_array([array[:3], array[3:]]).__arrow_c_stream__


@pytest.mark.parametrize("encode", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize("array", LAYOUTS.values(), ids=LAYOUTS)
def test_functions_take_each_layout_of_variants(array: Any, encode: Callable[[Any], Any]):
    part = encode(array)
    part = part if isinstance(part, pa.ChunkedArray) else part.slice(3, 9)
    expected = TEXTS if len(part) == ROWS else TEXTS[3:12]
    assert dv.to_json(part).to_pylist() == expected
    structs = functions.to_variant_object(functions.named_struct("v", part, "l", functions.array(part)))
    wrapped = [f'{{"l":[{text or "null"}],"v":{text or "null"}}}' for text in expected]
    assert dv.to_json(structs).to_pylist() == wrapped


WRITTEN = {name: layout for name, layout in LAYOUTS.items() if name != "shredded"} | {
    "views of values": with_parts(METADATA.dictionary_encode(), VALUES.cast(pa.binary_view())),
    "text": pa.array(TEXTS, pa.string_view()),
    "bytes": pa.array(TEXTS, pa.binary_view()),
}


@pytest.mark.parametrize("partition_by", [None, "p"])
@pytest.mark.parametrize("name", WRITTEN)
def test_each_layout_is_written(tmp_path: Path, name: str, partition_by: str | None):
    rows = pa.table({"c": WRITTEN[name].slice(3), "n": range(3, ROWS), "p": [n % 2 for n in range(3, ROWS)]})
    dv.write_table(tmp_path / "t", rows, variant_columns=["c"], partition_by=partition_by)
    written = dv.read_table(tmp_path / "t", columns={"n": "n", "c": "to_json(c)"}).to_table()
    assert written.sort_by("n")["c"].to_pylist() == TEXTS[3:]


@pytest.mark.parametrize("name", sorted(LAYOUTS.keys() - {"shredded"}))
def test_each_layout_is_checked(name: str):
    expected = [text is not None or None for text in TEXTS]
    assert functions.is_valid_variant(LAYOUTS[name]).to_pylist() == expected


def test_shredded_variants_are_not_checked():
    with pytest.raises(SchemaError, match=r"expected Variants that are not shredded: pass unshred"):
        functions.is_valid_variant(LAYOUTS["shredded"])


def test_functions_take_streams():
    assert dv.to_json(Streamed(VARIANTS)).to_pylist() == TEXTS
    assert dv.parse_json(Streamed(pa.array(TEXTS))) == VARIANTS
    assert functions.schema_of_variant_agg(Streamed(VARIANTS)) == "OBJECT<a: BIGINT, b: ARRAY<BIGINT>>"


@pytest.mark.parametrize("value", ['"\ud800"', 2**70])
def test_values_that_arrow_does_not_have(value: Any):
    with pytest.raises(ArgumentTypeError, match="expected an array or a list of values"):
        dv.parse_json([value])


def test_keys_without_a_type():
    with pytest.raises(ArgumentTypeError, match="expected keys of a simple type, got null"):
        functions.create_map(pa.array([]), VARIANTS[:0])


LISTS = [None if n % 5 == 2 else list(range(n % 3)) for n in range(ROWS)]
NESTED_LAYOUTS: dict[str, Any] = {
    "list view": pa.array(LISTS, pa.list_view(pa.int64())),
    "large list view": pa.array(LISTS, pa.large_list_view(pa.int64())),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array(range(ROWS)), pa.array(LISTS)),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array(range(1, ROWS + 1)), pa.array(LISTS)),
}


@pytest.mark.parametrize("array", NESTED_LAYOUTS.values(), ids=NESTED_LAYOUTS)
def test_each_layout_of_lists_becomes_variants(tmp_path: Path, array: Any):
    dv.write_table(tmp_path / "t", pa.table({"c": array.slice(3)}), variant_columns=["c"])
    assert [row["c"] for row in dv.read_table(tmp_path / "t").to_pylist()] == LISTS[3:]


@pytest.mark.parametrize("encode", ENCODED.values(), ids=ENCODED)
def test_list_views_in_structs_and_lists_become_variants(encode: Callable[[Any], Any]):
    views = pa.array(LISTS, pa.list_view(pa.int64()))
    structs = pa.StructArray.from_arrays([views, NESTED_LAYOUTS["large list view"]], ["a", "b"])
    lists = [None if values is None else [{"c": values}] for values in LISTS]
    nested = pa.array(lists, pa.list_view(pa.struct([("c", views.type)])))
    found = dv.to_json(functions.to_variant_object(encode(structs))).to_pylist()
    assert [json.loads(text) for text in found] == [{"a": values, "b": values} for values in LISTS]
    found = dv.to_json(functions.to_variant_object(encode(nested))).to_pylist()
    assert [text and json.loads(text) for text in found] == lists


@pytest.mark.parametrize("chunked", [False, True])
def test_slices_of_structs_are_rows(tmp_path: Path, chunked: bool):
    rows = pa.array([{"a": {"b": n}} for n in range(5)]).slice(2)
    dv.write_table(tmp_path / "t", pa.chunked_array([rows, rows[:0]]) if chunked else rows)
    assert dv.read_table(tmp_path / "t").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("chunked", [False, True])
def test_null_structs_are_not_rows(tmp_path: Path, chunked: bool):
    rows = pa.array([{"a": 1}, None])
    with pytest.raises(ArgumentTypeError, match=r"row 1: .* null instead of a struct: drop them"):
        dv.write_table(tmp_path / "t", pa.chunked_array([rows]) if chunked else rows)


def test_a_reader_whose_batches_have_other_columns(tmp_path: Path):
    batches = [pa.record_batch({"a": [1]}), pa.record_batch({"b": [2]})]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    with pytest.raises(ArgumentTypeError, match=r"expected batches with the columns \['a'\].*got \['b'\]"):
        dv.write_table(tmp_path / "t", reader)
    assert not dv.Table(tmp_path / "t").exists()


NESTED: dict[str, Any] = {
    "c": NOT_TEXT,
    "c.x": pa.StructArray.from_arrays([NOT_TEXT], ["x"]),
    "c.element": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), NOT_TEXT),
    "c.key": pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), NOT_TEXT, pa.array([1, 2])),
}


@pytest.mark.parametrize("column", NESTED)
def test_text_that_is_not_utf8_is_not_written(tmp_path: Path, column: str):
    rows = pa.table({"c": NESTED[column], "i": [1, 2]})
    expected = "the column 'c' has an invalid value: .*Invalid UTF8 sequence at string index 1"
    with pytest.raises(SchemaError, match=expected):
        dv.write_table(tmp_path / "t", rows)
    with pytest.raises(SchemaError, match=expected):
        dv.sql("select c from t", t=rows).to_table()
    dv.write_table(tmp_path / "t", pa.table({"c": NESTED[column][:1], "i": [1]}))
    with pytest.raises(SchemaError, match=expected):
        dv.merge(tmp_path / "t", rows, "target.i = source.i").when_not_matched_insert_all().execute()


def test_a_decimal_beyond_its_precision_is_not_written(tmp_path: Path):
    digits = pa.py_buffer((10**20).to_bytes(16, "little"))
    rows = pa.table({"c": pa.Array.from_buffers(pa.decimal128(5, 0), 1, [None, digits])})
    with pytest.raises(SchemaError, match="the column 'c' has an invalid value: Decimal value"):
        dv.write_table(tmp_path / "t", rows)


def extension(arrow_type: Any, values: list[Any]) -> Any:
    return pa.ExtensionArray.from_storage(arrow_type, pa.array(values, arrow_type.storage_type))


def test_booleans_of_a_byte_stay_booleans(tmp_path: Path):
    rows = pa.table({"c": extension(pa.bool8(), [1, 0, None, 2])})
    dv.write_table(tmp_path / "t", rows)
    dv.write_table(tmp_path / "v", rows, variant_columns=["c"])
    for name in ("t", "v"):
        found = [row["c"] for row in dv.read_table(tmp_path / name).to_pylist()]
        assert [(type(each), each) for each in found] == [
            *((bool, True), (bool, False), (type(None), None), (bool, True))
        ]


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"c": extension(pa.opaque(pa.binary(16), "hugeint", "DuckDB"), [bytes(16)])}),
        pd.DataFrame({"c": pd.period_range("2020", periods=2, freq="M")}),
    ],
    ids=["opaque", "period"],
)
def test_numbers_with_another_meaning_are_not_written(tmp_path: Path, rows: Any):
    with pytest.raises(
        SchemaError, match=r"the column 'c' has the type extension.*: cast it, or leave it out"
    ):
        dv.write_table(tmp_path / "t", rows)


def test_integers_that_only_polars_has(tmp_path: Path):
    rows = pl.DataFrame({"c": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(ArgumentTypeError, match="the Polars column 'c' of type Int128: convert it"):
        dv.write_table(tmp_path / "t", rows)


def test_values_of_a_stream_are_set():
    numbers = pl.Series(range(ROWS))
    found = functions.variant_set(VARIANTS, "$.a", numbers)
    expected = [None if text is None else n for n, text in enumerate(TEXTS)]
    assert dv.variant_get(found, "$.a", "bigint").to_pylist() == expected


def test_text_with_a_surrogate_is_rejected(tmp_path: Path):
    with pytest.raises(ExpressionError, match="pass valid Unicode text"):
        dv.variant_get(VARIANTS, "$.\ud800")
    with pytest.raises(ArgumentTypeError, match="is not Unicode text: rename the column"):
        dv.write_table(tmp_path / "t", [{"\ud800": 1}])
