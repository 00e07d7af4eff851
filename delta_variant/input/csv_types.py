"""Types of CSV columns: those of the table that takes the rows, or those that keep the digits of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ..protocol.schema.arrow import to_arrow_type
from ..protocol.types import DataType, PrimitiveType, decimal_of

STRING, DOUBLE, FLOAT = map(PrimitiveType, ("string", "double", "float"))
INTEGERS = tuple(map(PrimitiveType, ("byte", "short", "integer", "long")))

LARGE_INTEGER = r"^([+-]?[0-9]{1,38})?$"
LEADING_ZERO = r"^[+-]?0[0-9]+$"


def column_types(
    first_rows: Callable[[pyarrow.csv.ConvertOptions], pa.RecordBatch],
    options: pyarrow.csv.ConvertOptions,
    known: Mapping[str, DataType],
) -> dict[str, pa.DataType]:
    """Return the types of the columns that pyarrow would infer otherwise, by the first rows of a file.

    `known` has the types of the columns of a table, by names in lower case. Text remains text for its
    strings, and numbers have its types. In other columns integers that are too large for a bigint have the
    type decimal(38,0). Integers with leading zeros, such as 007 and postal codes, are strings, and so are
    times of day, which Delta does not have.
    """
    batch = first_rows(options)
    wanted = {field.name: known.get(field.name.lower()) for field in batch.schema}
    numbers = [field.name for field in batch.schema if _is_number(field.type)]
    types: dict[str, pa.DataType | None] = {}
    times = [field.name for field in batch.schema if pa.types.is_time(field.type)]
    types |= {name: pa.string() for name in wanted if wanted[name] == STRING or name in times}
    types |= {
        name: _number_type(wanted[name], batch.schema.field(name).type)
        for name in numbers
        if name not in types
    }
    names = [name for name in numbers if wanted[name] is None]
    if names:
        all_text: Any = dict.fromkeys(names, pa.string())
        texts = first_rows(pyarrow.csv.ConvertOptions(column_types=all_text, include_columns=names))
        types |= {name: _lossless_type(batch[name], texts[name]) for name in names}
    return {name: data_type for name, data_type in types.items() if data_type is not None}


def _is_number(data_type: pa.DataType) -> bool:
    return pa.types.is_int64(data_type) or pa.types.is_float64(data_type)


def _number_type(wanted: DataType | None, inferred: pa.DataType) -> pa.DataType | None:
    """Return the type of numbers in a column of a table, None for the inferred one."""
    if wanted is None:
        return None
    is_integer = wanted in INTEGERS and pa.types.is_int64(inferred)
    is_number = is_integer or wanted in (DOUBLE, FLOAT) or decimal_of(wanted) is not None
    return to_arrow_type(wanted) if is_number else None


def _lossless_type(numbers: Any, texts: Any) -> pa.DataType | None:
    """Return the type that keeps the texts of a column, None if the inferred one does."""
    if pc.any(pc.match_substring_regex(texts, LEADING_ZERO)).as_py():
        return pa.string()
    is_large = pa.types.is_float64(numbers.type) and (pc.max(pc.abs(numbers)).as_py() or 0) >= 2**63
    if is_large and pc.all(pc.match_substring_regex(texts, LARGE_INTEGER)).as_py():
        return pa.decimal128(38, 0)
    return None
