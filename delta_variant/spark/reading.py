"""Read a table as a DataFrame: the driver plans, Spark's scan or our kernel in tasks reads the files."""

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
from .credentials import session_options
from .running import parallelism, run_task, session_timezone
from .scanning import has_our_semantics, scan, select, unsupported_by_scan
from .tasks import strip_files, unpack_batches

__all__ = ["Columns", "FileReader", "Reader", "file_groups", "read_table", "sized_files"]

Columns: TypeAlias = "Mapping[str, str] | Sequence[str] | None"
Reader: TypeAlias = Literal["auto", "scan", "kernel"]
File = TypeVar("File")

GROUP_BYTES = 64 << 20
"""The bytes of files that a task reads, approximately."""


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
    """Return the rows of a table as a DataFrame, and skip files whose statistics exclude `where`.

    Errors of tasks are raised as Spark's exceptions when the DataFrame is computed. In a block of
    `restore_errors` they are raised as errors of this package.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI or a `deltalake.DeltaTable`.
        columns: SQL text of the columns, by output name or as a sequence, such as `event:user.id::bigint`.
            None is every column.
        where: A predicate in SQL; only the rows for which it is true are returned. Local times in it and in
            `columns` are in the session's time zone at the time of this call.
        version: The version to read, by default the latest.
        on_conflict: `"typed"` reads the typed side if `value` and `typed_value` contradict each other,
            `"error"` raises ConflictingValueError.
        reader: `"kernel"` reads the files in tasks as `delta_variant.read_table` does: only the requested
            paths of a Variant, and no row group or page that statistics exclude. `"scan"` reads the files
            with Spark's own Parquet scan, and Spark evaluates the SQL text, so that later filters of the
            DataFrame reach the scan. `"auto"` is the kernel if there are `columns`, or if the scan would
            not read the table correctly (deletion vectors, column mapping and the like), else the scan.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        The DataFrame. Its columns of type VARIANT are Spark's.

    Raises:
        ExpressionError: `columns` or `where` cannot be parsed, or name an unknown column.
        ProtocolError: The protocol and the metadata of the table contradict each other.
        SchemaError: Delta does not allow the schema of the table.
        TableNotFoundError: The location does not contain a table.
        UnsupportedFeatureError: This version cannot read the table, or `reader="scan"` would read it
            incorrectly.
        VersionNotFoundError: The table does not have `version`.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> dvs.read_table(spark, table, where="id > 1").count()
        1
    """
    check_option("reader", reader, ("auto", "scan", "kernel"))
    own_credentials = bool(storage_options)
    storage_options = session_options(spark, table, storage_options)
    snapshot = load_readable(table, version, storage_options).in_timezone(session_timezone(spark))
    query = Query.of(snapshot, columns, where)
    files = plan_files(snapshot, query.predicate).files
    reason = unsupported_by_scan(spark, snapshot, files, own_credentials=own_credentials)
    if reader == "scan" and reason:
        raise UnsupportedFeatureError(
            f"Spark's scan cannot read {snapshot.uri} because {reason}: pass reader='kernel'",
            table=snapshot.uri,
        )
    is_scanned = not reason and columns is None and on_conflict == "error"
    if reader == "scan" or (reader == "auto" and is_scanned and (where is None or has_our_semantics(spark))):
        return select(scan(spark, snapshot, files), columns, where)
    task = FileReader(strip_files(snapshot), columns, where, on_conflict, storage_options)
    return _read_by_tasks(spark, task, files)


def sized_files(files: pa.Table) -> list[tuple[FileEntry, int]]:
    """Return rows of `Snapshot.files` with their sizes."""
    sizes = (size or 0 for size in files["size"].to_pylist())
    return list(zip(files_of(files), sizes, strict=True))


def file_groups(files: Sequence[tuple[File, int]], tasks: int) -> list[tuple[File, ...]]:
    """Return files in groups of similar size, at least one for each concurrent task if there are enough."""
    limit = min(GROUP_BYTES, sum(size for _, size in files) // max(tasks, 1) + 1)
    groups = pack_by_size(files, lambda each: each[1], limit)
    return [tuple(file for file, _ in group) for group in groups]


@dataclass(frozen=True)
class FileReader:
    """Reads groups of files of a table; its snapshot has neither list of files nor store."""

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
        """Yield the matching rows of each group of files."""
        for group in unpack_batches(batches):
            yield from self.read(group)

    def read(self, files: Iterable[FileEntry]) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of files, with the types that Spark expects."""
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
    groups = file_groups(sized_files(files), parallelism(spark))
    return run_task(spark, groups, task, task.schema)
