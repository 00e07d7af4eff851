"""Read a table as a DataFrame: the driver plans, Spark's scan or our kernel in tasks reads the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import reduce
from threading import Lock
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.utils import is_remote

from .._arrow import total
from .._checks import check_option
from .._options import OnConflict
from .._text import quote
from ..errors import UnsupportedFeatureError
from ..expressions.parse import parse_columns
from ..log.load import version_to_read
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..operations.changes import plan_changes
from ..protocol.actions import is_absolute
from ..protocol.schema.char_types import char_widths
from ..protocol.schema.partition_values import partition_value_from_string
from ..protocol.types import VOID, StructField, StructType, has_variant, primitives_of
from ..read.file_reader import FileEntry, files_of
from ..read.plan import plan_files
from ..read.query import Query
from ..read.rows import load_readable
from ..read.scope import FILE_METADATA
from ..storage.store import TableLocation, open_store, pinned_version, table_uri
from .columns import to_spark
from .locations import session_options
from .monitoring import Monitor
from .queries.table_names import resolve_table
from .readers import ChangeReader, Columns, FileReader, file_groups, groups_of_table, size_of
from .running import parallelism, run_task, session_timezone
from .tasks import TaskTable
from .versions import INSTALLED, SPARK_ERRORS

Reader: TypeAlias = Literal["auto", "scan", "kernel"]


def read_table(
    spark: SparkSession,
    table: TableLocation,
    *,
    columns: Columns = None,
    where: str | None = None,
    version: int | None = None,
    on_conflict: OnConflict = "error",
    reader: Reader = "auto",
) -> DataFrame:
    """Return the rows of a table as a DataFrame, and skip files whose statistics exclude `where`.

    Errors of tasks are raised as Spark's exceptions when the DataFrame is computed. In a block of
    `restore_errors` they are raised as errors of this package.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`, or a name: of a view that
            `create_view` created, or of a table of Delta in the session's catalog, such as
            `main.shop.orders`. A relative path has a slash, as in `./orders`.
        columns: SQL text of the columns, by output name or as a sequence, such as `event:user.id::bigint`,
            or `_metadata.file_path` for the file of a row. None is every column.
        where: A predicate in SQL; only the rows for which it is true are returned. Local times in it and in
            `columns` are in the session's time zone at the time of this call.
        version: The version to read, by default the latest.
        on_conflict: `"typed"` reads the typed side if `value` and `typed_value` contradict each other,
            `"error"` raises ConflictingValueError.
        reader: `"kernel"` reads the files in tasks as `delta_variant.read_table` does: only the requested
            paths of a Variant, and no row group or page that statistics exclude. `"scan"` reads the files
            with Spark's own Parquet scan, and Spark evaluates the SQL text, so that later filters of the
            DataFrame reach the scan. `"auto"` is the kernel if there are `columns`, if the scan would not
            read the table correctly (deletion vectors, column mapping and the like), or if there are more
            than 32 files of less than 32 KiB on average, else the scan.

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
    table = resolve_table(spark, table)
    monitor = Monitor(spark, "READ", table_uri(table))
    storage_options = session_options(spark, table)
    own_credentials = storage_options != session_options(spark, table_uri(table))
    version, timestamp = version_to_read(table, version, None)
    snapshot = load_readable(open_store(table, storage_options), version, timestamp)
    snapshot = snapshot.in_timezone(session_timezone(spark))
    query = Query.of(snapshot.configuration, columns, where)
    plan = plan_files(snapshot, query.predicate)
    monitor.report({**plan.counts, "version": snapshot.version})
    files = plan.files
    reason = unsupported_by_scan(spark, snapshot, files, own_credentials=own_credentials)
    if FILE_METADATA in query.inputs:
        reason = "it does not return the column _metadata of this package"
    if reader == "scan" and reason:
        raise UnsupportedFeatureError(
            f"Spark's scan cannot read {snapshot.uri} because {reason}: pass reader='kernel'",
            table=snapshot.uri,
        )
    is_scanned = not reason and columns is None and on_conflict == "error" and not _are_small(files)
    if reader == "scan" or (reader == "auto" and is_scanned and (where is None or _has_our_semantics(spark))):
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
    monitor = Monitor(spark, "READ", table_uri(table))
    storage_options = session_options(spark, table)
    if end is None:
        own_version, own_timestamp = pinned_version(table)
        end = own_timestamp if own_version is None else own_version
    changes = plan_changes(
        open_store(table, storage_options),
        start=start,
        end=end,
        columns=columns,
        where=where,
        timezone=session_timezone(spark),
        on_conflict=on_conflict,
    )
    files = list(changes.files())
    sizes = {"number of files read": len(files), "size of files read": sum(map(size_of, files))}
    monitor.report({**sizes, "version": changes.feed.end.version})
    task = ChangeReader(TaskTable.of(changes.feed.end, storage_options), columns, where, on_conflict)
    groups = file_groups(files, parallelism(spark))
    return run_task(spark, groups, task, task.schema)


MAX_PARTITIONS = 32
"""The maximum number of partitions of a table in one scan, because Spark plans each separately."""

MANY_FILES = 32
"""A larger number of files is listed by tasks of Spark before a scan."""

SMALL_BYTES = 32 << 10
"""The mean size below which the kernel reads whole files in the time that Spark takes to open them."""

LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTING = Lock()

GLOB = frozenset("{}[]*?\\")
TYPE_WIDENING = ("typeWidening", "typeWidening-preview")
LOCAL = "file:"


def unsupported_by_scan(
    spark: SparkSession, snapshot: Snapshot, files: pa.Table, *, own_credentials: bool
) -> str | None:
    """Return why Spark's Parquet scan cannot read these rows of `Snapshot.files` correctly, or None."""
    if snapshot.configuration.mapping_mode != "none":
        return "it uses column mapping"
    if any(snapshot.configuration.supports(name) for name in TYPE_WIDENING):
        return "the types of its columns were widened"
    if VOID.name in primitives_of(snapshot.schema):
        return "it has a column of the type void"
    if INSTALLED < (4, 1) and has_variant(snapshot.schema):
        return "Spark 4.0 fails at Parquet files with the type VARIANT"
    if files["deletion_vector"].null_count < files.num_rows:
        return "it has deletion vectors"
    if any(GLOB & set(path) or is_absolute(path) for path in files["path"].to_pylist() if path):
        return "Spark would parse paths of its files as patterns, or not find them in its folder"
    if len(_by_partition(files)) > MAX_PARTITIONS:
        return f"the read covers more than {MAX_PARTITIONS} of its partitions"
    if snapshot.store.local_root is None and (own_credentials or not _has_file_system(spark, snapshot)):
        return "Spark does not have its store configured, or does not have the credentials in storage_options"
    return None


def _has_our_semantics(spark: SparkSession) -> bool:
    """Return whether this session evaluates SQL text as we do.

    We raise an error for a cast that fails, and `timestamp` is the type of instants. Spark 4.0 does not know
    paths such as `event:id`.
    """
    if INSTALLED < (4, 1):
        return False
    ours = {"spark.sql.ansi.enabled": "true", "spark.sql.timestampType": "TIMESTAMP_LTZ"}
    return all(spark.conf.get(name) == value for name, value in ours.items())


def scan(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> DataFrame:
    """Return the rows of files, including partition columns, as Spark reads them."""
    parts = [
        _scan_partition(spark, snapshot, dict(values), part) for values, part in _by_partition(files).items()
    ]
    if not parts:
        return spark.createDataFrame([], to_spark(snapshot.schema))
    return reduce(DataFrame.unionAll, parts)


def select(df: DataFrame, columns: Mapping[str, str] | Sequence[str] | None, where: str | None) -> DataFrame:
    """Return the rows and columns that SQL text selects, evaluated by Spark."""
    if where is not None:
        df = df.where(where)
    if columns is None:
        return df
    texts = columns.values() if isinstance(columns, Mapping) else columns
    names = parse_columns(columns)
    return df.select([sql.expr(text).alias(name) for text, name in zip(texts, names, strict=True)])


def _by_partition(files: pa.Table) -> dict[tuple[tuple[str, str | None], ...], list[FileEntry]]:
    groups: dict[tuple[tuple[str, str | None], ...], list[FileEntry]] = {}
    for file in files_of(files):
        groups.setdefault(tuple(file.partition_values.items()), []).append(file)
    return groups


def _scan_partition(
    spark: SparkSession, snapshot: Snapshot, values: Mapping[str, str | None], files: Sequence[FileEntry]
) -> DataFrame:
    stored = tuple(field for field in snapshot.schema.fields if field.name not in snapshot.partition_columns)
    root = f"{LOCAL}{snapshot.uri}" if snapshot.store.local_root else snapshot.uri
    reader = spark.read.schema(to_spark(StructType(stored))).option("mergeSchema", "false")
    with _few_listing_tasks(spark) if len(files) > MANY_FILES else nullcontext():
        df = reader.parquet(*(f"{root}/{file.path}" for file in files))
    return df.select([_column(field, values, snapshot) for field in snapshot.schema.fields])


@contextmanager
def _few_listing_tasks(spark: SparkSession) -> Iterator[None]:
    """Let Spark list files in as many tasks as it runs at once, and not each file in a task."""
    tasks = parallelism(spark)
    with _LISTING:
        before = None
        # Some platforms, such as Databricks serverless, forbid most settings.
        with suppress(*SPARK_ERRORS):
            known = str(spark.conf.get(LISTING_TASKS))
            spark.conf.set(LISTING_TASKS, tasks)
            before = known
        try:
            yield
        finally:
            if before is not None:
                spark.conf.set(LISTING_TASKS, before)


def _are_small(files: pa.Table) -> bool:
    """Return whether the kernel reads files faster than Spark's scan, whichever columns are used later."""
    return files.num_rows > MANY_FILES and total(files["size"]) < SMALL_BYTES * files.num_rows


def _column(field: StructField, values: Mapping[str, str | None], snapshot: Snapshot) -> Any:
    if field.name not in snapshot.partition_columns:
        return sql.col(quote(field.name))
    (spark_field,) = to_spark(StructType((field,))).fields
    value = partition_value_from_string(values.get(field.name), field.type, snapshot.timezone)
    if isinstance(value, datetime) and value.tzinfo is None:
        # Spark would interpret a datetime without time zone in the session's time zone.
        value = value.isoformat(" ")
    if isinstance(value, str):
        value = value.ljust(char_widths(field).get((), 0))
    return sql.lit(value).cast(spark_field.dataType).alias(field.name, metadata=spark_field.metadata)


def _has_file_system(spark: SparkSession, snapshot: Snapshot) -> bool:
    """Return whether Spark has a file system for the table's URI; a client of Spark Connect cannot know."""
    if is_remote():
        return False
    jvm: Any = spark.sparkContext._jvm
    context: Any = spark.sparkContext._jsc
    scheme = snapshot.uri.split(":", 1)[0]
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, context.hadoopConfiguration())
    except SPARK_ERRORS:
        return False
    return True
