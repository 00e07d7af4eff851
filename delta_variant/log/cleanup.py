"""Delete the expired part of a log (PROTOCOL.md, "Metadata Cleanup", and "Checkpoint Protection").

The versions since the last midnight in UTC before the retention of the log can still be loaded. They need the
newest checkpoint that is not later than the first of them. It is read completely before anything is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._logging import get_logger
from ..errors import MalformedLogError, StoreError
from ..protocol import properties
from ..protocol.table_configuration import TableConfiguration
from ..storage.objects import StoredFile
from ..storage.store import Store, delete_all, file_info, list_file_info
from .listing import LAST_CHECKPOINT, LOG, CheckpointFiles, Listing, checkpoint_name, file_span, listing_of

_LOGGER = get_logger(__name__)

DAY = 86_400_000

_SIDECARS = "_sidecars/"
_STAGED_COMMIT = re.compile(r"_staged_commits/([0-9]{20})\.[^/]+\.json")
# Hadoop writes a checksum next to each local file, and a process that was killed leaves a temporary file.
_COMPANION = re.compile(r"\.(.+)\.(?:crc|[0-9a-f]{32}\.tmp)")


@dataclass(frozen=True)
class ExpiredLog:
    """The expired files of a log in the order in which they are deleted, and the first version that remains.

    `first_version` is None if no file expired.
    """

    first_version: int | None
    files: Sequence[StoredFile] = ()


NOTHING_EXPIRED = ExpiredLog(None)


def is_new_day(store: Store, now: int) -> bool:
    """Return whether the last checkpoint was written before the last midnight, at which files expire."""
    try:
        return file_info(store, LAST_CHECKPOINT).modification_time < _midnight(now)
    except StoreError:
        return True


def find_expired(
    store: Store, table: TableConfiguration, now: int, *, cutoff: int | None = None
) -> ExpiredLog:
    """Return the files of a log that have expired at a time in milliseconds since 1970.

    `table` is the latest version. The versions until `cutoff` have expired, by default until the midnight
    before the retention of the log. Raises StoreError if the log cannot be listed.
    """
    if cutoff is None:
        retention = table.get(properties.LOG_RETENTION_DURATION)
        # A writer may still commit on top of a version of this day: a version must not become free again.
        cutoff = _midnight(now - max(retention, DAY))
    files = {file.path.removeprefix(f"{LOG}/"): file for file in list_file_info(store, LOG)}
    listing = listing_of(files.values())
    last = max((version for version, time in adjust_times(listing) if time <= cutoff), default=-1)
    for checkpoint in listing.checkpoints:
        # The commit of its version has what no checkpoint has, such as an in-commit timestamp.
        if checkpoint.version > last or checkpoint.version not in listing.commits:
            continue
        expired = [name for name in files if _is_before(name, checkpoint.version)]
        if not expired or _is_protected(table, checkpoint.version):
            return NOTHING_EXPIRED
        if _is_readable(store, checkpoint):
            sidecars = _find_sidecars(store, files, listing, checkpoint.version, _midnight(now) - DAY)
            # Commits before checkpoints, so that no checkpoint is missing that hides a remaining commit.
            expired.sort(key=lambda name: (checkpoint_name(name) is not None, name))
            names = [*expired, *sidecars]
            return ExpiredLog(checkpoint.version, [files[name] for name in names])
    return NOTHING_EXPIRED


def delete_expired(store: Store, expired: ExpiredLog) -> None:
    """Delete expired files; raises StoreError if one cannot be deleted."""
    delete_all(store, [file.path for file in expired.files])
    _LOGGER.info("deleted %d expired log files of %s", len(expired.files), store.uri)


def adjust_times(listing: Listing) -> Iterator[tuple[int, int]]:
    """Yield the versions of the commits, in order, with their modification times.

    A time that is not later than the previous one is set to one millisecond after it.
    """
    latest = 0
    for version in sorted(listing.commits):
        latest = max(listing.commits[version].modification_time, latest + 1)
        yield version, latest


def _midnight(time: int) -> int:
    return time // DAY * DAY


def _is_protected(table: TableConfiguration, first: int) -> bool:
    """Return whether all versions before a later one must be deleted at once, or none."""
    before = table.get(properties.CHECKPOINT_PROTECTION_VERSION)
    return table.supports("checkpointProtection") and first < before


def _is_before(name: str, first: int) -> bool:
    """Return whether a file of the log is needed for versions before `first` only."""
    if (staged := _STAGED_COMMIT.fullmatch(name)) is not None:
        return int(staged[1]) <= first
    if (companion := _COMPANION.fullmatch(name)) is not None:
        name = companion[1]
    span = file_span(name)
    # A compaction that starts at `first` replaces commits of which the first one is in the checkpoint.
    return span is not None and (span.first < first or (not span.is_commit and span.first == first))


def _is_readable(store: Store, checkpoint: CheckpointFiles) -> bool:
    # Imported here, because most commits do not read a checkpoint, and pyarrow.parquet takes long to import.
    from .checkpoints.reading import read_checkpoint

    try:
        content = read_checkpoint(store, checkpoint)
        for batches in (content.files, content.tombstones):
            for _ in batches:
                pass
    except MalformedLogError:
        _LOGGER.warning("%s: cannot read a checkpoint of version %d", store.uri, checkpoint.version)
        return False
    return True


def _find_sidecars(
    store: Store, files: Mapping[str, StoredFile], listing: Listing, first: int, before: int
) -> Iterable[str]:
    """Return the sidecars that were written before a time and that no remaining checkpoint refers to."""
    old = [name for name in files if name.startswith(_SIDECARS) and files[name].modification_time < before]
    if not old:
        return ()
    from .checkpoints.reading import sidecars_of

    needed: set[str] = set()
    try:
        for checkpoint in listing.checkpoints:
            if checkpoint.version >= first:
                needed.update(path.removeprefix(f"{LOG}/") for path in sidecars_of(store, checkpoint))
    except MalformedLogError:
        _LOGGER.warning("%s: kept all sidecars because a checkpoint cannot be read", store.uri)
        return ()
    return sorted(set(old) - needed)
