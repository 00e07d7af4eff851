"""Remove the entries of lost data files from a table, as FSCK REPAIR TABLE does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from .._arrow import total
from .._checks import options_of
from .._progress import begin
from .._text import count
from ..execution import Description
from ..log.commit_context import CommitOptions, CommitResult, commit_context, without_txn
from ..log.conflicts import Reads
from ..log.load import load_latest
from ..log.snapshot import Snapshot
from ..log.transaction import replace_files
from ..read.file_reader import files_of
from ..read.log_statistics import row_counts
from ..storage.store import TableLocation, exists, walk


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
    commit = without_txn(options_of("commit", commit, CommitOptions), "repair_files")
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
    version = replace_files(plan.snapshot, lost, [], reads=reads, context=context)
    return replace(plan.result(version, dry_run=False), metrics=context.metrics)
