"""Delete unused files: the driver lists the table and commits, executors delete the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from .._packing import pack_by_size
from ..errors import StoreError
from ..log.commit_context import CommitOptions
from ..operations.vacuum import Deletions, VacuumResult, plan_vacuum, run_vacuum
from ..storage.store import Store, TableLocation, delete, delete_all, exists, open_store, uri_of, walk
from .credentials import session_options
from .locations import SHARED
from .queries.table_names import resolve_table
from .running import Jobs, run_task
from .task_errors import restore_errors
from .tasks import message, messages, unpack_batches

__all__ = ["vacuum"]

FILES_OF_TASK = 1000
"""The files that a task deletes: as many as object stores delete by one request."""


def vacuum(
    spark: SparkSession,
    table: TableLocation,
    retention_hours: float | None = None,
    *,
    dry_run: bool = True,
    enforce_retention_duration: bool = True,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> VacuumResult:
    """Delete the files that a table no longer needs; executors delete them.

    The same files are deleted as by `delta_variant.vacuum`: those that no version within the retention uses.
    Older versions can then no longer be read. The driver lists the files of the table. Each task deletes up
    to 1,000 of them, by one request where the store deletes many at once. Two commits, VACUUM START and
    VACUUM END, record what was deleted, also if the vacuum fails.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        retention_hours: The retention in hours. None uses `delta.deletedFileRetentionDuration` of the table,
            one week by default.
        dry_run: Only list the files, and delete nothing.
        enforce_retention_duration: Reject a retention that is shorter than that of the table. Pass False only
            if no other program reads or writes the table.
        commit: The metadata of both commits; see `delta_variant.CommitOptions`. None, the default, sets none.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        A `delta_variant.VacuumResult` with the deleted files, or with the files that would be deleted.

    Raises:
        RetentionDurationError: `retention_hours` is less than the retention of the table.
        ValueError: `retention_hours` is negative or not finite.
        ArgumentTypeError: `retention_hours` is not a number.
        TableNotFoundError: There is no Delta log at `table`.
        UnsupportedFeatureError: This version cannot commit to the table.
        CommitConflictError: A concurrent commit added one of the files again. Nothing was deleted.
        StoreError: Some files could not be deleted. All others were.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, [{"id": 1}])
        >>> result = dv.delete_all(table)
        >>> dvs.vacuum(spark, table).files
        ()
    """
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    plan = plan_vacuum(
        table,
        retention_hours,
        dry_run=dry_run,
        enforce_retention_duration=enforce_retention_duration,
        commit=commit,
        storage_options=storage_options,
    )
    task = DeleteTask(plan.snapshot.uri, storage_options)
    return run_vacuum(plan, TaskDeletions(plan.snapshot.store, plan.found.files, spark=spark, task=task))


@dataclass(frozen=True)
class DeleteTask:
    """Deletes files of a table."""

    uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the errors of the files of each group that could not be deleted, by path."""
        store = open_store(self.uri, self.storage_options)
        for paths in unpack_batches(batches):
            yield message(_delete(store, paths))


@dataclass(kw_only=True)
class TaskDeletions(Deletions):
    """Deletions by tasks of a session."""

    spark: SparkSession
    task: DeleteTask

    def run(self) -> None:
        groups, jobs = list(pack_by_size(self.paths, lambda _: 1, FILES_OF_TASK)), Jobs(self.spark)
        try:
            with restore_errors():
                found = messages(run_task(self.spark, groups, self.task).collect())
        except BaseException:
            # Tasks that ended have deleted their files, and their results are lost.
            jobs.wait()
            left = {file.path for file in walk(self.store)}
            self.deleted = [path for path in self.paths if path not in left]
            raise
        failures = {path: error for part in found for path, error in part.items()}
        if not failures and self.store.local_root is not None:
            kept = (path for path in self.paths if exists(self.store, path))
            failures = {path: _not_shared(self.store, path) for path in kept}
        self.deleted = [path for path in self.paths if path not in failures]
        self.failures = list(failures.values())


def _delete(store: Store, paths: Sequence[str]) -> dict[str, StoreError]:
    """Delete files, and return the errors of those that could not be deleted."""
    try:
        delete_all(store, paths)
    except StoreError:
        errors = ((path, _error_of_deletion(store, path)) for path in paths)
        return {path: error for path, error in errors if error is not None}
    return {}


def _not_shared(store: Store, path: str) -> StoreError:
    return StoreError(
        f"cannot delete {uri_of(store, path)} because executors have a disk of their own there: {SHARED}",
        table=store.uri,
        file=path,
    )


def _error_of_deletion(store: Store, path: str) -> StoreError | None:
    try:
        delete(store, path)
    except StoreError as error:
        return error
    return None
