"""Optimized writes: the driver decides which rows each data file gets.

A first pass splits the rows by the table's partitions into chunks, which the executors keep. The driver
knows the size of each chunk, and how much smaller a sample of them is as Parquet. It cuts the chunks of each
partition, in their order, into runs of the target size: rows that were sorted stay so. A second pass moves
each chunk to the task of its file. A rebalance of Spark knows the size of the rows before they are Parquet
only, keeps no order, and is configured for the whole session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import heapreplace
from itertools import groupby
from operator import attrgetter
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegerType, StructField
from pyspark.sql.types import StructType as SparkStruct

from ..data_file.options import ROW_GROUP_BYTES, SAMPLE_BYTES, WriteOptions
from ..operations.write import WriteTask
from ..protocol import properties
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import has_variant
from ..storage.store import open_store
from ..write.partitions import infer_shared_shredding
from ..write.preparation import PreparedWrite
from ..write.router import write_files
from .chunk_tasks import CHUNK, Chunk, ChunkTask, FirstRowsTask
from .running import map_by_task, parallelism
from .tasks import messages
from .versions import INSTALLED

__all__ = ["Layout", "StoredChunks", "is_optimized", "plan_layout", "stored_chunks"]

CHUNKS_PER_FILE = 8
"""How many chunks a file has at least, even if they do not shrink: files are cut between chunks."""

MAX_CHUNK_BYTES = 2 << 20
"""Larger values, compressed to a third or less, would be humongous objects of the JVM's collector."""

MIN_CHUNK_BYTES = 64 << 10

SAMPLED_CHUNKS = 16

FULL = 1.5
"""How many times larger than its target a file becomes before the rest of its rows go to another one. A limit
at the target would leave a tiny file wherever rows are a little larger than estimated. The size of an open
row group is not known before it is compressed, and is added to the limit."""


def is_optimized(write: PreparedWrite, df: DataFrame, optimize_write: bool | None) -> bool:
    """Return whether a write is optimized: as requested, as the table says, or if it is partitioned."""
    wanted = write.after.get(properties.OPTIMIZE_WRITE)
    if optimize_write is not None or wanted is not None:
        return bool(wanted if optimize_write is None else optimize_write)
    is_adaptive = df.sparkSession.conf.get("spark.sql.adaptive.enabled", "true") == "true"
    return is_adaptive and bool(write.after.partition_columns)


@dataclass(frozen=True)
class Layout:
    """The file of each chunk, and the task of each file."""

    files: Sequence[int]
    tasks: Sequence[int]


def plan_layout(chunks: Sequence[Chunk], shrinkage: float, target_file_size: float, tasks: int) -> Layout:
    """Return the files of chunks, which are sorted by partition.

    `shrinkage` is the size of rows in a file relative to their size in chunks. Each partition gets the number
    of files whose size is next to the target. At least `tasks` tasks write them if there are enough.
    """
    files: list[int] = []
    sizes: list[float] = []
    for _, group in groupby(chunks, key=attrgetter("partition")):
        members = list(group)
        total = sum(chunk.bytes for chunk in members) or 1
        count = max(1, min(round(total * shrinkage / target_file_size), len(members)))
        before = 0
        for chunk in members:
            files.append(len(sizes) + int((before + chunk.bytes / 2) * count / total))
            before += chunk.bytes
        sizes += [total * shrinkage / count] * count
    used = min(len(sizes), max(tasks, round(sum(sizes) / target_file_size)))
    loads = [(0.0, task) for task in range(used)]
    task_of = [0] * len(sizes)
    for file in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        load, task = loads[0]
        task_of[file] = task
        heapreplace(loads, (load + sizes[file], task))
    return Layout(files, task_of)


