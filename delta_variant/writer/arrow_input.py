"""Arrow data that is given to become rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..errors import ArgumentTypeError

__all__ = ["batches_of"]

PROPOSAL = (
    "give an object with __arrow_c_stream__ or __arrow_c_array__ that has columns, such as a table of "
    "pyarrow or Polars, or what read_json_lines gives"
)
# Arrow's words for rows that are null as a whole.
NULL_ROWS = "null count"


def batches_of(data: Any, what: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema of Arrow data and its batches.

    Raises ArgumentTypeError, which calls the data `what`, for anything else.
    """
    try:
        if hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
            return reader.schema, _read(reader, what)
        batch = pa.record_batch(data)
    except (TypeError, ValueError) as error:
        reason = f" ({error})" if isinstance(error, pa.ArrowInvalid) else ""
        raise ArgumentTypeError(f"{what} is {_described(data)}{reason}: {PROPOSAL}") from error
    return batch.schema, iter([batch])


def _described(data: Any) -> str:
    return "None" if data is None else f"of the type {type(data).__module__}.{type(data).__qualname__}"


def _read(reader: pa.RecordBatchReader, what: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except pa.ArrowInvalid as error:
        if NULL_ROWS not in str(error):
            raise
        raise ValueError(f"{what} has rows that are null as a whole ({error}): leave them out") from error
