"""Write a checkpoint of the latest version of a table (PROTOCOL.md, "Checkpoints")."""

from __future__ import annotations

from uuid import uuid4

from .._progress import begin
from ..log.catalog import check_maintenance
from ..log.checkpoints import writing
from ..log.commit_context import now
from ..log.load import load_latest
from ..storage.store import TableLocation


def write_checkpoint(table: TableLocation) -> int:
    """Write a checkpoint of the latest version, so that readers load it without the commits before.

    A commit writes one every `delta.checkpointInterval` versions, so this is only useful before many readers
    load a version in between, or after the log lost one. `delta.checkpointPolicy` decides its kind. A
    checkpoint that exists is written again.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.

    Returns:
        The version of the checkpoint.

    Raises:
        TableNotFoundError: There is no table at this location.
        UnsupportedFeatureError: The table has unknown features, whose actions a checkpoint would lose, or a
            catalog manages it.
        StoreError: The checkpoint cannot be written.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.write_checkpoint("clicks")
        0
    """
    snapshot = load_latest(table)
    check_maintenance("write a checkpoint of", snapshot.uri, snapshot.protocol)
    snapshot.configuration.check_may_commit()
    begin("writing the checkpoint")
    writing.write_checkpoint(snapshot.store, snapshot.version, now=now(), unique_id=str(uuid4()))
    return snapshot.version
