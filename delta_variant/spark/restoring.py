"""Restore a table: executors check that the files of the version exist, the driver commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from .._packing import pack_by_size
from ..log.commit_context import CommitOptions
from ..log.timestamps import Timestamp
from ..operations.restore import RestoreResult, find_missing_files, restore_checked
from ..storage.store import Store, TableLocation, open_store
from .credentials import session_options
from .queries.table_names import resolve_table
from .running import run_task
from .task_errors import restore_errors
from .tasks import message, messages, unpack_batches

__all__ = ["restore"]

FILES_OF_TASK = 1000
"""The files that a task looks for, with a request for each."""


def restore(
    spark: SparkSession,
    table: TableLocation,
    version: int | None = None,
    *,
    timestamp: Timestamp | None = None,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> RestoreResult:
    """Restore a table to the state of an earlier version; executors check that its files exist.

    Rows, schema, partition columns and properties become those of the earlier version, as with
    `delta_variant.restore`. No data file is written.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        version: The version to restore.
        timestamp: A timezone-aware datetime or an ISO 8601 string, instead of `version`. It selects the
            latest version that was committed at that time or before it.
        commit: The metadata of the commit; see `delta_variant.CommitOptions`. None, the default, sets none.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        A `delta_variant.RestoreResult` with the version of the commit, and the files that it added and
        removed.

    Raises:
        ValueError: Neither or both of `version` and `timestamp` are given.
        TableNotFoundError: There is no Delta log at `table`.
        VersionNotFoundError: The table does not have the version.
        DataFileError: A data file or a deletion vector of the earlier version is missing, for example after a
            vacuum.
        UnsupportedFeatureError: The table sets `delta.appendOnly=true` and files would be removed, or this
            version cannot commit to the table.
        ProtocolError: The protocol, metadata and schema of the earlier version contradict each other.
        CommitConflictError: A concurrent commit changed the table, or a vacuum has started within a day and
            not ended.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, [{"id": 1}, {"id": 2}])
        >>> result = dvs.delete(spark, table, "id = 1")
        >>> dvs.restore(spark, table, 0).version
        2
    """
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)

    def find_missing(store: Store, paths: Sequence[str]) -> list[str]:
        groups = list(pack_by_size(paths, lambda _: 1, FILES_OF_TASK))
        if not groups:
            return []
        with restore_errors():
            found = messages(run_task(spark, groups, FindTask(store.uri, storage_options)).collect())
        return [path for part in found for path in part]

    return restore_checked(
        table,
        version,
        timestamp=timestamp,
        commit=commit,
        storage_options=storage_options,
        find_missing=find_missing,
    )


@dataclass(frozen=True)
class FindTask:
    """Looks for files of a table."""

    uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the missing files of each group."""
        store = open_store(self.uri, self.storage_options)
        for paths in unpack_batches(batches):
            yield message(list(find_missing_files(store, paths)))
