"""Build the state at a version from the log, with any of its files that exist and can be read.

The files of a checkpoint are streamed as batches. The actions of the commits after it are in memory. A store
remembers the snapshot that was loaded last; a later version is that snapshot and the commits since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeVar
from weakref import ref

import msgspec
import pyarrow as pa

from ..errors import MalformedLogError, StoreError, VersionNotFoundError
from ..protocol import properties
from ..protocol.actions import Metadata, Protocol
from ..storage.objects import StoredFile
from ..storage.store import Store
from .checksum import read_protocol_and_metadata
from .commits import read_commit_info, read_spans_to_replay
from .file_tables import FILES_SCHEMA
from .listing import (
    Listing,
    Span,
    checkpoint_hint,
    commit_file_name,
    list_log,
    managing_catalog,
    table_not_found,
)
from .replay import Checkpoint, Commit, as_checkpoint, replay, table_actions
from .snapshot import Snapshot

Result = TypeVar("Result")

_MOST_COMMITS = 1000
"""The number of commits that are read on top of a snapshot; a checkpoint after it has more of them."""


class LogSegment(msgspec.Struct, frozen=True):
    """The log of one version: a checkpoint, if one was used, and the commits after it, oldest first.

    A log compaction counts as a commit. `timestamp` is the in-commit timestamp if the last of `commits` does
    not have it. `commit_file` is the commit of the version, None if it was deleted.
    """

    version: int
    commit_file: StoredFile | None
    checkpoint: Checkpoint | None
    commits: Sequence[Commit]
    timestamp: int | None


class _Loaded(msgspec.Struct, frozen=True):
    """A snapshot, and the file of its last commit, which identifies the log that the snapshot is of."""

    snapshot: Snapshot
    commit_file: StoredFile


def latest_version(store: Store) -> int:
    """Return the latest version without loading it; raises TableNotFoundError if there is no table."""
    hint = checkpoint_hint(store)
    latest = -1 if hint is None else list_log(store, hint).latest
    return latest if latest >= 0 else _existing(store, list_log(store, None)).latest


def snapshot_at(store: Store, version: int | None = None) -> Snapshot:
    """Return the snapshot of a version, None for the latest; raises what `load_snapshot` raises.

    Reads only the commits since the snapshot that the store remembers, if that is not later.
    """
    known = _recall(store)
    if known is not None and (version is None or known.snapshot.version <= version):
        found = _advance(known, store, version)
        if found is not None:
            _remember(store, found)
            return found.snapshot
    snapshot, commit_file = build_from_log(store, version, lambda log: _load(store, log))
    # An earlier version, which is read once, does not replace the state that later loads continue from.
    if commit_file and (version is None or known is None or known.snapshot.version <= snapshot.version):
        _remember(store, _Loaded(snapshot, commit_file))
    return snapshot


def _recall(store: Store) -> _Loaded | None:
    loaded = store.memo.loaded
    snapshot: Snapshot | None = None if loaded is None else loaded[0]()
    return None if snapshot is None else _Loaded(snapshot, loaded[1])


def _remember(store: Store, loaded: _Loaded) -> None:
    snapshot = loaded.snapshot
    store.memo.loaded = (lambda: snapshot) if store.memo.keeps else ref(snapshot), loaded.commit_file


def _load(store: Store, log: LogSegment) -> tuple[Snapshot, StoredFile | None]:
    return replay(store, log.version, log.checkpoint, log.commits, timestamp=log.timestamp), log.commit_file


def _advance(known: _Loaded, store: Store, version: int | None) -> _Loaded | None:
    """Return the state at a version from an earlier one and the commits since.

    Return None if the log does not continue that state: the table was replaced, or commits were deleted. Then
    the whole log decides, which also raises the errors.
    """
    first = known.snapshot.version
    listing = list_log(store, first)
    target = listing.latest if version is None else version
    commit_file = listing.commits.get(target)
    if commit_file is None or not _continues(known, store, listing.commits.get(first)):
        return None
    if target == first:
        return _Loaded(replace(known.snapshot, store=store), known.commit_file)
    try:
        spans = listing.spans(first + 1, target, store.uri)
        if len(spans) > _MOST_COMMITS and any(first < each.version <= target for each in listing.checkpoints):
            return None
        log = _read_segment(store, target, listing, as_checkpoint(known.snapshot), spans)
    except (MalformedLogError, StoreError):
        return None
    return _Loaded(_load(store, log)[0], commit_file)


def _continues(known: _Loaded, store: Store, commit_file: StoredFile | None) -> bool:
    """Return whether a log that has `commit_file` at the version of a snapshot is the log of the snapshot."""
    catalog, known_catalog = managing_catalog(store), managing_catalog(known.snapshot.store)
    if catalog is None or known_catalog is None:
        return catalog is known_catalog and known.commit_file.is_same_as(commit_file)
    # The published commit is another file than the staged one.
    return commit_file is not None and catalog.table_id == known_catalog.table_id


def protocol_and_metadata_at(
    store: Store, version: int | None = None
) -> tuple[Protocol | None, Metadata | None]:
    """Return the protocol and metadata of a version, None for the latest, without its list of files.

    Each is None if the log lacks it. Raises what `load_snapshot` raises.
    """
    known = _recall(store)
    if known is not None and (version is None or known.snapshot.version <= version):
        snapshot = snapshot_at(store, version)
        return snapshot.protocol, snapshot.metadata
    recorded = read_protocol_and_metadata(store, latest_version(store) if version is None else version)
    if recorded is not None:
        return recorded
    return build_from_log(store, version, lambda log: _protocol_and_metadata(log.checkpoint, log.commits))


def _protocol_and_metadata(
    checkpoint: Checkpoint | None, commits: Sequence[Commit]
) -> tuple[Protocol | None, Metadata | None]:
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for action in chain(checkpoint.actions if checkpoint else (), *map(table_actions, commits)):
        if isinstance(action, Protocol):
            protocol = action
        elif isinstance(action, Metadata):
            metadata = action
    return protocol, metadata


def build_from_log(store: Store, version: int | None, build: Callable[[LogSegment], Result]) -> Result:
    """Return the result of `build` for the log at `version`, None for the latest.

    If some files cannot be read, `build` is called again with others. Raises what `load_snapshot` raises.
    """
    hint = checkpoint_hint(store)
    if hint is not None and (version is None or hint <= version):
        listing = list_log(store, hint)
        if any(version is None or found.version <= version for found in listing.checkpoints):
            try:
                return _build(store, listing, version, build)
            except (MalformedLogError, VersionNotFoundError):
                # A full listing may contain older files that lead to this version.
                pass
    return _build(store, list_log(store, None), version, build)


def _build(
    store: Store, listing: Listing, version: int | None, build: Callable[[LogSegment], Result]
) -> Result:
    latest = _existing(store, listing).latest
    target = latest if version is None else version
    if not 0 <= target <= latest:
        raise VersionNotFoundError(
            f"{store.uri} has no version {target}: its latest is {latest}", table=store.uri, version=target
        )
    unreadable: MalformedLogError | None = None
    for files in (found for found in listing.checkpoints if found.version <= target):
        spans = listing.spans(files.version + 1, target, store.uri)
        try:
            # Imported here, because a short log has no checkpoint, and pyarrow.parquet takes long to import.
            from .checkpoints.reading import read_checkpoint

            checkpoint = read_checkpoint(store, files, partial(_recover_files, store, files.version))
            return build(_read_segment(store, target, listing, checkpoint, spans))
        except MalformedLogError as error:
            unreadable = unreadable or error
    if not listing.has(0):
        raise unreadable or _unreachable(store, listing, target)
    return build(_read_segment(store, target, listing, None, listing.spans(0, target, store.uri)))


def _read_segment(
    store: Store, version: int, listing: Listing, checkpoint: Checkpoint | None, spans: Sequence[Span]
) -> LogSegment:
    """Return the log of a version: a checkpoint, and the commits after it in the files of `spans`."""
    commits = list(read_spans_to_replay(store, spans))
    timestamp = None
    if not spans or not spans[-1].is_commit:
        timestamp = _in_commit_timestamp(store, version, checkpoint, commits)
    return LogSegment(version, listing.commits.get(version), checkpoint, commits, timestamp)


def _existing(store: Store, listing: Listing) -> Listing:
    if listing.latest < 0:
        raise table_not_found(store)
    return listing


def _recover_files(store: Store, version: int) -> pa.Table:
    """Return the files at a version from any files of the log that can be read."""

    def load(log: LogSegment) -> pa.Table:
        snapshot, _ = _load(store, log)
        return pa.Table.from_batches(snapshot.file_set, FILES_SCHEMA)

    return build_from_log(store, version, load)


def _in_commit_timestamp(
    store: Store, version: int, checkpoint: Checkpoint | None, commits: Sequence[Commit]
) -> int | None:
    """Return the timestamp in the commit, because checkpoints and compactions lack `commitInfo`."""
    _, metadata = _protocol_and_metadata(checkpoint, commits)
    if metadata is not None and not properties.get(
        metadata.configuration, properties.ENABLE_IN_COMMIT_TIMESTAMPS
    ):
        return None
    info = read_commit_info(store, version)
    return None if info is None else info.in_commit_timestamp


def _unreachable(store: Store, listing: Listing, target: int) -> Exception:
    reachable = [found.version for found in listing.checkpoints]
    if reachable:
        return VersionNotFoundError(
            f"cannot load version {target} of {store.uri} because its log starts at version {min(reachable)}",
            table=store.uri,
            version=target,
        )
    return MalformedLogError(
        f"{commit_file_name(0)} of {store.uri} is missing and there is no checkpoint instead of it",
        table=store.uri,
        file=f"{store.uri}/{commit_file_name(0)}",
        version=0,
    )
