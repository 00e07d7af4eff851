"""Build the state at a version from the log, with any of its files that exist and can be read.

The files of a checkpoint are streamed as batches. The actions of the commits after it are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import msgspec
import pyarrow as pa

from ..errors import MalformedLogError, TableNotFoundError, VersionNotFoundError
from ..protocol import properties
from ..protocol.actions import Action, Metadata, Protocol
from ..storage.store import Store
from .commits import read_commit_info, read_spans
from .listing import LOG, Listing, checkpoint_hint, commit_file_name, list_log
from .snapshot import Checkpoint, Snapshot, replay

__all__ = ["LogSegment", "build_from_log", "protocol_and_metadata", "snapshot_of", "table_exists"]

Result = TypeVar("Result")


class LogSegment(msgspec.Struct, frozen=True):
    """The log of one version: a checkpoint, if one was used, and the commits after it, oldest first.

    A log compaction counts as a commit. `timestamp` is the in-commit timestamp if the last of `commits` does
    not have it.
    """

    version: int
    checkpoint: Checkpoint | None
    commits: Sequence[Sequence[Action]]
    timestamp: int | None


def table_exists(store: Store) -> bool:
    """Return whether the root has a log with at least one version."""
    return list_log(store, None).latest >= 0


def snapshot_of(store: Store, log: LogSegment) -> Snapshot:
    """Return the snapshot of a log segment."""
    return replay(store, log.version, log.checkpoint, log.commits, timestamp=log.timestamp)


def protocol_and_metadata(log: LogSegment) -> tuple[Protocol | None, Metadata | None]:
    """Return the latest protocol and metadata of a log segment."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for action in chain(log.checkpoint.actions if log.checkpoint else (), chain.from_iterable(log.commits)):
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
    if listing.latest < 0:
        raise TableNotFoundError(f"there is no Delta table at {store.uri}: it has no {LOG}", table=store.uri)
    target = listing.latest if version is None else version
    if not 0 <= target <= listing.latest:
        raise VersionNotFoundError(
            f"{store.uri} has no version {target}: its latest is {listing.latest}",
            table=store.uri,
            version=target,
        )
    unreadable: MalformedLogError | None = None
    for files in (found for found in listing.checkpoints if found.version <= target):
        spans = listing.spans(files.version + 1, target, store.uri)
        try:
            # Imported here, because a short log has no checkpoint, and pyarrow.parquet takes long to import.
            from .checkpoints.reading import read_checkpoint

            checkpoint = read_checkpoint(store, files, partial(_recover_files, store, files.version))
            commits = list(read_spans(store, spans))
            last_is_commit = bool(spans) and spans[-1].is_commit
            timestamp = None if last_is_commit else _in_commit_timestamp(store, target, checkpoint.actions)
            return build(LogSegment(target, checkpoint, commits, timestamp))
        except MalformedLogError as error:
            unreadable = unreadable or error
    if not listing.has(0):
        raise unreadable or _unreachable(store, listing, target)
    spans = listing.spans(0, target, store.uri)
    commits = list(read_spans(store, spans))
    timestamp = None if spans[-1].is_commit else _in_commit_timestamp(store, target, commits[-1])
    return build(LogSegment(target, None, commits, timestamp))


def _recover_files(store: Store, version: int) -> pa.Table:
    """Return the files at a version from any files of the log that can be read."""

    def load(log: LogSegment) -> pa.Table:
        snapshot = snapshot_of(store, log)
        return snapshot.files if snapshot.file_list is None else snapshot.file_list.table()

    return build_from_log(store, version, load)


def _in_commit_timestamp(store: Store, version: int, actions: Sequence[Action]) -> int | None:
    """Return the timestamp in the commit, because checkpoints and compactions lack `commitInfo`."""
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
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
