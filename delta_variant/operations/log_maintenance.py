"""Delete the expired part of a table's log (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

from dataclasses import dataclass

from .._progress import begin
from .._text import count, size_text
from ..execution import Description
from ..log.catalog import check_maintenance
from ..log.cleanup import ExpiredLog, delete_expired, find_expired
from ..log.commit_context import now
from ..log.load import load_latest
from ..storage.store import Store, TableLocation


@dataclass(frozen=True)
class LogCleanupResult:
    """The result of a cleanup of the log.

    Attributes:
        first_version: The first version that can still be loaded, None if no file expired.
        files: The deleted files, or the files that a dry run would delete: paths relative to the table.
        bytes: The size of these files, in bytes.
        dry_run: Whether the files were only listed.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.clean_up_log("clicks")
        LogCleanupResult(first_version=None, files=(), bytes=0, dry_run=True)
    """

    first_version: int | None
    files: tuple[str, ...]
    bytes: int
    dry_run: bool


def clean_up_log(
    table: TableLocation,
    *,
    dry_run: bool = True,
) -> LogCleanupResult:
    """Delete the commits, checkpoints and checksums of a table that are older than the retention of its log.

    The property `delta.logRetentionDuration`, 30 days by default and at least one day, decides which versions
    remain. The newest checkpoint that is not later than the first of them remains too, and is read before
    anything is deleted. Without such a checkpoint, nothing is deleted. Earlier versions can then no longer be
    loaded, and the history begins later. Writers do the same after the first checkpoint of a day, unless the
    table sets `delta.enableExpiredLogCleanup` to false. Data files stay: see `vacuum`.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        dry_run: Only list the files, and delete nothing.

    Returns:
        The deleted files, or the files that would be deleted.

    Raises:
        TableNotFoundError: There is no Delta log at `table`.
        UnsupportedFeatureError: This version cannot commit to the table.
        StoreError: Some files could not be deleted. The remaining versions can be loaded.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1]}))
        >>> dv.clean_up_log(table, dry_run=True).files
        ()
    """
    plan = plan_log_cleanup(table)
    return plan.result(dry_run=True) if dry_run else run_log_cleanup(plan)


@dataclass(frozen=True)
class LogCleanupPlan:
    """The files that a cleanup of the log deletes."""

    store: Store
    expired: ExpiredLog

    def result(self, *, dry_run: bool) -> LogCleanupResult:
        files = self.expired.files
        paths, size = tuple(file.path for file in files), sum(file.size for file in files)
        return LogCleanupResult(self.expired.first_version, paths, size, dry_run)

    def describe(self) -> Description:
        """Return which files the cleanup deletes, and what is lost with them."""
        result = self.result(dry_run=True)
        files = f"{count(len(result.files), 'file')} of the log, {size_text(result.bytes)}"
        lost = f"delete {files}; versions before {result.first_version} can no longer be loaded"
        facts = {"first_version": result.first_version, "files": list(result.files), "bytes": result.bytes}
        return Description((lost if result.files else "no file of the log has expired",), facts, result.files)


def plan_log_cleanup(table: TableLocation) -> LogCleanupPlan:
    """Return the files that a cleanup deletes; raises the errors of the table."""
    snapshot = load_latest(table)
    check_maintenance("clean up the log of", snapshot.uri, snapshot.protocol)
    snapshot.configuration.check_may_commit()
    begin("listing files")
    return LogCleanupPlan(snapshot.store, find_expired(snapshot.store, snapshot.configuration, now()))


def run_log_cleanup(plan: LogCleanupPlan) -> LogCleanupResult:
    begin("deleting", files=len(plan.expired.files))
    delete_expired(plan.store, plan.expired)
    return plan.result(dry_run=False)
