"""Read a table as a DataFrame: the driver plans, Spark's scan or our kernel in tasks reads the files."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from .._checks import check_option
from .._options import OnConflict
from ..errors import UnsupportedFeatureError
from ..log.load import version_to_read
from ..log.timestamps import Timestamp
from ..operations.changes import plan_changes
from ..read.plan import plan_files
from ..read.query import Query
from ..read.rows import load_readable
from ..read.scope import FILE_METADATA
from ..storage.store import TableLocation, open_store, pinned_version, table_uri
from .credentials import session_options
from .monitoring import Monitor
from .queries.table_names import resolve_table
from .readers import ChangeReader, Columns, FileReader, file_groups, groups_of_table, size_of
from .running import parallelism, run_task, session_timezone
from .scanning import are_small, has_our_semantics, scan, select, unsupported_by_scan
from .tasks import TaskTable

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
    is_scanned = not reason and columns is None and on_conflict == "error" and not are_small(files)
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
