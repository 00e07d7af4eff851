"""Bringing a table back to what it was: one commit, and no data file is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataFileError, UnsupportedFeatureError
from ..log import deletion_vectors, transaction
from ..log.conflicts import Reads
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot, add_actions, subtract_files
from ..log.timestamps import Timestamp
from ..protocol import features, properties
from ..protocol.actions import CLUSTERING_DOMAIN, AddFile, DomainMetadata, Metadata, Protocol
from ..protocol.schema.rules import check_consistent
from ..storage.store import TableLocation, exists
from ..writer.table_state import commit_context

__all__ = ["Restoration", "restore"]

NO_CLUSTERING = f'{{"clusteringColumns":[],"domainName":"{CLUSTERING_DOMAIN}"}}'

LOG_PROPERTIES = (
    properties.ENABLE_IN_COMMIT_TIMESTAMPS.name,
    properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name,
    properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name,
)
"""Properties that say how the log is to be read, and not what the table was."""

NAMED_FILES = 5


@dataclass(frozen=True)
class Restoration:
    """What brought a table back to the version `restored`.

    `version` is that of the commit, None where the table was so already. Files were added that had gone, and
    those removed that had come.
    """

    version: int | None
    restored: int
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int


def restore(
    table: TableLocation,
    version: int | None = None,
    *,
    timestamp: Timestamp | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Restoration:
    """Bring a table back to what it was at a version or a time, by a new commit.

    Rows, schema, partition columns and properties are those of then. The protocol only ever gains features,
    in-commit timestamps stay as they are, and so do transactions of applications, so that no batch is written
    twice. Data files are not touched; `load_snapshot` says what a timestamp stands for.

    Raises DataFileError that names data files and deletion vectors which are no longer there, as after a
    vacuum; CommitConflictError when another commit changed the table meanwhile; UnsupportedFeatureError for
    a table where files may not be removed (`delta.appendOnly`) or that this version cannot commit to; what
    `load_snapshot` raises; ValueError without a version or timestamp.
    """
    if version is None and timestamp is None:
        raise ValueError("restore needs the version, or the timestamp, that is to come back")
    present = load_snapshot(table, storage_options=storage_options)
    past = load_snapshot(present.store, version, timestamp=timestamp)
    added, removed = subtract_files(past.files, present.files), subtract_files(present.files, past.files)
    protocol, metadata = _protocol(past, present), _metadata(past, present)
    _check(present, past, protocol, metadata, removed)
    _check_there(past, added)
    changes = _Changes(
        added,
        removed,
        protocol if protocol != present.protocol else None,
        metadata if metadata != present.metadata else None,
        _clustering(past, present),
    )
    return Restoration(
        _commit(present, past, changes, timestamp) if changes else None,
        past.version,
        added.num_rows,
        removed.num_rows,
        _bytes(added),
        _bytes(removed),
    )


@dataclass(frozen=True)
class _Changes:
    """What is to be committed: rows of `Snapshot.files` and actions, None where nothing changes."""

    added: pa.Table
    removed: pa.Table
    protocol: Protocol | None
    metadata: Metadata | None
    domains: Sequence[DomainMetadata]

    def __bool__(self) -> bool:
        files = self.added.num_rows or self.removed.num_rows
        return bool(files or self.protocol or self.metadata or self.domains)


def _commit(present: Snapshot, past: Snapshot, changes: _Changes, timestamp: Timestamp | None) -> int:
    context = commit_context(
        "RESTORE",
        {
            "version": past.version if timestamp is None else None,
            "timestamp": None if timestamp is None else str(timestamp),
        },
        {
            "tableSizeAfterRestore": past.num_bytes,
            "numOfFilesAfterRestore": past.num_files,
            "numRemovedFiles": changes.removed.num_rows,
            "numRestoredFiles": changes.added.num_rows,
            "removedFilesSize": _bytes(changes.removed),
            "restoredFilesSize": _bytes(changes.added),
        },
    )
    return transaction.replace_files(
        present,
        changes.removed,
        list(add_actions(changes.added)),
        context=context,
        reads=Reads(present.files, _any_row, with_appends=True, returns_files=changes.added.num_rows > 0),
        new_metadata=changes.metadata,
        new_protocol=changes.protocol,
        domains=changes.domains,
    )


def _any_row(adds: Sequence[AddFile]) -> bool:
    return True


def _protocol(past: Snapshot, present: Snapshot) -> Protocol:
    where = f"version {past.version} of {past.uri}"
    features.check_may_commit(past.protocol, past.configuration, past.schema, where)
    return features.with_features_of(present.protocol, past.protocol)


def _metadata(past: Snapshot, present: Snapshot) -> Metadata:
    """Return the metadata of then, with what only ever grows or is of the log as it is now."""
    configuration = {name: text for name, text in past.configuration.items() if name not in LOG_PROPERTIES}
    configuration |= {name: text for name, text in present.configuration.items() if name in LOG_PROPERTIES}
    greatest = properties.COLUMN_MAPPING_MAX_COLUMN_ID
    ids = [properties.get(each.configuration, greatest) or 0 for each in (past, present)]
    if max(ids):
        configuration[greatest.name] = str(max(ids))
    return msgspec.structs.replace(past.metadata, id=present.metadata.id, configuration=configuration)


def _check(
    present: Snapshot, past: Snapshot, protocol: Protocol, metadata: Metadata, removed: pa.Table
) -> None:
    """Raise UnsupportedFeatureError or ProtocolError where the table may not be committed so."""
    features.check_may_commit(present.protocol, present.configuration, present.schema, present.uri)
    features.check_may_commit(protocol, metadata.configuration, past.schema, present.uri)
    check_consistent(past.schema, past.partition_columns)
    for each in (present, past):
        features.check_may_restore(each.configuration, each.schema, present.uri)
    if removed.num_rows and properties.get(present.configuration, properties.APPEND_ONLY):
        raise UnsupportedFeatureError(
            f"{present.uri} sets {properties.APPEND_ONLY.name}=true, and {removed.num_rows} files have come "
            f"since version {past.version}: unset it to restore that"
        )
    before, after = (
        properties.get(each.configuration, properties.COLUMN_MAPPING_MODE) for each in (present, past)
    )
    if before not in (after, "none"):
        raise UnsupportedFeatureError(
            f"{present.uri} maps columns by {before}, and version {past.version} by {after}: "
            "a table cannot go back there"
        )


def _check_there(past: Snapshot, files: pa.Table) -> None:
    """Raise DataFileError where a file or its deletion vector is gone."""
    paths = list(_paths(files))
    with ThreadPoolExecutor(max_workers=16) as threads:
        found = threads.map(lambda path: exists(past.store, path), paths)
        missing = sorted({path for path, is_there in zip(paths, found, strict=True) if not is_there})
    if missing:
        named = ", ".join(missing[:NAMED_FILES])
        more = f" and {len(missing) - NAMED_FILES:,} more" if len(missing) > NAMED_FILES else ""
        raise DataFileError(
            f"version {past.version} of {past.uri} cannot be restored: {named}{more} are no longer there"
        )


def _paths(files: pa.Table) -> Iterator[str]:
    for batch in files.select(["path", "deletion_vector"]).to_batches():
        for path, vector in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield path
            stored = None if vector is None else deletion_vectors.file_path(vector)
            if stored is not None:
                yield stored


def _clustering(past: Snapshot, present: Snapshot) -> list[DomainMetadata]:
    """Return the clustering columns of then, none where there were none, unless they are the same."""
    before, after = (each.domain_metadata.get(CLUSTERING_DOMAIN) for each in (present, past))
    wanted = NO_CLUSTERING if after is None else after.configuration
    if (NO_CLUSTERING if before is None else before.configuration) == wanted:
        return []
    return [DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=wanted, removed=False)]


def _bytes(files: pa.Table) -> int:
    return int(pc.sum(files["size"]).as_py() or 0)
