"""Repair the entries of data files in the log: remove those of lost files, compute wrong statistics again.

Entries of statistics without a finding of the audit are kept: those of other writers are valid in forms that
this library does not write. So are the entries of columns that the file lacks or has in another type, which
are evidence of lost data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import total
from .._checks import to_integer
from .._progress import advance, begin
from .._text import count
from ..data_file.options import MAX_STATS_PATHS
from ..data_file.reader import stats_of
from ..errors import DeltaVariantError
from ..execution import ROUNDS, Description, NameFile, executor_of
from ..log import transaction
from ..log.commit_context import CommitOptions, CommitResult, commit_context, without_txn
from ..log.conflicts import Reads
from ..log.file_tables import add_actions
from ..log.load import load_latest
from ..log.snapshot import Snapshot, TableVersion, strip_files
from ..protocol import features
from ..protocol.statistics import FileStatistics, Path, leaves_of, put_at, value_at
from ..read.file_reader import files_of
from ..read.log_statistics import row_counts
from ..read.rows import select_files
from ..storage.store import Store, TableLocation, exists, walk
from .audit import file_subjects, statistics_findings
from .audit.findings import Finding
from .audit.subjects import FileSubject

ATTEMPTS = 3
"""How often statistics are computed: those of rows that cannot be read are left out in the next attempt."""

OF_ALL_COLUMNS = ("ST19", "AU22")
"""Rules whose violations are about the statistics of all columns."""


def _repair_file(
    subject: FileSubject, findings: Iterable[Finding], max_variant_stats_paths: int
) -> FileStatistics | None:
    """Return statistics in which an audit finds nothing wrong, None if they cannot be computed.

    Raises DataFileError.
    """
    variants = [column.path for column in subject.table.variants if column.has_bounds]
    stats = stats_of(subject.opened, variants, max_variant_stats_paths=max_variant_stats_paths)
    computed = subject.without_mismatches(stats)
    wrong: set[str | None] = set()
    without_bounds: set[str | None] = set()
    for _ in range(ATTEMPTS):
        found = list(findings)
        wrong |= {each.column for each in found}
        is_whole = any(each.rule in OF_ALL_COLUMNS for each in found)
        repaired = _merged(subject, computed, None if is_whole else wrong, without_bounds)
        if is_whole:
            subject = subject.with_stats(None)
        after = [
            each
            for each in statistics_findings(subject.with_stats(repaired.to_json()))
            if each.severity != "info"
        ]
        if not after:
            return repaired
        without_bounds |= {each.column for each in after}
        findings = after
    return None


def _merged(
    subject: FileSubject,
    computed: FileStatistics,
    wrong: set[str | None] | None,
    without_bounds: Collection[str | None],
) -> FileStatistics:
    """Return computed entries of the columns in `wrong`, all for None, and of those without an entry."""
    stated, table = subject.stats, subject.table
    vector, protocol = subject.add["deletion_vector"], table.protocol
    has_vectors = protocol is not None and features.supports(protocol, "deletionVectors")
    # Bounds of all rows are wide if some rows are deleted (PROTOCOL.md, "Per-file Statistics").
    tight = False if vector is not None else True if has_vectors else None
    evidence = {*subject.lost_columns, *(path for path, _, _ in subject.mismatches)}
    names = {column.path: column.name for column in table.variants}

    def merge(side: Mapping[str, Any], of_data: Mapping[str, Any], *, is_bound: bool) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for path in dict.fromkeys((*(path for path, _ in leaves_of(side)), *table.indexed)):
            name = names.get(path, ".".join(path))
            # Statistics of the wrong form can have parts of a column that has none, such as keys of a map.
            parents = {".".join(path[:length]) for length in range(1, len(path))}
            is_wrong = wrong is None or not wrong.isdisjoint({name, *parents})
            is_column = path in table.indexed or subject.column(path) is not None
            is_kept = path in evidence or (is_column and not is_wrong)
            value = value_at(side, path) if is_kept else None
            if value is None and path not in evidence and path in table.indexed:
                value = value_at(of_data, path)
            if value is not None and not (is_bound and name in without_bounds):
                put_at(merged, path, value)
        return merged

    return replace(
        stated,
        num_records=computed.num_records,
        null_count=merge(stated.null_count, _with_missing(subject, computed), is_bound=False),
        min_values=merge(stated.min_values, computed.min_values, is_bound=True),
        max_values=merge(stated.max_values, computed.max_values, is_bound=True),
        tight_bounds=tight,
    )


def _with_missing(subject: FileSubject, computed: FileStatistics) -> Mapping[str, Any]:
    """Return the null counts with those of the columns that the file lacks: all rows are null."""
    counts: dict[str, Any] = {}
    for path, number in _null_counts(subject, computed):
        put_at(counts, path, number)
    return counts


def _null_counts(subject: FileSubject, computed: FileStatistics) -> Iterator[tuple[Path, Any]]:
    yield from leaves_of(computed.null_count)
    for path in subject.table.indexed:
        if subject.lacks(path) and value_at(subject.stats.null_count, path) is not None:
            yield path, computed.num_records


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
        dry_run: Whether nothing was committed because the call only compared.

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
    dry_run: bool = True

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
) -> RepairResult:
    """Compute the statistics of data files where they are wrong, missing or one-sided, and commit them.

    Data files are not modified. The commit keeps all other fields of a file and has `dataChange=false`.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        dry_run: Only compare the statistics, and commit nothing. True by default.
        files: Decoded paths of the data files to compare, relative to the table. None compares all.
        max_variant_stats_paths: The greatest number of paths with bounds for each Variant column.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

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
    commit = without_txn(commit, "repair_statistics")
    to_integer("max_variant_stats_paths", max_variant_stats_paths, 0)
    snapshot = load_latest(table)
    snapshot.configuration.check_may_commit()
    chosen = select_files(snapshot.files.to_pylist(), files, snapshot.uri)
    executor, version = executor_of(table, snapshot.store, "REPAIR STATISTICS"), strip_files(snapshot)
    groups = executor.split(chosen, lambda file: file["size"] or 0, rounds=ROUNDS)
    tasks = (partial(_compare_files, version, tuple(group), max_variant_stats_paths) for group in groups)
    found = tuple(repair for repairs in executor.run("compute statistics", tasks) for repair in repairs)
    result = RepairResult(None, snapshot.uri, snapshot.version, len(chosen), found, dry_run)
    return result if dry_run else _commit_repair(snapshot, result, commit)


