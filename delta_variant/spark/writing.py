"""Write a DataFrame: executors write the files, the driver commits them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from .._checks import options_of, texts_of
from ..data_file.options import FileOptions, JsonOptions, Shredding, WriteOptions
from ..log.commit_context import CommitOptions, transaction_of
from ..operations.optimize.auto_compaction import compact_partitions, compacts
from ..storage.store import TableLocation, open_latest, open_store, removing_new_folders
from ..write.commit import WriteResult, result_without_writing
from ..write.preparation import Mode, SchemaMode, TableOptions, WriteRequest, load_existing, prepare
from .attempts import Job, forget
from .chunk_tasks import ChunkFilesTask
from .columns import from_spark
from .credentials import session_options
from .executor import SparkExecutor
from .file_jobs import commit_written, files_written, write_by_tasks
from .locations import default_file_system, locate
from .optimized_writes import is_optimized, stored_chunks
from .queries.table_names import resolve_table
from .queries.text import quote
from .running import check_batch, is_case_sensitive, session_timezone
from .sampling import sampled_shredding
from .task_errors import restore_errors
from .tasks import MAX_OPEN_PARTITIONS, FileTask, Written

__all__ = ["write_table"]


def write_table(
    table: TableLocation,
    df: DataFrame,
    *,
    mode: Mode = "error",
    where: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    schema_mode: SchemaMode = None,
    variant_columns: Sequence[str] = (),
    shredding: Shredding = "infer",
    one_shredding: bool = False,
    optimize_write: bool | None = None,
    auto_compact: bool | None = None,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    files: FileOptions | None = None,
    json: JsonOptions | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write a DataFrame to a Delta table as one commit; executors write the files.

    A task writes each partition of the DataFrame, unless `optimize_write` distributes the rows by files.

    Columns of the type VARIANT stay Variants. Local times in SQL text are in the session's time zone. Columns
    that the data does not have are NULL, or have the table's default or generated value.

    Files of tasks that fail or that Spark repeats are removed. A job that fails commits nothing. A write that
    is repeated with the same `txn` after its driver crashed removes the files of the crashed write.

    Args:
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        df: The rows, a batch DataFrame of a classic session or of Spark Connect.
        mode: If the table exists: `"error"` raises TableExistsError, `"append"` adds rows, `"overwrite"`
            replaces all rows or those that match `where`, `"ignore"` does nothing.
        where: With `mode="overwrite"`, SQL that selects the rows to replace. It must be true for the new
            rows. Unless it is over partition columns alone, the driver rewrites the files with such rows.
        partition_by: The partition columns of a new table, or of one that is overwritten with
            `schema_mode="overwrite"`.
        schema_mode: `"merge"` adds the columns that the table does not have, and widens types if the table
            sets `delta.enableTypeWidening`. `"overwrite"` replaces the schema of a table that is overwritten
            completely.
        variant_columns: Columns of JSON text that become Variants, without Spark's `parse_json`.
        shredding: `"infer"` infers a shredding schema of each file from its first rows, a ShreddingSchema is
            used for all Variant columns, None writes unshredded Variants.
        one_shredding: Infer one schema for all files from the first rows of some partitions. The rows are
            persisted while the write runs, in memory and on the disks of the executors, so that they are
            computed once. Without it they are computed once, too, and nothing is persisted unless the write
            is optimized.
        optimize_write: Whether to distribute the rows by the files that they belong to: each partition of the
            table gets as few files as `target_file_size` of `files` permits, instead of one from each task.
            The rows keep their order, are computed once, and are persisted in a compressed form while the
            write runs. By default as the table property `delta.autoOptimize.optimizeWrite` says. Without it,
            writes to partitioned tables are optimized if `spark.sql.adaptive.enabled` is set.
        auto_compact: Whether to compact the small files of the partitions that were written, of each that has
            at least 50, in a commit of its own after the write. A failure is logged, and the next write tries
            again. By default as the table property `delta.autoOptimize.autoCompact` says, False without it.
        configuration: Table properties of a new table.
        name: The name of a new table.
        description: The description of a new table.
        files: How data files are written; see `delta_variant.FileOptions`. None, the default, uses its
            defaults.
        json: How JSON text becomes Variants; see `delta_variant.JsonOptions`. `rejects` is a folder in any
            store that `storage_options` open. In it a row is identified by its partition of the DataFrame and
            its number in it. None, the default, uses the defaults.
        commit: The `txn` and the metadata of the commit; see `delta_variant.CommitOptions`. None, the
            default, sets none.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        The committed version, the files and the number of rows. `repeated` is True if the write was skipped
        because of `txn`.

    Raises:
        AmbiguousWriteError: The table may already have the write of `txn`.
        CommitConflictError: A concurrent commit changed the part of the table that the write relies on.
        ConstraintViolationError: A row violates a constraint of the table.
        InvalidJsonError: Text is not JSON, with `on_invalid="error"`.
        PredicateViolationError: `where` is not true for a new row.
        SchemaError: The data does not fit the table, or Delta does not have a type of the data.
        ShreddingNotEnabledError: `shredding` is a schema and the table does not enable shredding.
        TableExistsError: The table exists, with `mode="error"`.
        UnsupportedFeatureError: `df` is a stream, or the table has a feature that this version cannot write.

    Example:
        >>> import tempfile
        >>> from delta_variant import spark as dvs
        >>> df = spark.createDataFrame([('{"user": {"id": 1}}',)], "event string")
        >>> dvs.write_table(tempfile.mkdtemp(), df, variant_columns=["event"]).rows
        1
    """
    check_batch(df, "write_table")
    options = WriteOptions(
        shredding, options_of("files", files, FileOptions), options_of("json", json, JsonOptions)
    )
    commit = options_of("commit", commit, CommitOptions)
    timezone = session_timezone(df.sparkSession)
    of_table = TableOptions(
        partition_by, schema_mode, configuration, name, description, mode, where, timezone
    )
    table = resolve_table(df.sparkSession, table)
    storage_options = session_options(df.sparkSession, table, storage_options)
    store, transaction = open_latest(table, storage_options), transaction_of(commit)
    rejected = options.json.rejects
    if rejected is not None:
        # Raise the error for a location that cannot be opened here, and send tasks what it means here.
        rejected = open_store(locate(rejected, default_file_system(df.sparkSession)), storage_options).uri
    job = Job.of(None if transaction is None else transaction.application)
    snapshot = load_existing(store, mode)
    if result := result_without_writing(snapshot, mode, commit):
        forget(store, job)
        return result
    case_sensitive = is_case_sensitive(df.sparkSession)
    names = texts_of("names", "variant_columns", variant_columns)
    columns = from_spark(df.schema, names, case_sensitive=case_sensitive)
    write = prepare(store, snapshot, WriteRequest(columns, options, of_table), commit)
    task = FileTask(store.uri, storage_options, write.after, write.options, job, rejected, write.predicate())
    with removing_new_folders(store), restore_errors():
        if is_optimized(write, df, optimize_write):
            written = _run_optimized(task, df, one_shredding=one_shredding)
        else:
            with sampled_shredding(write, df) if one_shredding else nullcontext((write, df)) as (write, df):
                written = _run(replace(task, options=write.options), df)
        result = commit_written(write, written, job, task.folders())
    if compacts(write.after, auto_compact):
        new = files_written(written)
        executor = SparkExecutor(df.sparkSession, store, storage_options)
        compact_partitions(executor, snapshot, new, options.files)
    return result


def _run(task: FileTask, df: DataFrame) -> list[Written]:
    """Write the rows by tasks, sorted by the table's partitions if the data has their columns."""
    partitions = task.table.partition_columns
    known = {name.lower() for name in df.columns}
    if any(name.lower() not in known for name in partitions):
        task = replace(task, max_open_partitions=MAX_OPEN_PARTITIONS)
    elif partitions:
        df = df.sortWithinPartitions([sql.col(quote(name)) for name in partitions])
    return write_by_tasks(df, task, task.job, task.folders())


def _run_optimized(task: FileTask, df: DataFrame, *, one_shredding: bool) -> list[Written]:
    """Write the rows by the tasks of the files that they belong to."""
    with stored_chunks(df, task) as stored:
        rows, task = stored.distribute(one_shredding=one_shredding)
        return write_by_tasks(rows, ChunkFilesTask(task), task.job, task.folders())
