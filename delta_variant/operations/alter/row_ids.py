"""Ids for the rows of a table that has had none (PROTOCOL.md, "Writer Requirements for Row Tracking")."""

from __future__ import annotations

import pyarrow.compute as pc

from ...errors import CommitConflictError
from ...log import transaction
from ...log.load import refresh as refresh_snapshot
from ...log.snapshot import Snapshot, add_actions
from ...protocol import features, properties
from ...writer.target import commit_context
from .alteration import commit_alteration

__all__ = ["assign_row_ids", "lacks_row_ids"]

FEATURE = "rowTracking"


def lacks_row_ids(snapshot: Snapshot) -> bool:
    """Tell whether rows may have no ids: those of a file, or those that another writer adds meanwhile."""
    enabled = properties.get(snapshot.configuration, properties.ENABLE_ROW_TRACKING)
    return not enabled or snapshot.files["base_row_id"].null_count > 0


def assign_row_ids(snapshot: Snapshot) -> Snapshot:
    """Commit ids for the rows of all files that give them none, and return the table as it is then.

    The protocol gets the feature first: from then on every writer gives ids to the rows that it adds. Raises
    CommitConflictError when another commit changed one of the files or the metadata meanwhile, and
    ProtocolError for a file of which the log does not say how many rows it has.
    """
    latest = _commit_row_ids(snapshot)
    if latest.metadata != snapshot.metadata:
        raise CommitConflictError(f"{snapshot.uri}: another commit changed the metadata meanwhile; try again")
    return latest


def _commit_row_ids(snapshot: Snapshot) -> Snapshot:
    if not features.supports(snapshot.protocol, FEATURE):
        said = {"properties": {f"delta.feature.{FEATURE}": "supported"}}
        commit_alteration(snapshot, table_features=[FEATURE], operation="SET TBLPROPERTIES", parameters=said)
        snapshot = refresh_snapshot(snapshot)
    files = snapshot.files.filter(pc.is_null(snapshot.files["base_row_id"]))
    if not files.num_rows:
        return snapshot
    context = commit_context("ROW TRACKING BACKFILL", metrics={"numFiles": files.num_rows})
    transaction.recommit_files(snapshot, list(add_actions(files)), context=context)
    return refresh_snapshot(snapshot)
