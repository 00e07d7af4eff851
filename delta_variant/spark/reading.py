"""Reading a table as a DataFrame: planned here, and read by Spark's scan or by our kernel in its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct

from .._checks import check_option
from .._options import OnConflict
from .._packing import pack_by_size
from ..errors import UnsupportedFeatureError
from ..log.snapshot import Snapshot
from ..operations.read.query import Query
from ..operations.read.rows import load_readable, read_files
from ..protocol.schema.arrow import from_arrow
from ..scan.plan import plan_files
from ..scan.predicate import pruning_predicate_of
from ..scan.reader import FileEntry, files_of
from ..storage.store import TableLocation, open_store
from .columns import cast_for_spark, to_spark
from .running import check_classic, distribute, session_timezone
from .scanning import has_our_semantics, scan, select, unsupported_by_scan
from .tasks import strip_files, unpack_batches

__all__ = ["Columns", "FileReader", "Reader", "file_groups", "read_table", "sized_files"]

Columns: TypeAlias = "Mapping[str, str] | Sequence[str] | None"
Reader: TypeAlias = Literal["auto", "scan", "kernel"]
File = TypeVar("File")

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
    (deletion vectors, mapped columns and the like), else the scan. Local times in the SQL text are those of
    the session's time zone, as it is when this function is called.

    Raises what `delta_variant.read_table` does, and UnsupportedFeatureError for a scan that would be wrong.
    What a task raises comes as Spark's exception, when the DataFrame is computed.
    """
    check_classic()
    check_option("reader", reader, ("auto", "scan", "kernel"))
    snapshot = load_readable(table, version, storage_options).in_timezone(session_timezone(spark))
    query = Query.of(snapshot, columns, where)
    files = plan_files(snapshot, query.predicate).files
    obstacle = unsupported_by_scan(spark, snapshot, files, own_credentials=bool(storage_options))
    if reader == "scan" and obstacle:
        raise UnsupportedFeatureError(
            f"Spark's scan cannot read {snapshot.uri}: {obstacle}; reader='kernel' can"
        )
    is_scanned = not obstacle and columns is None and on_conflict == "error"
    if reader == "scan" or (reader == "auto" and is_scanned and (where is None or has_our_semantics(spark))):
        return select(scan(spark, snapshot, files), columns, where)
    task = FileReader(strip_files(snapshot), columns, where, on_conflict, storage_options)
    return _read_by_tasks(spark, task, files)


def sized_files(files: pa.Table) -> list[tuple[FileEntry, int]]:
    """Return rows of `Snapshot.files` with their sizes."""
    sizes = (size or 0 for size in files["size"].to_pylist())
    return list(zip(files_of(files), sizes, strict=True))


def file_groups(files: Sequence[tuple[File, int]], tasks: int) -> list[tuple[File, ...]]:
    """Return files in groups of like size, as many as there are tasks at once or more."""
    limit = min(GROUP_BYTES, sum(size for _, size in files) // max(tasks, 1) + 1)
    groups = pack_by_size(files, lambda each: each[1], limit)
    return [tuple(file for file, _ in group) for group in groups]


@dataclass(frozen=True)
class FileReader:
    """Reads groups of the files of a table; its snapshot has no list of files, and no store."""

    snapshot: Snapshot
    columns: Columns
    where: str | None
    on_conflict: OnConflict
    storage_options: Mapping[str, str] | None

    @property
    def schema(self) -> SparkStruct:
        """Return the schema of the rows that are read."""
        return _spark_schema(Query.of(self.snapshot, self.columns, self.where))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of the groups that came as messages."""
        for group in unpack_batches(batches):
            yield from self.read(group)

    def read(self, files: Iterable[FileEntry]) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of some files, as Spark takes them."""
        store = open_store(self.snapshot.uri, self.storage_options)
        snapshot = replace(self.snapshot, store=store)
        query = Query.of(snapshot, self.columns, self.where)
        pruning_predicate = None
        if query.predicate is not None:
            pruning_predicate = pruning_predicate_of(query.predicate, snapshot.partition_columns)
        rows = read_files(snapshot, query, files, pruning_predicate, self.on_conflict)
        yield from cast_for_spark(rows, _spark_schema(query))


def _spark_schema(query: Query) -> SparkStruct:
    return to_spark(from_arrow(query.schema))


def _read_by_tasks(spark: SparkSession, task: FileReader, files: pa.Table) -> DataFrame:
    groups = file_groups(sized_files(files), spark.sparkContext.defaultParallelism)
    return distribute(spark, groups).mapInArrow(task, task.schema)
