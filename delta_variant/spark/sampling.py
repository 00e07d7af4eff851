"""Infer one shredding schema for all files of a write, from the first rows of some partitions.

The rows are persisted while the write runs, so that the sample does not compute them a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from ..data_file.writer import EXPECTED_GROWTH
from ..protocol.types import has_variant
from ..write.partitions import infer_shared_shredding
from ..write.preparation import PreparedWrite
from .queries.text import quote
from .running import map_by_task

__all__ = ["sampled_shredding"]

PARTITIONS = 16
PARTITION_ROWS = 4096
PARTITION_BYTES = 1 << 20

ROW_NUMBER_BITS = 33
"""The low bits of `monotonically_increasing_id`, which number the rows of a partition."""


@contextmanager
def sampled_shredding(write: PreparedWrite, df: DataFrame) -> Iterator[tuple[PreparedWrite, DataFrame]]:
    """Yield the write with one shredding schema for all files, and the persisted rows to write.

    If there is no schema to infer, both are yielded unchanged. If there are no rows, each file infers its own
    schema.
    """
    names = [field.name for field in write.after.data_columns.fields if has_variant(field.type)]
    variants = _present(df, names)
    if write.options.shredding != "infer" or not variants:
        yield write, df
        return
    with _persisted(df) as rows:
        yield _with_schema(write, rows, variants), rows


def _with_schema(write: PreparedWrite, df: DataFrame, variants: Sequence[str]) -> PreparedWrite:
    keys = _present(df, write.after.partition_columns)
    sample = _sample(df, [*variants, *keys])
    if not sample:
        return write
    batches = [batch for part in sample for batch in part.to_batches()]
    rows = _rows_of_a_file(sample, keys)
    return replace(write, options=infer_shared_shredding(write.options, batches, write.after, rows))


@contextmanager
def _persisted(df: DataFrame) -> Iterator[DataFrame]:
    """Yield the DataFrame, persisted until the end of the body unless its user has persisted it."""
    level = df.storageLevel
    if level.useMemory or level.useDisk:
        yield df
        return
    df.persist()
    try:
        yield df
    finally:
        df.unpersist()


def _present(df: DataFrame, names: Iterable[str]) -> list[str]:
    wanted = {name.lower() for name in names}
    return [name for name in df.columns if name.lower() in wanted]


def _rows_of_a_file(sample: Sequence[pa.Table], keys: Sequence[str]) -> int:
    """Return how many rows a file has: a task writes one for each combination of partition values."""
    rows = sum(part.num_rows for part in sample)
    files = sum(part.group_by(list(keys)).aggregate([]).num_rows if keys else 1 for part in sample)
    is_limited = any(part.num_rows >= PARTITION_ROWS or part.nbytes >= PARTITION_BYTES for part in sample)
    return rows // files * (EXPECTED_GROWTH if is_limited else 1)


def _sample(df: DataFrame, names: Sequence[str]) -> list[pa.Table]:
    """Return columns of the first rows of up to PARTITIONS partitions, evenly spread over those with rows."""
    partition = sql.spark_partition_id()
    found = df.groupBy(partition.alias("partition")).count().collect()
    count, partitions = len(found), sorted(row["partition"] for row in found)
    chosen = [partitions[index * count // PARTITIONS] for index in range(PARTITIONS)] if count else []
    row_number = sql.monotonically_increasing_id().bitwiseAND((1 << ROW_NUMBER_BITS) - 1)
    first = df.where(partition.isin(sorted(set(chosen))) & (row_number < PARTITION_ROWS))
    parts = map_by_task(first.select([sql.col(quote(name)) for name in names]), FirstRows(PARTITION_BYTES))
    return [pa.ipc.open_stream(row[0]).read_all() for row in parts.collect()]


@dataclass(frozen=True)
class FirstRows:
    """Returns the first rows of a partition, up to about `max_bytes`, and reads the rest without using it."""

    max_bytes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one message, or none without rows."""
        taken: list[pa.RecordBatch] = []
        left = self.max_bytes
        for batch in batches:
            if left > 0:
                rows = max(1, min(batch.num_rows, left * batch.num_rows // max(batch.nbytes, 1)))
                taken.append(batch.slice(0, rows))
                left -= batch.nbytes
        if taken:
            yield pa.record_batch([pa.array([_stream(taken)], pa.binary())], names=["message"])


def _stream(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()