def _compare_files(
    version: TableVersion,
    files: Sequence[Mapping[str, Any]],
    max_variant_stats_paths: int,
    store: Store,
    name: NameFile,
) -> tuple[FileRepair, ...]:
    """Return the repairs of those files, rows of `Snapshot.files`, that have wrong or missing statistics."""
    version = replace(version, store=store)
    limit = max_variant_stats_paths if version.configuration.supports_shredding else 0
    begin("comparing statistics", files=len(files), bytes_=sum(int(add["size"]) for add in files))
    repairs = []
    for subject in file_subjects(version, files):
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
    repaired = _repair_file(subject, findings, max_variant_stats_paths)
    if repaired is None:
        return FileRepair(path, reasons, stats, None)
    computed = repaired.to_json()
    # The caller may ask for no bounds of Variants, which the audit misses.
    return None if computed == stats else FileRepair(path, reasons, stats, computed)


def _commit_repair(snapshot: Snapshot, repair: RepairResult, commit: CommitOptions) -> RepairResult:
    """Commit computed statistics; raise CommitConflictError if a concurrent commit changed a file."""
    if not repair.repairable:
        return repair
    stats = {file.path: file.stats for file in repair.repairable}
    files = snapshot.files.filter(pc.is_in(snapshot.files["path"], value_set=pa.array(stats, pa.string())))
    adds = [
        msgspec.structs.replace(add, stats=stats[str(path)])
        for path, add in zip(files["path"].to_pylist(), add_actions(files), strict=True)
    ]
    context = commit_context("COMPUTE STATS", metrics={"numFiles": len(adds)}, commit=commit)
    version = transaction.recommit_files(snapshot, adds, context=context)
    return replace(repair, version=version, metrics=context.metrics)


