"""Functions take slices of arrays, also of structs in structs, as shredded Variants are."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delta_variant as dv
from delta_variant.data_file.reader import filter_rows

ROWS = 20
TEXTS = [None if n % 7 == 3 else f'{{"l":[{{"q":{n}}}],"n":{n},"o":{{"p":{n}}}}}' for n in range(ROWS)]
SCHEMA = dv.ShreddingSchema.of(
    {"n": pa.int64(), "o": {"p": pa.int64()}, "l": pa.list_(pa.struct({"q": pa.int64()}))}
)
SHREDDED = dv.shred(dv.parse_json(TEXTS), SCHEMA)


@pytest.mark.parametrize("start", [1, 7, ROWS - 1, ROWS])
def test_a_slice_of_a_shredded_variant(start: int):
    part = SHREDDED.slice(start)
    assert dv.to_json(part).to_pylist() == TEXTS[start:]
    assert dv.to_json(dv.unshred(part)).to_pylist() == TEXTS[start:]
    numbers = [None if text is None else json.loads(text)["n"] for text in TEXTS[start:]]
    assert dv.variant_get(part, "$.o.p", pa.int64()).to_pylist() == numbers


types = st.recursive(
    st.sampled_from([pa.int64(), pa.string()]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2).map(
            lambda parts: pa.struct({f"f{number}": part for number, part in enumerate(parts)})
        ),
        inner.map(pa.list_),
        inner.map(lambda item: pa.map_(pa.string(), item)),
    ),
    max_leaves=5,
)


def value(arrow_type: Any, number: int) -> Any:
    """Return a value of a type; some are null."""
    if number % 5 == 2:
        return None
    if pa.types.is_struct(arrow_type):
        return {field.name: value(field.type, number + 1) for field in arrow_type}
    if pa.types.is_map(arrow_type):
        return [("k", value(arrow_type.item_type, number + 1))][: number % 3]
    if pa.types.is_list(arrow_type):
        return [value(arrow_type.value_type, number + each) for each in range(number % 3)]
    return number if pa.types.is_integer(arrow_type) else f"text {number}"


@given(types, st.lists(st.tuples(st.integers(0, 5), st.integers(1, ROWS)), min_size=1, max_size=3))
def test_rows_of_slices_are_selected(arrow_type: Any, cuts: list[tuple[int, int]]):
    array: Any = pa.array([value(arrow_type, number) for number in range(ROWS)], arrow_type)
    for start, length in cuts:
        array = pa.StructArray.from_arrays([array], ["part"]).slice(start, length)
        array = array.field("part") if length % 2 else array
    batch = pa.record_batch([array], names=["column"])
    mask = pa.array([number % 2 == 0 for number in range(len(array))], pa.bool_())
    expected = [each for number, each in enumerate(array.to_pylist()) if number % 2 == 0]
    assert filter_rows(batch, mask).column(0).to_pylist() == expected
