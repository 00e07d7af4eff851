"""Delete the expired part of a table's log (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

from dataclasses import dataclass

from .._progress import begin
from ..log.catalog import check_maintenance
from ..log.cleanup import delete_expired, find_expired
from ..log.commit_context import now
from ..log.load import load_latest
from ..storage.store import TableLocation

__all__ = ["LogCleanupResult", "clean_up_log"]


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
    snapshot = load_latest(table)
    check_maintenance("clean up the log of", snapshot.uri, snapshot.protocol)
    snapshot.configuration.check_may_commit()
    begin("listing files")
    expired = find_expired(snapshot.store, snapshot.configuration, now())
    if not dry_run:
        begin("deleting", files=len(expired.files))
        delete_expired(snapshot.store, expired)
    paths = tuple(file.path for file in expired.files)
    return LogCleanupResult(expired.first_version, paths, sum(file.size for file in expired.files), dry_run)
