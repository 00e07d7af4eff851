"""Reading a table as a DataFrame: planned here, and read by Spark's scan or by our kernel in its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from delta_variant import schema, skipping
from delta_variant.data_file import check_option
from delta_variant.data_types import StructType
from delta_variant.errors import UnsupportedFeatureError
from delta_variant.read import DataFile, Query, files_of, plan_files, read_files, readable
from delta_variant.snapshot import FILES_SCHEMA, Snapshot
from delta_variant.store import TableLocation, open_store
from delta_variant.variant import OnConflict

from .columns import for_spark, to_spark
from .running import check_classic
from .scanning import evaluates_alike, obstacle_to_scan, scan, select
from .tasks import MESSAGE, messages, packed

__all__ = ["Columns", "FileReader", "Reader", "file_groups", "read_table"]

Columns: TypeAlias = "Mapping[str, str] | Sequence[str] | None"
Reader: TypeAlias = Literal["auto", "scan", "kernel"]

GROUP_BYTES = 64 << 20
"""How many bytes of files a task reads, more or less."""


def read_table(
    spark: SparkSession,
    table: TableLocation,
    *,
    columns: Columns = None,
    where: str | None = None,
    version: int | None = None,
    on_conflict: OnConflict = "error",
    reader: Reader = "auto",
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows of a table as a DataFrame; files that provably hold none of `where` are not read.

    `columns`, `where` and `on_conflict` are those of `delta_variant.read_table`. By `reader="kernel"` tasks
    read the files as that function does: of a Variant only the paths that are asked for, and no row group or
    page that the statistics exclude. By `reader="scan"` Spark's own Parquet scan reads the files that are
    kept and Spark evaluates the SQL text, so that what is asked of the DataFrame later reaches the scan. The
    default is the kernel where there are `columns`, and where the scan would not read what Delta means
    (deletion vectors, mapped columns and the like), else the scan.

    Raises what `delta_variant.read_table` does, and UnsupportedFeatureError for a scan that would be wrong.
    What a task raises comes as Spark's exception, when the DataFrame is computed.
    """
    check_classic()
    check_option("reader", reader, ("auto", "scan", "kernel"))
    snapshot = readable(table, version, storage_options)
    query = Query.of(snapshot, columns, where)
    files = plan_files(snapshot, query.predicate).files
    obstacle = obstacle_to_scan(spark, snapshot, files, own_credentials=bool(storage_options))
    if reader == "scan" and obstacle:
        raise UnsupportedFeatureError(
            f"Spark's scan cannot read {snapshot.uri}: {obstacle}; reader='kernel' can"
        )
    is_scanned = not obstacle and columns is None and on_conflict == "error"
    if reader == "scan" or (reader == "auto" and is_scanned and (where is None or evaluates_alike(spark))):
        return select(scan(spark, snapshot, files), columns, where)
    task = FileReader(_without_files(snapshot), columns, where, on_conflict, storage_options)
    return _read_by_tasks(spark, task, files)


def file_groups(files: pa.Table, tasks: int) -> list[tuple[DataFile, ...]]:
    """Return rows of `Snapshot.files` in groups of like size, as many as there are tasks at once or more."""
    sizes = [size or 0 for size in files["size"].to_pylist()]
    limit = min(GROUP_BYTES, sum(sizes) // max(tasks, 1) + 1)
    groups: list[tuple[DataFile, ...]] = []
    group: list[DataFile] = []
    filled = 0
    for file, size in zip(files_of(files), sizes, strict=True):
        if group and filled + size > limit:
            groups.append(tuple(group))
            group, filled = [], 0
        group.append(file)
        filled += size
    return [*groups, tuple(group)] if group else groups


@dataclass(frozen=True)
class FileReader:
    """Reads groups of the files of a table; its snapshot has no list of files, and no store."""

    snapshot: Snapshot
    columns: Columns
    where: str | None
    on_conflict: OnConflict
    storage_options: Mapping[str, str] | None

    @property
    def output(self) -> StructType:
        """Return the columns that are read."""
        return schema.from_arrow(Query.of(self.snapshot, self.columns, self.where).schema)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of the groups that came as messages."""
        for batch in batches:
            for group in messages(batch.to_pylist()):
                yield from self.read(group)

    def read(self, files: Iterable[DataFile]) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of some files, as Spark takes them."""
        store = open_store(self.snapshot.uri, self.storage_options)
        snapshot = replace(self.snapshot, store=store)
        query = Query.of(snapshot, self.columns, self.where)
        condition = None
        if query.predicate is not None:
            condition = skipping.condition_of(query.predicate, snapshot.partition_columns)
        rows = read_files(snapshot, query, files, condition, self.on_conflict)
        yield from for_spark(rows, schema.from_arrow(query.schema))


def _without_files(snapshot: Snapshot) -> Snapshot:
    nowhere: Any = None
    return replace(snapshot, store=nowhere, files=FILES_SCHEMA.empty_table())


def _read_by_tasks(spark: SparkSession, task: FileReader, files: pa.Table) -> DataFrame:
    groups = file_groups(files, spark.sparkContext.defaultParallelism)
    rows = spark.createDataFrame([(packed(group),) for group in groups], MESSAGE)
    # One task for each group: a single partition is dealt out evenly, many by chance.
    tasks = rows.coalesce(1).repartition(max(len(groups), 1))
    return tasks.mapInArrow(task, to_spark(task.output))
