"""Write the rows of a DataFrame: executors write the files, the driver commits them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from ..execution import Executor
from ..operations.write import WriteTask, WrittenRows
from ..protocol.types import StructType
from ..storage.store import open_store
from ..write.preparation import PreparedWrite
from .chunk_tasks import ChunkFilesTask
from .columns import from_spark
from .executor import SparkExecutor
from .locations import default_file_system, locate
from .optimized_writes import is_optimized, stored_chunks
from .queries.text import quote
from .running import check_batch, is_case_sensitive
from .sampling import sampled_shredding
from .task_errors import restore_errors
from .tasks import MAX_OPEN_PARTITIONS, FileTask

__all__ = ["DataFrameRows"]


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

    def write(self, write: PreparedWrite, executor: Executor) -> Sequence[WrittenRows]:
        """Write the rows by tasks; after an error, remove the new files."""
        assert isinstance(executor, SparkExecutor), "executors of its session write a DataFrame"
        options = executor.storage_options
        rejects = write.options.json.rejects
        if rejects is not None:
            # Raise the error for a location that cannot be opened here, and send tasks what it means here.
            folder = open_store(locate(rejects, default_file_system(executor.spark)), options)
            executor.rejects, rejects = folder, folder.uri
        with restore_errors():
            if is_optimized(write, self.df, self.optimize_write):
                with stored_chunks(self.df, _task_of(write)) as stored:
                    rows, task = stored.distribute(one_shredding=self.one_shredding)
                    chunks = ChunkFilesTask(FileTask(task, rejects, options))
                    parts: list[WrittenRows] = executor.run_partitions(rows, chunks)
            else:
                unchanged = nullcontext((write, self.df))
                with sampled_shredding(write, self.df) if self.one_shredding else unchanged as (write, rows):
                    rows, task = _sort(rows, _task_of(write))
                    parts = executor.run_partitions(rows, FileTask(task, rejects, options))
        executor.rejected = [part.rejects for part in parts if part.rejects is not None]
        return parts


def _task_of(write: PreparedWrite) -> WriteTask:
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
