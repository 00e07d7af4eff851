"""Audits and repairs whose work on data files is done by the executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ..data_file.options import MAX_STATS_PATHS
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..operations import audit, statistics_repair
from ..operations.audit import Audit
from ..operations.statistics_repair import FileRepair, Repair
from ..storage.store import TableLocation
from .failures import own_errors
from .reading import file_groups
from .running import check_classic, dealt_out
from .tasks import MESSAGE, TaskTable, message, messages, messages_in

__all__ = ["audit_table", "repair_table"]

ROUNDS = 4
"""How many groups of files there are for each task that runs at once: they need not take equally long."""


def audit_table(
    spark: SparkSession,
    table: TableLocation,
    *,
    data: bool = False,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Audit:
    """Return what `delta_variant.audit_table` does; tasks hold the data files against their rules.

    A table that cannot be loaded is audited by the driver.
    """
    check_classic()
    of_table = audit.audit_table(table, files=(), version=version, storage_options=storage_options)
    snapshot = of_table.snapshot
    if snapshot is None:
        return audit.audit_table(table, data=data, version=version, storage_options=storage_options)
    task = AuditTask(TaskTable.of(snapshot, storage_options), data)
    audited = {file.path: (file, found) for part in _run(spark, task, snapshot) for file, found in part}
    in_order = [audited[path] for path in snapshot.files["path"].to_pylist()]
    return replace(
        of_table,
        data=data,
        files=tuple(file for file, _ in in_order),
        findings=(*of_table.findings, *(finding for _, found in in_order for finding in found)),
    )


def repair_table(
    spark: SparkSession,
    table: TableLocation,
    *,
    dry_run: bool = True,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    storage_options: Mapping[str, str] | None = None,
) -> Repair:
    """Do what `delta_variant.repair_table` does; tasks compute the statistics, the driver commits them."""
    check_classic()
    snapshot = load_snapshot(table, storage_options=storage_options)
    statistics_repair.check_may_repair(snapshot)
    task = RepairTask(TaskTable.of(snapshot, storage_options), max_variant_stats_paths)
    found: list[FileRepair] = [each for part in _run(spark, task, snapshot) for each in part]
    in_order = {path: number for number, path in enumerate(snapshot.files["path"].to_pylist())}
    found.sort(key=lambda each: in_order[each.path])
    result = Repair(snapshot.uri, snapshot.version, snapshot.num_files, tuple(found), None)
    return result if dry_run else statistics_repair.commit_repair(snapshot, result)


@dataclass(frozen=True)
class AuditTask:
    """Holds data files of a version against their rules."""

    table: TaskTable
    data: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what was found in the groups of files that came as messages."""
        snapshot = self.table.opened()
        for files in messages_in(batches):
            yield message(audit.audit_files(snapshot, files, data=self.data))


@dataclass(frozen=True)
class RepairTask:
    """Computes the statistics of files of a version."""

    table: TaskTable
    max_variant_stats_paths: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is wrong with the groups of files that came as messages."""
        snapshot = self.table.opened()
        for files in messages_in(batches):
            yield message(statistics_repair.compare_files(snapshot, files, self.max_variant_stats_paths))


def _run(spark: SparkSession, task: AuditTask | RepairTask, snapshot: Snapshot) -> Sequence[Any]:
    """Return what tasks send that each take a group of a snapshot's files."""
    files = [(file, file["size"] or 0) for file in snapshot.files.to_pylist()]
    groups = file_groups(files, ROUNDS * spark.sparkContext.defaultParallelism)
    if not groups:
        return ()
    with own_errors():
        return messages(dealt_out(spark, groups).mapInArrow(task, MESSAGE).collect())
