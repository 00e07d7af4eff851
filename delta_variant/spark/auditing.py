"""Audits and repairs whose work on data files is done by the executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from delta_variant import audit, data_file, repair
from delta_variant.audit import Audit
from delta_variant.log import load_snapshot
from delta_variant.repair import FileRepair, Repair
from delta_variant.snapshot import Snapshot
from delta_variant.store import TableLocation, table_uri

from .failures import own_errors
from .reading import file_groups, sized_files
from .running import check_classic
from .tasks import MESSAGE, message, messages, packed

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
    task = AuditTask(table_uri(table), snapshot.version, data, len(of_table.findings), storage_options)
    parts: Sequence[Audit] = _run(spark, task, snapshot)
    files = {file.path: file for part in parts for file in part.files}
    found = [finding for part in parts for finding in part.findings]
    in_order = {path: number for number, path in enumerate(snapshot.files["path"].to_pylist())}
    return replace(
        of_table,
        data=data,
        files=tuple(files[path] for path in sorted(files, key=in_order.__getitem__)),
        findings=(*of_table.findings, *sorted(found, key=lambda each: in_order[each.file_path or ""])),
    )


def repair_table(
    spark: SparkSession,
    table: TableLocation,
    *,
    dry_run: bool = True,
    max_variant_stats_paths: int = data_file.MAX_STATS_PATHS,
    storage_options: Mapping[str, str] | None = None,
) -> Repair:
    """Do what `delta_variant.repair_table` does; tasks compute the statistics, the driver commits them."""
    check_classic()
    snapshot = load_snapshot(table, storage_options=storage_options)
    repair.check_may_repair(snapshot)
    task = RepairTask(table_uri(table), snapshot.version, max_variant_stats_paths, storage_options)
    found: list[FileRepair] = [each for part in _run(spark, task, snapshot) for each in part]
    in_order = {path: number for number, path in enumerate(snapshot.files["path"].to_pylist())}
    found.sort(key=lambda each: in_order[each.path])
    result = Repair(snapshot.uri, snapshot.version, snapshot.num_files, tuple(found), None)
    return result if dry_run else repair.commit_repair(snapshot, result)


@dataclass(frozen=True)
class AuditTask:
    """Audits files of a version; the first findings of each part are the table's, which the driver has."""

    uri: str
    version: int
    data: bool
    findings_of_table: int
    storage_options: Mapping[str, str] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what was found in the groups of paths that came as messages."""
        for paths in _paths(batches):
            found = audit.audit_table(
                self.uri,
                data=self.data,
                files=paths,
                version=self.version,
                storage_options=self.storage_options,
            )
            yield message(replace(found, findings=found.findings[self.findings_of_table :], snapshot=None))


@dataclass(frozen=True)
class RepairTask:
    """Computes the statistics of files of a version."""

    uri: str
    version: int
    max_variant_stats_paths: int
    storage_options: Mapping[str, str] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is wrong with the groups of paths that came as messages."""
        for paths in _paths(batches):
            snapshot = load_snapshot(self.uri, self.version, storage_options=self.storage_options)
            yield message(repair.judge_files(snapshot, paths, self.max_variant_stats_paths))


def _paths(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, ...]]:
    for batch in batches:
        yield from messages(batch.to_pylist())


def _run(spark: SparkSession, task: AuditTask | RepairTask, snapshot: Snapshot) -> Sequence[Any]:
    """Return what tasks send that each take a group of a snapshot's files."""
    groups = file_groups(sized_files(snapshot.files), ROUNDS * spark.sparkContext.defaultParallelism)
    if not groups:
        return ()
    rows = [(packed(tuple(file.path for file in group)),) for group in groups]
    tasks = spark.createDataFrame(rows, MESSAGE).coalesce(1).repartition(len(groups))
    with own_errors():
        return messages(tasks.mapInArrow(task, MESSAGE).collect())
