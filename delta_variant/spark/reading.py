"""Read a table as a DataFrame: the driver plans, Spark's scan or our kernel in tasks reads the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct

from .._arrow import total
from .._checks import check_option
from .._options import OnConflict
from .._packing import pack_by_size
from ..errors import UnsupportedFeatureError
from ..execution import GROUP_BYTES
from ..expressions.char_padding import padded_column
from ..log.snapshot import TableVersion
from ..log.timestamps import Timestamp
from ..operations.changes import ChangedFile, ChangeFeed, plan_changes, query_of_changes
from ..protocol.schema.arrow import from_arrow
from ..protocol.schema.char_types import TYPE_TEXT
from ..protocol.types import StructType
from ..read.explanation import ReadReport
from ..read.file_reader import FileEntry, files_of
from ..read.plan import plan_files
from ..read.predicate import pruning_predicate_of
from ..read.query import Query
from ..read.rows import load_readable, read_files
from ..storage.store import TableLocation
from .columns import cast_for_spark, to_spark
from .credentials import session_options
from .queries.table_names import resolve_table
from .running import parallelism, run_task, session_timezone
from .scanning import has_our_semantics, scan, select, unsupported_by_scan
from .tasks import TaskTable, unpack_batches

__all__ = [
    "ChangeReader",
    "Columns",
    "FileReader",
    "Reader",
    "file_groups",
    "groups_of_table",
    "read_changes",
    "read_table",
    "sized_changes",
    "sized_files",
]

Columns: TypeAlias = "Mapping[str, str] | Sequence[str] | None"
Reader: TypeAlias = Literal["auto", "scan", "kernel"]
File = TypeVar("File")


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
        table: A path, a URI or a `deltalake.DeltaTable`, or a name: of a view that `create_view` created, or
            of a table of Delta in the session's catalog, such as `main.shop.orders`. A relative path has a
            slash, as in `./orders`.
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
        TableNotFoundError: The location does not contain a table, or the session has no table of the name.
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
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    snapshot = load_readable(table, version, storage_options).in_timezone(session_timezone(spark))
    query = Query.of(snapshot.configuration, columns, where)
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
    task = FileReader(TaskTable.of(snapshot, storage_options), columns, where, on_conflict)
    return run_task(spark, groups_of_table(files, parallelism(spark)), task, task.schema)


def read_changes(
    spark: SparkSession,
    table: TableLocation,
    *,
    start: int | Timestamp | None = None,
    end: int | Timestamp | None = None,
    columns: Columns = None,
    where: str | None = None,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows that commits inserted, deleted and updated as a DataFrame; executors read the files.

    The rows have the columns of the table at the end of the range, followed by `_change_type` (string:
    `insert`, `delete`, `update_preimage` or `update_postimage`), `_commit_version` (bigint) and
    `_commit_timestamp` (timestamp). Their order is undefined. Files whose statistics exclude `where` are
    skipped.

    Errors of tasks are raised as Spark's exceptions when the DataFrame is computed. In a block of
    `restore_errors` they are raised as errors of this package.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        start: The first version of the range, inclusive. A timezone-aware datetime or an ISO 8601 string is
            the first version committed at that time or later. None, the default, starts at version 0.
        end: The last version of the range, inclusive. A timezone-aware datetime or an ISO 8601 string is the
            last version committed at that time or earlier. None, the default, ends at the latest version.
        columns: SQL text of the columns, as in `read_table`, including the three columns above. None, the
            default, returns all columns.
        where: A predicate in SQL, as in `read_table`, that may read the three columns above. Local times in
            it and in `columns` are in the session's time zone at the time of this call.
        on_conflict: What to do if `value` and `typed_value` of a shredded Variant contradict each other, as
            in `read_table`. `"error"` by default.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        The DataFrame. Its columns of type VARIANT are Spark's.

    Raises:
        ChangesNotRecordedError: `delta.enableChangeDataFeed` was not set at a version of the range.
        SchemaError: The columns changed within the range so that earlier rows do not fit the later schema.
        VersionNotFoundError: The log does not have a version or a timestamp of the range.
        ArgumentTypeError: An end of the range is not an integer, a datetime or a string.
        ValueError: The range is empty.
        DeltaVariantError: The table cannot be read; see `read_table`.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> feed = {"delta.enableChangeDataFeed": "true"}
        >>> result = dv.write_table(table, [{"id": 1}, {"id": 2}], configuration=feed)
        >>> result = dv.delete(table, "id = 2")
        >>> dvs.read_changes(spark, table, start=1, columns=["id", "_change_type"]).collect()
        [Row(id=2, _change_type='delete')]
    """
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    changes = plan_changes(
        table,
        start=start,
        end=end,
        columns=columns,
        where=where,
        timezone=session_timezone(spark),
        on_conflict=on_conflict,
        storage_options=storage_options,
    )
    task = ChangeReader(TaskTable.of(changes.feed.end, storage_options), columns, where, on_conflict)
    groups = file_groups(sized_changes(changes.files()), parallelism(spark))
    return run_task(spark, groups, task, task.schema)


