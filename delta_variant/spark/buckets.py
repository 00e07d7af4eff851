"""Split rows by numbers, such as the hashes of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, positions_by_number

INT64 = pa.int64()
FACTOR = 31


def buckets_of(keys: Sequence[Array], buckets: int) -> Array:
    """Return the number of a bucket for each row: rows with equal keys, of equal types, have one bucket."""
    rows: Any = pa.repeat(pa.scalar(0, INT64), len(keys[0]))
    for key in keys:
        # Arrow wraps products and sums that overflow.
        rows = pc.add(pc.multiply(rows, FACTOR), _hashes(key))
    positive = pc.bit_wise_and(rows, pa.scalar((1 << 62) - 1, INT64))
    whole = pc.divide(positive, pa.scalar(buckets, INT64))
    return pc.subtract(positive, pc.multiply(whole, pa.scalar(buckets, INT64)))


def _hashes(key: Array) -> Array:
    """Return the hashes of values, as 64-bit integers; nulls have one, too."""
    if pa.types.is_decimal(key.type):
        key = key.cast(pa.string())
    if pa.types.is_floating(key.type):
        key = key.cast(pa.float64())
    elif _is_bytes(key.type):
        encoded: Any = key.dictionary_encode(null_encoding="encode")
        texts = pc.fill_null(encoded.dictionary, b"" if pa.types.is_binary(key.type) else "")
        return _hashed(texts.to_numpy(zero_copy_only=False)).take(encoded.indices)
    elif pa.types.is_boolean(key.type):
        key = key.cast(INT64)
    elif not pa.types.is_integer(key.type):
        key = key.view(INT64 if key.type.bit_width == 64 else pa.int32()).cast(INT64)
    else:
        key = key.cast(INT64)
    zero: Any = pa.scalar(0, key.type)
    return _hashed(pc.fill_null(key, zero).to_numpy(zero_copy_only=False))


def _is_bytes(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return any(
        is_of(arrow_type)
        for is_of in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def _hashed(values: Any) -> Array:
    return pa.array(pd.util.hash_array(values, categorize=False).view("int64"), INT64)


def split_rows(rows: pa.Table, numbers: Array) -> Iterator[tuple[int, pa.Table]]:
    for number, positions in positions_by_number(numbers):
        yield number, rows.take(positions)
