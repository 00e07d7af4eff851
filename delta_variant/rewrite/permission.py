"""What a table allows to be done to its rows."""

from __future__ import annotations

from delta_variant import features, schema
from delta_variant.snapshot import Snapshot

__all__ = ["check_may_rewrite"]


def check_may_rewrite(snapshot: Snapshot, *, removes_rows: bool, moves_rows: bool) -> None:
    """Raise unless rows of the table may be rewritten so; see `features.Rewrite`.

    Raises UnsupportedFeatureError and ProtocolError, and SchemaError for a Variant where none can be.
    """
    rewrite = features.Rewrite(removes_rows, moves_rows)
    features.check_may_rewrite(
        snapshot.protocol, snapshot.configuration, snapshot.schema, rewrite, snapshot.uri
    )
    schema.check_variants(snapshot.schema, snapshot.partition_columns)
