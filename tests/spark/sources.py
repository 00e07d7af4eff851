"""Read a table with the stream reader of the data source, without a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from delta_variant.spark.data_source import DeltaVariantSource
from delta_variant.spark.stream_sources import StreamSource


def stream_source(table: Path, **options: str) -> StreamSource:
    """Return the stream reader of a table with options."""
    source = DeltaVariantSource({"path": str(table), **options})
    found = source.streamReader(source.schema())
    assert isinstance(found, StreamSource)
    return found


def read_batches(table: Path, column: str, **options: str) -> list[list[Any]]:
    """Return the sorted values of a column in each micro-batch of a stream up to the latest version."""
    source, found = stream_source(table, **options), []
    source.prepareForTriggerAvailableNow()
    start = source.initialOffset()
    while (end := source.latestOffset(start, source.getDefaultReadLimit())) != start:
        read = [batch for group in source.partitions(start, end) for batch in source.read(group)]
        found.append(sorted(value for batch in read for value in batch[column].to_pylist()))
        start = end
    return found
