"""Types of CSV columns whose values pyarrow would change: large integers, and digits with leading zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

LARGE_INTEGER = r"^([+-]?[0-9]{1,38})?$"
LEADING_ZERO = r"^[+-]?0[0-9]+$"


def lossless_types(
    first_rows: Callable[[pyarrow.csv.ConvertOptions], pa.RecordBatch], options: pyarrow.csv.ConvertOptions
) -> dict[str, pa.DataType]:
    """Return the types of the columns that pyarrow would read with other values, by the first rows of a file.

    Integers that are too large for a bigint have the type decimal(38,0). Integers with leading zeros, such as
    007 and postal codes, are strings.
    """
    batch = first_rows(options)
    names = [field.name for field in batch.schema if _is_number(field.type)]
    if not names:
        return {}
    as_text = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), include_columns=names
    )
    texts = first_rows(as_text)
    found = {name: _lossless_type(batch[name], texts[name]) for name in names}
    return {name: data_type for name, data_type in found.items() if data_type is not None}


def _is_number(data_type: pa.DataType) -> bool:
    return pa.types.is_int64(data_type) or pa.types.is_float64(data_type)


def _lossless_type(numbers: Any, texts: Any) -> pa.DataType | None:
    """Return the type that keeps the texts of a column, None if the inferred one does."""
    if pc.any(pc.match_substring_regex(texts, LEADING_ZERO)).as_py():
        return pa.string()
    is_large = pa.types.is_float64(numbers.type) and (pc.max(pc.abs(numbers)).as_py() or 0) >= 2**63
    if is_large and pc.all(pc.match_substring_regex(texts, LARGE_INTEGER)).as_py():
        return pa.decimal128(38, 0)
    return None
