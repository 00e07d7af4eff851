"""Snapshots: a table as it is, or as it was at a version or a time."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from .._checks import to_integer
from ..errors import MalformedLogError
from ..protocol.actions import Metadata, Protocol
from ..storage.store import Store, TableLocation, open_store
from .snapshot import Snapshot, replay_tombstones
from .state import build_from_log, protocol_and_metadata, snapshot_of
from .timestamps import Timestamp, version_at

__all__ = ["load_protocol_and_metadata", "load_snapshot", "load_with_tombstones", "refresh"]


def load_snapshot(
    table: TableLocation | Store,
    version: int | None = None,
    *,
    timestamp: Timestamp | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Return the state of a table at `version`, or as it was at `timestamp`, by default the latest.

    A timestamp is a datetime that knows its time zone, or ISO 8601 text, of UTC where it names no other; it
    stands for the latest version that was committed then or before. A version's time is its in-commit
    timestamp where the table keeps them, otherwise the modification time of its commit's file.

    Raises TableNotFoundError, VersionNotFoundError, and MalformedLogError for a log that lacks a version or
    holds one that cannot be understood. A stale or corrupt `_last_checkpoint` does no harm, nor does a
    checkpoint or a log compaction that cannot be read while other files can stand in for it. Of a time,
    TimestampBeforeFirstError and, as Delta on Spark has it, TimestampAfterLatestError are raised; ValueError
    for what is no time or no version, or for both.
    """
    store = table if isinstance(table, Store) else open_store(table, storage_options)
    if timestamp is not None:
        if version is not None:
            raise ValueError("a table is loaded by version or by timestamp, and not by both")
        version = version_at(store, timestamp)
    if version is not None:
        version = to_integer("version", version)
    return build_from_log(store, version, lambda log: snapshot_of(store, log))


def load_with_tombstones(store: Store, version: int | None = None) -> tuple[Snapshot, pa.Table]:
    """Return a snapshot and, as TOMBSTONES_SCHEMA, the files that the log says are gone."""
    return build_from_log(
        store,
        version,
        lambda log: (snapshot_of(store, log), replay_tombstones(log.checkpoint, log.commits)),
    )


def load_protocol_and_metadata(store: Store, version: int) -> tuple[Protocol, Metadata]:
    """Return what a table promised at a version, without its files; raises what `load_snapshot` raises."""
    protocol, metadata = build_from_log(store, version, protocol_and_metadata)
    if protocol is None or metadata is None:
        raise MalformedLogError(
            f"{store.uri}, version {version}: no commit up to here has protocol and metaData"
        )
    return protocol, metadata


def refresh(snapshot: Snapshot) -> Snapshot:
    """Return the latest snapshot of the same table."""
    return load_snapshot(snapshot.store)
