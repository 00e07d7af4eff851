"""Assign row ids in a table without row tracking (PROTOCOL.md, "Writer Requirements for Row Tracking")."""

from __future__ import annotations

import pyarrow.compute as pc

from ...errors import CommitConflictError
from ...log import transaction
from ...log.commit_context import commit_context
from ...log.load import refresh as refresh_snapshot
from ...log.snapshot import Snapshot
from ...protocol import properties
from .alteration import commit_alteration

__all__ = ["assign_row_ids", "lacks_row_ids"]

FEATURE = "rowTracking"


def lacks_row_ids(snapshot: Snapshot) -> bool:
    """Return whether rows of a file, or rows that a concurrent writer adds, can have no ids."""
    enabled = snapshot.configuration.get(properties.ENABLE_ROW_TRACKING)
    return not enabled or snapshot.files["base_row_id"].null_count > 0


def assign_row_ids(snapshot: Snapshot) -> Snapshot:
    """Commit row ids for all files without them, and return the new snapshot.

    The protocol gains the feature first, so that every writer assigns ids to the rows that it adds. Raises
    CommitConflictError if a concurrent commit changed one of the files or the metadata, and ProtocolError for
    a file whose number of rows the log does not have.
    """
    latest = _commit_row_ids(snapshot)
    if latest.metadata != snapshot.metadata:
        raise CommitConflictError(
            f"a concurrent commit changed the metadata of {snapshot.uri}: retry",
            table=snapshot.uri,
            version=latest.version,
        )
    return latest


def _commit_row_ids(snapshot: Snapshot) -> Snapshot:
    if not snapshot.configuration.supports(FEATURE):
        parameters = {"properties": {f"delta.feature.{FEATURE}": "supported"}}
        commit_alteration(
            snapshot, table_features=[FEATURE], operation="SET TBLPROPERTIES", parameters=parameters
        )
        snapshot = refresh_snapshot(snapshot)
    files = snapshot.files.filter(pc.is_null(snapshot.files["base_row_id"]))
    if not files.num_rows:
        return snapshot
    context = commit_context("ROW TRACKING BACKFILL", metrics={"numFiles": files.num_rows})
    transaction.recommit_files(snapshot, files, context=context)
    return refresh_snapshot(snapshot)