def sized_changes(files: Iterable[ChangedFile]) -> list[tuple[ChangedFile, int]]:
    """Return files with changes, with their sizes."""
    return [(each, each.file.size or 0) for each in files]


def sized_files(files: pa.Table) -> list[tuple[FileEntry, int]]:
    """Return rows of `Snapshot.files` with their sizes."""
    sizes = (size or 0 for size in files["size"].to_pylist())
    return list(zip(files_of(files), sizes, strict=True))


def file_groups(files: Sequence[tuple[File, int]], tasks: int) -> list[tuple[File, ...]]:
    """Return files in groups of similar size, at least one for each concurrent task if there are enough."""
    groups = pack_by_size(files, lambda each: each[1], _group_bytes(sum(size for _, size in files), tasks))
    return [tuple(file for file, _ in group) for group in groups]


def groups_of_table(files: pa.Table, tasks: int) -> Iterator[tuple[FileEntry, ...]]:
    """Yield rows of `Snapshot.files` in the groups of `file_groups`, one at a time."""
    group_bytes = _group_bytes(total(files["size"]), tasks)
    groups = pack_by_size(files_of(files), lambda file: file.size or 0, group_bytes)
    return map(tuple, groups)


def _group_bytes(total: int, tasks: int) -> int:
    return min(GROUP_BYTES, total // max(tasks, 1) + 1)


@dataclass(frozen=True)
class FileReader:
    """Reads groups of files of a table."""

    table: TaskTable
    columns: Columns
    where: str | None
    on_conflict: OnConflict

    @property
    def schema(self) -> SparkStruct:
        """Return the schema of the rows that are read."""
        query, columns = self.query, self.table.configuration.schema.fields
        types = {each.name: each.metadata for each in columns if TYPE_TEXT in each.metadata}
        sources = {name: padded_column(each) for name, each in query.outputs.items()} if types else {}
        fields = (
            replace(each, metadata=types.get(sources.get(each.name) or "", each.metadata))
            for each in from_arrow(query.schema).fields
        )
        return to_spark(StructType(tuple(fields)))

    @property
    def query(self) -> Query:
        """Return the query over the rows."""
        return Query.of(self.table.configuration, self.columns, self.where)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of each group of files."""
        for group in unpack_batches(batches):
            yield from self.read(group)

    def read(self, files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of files, with the types that Spark expects."""
        yield from cast_for_spark(self.rows(self.table.open(), files), self.schema)

    def rows(self, table: TableVersion, files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of files."""
        query, pruning_predicate = self.query, None
        if query.predicate is not None:
            pruning_predicate = pruning_predicate_of(query.predicate, table.partition_columns)
        yield from read_files(table, query, files, pruning_predicate, self.on_conflict)


@dataclass(frozen=True)
class ChangeReader(FileReader):
    """Reads groups of files with changes, whose table has the schema of the changes."""

    @property
    def query(self) -> Query:
        return query_of_changes(self.table.configuration, self.columns, self.where)

    def rows(self, table: TableVersion, files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        feed = ChangeFeed.of(table, self.columns, self.where, self.on_conflict)
        return feed.read(files, ReadReport(), ahead=True)
