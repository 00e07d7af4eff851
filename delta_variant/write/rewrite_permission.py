"""Check whether rows of a table may be rewritten."""

from __future__ import annotations

from collections.abc import Collection

from ..log.snapshot import Snapshot
from ..protocol import features
from ..protocol.schema.rules import check_consistent
from ..protocol.schema.widening import check_type_changes

__all__ = ["check_may_rewrite"]


def check_may_rewrite(
    snapshot: Snapshot, *, removes_rows: bool, adds_rows: bool = False, assigned: Collection[str] = ()
) -> None:
    """Raise if this version may not rewrite rows of the table; see `features.check_may_rewrite`.

    `adds_rows` means that rows are inserted, `assigned` are the columns that rows of the table get values of.
    Raises UnsupportedFeatureError and ProtocolError, and SchemaError for a Variant where Delta allows none.
    """
    protocol, settings, columns = snapshot.protocol, snapshot.configuration, snapshot.schema
    if adds_rows:
        features.check_may_append(protocol, settings, columns, snapshot.uri)
    features.check_may_rewrite(protocol, settings, columns, snapshot.uri, removes_rows=removes_rows)
    features.check_may_change(assigned, columns, snapshot.uri)
    check_consistent(snapshot.schema, snapshot.partition_columns)
    check_type_changes(snapshot.schema)
