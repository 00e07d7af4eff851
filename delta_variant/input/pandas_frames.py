"""Convert columns of dicts in pandas frames, whose Arrow form has every key in every row."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

from ..protocol.schema.arrow import variant_field
from .python_rows import ROWS_PER_BATCH, variants_of_rows

__all__ = ["is_pandas_frame", "take_object_columns", "with_object_columns"]

NESTED = (dict, list, tuple)


def is_pandas_frame(data: Any) -> bool:
    """Return whether data is a DataFrame of pandas, which is not imported."""
    return type(data).__module__.startswith("pandas.") and type(data).__name__ == "DataFrame"


def take_object_columns(frame: Any, names: Collection[str]) -> tuple[Any, dict[str, list[Any]]]:
    """Return a frame whose columns of Python objects are empty, and the values of these columns.

    They are those in `names` that have a dict or a list. Missing values of pandas become None.
    """
    if not frame.columns.is_unique:
        return frame, {}
    found = {name: frame[name] for name in names if name in frame.columns and frame[name].dtype == object}
    columns = {
        name: column.where(column.notna(), None).tolist()
        for name, column in found.items()
        if any(isinstance(value, NESTED) for value in column)
    }
    return (frame.assign(**dict.fromkeys(columns)) if columns else frame), columns


def too_large_column(frame: Any) -> str | None:
    """Return the first column of a frame with an integer that no type of Arrow has."""
    for name in frame.columns:
        try:
            pa.Array.from_pandas(frame[name])
        except OverflowError:
            return str(name)
        except (pa.ArrowException, TypeError, ValueError):
            continue
    return None


def with_object_columns(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], columns: dict[str, list[Any]]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return batches that have the values of `columns` as Variants, a missing key as a missing field."""
    for name in columns:
        schema = schema.set(schema.get_field_index(name), variant_field(name))

    def convert() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in batches:
            for first in range(0, batch.num_rows, ROWS_PER_BATCH):
                part = batch.slice(first, ROWS_PER_BATCH)
                arrays = list(part.columns)
                for name, values in columns.items():
                    objects = values[start : start + part.num_rows]
                    arrays[schema.get_field_index(name)] = variants_of_rows(objects, name, start)
                yield pa.record_batch(arrays, schema=schema)
                start += part.num_rows

    return schema, convert()
