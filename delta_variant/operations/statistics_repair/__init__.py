"""Repair statistics: compute them from the data files, and commit the files again without other changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..._checks import options_of, to_integer
from ..._progress import advance, begin
from ...data_file.options import MAX_STATS_PATHS
from ...errors import DeltaVariantError
from ...execution import GROUP_BYTES, ROUNDS, NameFile, executor_of
from ...log import transaction
from ...log.commit_context import CommitOptions, CommitResult, commit_context, without_txn
from ...log.file_tables import add_actions
from ...log.load import load_latest
from ...log.snapshot import Snapshot, TableVersion, strip_files
from ...read.rows import select_files
from ...storage.store import Store, TableLocation
from ..audit import file_subjects, statistics_findings
from ..audit.subjects import FileSubject
from .repaired import repair_file

__all__ = ["FileRepair", "RepairResult", "RepairTask", "repair_statistics"]

OPERATION = "COMPUTE STATS"


@dataclass(frozen=True)
class FileRepair:
    """A data file with wrong or missing statistics.

    Attributes:
        path: The decoded path.
        reasons: What is wrong with the statistics, a phrase for each difference.
        stats_before: The JSON text of the statistics, None without them.
        stats: The JSON text of the computed statistics. None if they cannot be computed, for one of the
            reasons; a repair does not change such a file.
    """

    path: str
    reasons: tuple[str, ...]
    stats_before: str | None
    stats: str | None


@dataclass(frozen=True, repr=False)
class RepairResult(CommitResult):
    """The result of a repair.

    Attributes:
        version: The committed version, None for a dry run and if no file was repaired.
        metrics: The metrics of the commit, empty without a commit.
        uri: The table.
        read_version: The version whose files were compared.
        num_files: The number of compared files.
        files: The files with wrong or missing statistics.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> result = dv.repair_statistics("clicks")
        >>> result.num_files, result.repairable
        (1, ())
    """

    uri: str
    read_version: int
    num_files: int
    files: tuple[FileRepair, ...]

    @property
    def repairable(self) -> tuple[FileRepair, ...]:
        """Return the files whose statistics can be computed."""
        return tuple(file for file in self.files if file.stats is not None)

    @property
    def unrepairable(self) -> tuple[FileRepair, ...]:
        """Return the files whose statistics cannot be computed."""
        return tuple(file for file in self.files if file.stats is None)


def repair_statistics(
    table: TableLocation,
    *,
    dry_run: bool = True,
    files: Collection[str] | None = None,
    max_variant_stats_paths: int = MAX_STATS_PATHS,
    commit: CommitOptions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> RepairResult:
    """Compute the statistics of data files where they are wrong, missing or one-sided, and commit them.

    Data files are not modified. The commit keeps all other fields of a file and has `dataChange=false`.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        dry_run: Only compare the statistics, and commit nothing.
        files: Decoded paths of the data files to compare, relative to the table. None compares all.
        max_variant_stats_paths: The greatest number of paths with bounds for each Variant column.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.
        storage_options: Options of the object store, as deltalake names them.

    Returns:
        The files with wrong or missing statistics, and the version of the commit.

    Raises:
        TableNotFoundError: There is no Delta log at `table`.
        UnsupportedFeatureError: This version cannot commit to the table.
        ProtocolError: The protocol, metadata and schema of the table contradict each other.
        ValueError: A path in `files` is not a data file of the table, or `max_variant_stats_paths` is
            negative.
        CommitConflictError: A concurrent commit changed one of the files.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> repair = dv.repair_statistics(table)
        >>> repair.num_files, repair.files
        (1, ())
    """
    commit = without_txn(options_of("commit", commit, CommitOptions), "repair_statistics")
    to_integer("max_variant_stats_paths", max_variant_stats_paths, 0)
    snapshot = load_latest(table, storage_options)
    snapshot.configuration.check_may_commit()
    chosen = select_files(snapshot.files.to_pylist(), files, snapshot.uri)
    executor, version = executor_of(table, snapshot.store, storage_options), strip_files(snapshot)
    total = sum(file["size"] or 0 for file in chosen)
    groups = executor.split(chosen, lambda file: file["size"] or 0, total, GROUP_BYTES, ROUNDS)
    tasks = (RepairTask(version, tuple(group), max_variant_stats_paths) for group in groups)
    found = tuple(repair for repairs in executor.run(tasks) for repair in repairs)
    result = RepairResult(None, snapshot.uri, snapshot.version, len(chosen), found)
    return result if dry_run else _commit_repair(snapshot, result, commit)


@dataclass(frozen=True)
class RepairTask:
    """Compares the statistics of data files, rows of `Snapshot.files`.

    The version has no store.
    """

    snapshot: TableVersion
    files: Sequence[Mapping[str, Any]]
    max_variant_stats_paths: int

    def run(self, store: Store, name: NameFile) -> tuple[FileRepair, ...]:
        """Return the repairs of those files that have wrong or missing statistics."""
        snapshot = replace(self.snapshot, store=store)
        limit = self.max_variant_stats_paths if snapshot.configuration.supports_shredding else 0
        begin(
            "comparing statistics", files=len(self.files), bytes_=sum(int(add["size"]) for add in self.files)
        )
        repairs = []
        for subject in file_subjects(snapshot, self.files):
            repairs.append(_compare_file(subject, limit))
            advance(files=1, bytes_=int(subject.add["size"]))
        return tuple(repair for repair in repairs if repair is not None)


def _compare_file(subject: FileSubject, max_variant_stats_paths: int) -> FileRepair | None:
    """Return the repair of a file, None if the audit finds nothing in its statistics."""
    path, stats = subject.path, subject.add["stats"]
    for error in (subject.file, subject.computed, subject.deleted):
        if isinstance(error, DeltaVariantError):
            return FileRepair(path, (f"the statistics cannot be computed: {error.message}",), stats, None)
    findings = statistics_findings(subject)
    if not findings:
        return None
    reasons = tuple(dict.fromkeys(finding.message for finding in findings))
    repaired = repair_file(subject, findings, max_variant_stats_paths)
    if repaired is None:
        return FileRepair(path, reasons, stats, None)
    return FileRepair(path, reasons, stats, repaired.to_json())


def _commit_repair(snapshot: Snapshot, repair: RepairResult, commit: CommitOptions) -> RepairResult:
    """Commit computed statistics; raise CommitConflictError if a concurrent commit changed a file."""
    if not repair.repairable:
        return repair
    committed = _commit(snapshot, repair, commit)
    return replace(repair, version=committed.version, metrics=committed.metrics)


def _commit(snapshot: Snapshot, repair: RepairResult, commit: CommitOptions) -> CommitResult:
    stats = {file.path: file.stats for file in repair.repairable}
    files = snapshot.files.filter(pc.is_in(snapshot.files["path"], value_set=pa.array(stats, pa.string())))
    adds = [
        msgspec.structs.replace(add, stats=stats[str(path)])
        for path, add in zip(files["path"].to_pylist(), add_actions(files), strict=True)
    ]
    context = commit_context(OPERATION, metrics={"numFiles": len(adds)}, commit=commit)
    return CommitResult(transaction.recommit_files(snapshot, adds, context=context), metrics=context.metrics)
