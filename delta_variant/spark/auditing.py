"""Audits and statistics repairs whose data files are checked by executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from .._checks import options_of
from ..data_file.options import MAX_STATS_PATHS
from ..log.commit_context import CommitOptions, without_txn
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..operations import audit, statistics_repair
from ..operations.audit import Audit
from ..operations.statistics_repair import FileRepair, RepairResult
from ..storage.store import TableLocation
from .credentials import session_options
from .queries.table_names import resolve_table
from .reading import file_groups
from .running import parallelism, run_task
from .task_errors import restore_errors
from .tasks import TaskTable, message, messages, unpack_batches

__all__ = ["audit_table", "repair_statistics"]

ROUNDS = 4
"""File groups for each concurrent task. More than one, because groups take different times."""


def audit_table(
    spark: SparkSession,
    table: TableLocation,
    *,
    data: bool = False,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Audit:
    """Check a table against the Delta and Variant specifications, with the data files read by executors.

    The driver audits the log. If the table cannot be loaded, the driver does the whole audit.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        data: Check every row of the data files, too.
        version: The version to audit, by default the latest.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        The audit, equal to that of `delta_variant.audit_table`.

    Raises:
        TableNotFoundError: The location does not contain a table.
        VersionNotFoundError: The table does not have `version`.
        StoreError: The store cannot be opened or listed.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> dvs.audit_table(spark, table, data=True).is_clean
        True
    """
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    of_log = audit.audit_table(table, files=(), version=version, storage_options=storage_options)
    snapshot = of_log.snapshot
    if snapshot is None:
        return audit.audit_table(table, data=data, version=version, storage_options=storage_options)
    task = AuditTask(TaskTable.of(snapshot, storage_options), data)
    audited = {file.path: (file, found) for part in _run(spark, task, snapshot) for file, found in part}
    in_order = [audited[path] for path in snapshot.files["path"].to_pylist()]
    return replace(
        of_log,
        data=data,
        files=tuple(file for file, _ in in_order),
        findings=(*of_log.findings, *(finding for _, found in in_order for finding in found)),
    )


def repair_statistics(
    spark: SparkSession,
    table: TableLocation,
    *,
    dry_run: bool = True,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> RepairResult:
    """Compute missing, wrong or one-sided statistics with executors, and commit them.

    Data files are read and never changed. All other fields of a file stay as they are.

    Args:
        spark: A session, classic or of Spark Connect.
        table: A path, a URI, a `deltalake.DeltaTable` or a name, as in `read_table`.
        dry_run: Commit nothing and report what would be committed.
        max_variant_stats_paths: The maximum number of paths of each Variant column that get bounds.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.
        storage_options: Options of the object store, with the keys of deltalake; sent to the executors. By
            default those of the session's settings for Hadoop's file systems.

    Returns:
        The repair, equal to that of `delta_variant.repair_statistics`. `version` is None if nothing was
        committed.

    Raises:
        TableNotFoundError: The location does not contain a table.
        CommitConflictError: A concurrent commit changed one of the files.
        ProtocolError: The protocol and the metadata of the table contradict each other.
        UnsupportedFeatureError: This version cannot commit to the table.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> dvs.repair_statistics(spark, table, dry_run=False).files
        ()
    """
    commit = without_txn(options_of("commit", commit, CommitOptions), "repair_statistics")
    table = resolve_table(spark, table)
    storage_options = session_options(spark, table, storage_options)
    snapshot = load_latest(table, storage_options)
    statistics_repair.check_may_repair(snapshot)
    task = RepairTask(TaskTable.of(snapshot, storage_options), max_variant_stats_paths)
    found: list[FileRepair] = [each for part in _run(spark, task, snapshot) for each in part]
    in_order = {path: number for number, path in enumerate(snapshot.files["path"].to_pylist())}
    found.sort(key=lambda each: in_order[each.path])
    result = RepairResult(None, snapshot.uri, snapshot.version, snapshot.num_files, tuple(found))
    return result if dry_run else statistics_repair.commit_repair(snapshot, result, commit)


@dataclass(frozen=True)
class AuditTask:
    """Audits data files of a version."""

    table: TaskTable
    data: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the findings in each group of files."""
        snapshot = self.table.open()
        for files in unpack_batches(batches):
            yield message(audit.audit_files(snapshot, files, data=self.data))


@dataclass(frozen=True)
class RepairTask:
    """Computes the statistics of files of a version."""

    table: TaskTable
    max_variant_stats_paths: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the repairs that each group of files needs."""
        snapshot = self.table.open()
        for files in unpack_batches(batches):
            yield message(statistics_repair.compare_files(snapshot, files, self.max_variant_stats_paths))


def _run(spark: SparkSession, task: AuditTask | RepairTask, snapshot: Snapshot) -> Sequence[Any]:
    """Return the results of a task for each group of a snapshot's files."""
    files = [(file, file["size"] or 0) for file in snapshot.files.to_pylist()]
    groups = file_groups(files, ROUNDS * parallelism(spark))
    if not groups:
        return ()
    with restore_errors():
        return messages(run_task(spark, groups, task).collect())