@dataclass(frozen=True, repr=False)
class FileRepairResult(CommitResult):
    """The result of a search for lost data files.

    Attributes:
        version: The committed version, None if nothing was committed.
        metrics: The metrics of the commit, empty without a commit.
        files: The lost files whose entries were removed, or would be by a run that is not dry.
        rows: The number of rows that were in them, None if the log does not say it.
        dry_run: Whether the files were only listed.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.repair_files("clicks").files
        ()
    """

    files: tuple[str, ...]
    rows: int | None
    dry_run: bool


def repair_files(
    table: TableLocation, *, dry_run: bool = True, commit: CommitOptions | None = None
) -> FileRepairResult:
    """Remove the entries of data files that do not exist, so that the other rows can be read.

    The rows of lost files are lost. Restore the files from a backup instead if there is one: this reads only
    the names of files. Entries whose deletion vector is lost stay, because their rows exist.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        dry_run: Only list the files, which is the default, and commit nothing.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        A `FileRepairResult` with the lost files.

    Raises:
        TableNotFoundError: There is no table at this location.
        UnsupportedFeatureError: This version cannot remove files of the table, or the table is append-only.
        StoreError: The files cannot be listed.
        CommitConflictError: A concurrent commit removed one of the files.

    Example:
        >>> import delta_variant as dv, os
        >>> for number in range(2):
        ...     result = dv.write_table("clicks", [{"id": number}], mode="append")
        >>> os.remove(f"clicks/{result.files[0].path}")
        >>> dv.repair_files("clicks", dry_run=False).rows
        1
        >>> dv.read_table("clicks").to_pylist()
        [{'id': 0}]
    """
    plan = plan_file_repair(table, commit=commit)
    return plan.result(None, dry_run=True) if dry_run else run_file_repair(plan)


@dataclass(frozen=True)
class FileRepairPlan:
    """The entries of lost files, rows of `Snapshot.files`."""

    snapshot: Snapshot
    lost: pa.Table
    commit: CommitOptions

    def result(self, version: int | None, *, dry_run: bool) -> FileRepairResult:
        rows = row_counts(self.lost)
        paths = tuple(map(str, self.lost["path"].to_pylist()))
        return FileRepairResult(version, paths, None if rows.null_count else total(rows), dry_run)

    def describe(self) -> Description:
        result, version = self.result(None, dry_run=True), self.snapshot.version
        rows = "" if result.rows is None else f", which had {count(result.rows, 'row')}"
        sentence = f"remove {count(len(result.files), 'lost file')} of {self.snapshot.num_files:,}{rows}"
        facts = {"version": version, "files": list(result.files), "rows": result.rows}
        return Description((sentence if result.files else "no data file is lost",), facts, result.files)


def plan_file_repair(table: TableLocation, *, commit: CommitOptions | None = None) -> FileRepairPlan:
    """Return the lost files; raises the errors of `repair_files` that precede the commit."""
    commit = without_txn(commit, "repair_files")
    snapshot = load_latest(table)
    snapshot.configuration.check_may_rewrite(removes_rows=True)
    begin("listing files")
    stored = {file.path for file in walk(snapshot.store)}
    # A listing may lack a file: links, and files outside of the table.
    is_lost = [
        file.path not in stored and not exists(snapshot.store, file.path) for file in files_of(snapshot.files)
    ]
    return FileRepairPlan(snapshot, snapshot.files.filter(pa.array(is_lost, pa.bool_())), commit)


def run_file_repair(plan: FileRepairPlan) -> FileRepairResult:
    """Commit the removal of the entries; without lost files, commit nothing."""
    lost = plan.lost
    if not lost.num_rows:
        return plan.result(None, dry_run=False)
    context = commit_context("FSCK", {}, {"numRemovedFiles": lost.num_rows}, plan.commit)
    # Files that concurrent commits add are not read.
    reads = Reads(lost, lambda adds: False)
    version = transaction.replace_files(plan.snapshot, lost, [], reads=reads, context=context)
    return replace(plan.result(version, dry_run=False), metrics=context.metrics)
