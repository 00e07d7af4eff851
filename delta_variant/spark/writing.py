"""Writing a DataFrame: executors write the files, the driver commits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Literal, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from .._checks import check_path, texts_of
from ..data_file.options import (
    DEFAULT_TARGET_FILE_SIZE,
    MAX_STATS_PATHS,
    Compression,
    OnInvalid,
    Shredding,
    WriteOptions,
)
from ..operations.optimize.optimize import Optimization
from ..operations.write.committing import NOT_COMMITTED, WriteResult, commit_files, result_without_writing
from ..operations.write.preparation import (
    Mode,
    PreparedWrite,
    SchemaMode,
    TableOptions,
    Transaction,
    application_transaction,
    load_existing,
    prepare,
)
from ..storage.store import Store, TableLocation, open_store, removing_new_folders
from ..writer.partitioned import PartitionFile
from .attempts import Job, forget, remove_lost
from .columns import from_spark, quote
from .failures import task_errors
from .running import Jobs, check_batch, check_classic, map_by_task, session_timezone
from .sampling import with_sampled_shredding
from .tasks import MAX_OPEN_PARTITIONS, FileTask, Task, Written, messages

__all__ = ["commit_won", "commit_written", "write_by_tasks", "write_table"]

Result = TypeVar("Result", WriteResult, Optimization)


def write_table(
    df: DataFrame,
    table: TableLocation,
    *,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = None,
    schema_mode: SchemaMode = None,
    predicate: str | None = None,
    shredding: Shredding = "infer",
    one_shredding: bool = True,
    variant_columns: Sequence[str] = (),
    on_invalid: OnInvalid = "error",
    rejects: str | PathLike[str] | None = None,
    numeric: Literal["value", "strict"] = "value",
    floats: Literal["decimal", "double"] = "decimal",
    duplicate_keys: Literal["error", "last"] = "error",
    target_file_size: int = DEFAULT_TARGET_FILE_SIZE,
    compression: Compression = "zstd",
    annotate: bool = True,
    spark_compatible: bool = True,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    txn: tuple[str, int] | Transaction | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> WriteResult:
    """Write a DataFrame to a Delta table as one commit; each of its partitions is written by a task.

    VARIANT columns stay what they are, and columns of JSON text that `variant_columns` names become Variants
    without Spark's `parse_json`. `shredding="infer"` looks at the first rows of some partitions for one
    schema for all files, which computes these rows twice; with `one_shredding=False` they are computed once,
    and each file has a schema of its own. An overwrite by a `predicate` that is not about partition columns
    alone reads the files that hold such rows, and writes those of them that stay, on the driver. The other
    arguments are those of `delta_variant.write_table`, but that `rejects` is a folder, in any store that
    `storage_options` open, and rows are named by the partition of the DataFrame, and that local times in SQL
    text are those of the session's time zone.

    What tasks leave that Spark repeats or that fail is removed, and a job that fails commits nothing. A write
    that is repeated with the same `txn` after its driver died removes what that one left.

    Raises what `delta_variant.write_table` does, and UnsupportedFeatureError for a stream.
    """
    check_classic()
    check_batch(df)
    if (on_invalid == "reject") != (rejects is not None):
        raise ValueError("rejects= names the folder of on_invalid='reject': give both or none")
    if rejects is not None:
        check_path("rejects", rejects)
    options = WriteOptions(
        shredding=shredding,
        spark_compatible=spark_compatible,
        target_file_size=target_file_size,
        compression=compression,
        annotate=annotate,
        numeric=numeric,
        floats=floats,
        duplicate_keys=duplicate_keys,
        on_invalid=on_invalid,
        max_stats_paths=max_variant_stats_paths,
    )
    table_options = TableOptions(
        partition_by,
        schema_mode,
        configuration,
        name,
        description,
        mode,
        predicate,
        session_timezone(df.sparkSession),
    )
    place, transaction = open_store(table, storage_options), application_transaction(txn)
    rejected = None if rejects is None else fspath(rejects)
    if rejected is not None:
        # A location that cannot be opened is an error here, not in the tasks.
        open_store(rejected, storage_options)
    job = Job.of(None if transaction is None else transaction.application)
    snapshot = load_existing(place, mode)
    if result := result_without_writing(snapshot, mode, transaction):
        forget(place, job)
        return result
    case_sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    names = texts_of("names", "variant_columns", variant_columns)
    columns = from_spark(df.schema, names, case_sensitive=case_sensitive)
    write = prepare(place, snapshot, columns, options, table_options, transaction)
    if one_shredding:
        with task_errors():
            write = with_sampled_shredding(write, df)
    task = FileTask(place.uri, storage_options, write.state, write.options, job, rejected, write.predicate)
    with removing_new_folders(place):
        return commit_written(write, _run(task, df), job, task.folders())


def _run(task: FileTask, df: DataFrame) -> list[Written]:
    """Return what the tasks wrote, each of the table's partitions after another where Spark knows them."""
    partitions = task.state.metadata.partition_columns
    known = {name.lower() for name in df.columns}
    if any(name.lower() not in known for name in partitions):
        task = replace(task, max_open_partitions=MAX_OPEN_PARTITIONS)
    elif partitions:
        df = df.sortWithinPartitions([sql.col(quote(name)) for name in partitions])
    return write_by_tasks(df, task, task.job, task.folders())


def write_by_tasks(df: DataFrame, task: Task, job: Job, folders: Sequence[Store]) -> list[Written]:
    """Return what the tasks of a job wrote of a DataFrame, or remove it from `folders` when one fails."""
    jobs = Jobs(df.sparkSession)
    try:
        with task_errors():
            return messages(map_by_task(df, task).collect())
    except BaseException:
        jobs.wait()
        remove_lost(folders, job, (), of_all_runs=False)
        raise


def commit_written(
    write: PreparedWrite, written: Sequence[Written], job: Job, folders: Sequence[Store]
) -> WriteResult:
    """Commit what the winning attempts of a job wrote, and remove what others left in `folders`."""
    invalid = sum(each.invalid for each in written)
    return commit_won(lambda files: commit_files(write, files, invalid), written, job, folders)


def commit_won(
    commit: Callable[[list[PartitionFile]], Result],
    written: Sequence[Written],
    job: Job,
    folders: Sequence[Store],
) -> Result:
    """Commit the files that the winning attempts of a job wrote, and remove those of others in `folders`."""
    try:
        result = commit([file for each in written for file in each.files])
    except NOT_COMMITTED:
        remove_lost(folders, job, (), of_all_runs=False)
        raise
    winners = [each.attempt for each in written]
    remove_lost(folders, job, winners, of_all_runs=result.version is not None)
    return result
