"""Find the versions in a log that use a feature, and delete them when they have expired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone

from .._arrow import Array
from ..errors import DataFileError, RetentionDurationError, StoreError
from ..execution import Executor
from ..log.checkpoints.reading import sidecars_of
from ..log.cleanup import DAY, adjust_times, delete_expired, find_expired
from ..log.commit_context import now
from ..log.commits import read_versions
from ..log.listing import CheckpointFiles, checkpoint_name, list_log
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot
from ..protocol import features, properties
from ..protocol.actions import Metadata
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import Store
from .feature_traces import Removal

CHECKPOINT_PROTECTION = "checkpointProtection"


@dataclass(frozen=True)
class FeatureHistory:
    """The versions in the log of a table that use a feature, although the latest version does not.

    Attributes:
        snapshot: The latest version.
        name: The name of the feature in the protocol.
        removal: How the traces of the feature are found.
        clean: The paths of files that have no traces.
        executor: The executor that searches files.
    """

    snapshot: Snapshot
    name: str
    removal: Removal
    clean: Array
    executor: Executor

    def truncate(self, write_barrier: Callable[[], object]) -> None:
        """Delete the versions up to the last one that uses the feature.

        `write_barrier` commits a version with a checkpoint, which the deletion requires. Raises
        RetentionDurationError if writers may still commit on top of these versions, because they are younger
        than `delta.dropFeatureTruncateHistory.retentionDuration`, a day by default and at least.
        """
        last = self._find_last_use()
        if last is None:
            return
        store, configuration = self.snapshot.store, self.snapshot.configuration
        if _first_checkpoint_after(store, last) is None:
            write_barrier()
        retention = max(configuration.get(properties.TRUNCATE_HISTORY_RETENTION_DURATION), DAY)
        time = now()
        delete_expired(store, find_expired(store, configuration, time, cutoff=time - retention))
        last = self._find_last_use()
        if last is not None:
            first = _first_checkpoint_after(store, last)
            expires = (time if first is None else first) + retention
            raise RetentionDurationError(
                f"cannot drop the feature {self.name!r} of {self.snapshot.uri} yet because version {last} in "
                "its log needs it, and writers may still commit on top of it: repeat the call after "
                f"{_text(expires)}",
                table=self.snapshot.uri,
                version=last,
            )

    def _find_last_use(self) -> int | None:
        """Return the last version in the log that uses the feature, as far as it is known, else None."""
        snapshot, store = self.snapshot, self.snapshot.store
        listing = list_log(store, None)
        if self.name == CHECKPOINT_PROTECTION:
            before = snapshot.configuration.get(properties.CHECKPOINT_PROTECTION_VERSION)
            versions = {*listing.commits, *(each.version for each in listing.checkpoints)}
            return max((version for version in versions if version < before), default=None)
        first = 0 if 0 in listing.commits else min(each.version for each in listing.checkpoints)
        past = load_snapshot(store, first)
        is_needed, used = self._is_needed(past.metadata), [first] if self._has_traces(past) else []
        for version, actions in read_versions(store, min(listing.commits), snapshot.version):
            for action in actions:
                is_needed = self._is_needed(action) if isinstance(action, Metadata) else is_needed
            used += [version] if is_needed else []
        if features.FEATURES[self.name].base_name == "v2Checkpoint":
            used += [each.version for each in listing.checkpoints if _is_v2(store, each)]
        return max(used, default=None)

    def _is_needed(self, metadata: Metadata) -> bool:
        table = TableConfiguration.of(self.snapshot.uri, self.snapshot.protocol, metadata)
        return any(features.find_uses(self.name, table.schema, table.properties, ()))

    def _has_traces(self, past: Snapshot) -> bool:
        try:
            return self.removal.find(self.executor.another(), past, self.clean).num_rows > 0
        except (DataFileError, StoreError):
            # A vacuum has deleted the file.
            return True


def _first_checkpoint_after(store: Store, version: int) -> int | None:
    """Return the time of the first checkpoint that is later than a version, None without one."""
    listing = list_log(store, None)
    times = dict(adjust_times(listing))
    later = [each.version for each in listing.checkpoints if each.version > version and each.version in times]
    return times[min(later)] if later else None


def _is_v2(store: Store, checkpoint: CheckpointFiles) -> bool:
    """Return whether a checkpoint has a UUID in its name, or sidecars."""
    names = [path.rpartition("/")[2] for path in checkpoint.paths]
    parts = [name for name in names if (found := checkpoint_name(name)) and found.part is not None]
    classic = f"{checkpoint.version:020d}.checkpoint.parquet"
    return (not parts and names != [classic]) or bool(sidecars_of(store, checkpoint))


def _text(time: int) -> str:
    return datetime.fromtimestamp(-(-time // 1000), timezone.utc).isoformat(sep=" ")
