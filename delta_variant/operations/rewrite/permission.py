"""Check whether rows of a table may be rewritten."""

from __future__ import annotations

from ...log.snapshot import Snapshot
from ...protocol import features
from ...protocol.schema.rules import check_consistent
from ...protocol.schema.widening import check_type_changes

__all__ = ["check_may_rewrite"]


def check_may_rewrite(snapshot: Snapshot, *, removes_rows: bool) -> None:
    """Raise if this version may not rewrite rows of the table; see `features.check_may_rewrite`.

    Raises UnsupportedFeatureError and ProtocolError, and SchemaError for a Variant where Delta allows none.
    """
    features.check_may_rewrite(
        snapshot.protocol, snapshot.configuration, snapshot.schema, snapshot.uri, removes_rows=removes_rows
    )
    check_consistent(snapshot.schema, snapshot.partition_columns)
    check_type_changes(snapshot.schema)
