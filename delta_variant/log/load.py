"""Load snapshots: the state of a table at the latest version, at a version, or at a timestamp."""

from __future__ import annotations

import pyarrow as pa

from .._checks import to_integer
from .._logging import get_logger
from ..errors import MalformedLogError
from ..protocol.actions import Metadata, Protocol
from ..storage.store import Store, TableLocation, is_as_of, open_latest, open_store, pinned_version
from .catalog import check_access, is_managed_elsewhere
from .replay import replay_tombstones
from .snapshot import Snapshot
from .state import build_from_log, protocol_and_metadata_at, snapshot_at
from .timestamps import Timestamp, version_at

_LOGGER = get_logger(__name__)


def load_snapshot(
    table: TableLocation | Snapshot, version: int | None = None, *, timestamp: Timestamp | None = None
) -> Snapshot:
    """Load the state of a table, by default of its latest version.

    A stale or corrupt `_last_checkpoint` is ignored. So is a checkpoint or a log compaction that cannot be
    read, if other files have the same actions.

    Args:
        table: A path, a URI, a `Table`, a `deltalake.DeltaTable` or an open store. A table `as_of` a version
            and a DeltaTable stand for their version. A `Snapshot` is returned as it is.
        version: The version to load.
        timestamp: A timezone-aware datetime or ISO 8601 text, in UTC if the text has no offset. The latest
            version committed at or before this time is loaded. The time of a version is its in-commit
            timestamp if the table has them, else the modification time of its commit file.

    Returns:
        The protocol, metadata, schema and files of that version.

    Raises:
        TableNotFoundError: If there is no table.
        VersionNotFoundError: If the version does not exist, or can no longer be loaded.
        TimestampBeforeFirstError: If the timestamp is earlier than the first version in the log.
        TimestampAfterLatestError: If the timestamp is later than the latest version, as in Delta on Spark.
        MalformedLogError: If the log lacks a version or is malformed.
        ValueError: If the version or timestamp is invalid, or both are given.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> _ = dv.write_table("events", pa.table({"id": [1, 2]}))
        >>> dv.load_snapshot("events").version
        0
    """
    if isinstance(table, Snapshot):
        if version is not None or timestamp is not None:
            raise ValueError(
                "cannot read another version because a Snapshot has one version: pass the path of the table"
            )
        return table
    store = open_store(table)
    version, timestamp = version_to_read(table, version, timestamp)
    if timestamp is not None:
        if version is not None:
            raise ValueError("expected a version or a timestamp, got both")
        version = version_at(store, timestamp)
    if version is not None:
        version = to_integer("version", version)
    snapshot = snapshot_at(store, version)
    if snapshot.file_set.listed is None:
        counts = f"{snapshot.num_files} files, {snapshot.num_bytes} bytes"
    else:
        counts = "its files are read when they are used"
    _LOGGER.info("loaded version %d of %s: %s", snapshot.version, snapshot.uri, counts)
    if is_managed_elsewhere(store, snapshot.protocol):
        _LOGGER.warning(
            "%s: a catalog manages the table, and version %d is the latest that it has published; pass "
            "uc://catalog.schema.table for the latest version",
            snapshot.uri,
            snapshot.version,
        )
    return snapshot


def version_to_read(
    table: TableLocation, version: int | None, timestamp: Timestamp | None
) -> tuple[int | None, Timestamp | None]:
    """Return the version or the timestamp of a read: those passed, or by default those of the handle.

    Raises ValueError for both, unless the handle is a `deltalake.DeltaTable`, which always has a version.
    """
    own_version, own_timestamp = pinned_version(table)
    if version is None and timestamp is None:
        return own_version, own_timestamp
    if is_as_of(table):
        raise ValueError(
            "cannot read another version because as_of selected one: pass the table without as_of"
        )
    return version, timestamp


def load_latest(table: TableLocation) -> Snapshot:
    """Return the latest snapshot of a table that an operation changes.

    Raises what `load_snapshot` raises, and UnsupportedFeatureError for a catalog-managed table by location.
    """
    snapshot = load_snapshot(open_latest(table))
    check_access(snapshot.store, snapshot.protocol)
    return snapshot


def open_to_read(table: TableLocation | Snapshot) -> tuple[Store, int | None, Timestamp | None]:
    """Return the store of a table, and the version or the timestamp that its handle stands for."""
    if isinstance(table, Snapshot):
        return table.store, table.version, None
    return open_store(table), *pinned_version(table)


def load_with_tombstones(store: Store, version: int | None = None) -> tuple[Snapshot, pa.Table]:
    """Return a snapshot and the tombstones of the log, as a table of TOMBSTONES_SCHEMA."""
    snapshot = snapshot_at(store, version)
    tombstones = build_from_log(
        store, snapshot.version, lambda log: replay_tombstones(log.checkpoint, log.commits)
    )
    return snapshot, tombstones


def load_protocol_and_metadata(store: Store, version: int) -> tuple[Protocol, Metadata]:
    """Return the protocol and metadata of a version; raises what `load_snapshot` raises."""
    protocol, metadata = protocol_and_metadata_at(store, version)
    if protocol is None or metadata is None:
        raise MalformedLogError(
            f"the log of {store.uri} lacks protocol or metaData up to version {version}",
            table=store.uri,
            version=version,
        )
    return protocol, metadata


def refresh(snapshot: Snapshot) -> Snapshot:
    """Return the latest snapshot of the same table, from the one that its store loaded last."""
    return snapshot_at(snapshot.store)
