"""Read Arrow data that a caller passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..errors import ArgumentTypeError

__all__ = ["batches_of"]

EXPECTED = (
    "expected an object with __arrow_c_stream__ or __arrow_c_array__ that has columns, such as a pyarrow or "
    "Polars table, or the result of read_json"
)
# Part of Arrow's message for struct rows that are null.
NULL_ROWS = "null count"


def batches_of(data: Any, what: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of Arrow data.

    Raises ArgumentTypeError for other data; `what` names the data in messages.
    """
    try:
        if hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
            return reader.schema, _read(reader, what)
        batch = pa.record_batch(data)
    except (TypeError, ValueError) as error:
        reason = f" ({error})" if isinstance(error, pa.ArrowInvalid) else ""
        raise ArgumentTypeError(f"{what}: {EXPECTED}, got {_describe(data)}{reason}") from error
    return batch.schema, iter([batch])


def _describe(data: Any) -> str:
    return "None" if data is None else f"{type(data).__module__}.{type(data).__qualname__}"


def _read(reader: pa.RecordBatchReader, what: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except pa.ArrowInvalid as error:
        if NULL_ROWS not in str(error):
            raise
        raise ValueError(f"{what} has rows that are null instead of a struct ({error}): drop them") from error
