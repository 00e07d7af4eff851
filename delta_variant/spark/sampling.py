"""Infer one shredding schema for all files of a write, from the first rows of some partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from ..data_file.writer import EXPECTED_GROWTH
from ..operations.write.preparation import PreparedWrite
from ..protocol.types import has_variant
from ..writer.partitioned import infer_shared_shredding
from .columns import quote
from .running import map_by_task

__all__ = ["with_sampled_shredding"]

PARTITIONS = 16
PARTITION_ROWS = 4096
PARTITION_BYTES = 1 << 20


def with_sampled_shredding(write: PreparedWrite, df: DataFrame) -> PreparedWrite:
    """Return the write with one shredding schema for all files, if the schema is to be inferred.

    If the sampled partitions have no rows, each file infers its own schema.
    """
    names = [field.name for field in write.state.data_columns.fields if has_variant(field.type)]
    present = _present(df, names)
    if write.options.shredding != "infer" or not present:
        return write
    keys = _present(df, write.state.metadata.partition_columns)
    sample = _sample(df.select([sql.col(quote(name)) for name in (*present, *keys)]))
    if not sample:
        return write
    batches = [batch for part in sample for batch in part.to_batches()]
    rows = _rows_of_a_file(sample, keys)
    return replace(write, options=infer_shared_shredding(write.options, batches, write.state, rows))


def _present(df: DataFrame, names: Iterable[str]) -> list[str]:
    wanted = {name.lower() for name in names}
    return [name for name in df.columns if name.lower() in wanted]


def _rows_of_a_file(sample: Sequence[pa.Table], keys: Sequence[str]) -> int:
    """Return how many rows a file has: a task writes one for each combination of partition values."""
    rows = sum(part.num_rows for part in sample)
    files = sum(part.group_by(list(keys)).aggregate([]).num_rows if keys else 1 for part in sample)
    is_limited = any(part.num_rows >= PARTITION_ROWS or part.nbytes >= PARTITION_BYTES for part in sample)
    return rows // files * (EXPECTED_GROWTH if is_limited else 1)


def _sample(df: DataFrame) -> list[pa.Table]:
    """Return the first rows of some partitions that have any."""
    parts = map_by_task(_limit_partitions(df), FirstRows(PARTITION_BYTES))
    return [pa.ipc.open_stream(row[0]).read_all() for row in _rows_of_some(parts)]


def _limit_partitions(df: DataFrame) -> DataFrame:
    """Return up to PARTITION_ROWS rows of each partition.

    Spark does not reuse a Python process that left rows unread, and starting another one is slow.
    """
    session: Any = df.sparkSession
    # Spark plans a limit of the DataFrame on top of a limit of each partition; only the latter is wanted.
    limited = df.limit(PARTITION_ROWS)._jdf.queryExecution().analyzed().child()
    classic = session.sparkContext._jvm.org.apache.spark.sql.classic
    return DataFrame(classic.Dataset.ofRows(session._jsparkSession, limited), session)


def _rows_of_some(parts: DataFrame) -> list[Any]:
    """Return the rows of up to PARTITIONS partitions, evenly spread over all."""
    count = _partitions(parts)
    if count <= PARTITIONS:
        return parts.collect()
    chosen = [index * count // PARTITIONS for index in range(PARTITIONS)]
    # This way rows pass through one more Python process, so it is only used for many partitions.
    return parts.sparkSession.sparkContext.runJob(parts.rdd, list, chosen)


def _partitions(df: DataFrame) -> int:
    java: Any = df._jdf
    return int(java.rdd().getNumPartitions())


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
