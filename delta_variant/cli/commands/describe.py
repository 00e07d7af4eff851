"""The command `describe`."""

from __future__ import annotations

from ...log.load import load_snapshot
from ..arguments import Json, Table, Timestamp, Version, Wide
from ..common_options import storage_options
from ..description import print_description, print_description_json
from ..tables import Layout

__all__ = ["describe"]


def describe(
    table: Table,
    version: Version = None,
    timestamp: Timestamp = None,
    wide: Wide = False,
    json: Json = False,
) -> None:
    """Print the schema, properties, features, protocol and size of a table."""
    snapshot = load_snapshot(table, version, timestamp=timestamp, storage_options=storage_options())
    if json:
        print_description_json(snapshot)
    else:
        print_description(snapshot, Layout(wide))
