"""Restore a table to an earlier version, as one commit that writes no data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from .._arrow import total
from .._progress import advance, begin
from .._text import count
from .._threads import Threads
from ..errors import CommitConflictError, DataFileError, UnsupportedFeatureError
from ..execution import Description, Executor, NameFile, executor_of
from ..log import transaction
from ..log.commit_context import CommitOptions, CommitResult, commit_context, now, without_txn
from ..log.commits import read_commit_info
from ..log.conflicts import VACUUM_END, VACUUM_START, Reads
from ..log.deletion_vectors import paths_of
from ..log.file_tables import subtract_files
from ..log.load import load_latest, load_snapshot
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol import features, properties
from ..protocol.actions import CLUSTERING_DOMAIN, CommitInfo, DomainMetadata
from ..protocol.clustering import NO_CLUSTERING
from ..protocol.identity_columns import keep_high_water_marks
from ..protocol.schema.rules import check_consistent
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import Store, TableLocation, exists
from ..write.table_changes import change

LOG_PROPERTIES = (
    properties.CHECKPOINT_PROTECTION_VERSION.name,
    properties.ENABLE_IN_COMMIT_TIMESTAMPS.name,
    properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION.name,
    properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP.name,
)
"""Properties of the log itself, which a restore does not change."""

MAX_NAMED_FILES = 5

FILES_OF_TASK = 1000
"""The files that a task looks for, with a request for each."""

LONGEST_VACUUM = 24 * 3_600_000
"""The milliseconds after which a vacuum without an end is one that was killed."""


@dataclass(frozen=True, repr=False)
class RestoreResult(CommitResult):
    """The result of a restore.

    Attributes:
        version: The committed version, None if the table was in that state already.
        metrics: The metrics of the commit, empty without a commit.
        restored: The version that was restored.
        files_added: The number of data files that the commit added again.
        files_removed: The number of data files that the commit removed.
        bytes_added: The size of the added files, in bytes.
        bytes_removed: The size of the removed files, in bytes.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> _ = dv.delete_all("clicks")
        >>> result = dv.restore("clicks", 0)
        >>> result.version, result.restored, result.files_added
        (2, 0, 1)
    """

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
    commit: CommitOptions | None = None,
) -> RestoreResult:
    """Restore a table to the state of an earlier version, as a new commit.

    Rows, schema, partition columns and properties become those of the earlier version. The protocol keeps its
    features and gains those of the earlier version. In-commit timestamps, the last values of identity columns
    and the transactions of applications stay as they are, so that no value is assigned and no batch is
    written twice. No data file is written.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        version: The version to restore.
        timestamp: A timezone-aware datetime or an ISO 8601 string, instead of `version`. It selects the
            latest version that was committed at that time or before it.
        commit: The metadata of the commit; see `CommitOptions`. None, the default, sets none.

    Returns:
        The version of the commit, and the files that it added and removed.

    Raises:
        ValueError: Neither or both of `version` and `timestamp` are given.
        TableNotFoundError: There is no Delta log at `table`.
        VersionNotFoundError: The table does not have the version.
        DataFileError: A data file or a deletion vector of the earlier version is missing, for example after a
            vacuum.
        UnsupportedFeatureError: The table sets `delta.appendOnly=true` and files would be removed, or this
            version cannot commit to the table.
        ProtocolError: The protocol, metadata and schema of the earlier version contradict each other.
        CommitConflictError: A concurrent commit changed the table, or a vacuum has started within a day and
            not ended.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> _ = dv.delete(table, "id = 1")
        >>> dv.restore(table, 0).version
        2
    """
    return run_restore(plan_restore(table, version, timestamp=timestamp, commit=commit), table)


def run_restore(plan: RestorePlan, table: Any) -> RestoreResult:
    """Commit the changes of a restore, if its files exist and no vacuum may delete them."""
    _check_files_exist(plan, executor_of(table, plan.present.store, "RESTORE"))
    if plan.added.num_rows:
        _check_no_vacuum_runs(plan.present)
    committed = _commit(plan) if plan.has_changes else CommitResult(None)
    return RestoreResult(
        committed.version,
        plan.past.version,
        plan.added.num_rows,
        plan.removed.num_rows,
        total(plan.added["size"]),
        total(plan.removed["size"]),
        metrics=committed.metrics,
    )


@dataclass(frozen=True)
class RestorePlan:
    """The changes of a restore: the files to add again and to remove, rows of `Snapshot.files`, and `after`.

    `domains` are the changed domain metadata.
    """

    present: Snapshot
    past: Snapshot
    timestamp: Timestamp | None
    added: pa.Table
    removed: pa.Table
    after: TableConfiguration
    domains: Sequence[DomainMetadata]
    commit: CommitOptions

    @property
    def has_changes(self) -> bool:
        if self.added.num_rows or self.removed.num_rows or self.domains:
            return True
        return self.after != self.present.configuration

    def describe(self) -> Description:
        """Return which files the restore removes and adds again."""
        added, removed = self.added.num_rows, self.removed.num_rows
        changes = f"{count(removed, 'file')} removed, {count(added, 'file')} added again"
        return Description(
            (f"version {self.present.version}, restore version {self.past.version}: {changes}",),
            {
                "version": self.present.version,
                "restored": self.past.version,
                "files_removed": removed,
                "files_added": added,
            },
        )


def plan_restore(
    table: TableLocation,
    version: int | None = None,
    *,
    timestamp: Timestamp | None = None,
    commit: CommitOptions | None = None,
) -> RestorePlan:
    """Return the changes of a restore; raises the errors of its arguments and of the table."""
    if version is None and timestamp is None:
        raise ValueError("pass the version or the timestamp to restore")
    commit = without_txn(commit, "restore")
    present = load_latest(table)
    past = load_snapshot(present.store, version, timestamp=timestamp)
    added, removed = subtract_files(past.files, present.files), subtract_files(present.files, past.files)
    after = _table_after(past, present)
    _check(present, past, after, removed)
    return RestorePlan(present, past, timestamp, added, removed, after, _clustering(past, present), commit)


def _commit(plan: RestorePlan) -> CommitResult:
    past = plan.past
    context = commit_context(
        "RESTORE",
        {
            "version": past.version if plan.timestamp is None else None,
            "timestamp": None if plan.timestamp is None else str(plan.timestamp),
        },
        {
            "tableSizeAfterRestore": past.num_bytes,
            "numOfFilesAfterRestore": past.num_files,
            "numRemovedFiles": plan.removed.num_rows,
            "numRestoredFiles": plan.added.num_rows,
            "removedFilesSize": total(plan.removed["size"]),
            "restoredFilesSize": total(plan.added["size"]),
        },
        plan.commit,
    )
    returns_files = plan.added.num_rows > 0
    reads = Reads(plan.present.files, lambda adds: True, with_appends=True, returns_files=returns_files)
    version = transaction.replace_files(
        plan.present,
        plan.removed,
        plan.added,
        context=context,
        reads=reads,
        after=plan.after,
        domains=plan.domains,
    )
    return CommitResult(version, metrics=context.metrics)


def _table_after(past: Snapshot, present: Snapshot) -> TableConfiguration:
    """Return the table of `past` with the log properties and the greatest ids and identities of `present`."""
    where = f"version {past.version} of {past.uri}"
    replace(past.configuration, uri=where).check_may_commit()
    configuration = {name: text for name, text in past.properties.items() if name not in LOG_PROPERTIES}
    configuration |= {name: text for name, text in present.properties.items() if name in LOG_PROPERTIES}
    greatest = properties.COLUMN_MAPPING_MAX_COLUMN_ID
    ids = [each.configuration.get(greatest) or 0 for each in (past, present)]
    if max(ids):
        configuration[greatest.name] = str(max(ids))
    after = replace(
        past.configuration,
        protocol=features.with_features_of(present.protocol, past.protocol),
        metadata=msgspec.structs.replace(past.metadata, id=present.metadata.id, configuration=configuration),
    )
    modes = past.configuration.mapping_mode, present.configuration.mapping_mode
    columns = keep_high_water_marks(past.schema, present.schema, *modes)
    if columns == past.schema:
        return after
    if columns == present.schema:
        metadata = msgspec.structs.replace(after.metadata, schema_string=present.metadata.schema_string)
        return replace(after, metadata=metadata, schema=columns)
    return change(after, columns=columns)


def _check(present: Snapshot, past: Snapshot, after: TableConfiguration, removed: pa.Table) -> None:
    """Raise UnsupportedFeatureError, ProtocolError or SchemaError for a restore that is not allowed."""
    present.configuration.check_may_commit()
    after.check_may_commit()
    check_consistent(past.schema, past.partition_columns)
    for each in (present, past):
        each.configuration.check_may_restore()
    if removed.num_rows and present.configuration.get(properties.APPEND_ONLY):
        raise UnsupportedFeatureError(
            f"cannot restore version {past.version} of {present.uri} because it sets "
            f"{properties.APPEND_ONLY.name}=true and {removed.num_rows:,} files would be removed: unset it",
            table=present.uri,
            version=past.version,
        )
    before, mode = (each.configuration.mapping_mode for each in (present, past))
    if before not in (mode, "none"):
        raise UnsupportedFeatureError(
            f"cannot restore version {past.version} of {present.uri} because it has the column mapping mode "
            f"{mode}, and the mode cannot change from {before}",
            table=present.uri,
            version=past.version,
        )


def _find_missing(paths: Sequence[str], store: Store, name: NameFile) -> list[str]:
    missing = []
    with Threads(16) as threads:
        for path, is_found in zip(paths, threads.map(partial(exists, store), paths), strict=True):
            advance(files=1)
            if not is_found:
                missing.append(path)
    return missing


def _check_files_exist(plan: RestorePlan, executor: Executor) -> None:
    """Raise DataFileError if a data file or a deletion vector is missing."""
    past, paths = plan.past, list(paths_of(plan.added))
    begin("checking files", files=len(paths))
    groups = executor.split(paths, lambda _: 1, limit=FILES_OF_TASK)
    results = executor.run("find missing files", (partial(_find_missing, tuple(group)) for group in groups))
    missing = sorted({path for found in results for path in found})
    if missing:
        named = ", ".join(missing[:MAX_NAMED_FILES])
        more = f" and {len(missing) - MAX_NAMED_FILES:,} more" if len(missing) > MAX_NAMED_FILES else ""
        raise DataFileError(
            f"cannot restore version {past.version} of {past.uri} because files are missing, which a vacuum "
            f"may have deleted: {named}{more}; restore a later version",
            table=past.uri,
            file=missing[0],
            version=past.version,
        )


def _check_no_vacuum_runs(present: Snapshot) -> None:
    """Raise CommitConflictError if a vacuum has committed its start and not its end.

    It may delete files that the restore adds again, and does not see the commit of the restore.
    """
    earliest = now() - LONGEST_VACUUM
    for version in range(present.version, -1, -1):
        info = read_commit_info(present.store, version)
        if info is None or info.operation == VACUUM_END or not _is_since(info, earliest):
            return
        if info.operation == VACUUM_START:
            raise CommitConflictError(
                f"version {version} of {present.uri} started a vacuum that has not recorded its end, and may "
                "delete files that this restore adds again: retry after it",
                table=present.uri,
                version=version,
            )


def _is_since(info: CommitInfo, earliest: int) -> bool:
    written = info.fields.get("timestamp")
    return type(written) is int and written >= earliest


def _clustering(past: Snapshot, present: Snapshot) -> list[DomainMetadata]:
    """Return the action that restores the clustering columns of `past`, nothing if they are the same."""
    before, after = (each.domain_metadata.get(CLUSTERING_DOMAIN) for each in (present, past))
    expected = NO_CLUSTERING if after is None else after.configuration
    if (NO_CLUSTERING if before is None else before.configuration) == expected:
        return []
    return [DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=expected, removed=False)]
