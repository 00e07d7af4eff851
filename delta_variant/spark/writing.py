"""Write the rows of a DataFrame: executors write the files, the driver commits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from heapq import heapreplace
from itertools import accumulate, groupby
from operator import attrgetter
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegerType, StructField
from pyspark.sql.types import StructType as SparkStruct

from .._text import quote
from ..data_file.options import ROW_GROUP_BYTES, SAMPLE_BYTES, WriteOptions
from ..data_file.writer import EXPECTED_GROWTH
from ..execution import Executor
from ..log.commit_context import CommitOptions, transaction_of
from ..operations.write import WriteTask, WrittenRows
from ..protocol import properties
from ..protocol.identity_columns import IdentityColumn, assigned_identities
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import StructType, has_variant
from ..storage.store import open_store
from ..write.partitions import infer_shared_shredding
from ..write.preparation import WritePlan
from ..write.router import write_files
from .columns import from_spark
from .executor import SparkExecutor
from .file_tasks import CHUNK, MAX_OPEN_PARTITIONS, Chunk, ChunkFilesTask, ChunkTask, FileTask, FirstRowsTask
from .locations import default_file_system, locate
from .running import check_batch, is_case_sensitive, map_by_task, parallelism, row_in_partition
from .task_errors import restore_errors
from .tasks import from_ipc, messages, to_ipc
from .versions import INSTALLED

PARTITIONS = 16
PARTITION_ROWS = 4096
PARTITION_BYTES = 1 << 20


@contextmanager
def _sampled_shredding(write: WritePlan, df: DataFrame) -> Iterator[tuple[WritePlan, DataFrame]]:
    """Yield the write with one shredding schema for all files, and the persisted rows to write.

    If there is no schema to infer, both are yielded unchanged. If there are no rows, each file infers its own
    schema.
    """
    variants = _present(df, _variants(write.after))
    if write.options.shredding != "infer" or not variants:
        yield write, df
        return
    with _persisted(df) as rows:
        yield _with_schema(write, rows, variants), rows


def _with_schema(write: WritePlan, df: DataFrame, variants: Sequence[str]) -> WritePlan:
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
    partitions = sorted(_rows_of_partitions(df))
    count = len(partitions)
    chosen = [partitions[index * count // PARTITIONS] for index in range(PARTITIONS)] if count else []
    first = df.where(partition.isin(sorted(set(chosen))) & (row_in_partition() < PARTITION_ROWS))
    parts = map_by_task(first.select([sql.col(quote(name)) for name in names]), FirstRows(PARTITION_BYTES))
    return [from_ipc(row[0]) for row in parts.collect()]


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
            yield pa.record_batch(
                [pa.array([to_ipc(pa.Table.from_batches(taken))], pa.binary())], names=["message"]
            )


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


def _is_optimized(write: WritePlan, df: DataFrame, optimize_write: bool | None) -> bool:
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
def _stored_chunks(df: DataFrame, task: WriteTask) -> Iterator[StoredChunks]:
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


@dataclass(frozen=True)
class DataFrameRows:
    """The rows of a DataFrame to write; see `SparkEngine` for the options."""

    df: DataFrame
    variant_columns: Sequence[str]
    optimize_write: bool | None
    one_shredding: bool

    def __post_init__(self) -> None:
        """Raise UnsupportedFeatureError for a stream."""
        check_batch(self.df, "write_table")

    @property
    def columns(self) -> StructType:
        """Return the columns of the rows."""
        case_sensitive = is_case_sensitive(self.df.sparkSession)
        return from_spark(self.df.schema, self.variant_columns, case_sensitive=case_sensitive)

    def write(self, write: WritePlan, executor: Executor) -> Sequence[WrittenRows]:
        """Write the rows by tasks; after an error, remove the new files."""
        assert isinstance(executor, SparkExecutor), "executors of its session write a DataFrame"
        identities = assigned_identities(write.after.schema, write.request.names)
        options = executor.storage_options
        rejects = write.options.json.rejects
        if rejects is not None:
            # Raise the error for a location that cannot be opened here, and send tasks what it means here.
            folder = open_store(locate(rejects, default_file_system(executor.spark)), options)
            executor.rejects, rejects = folder, folder.uri
        is_chunked, rows = _is_optimized(write, self.df, self.optimize_write), self.df
        with restore_errors(), ExitStack() as stored:
            with executor.monitor.step("prepare rows"):
                if identities:
                    rows = _assign_identities(rows, identities)
                if is_chunked:
                    chunks = stored.enter_context(_stored_chunks(rows, _task_of(write)))
                    rows, task = chunks.distribute(one_shredding=self.one_shredding)
                else:
                    if self.one_shredding:
                        write, rows = stored.enter_context(_sampled_shredding(write, rows))
                    rows, task = _sort(rows, _task_of(write))
            file_task = FileTask(task, rejects, options, _fields_of(write.commit))
            parts: list[WrittenRows] = executor.run_partitions(
                rows, ChunkFilesTask(file_task) if is_chunked else file_task
            )
        executor.rejected = [part.rejects for part in parts if part.rejects is not None]
        return parts


def _fields_of(commit: CommitOptions) -> dict[str, Any]:
    """Return the fields by which rejects name a write: its query and batch, or its `txn`."""
    transaction = transaction_of(commit)
    if transaction is None:
        return {}
    app_id, version = transaction.application.app_id, transaction.application.version
    if transaction.query is None:
        return {"app_id": app_id, "version": version}
    return {"query": transaction.query, "batch": version}


def _task_of(write: WritePlan) -> WriteTask:
    return replace(WriteTask.of(write), max_open_partitions=1)


def _sort(df: DataFrame, task: WriteTask) -> tuple[DataFrame, WriteTask]:
    """Return the rows sorted by the table's partitions if the data has their columns, and their task."""
    partitions = task.table.partition_columns
    known = {name.lower() for name in df.columns}
    if any(name.lower() not in known for name in partitions):
        return df, replace(task, max_open_partitions=MAX_OPEN_PARTITIONS)
    return (
        df.sortWithinPartitions([sql.col(quote(name)) for name in partitions]) if partitions else df
    ), task


def _assign_identities(df: DataFrame, identities: Sequence[IdentityColumn]) -> DataFrame:
    """Return the rows with values of the columns, by their positions among all rows.

    The rows are stored on the executors, and the query fails if some are lost: rows that Spark computes again
    may be in other partitions, and would repeat values. Raises ConstraintViolationError for a value that is
    not a bigint.
    """
    stored = df.localCheckpoint()
    counts = _rows_of_partitions(stored)
    numbers = [counts.get(number, 0) for number in range(max(counts, default=-1) + 1)]
    *first, total = accumulate(numbers, initial=0)
    starts = sql.split(sql.lit(",".join(map(str, first)) or "0"), ",").cast("array<bigint>")
    position = starts[sql.spark_partition_id()] + row_in_partition()
    for identity in identities if total else ():
        identity.value(total - 1)
    values = [
        (sql.lit(identity.first) + position * sql.lit(identity.step)).cast("bigint").alias(identity.name)
        for identity in identities
    ]
    return stored.select(*(sql.col(quote(name)) for name in stored.columns), *values)


def _rows_of_partitions(df: DataFrame) -> dict[int, int]:
    counted = df.groupBy(sql.spark_partition_id().alias("partition")).count()
    return {row["partition"]: row["count"] for row in counted.collect()}