@contextmanager
def stored_chunks(df: DataFrame, task: WriteTask) -> Iterator[StoredChunks]:
    """Yield the rows of a DataFrame in chunks, which are computed once and kept until the end of the body."""
    size = int(min(task.options.files.target_file_size // CHUNKS_PER_FILE, MAX_CHUNK_BYTES))
    stored = map_by_task(df, ChunkTask(task, max(size, MIN_CHUNK_BYTES)), CHUNK)
    stored.persist()
    try:
        found = stored.select("task", "number", "partition", "rows", "bytes").collect()
        chunks = sorted((Chunk(*row) for row in found), key=attrgetter("partition", "task", "number"))
        yield StoredChunks(stored, task, tuple(chunks))
    finally:
        stored.unpersist()


@dataclass(frozen=True)
class StoredChunks:
    """The chunks of a write, sorted by partition, task and number; `df` has their rows."""

    df: DataFrame
    task: WriteTask
    chunks: tuple[Chunk, ...]

    def distribute(self, *, one_shredding: bool) -> tuple[DataFrame, WriteTask]:
        """Return the chunks by the tasks that write them, sorted by file, and the task that writes them."""
        options, target = self.task.options, self.task.options.files.target_file_size
        sizes: Counter[str] = Counter()
        for chunk in self.chunks:
            sizes[chunk.partition] += chunk.bytes
        # Parquet is smaller than Arrow: a partition that fits into a file needs no estimate.
        is_split = any(size > target for size in sizes.values())
        infers = one_shredding and options.shredding == "infer" and bool(_variants(self.task.table))
        sample = self._sample() if is_split or infers else []
        shrinkage = _shrinkage(sample, self.task) if is_split else 1.0
        layout = plan_layout(self.chunks, shrinkage, target, parallelism(self.df.sparkSession))
        if infers and sample:
            rows = sum(chunk.rows for chunk in self.chunks) // len(layout.tasks)
            options = infer_shared_shredding(options, sample, self.task.table, rows)
        files = replace(options.files, target_file_size=int(target * FULL) + ROW_GROUP_BYTES)
        return self._sent(layout), replace(self.task, options=replace(options, files=files))

    def _sample(self) -> list[pa.RecordBatch]:
        """Return the first rows of some chunks, evenly spread over all of them."""
        count = len(self.chunks)
        chosen = sorted({index * count // SAMPLED_CHUNKS for index in range(SAMPLED_CHUNKS)} if count else ())
        if not chosen:
            return []
        marked = self._join([self.chunks[index] for index in chosen], {}, how="inner").select("message")
        few = marked.coalesce(parallelism(self.df.sparkSession))
        first = map_by_task(few, FirstRowsTask(SAMPLE_BYTES // len(chosen)))
        return [batch for rows in messages(first.collect()) for batch in rows.to_batches()]

    def _sent(self, layout: Layout) -> DataFrame:
        tasks = max(layout.tasks, default=0) + 1
        columns = {"file": layout.files, "part": [layout.tasks[file] for file in layout.files]}
        # A chunk that Spark computes again may not be one of those that the driver knows.
        known = self._join(self.chunks, columns, how="left")
        part = sql.coalesce("part", sql.pmod("task", sql.lit(tasks)))
        sent = known.withColumn("part", part).withColumn("file", sql.coalesce("file", sql.lit(-1)))
        # On PySpark 4.0 a task gets any number of parts, and writes the files of each of them.
        move = sent.repartitionById if INSTALLED >= (4, 1) else sent.repartition
        sent = move(tasks, "part")
        return sent.sortWithinPartitions("file", "task", "number").select("file", "task", "message")

    def _join(self, chunks: Sequence[Chunk], columns: dict[str, Sequence[int]], *, how: str) -> DataFrame:
        """Return the rows of chunks with more columns."""
        found = {
            "task": [each.task for each in chunks],
            "number": [each.number for each in chunks],
            **columns,
        }
        table = pa.table({name: pa.array(values, pa.int32()) for name, values in found.items()})
        # Spark Connect cannot infer a schema from a table without rows.
        schema = SparkStruct([StructField(name, IntegerType()) for name in found])
        known = self.df.sparkSession.createDataFrame(table, schema)
        return self.df.join(sql.broadcast(known), ["task", "number"], how)


def _variants(table: TableConfiguration) -> list[str]:
    return [field.name for field in table.data_columns.fields if has_variant(field.type)]


def _shrinkage(sample: Sequence[pa.RecordBatch], task: WriteTask) -> float:
    """Return the size of a sample as Parquet relative to its size in Arrow."""
    metadata = msgspec.structs.replace(task.table.metadata, partition_columns=[])
    table = replace(task.table, metadata=metadata)
    # The write itself reports invalid values.
    json = replace(task.options.json, on_invalid="null", rejects=None)
    options: WriteOptions = replace(task.options, json=json)
    with TemporaryDirectory() as folder:
        files = write_files(open_store(folder), sample, table, options)
    return files.bytes / max(sum(batch.nbytes for batch in sample), 1)
