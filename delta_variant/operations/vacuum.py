"""Delete the files that a table no longer needs (PROTOCOL.md, "Data Files" and "VACUUM Protocol Check").

A vacuum deletes only files that are certainly unused. It keeps recent files, hidden files, files of other
tables, and symbolic links with their targets.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from .._checks import is_number
from .._logging import get_logger
from .._packing import pack_by_size
from .._progress import advance, begin
from .._text import count, size_text
from .._threads import Threads
from ..errors import (
    ArgumentTypeError,
    CommitConflictError,
    DeltaVariantError,
    RetentionDurationError,
    StoreError,
)
from ..execution import Description, Executor, NameFile, executor_of
from ..log import transaction
from ..log.catalog import check_maintenance
from ..log.commit_context import CommitOptions, CommitResult, commit_context, now, without_txn
from ..log.commits import read_all_commits, read_commits
from ..log.conflicts import VACUUM_END, VACUUM_START
from ..log.deletion_vectors import paths_of
from ..log.file_tables import are_unencoded, files_table, tombstones_table
from ..log.load import load_with_tombstones
from ..log.snapshot import Snapshot
from ..protocol import properties
from ..protocol.actions import AddFile, RemoveFile, encode_path, is_absolute
from ..protocol.schema.column_mapping import physical_name
from ..storage.objects import DeletesInBulk, StoredFile
from ..storage.store import Store, TableLocation, delete_all, open_latest, walk
from ..write.rewrite import CHANGE_DATA

_LOGGER = get_logger(__name__)

HOUR = 3_600_000
TASK_RECORDS = "_delta_variant"
"""The folder of the records of Spark tasks that write to the table, which killed drivers leave."""

FILES_OF_TASK = 1000
"""The files that a task deletes: as many as object stores delete by one request."""

LOG_FOLDER = "/_delta_log/"
ICEBERG_FOLDER = "metadata"
UNIFORM_FORMATS = "delta.universalFormat.enabledFormats"


class VacuumInterrupted(transaction.CommitInterrupted):
    """An interrupt of a vacuum after its start was committed; the message says what was deleted."""


@dataclass(frozen=True, repr=False)
class VacuumResult(CommitResult):
    """The result of a vacuum.

    Attributes:
        version: The committed version that records the end of the vacuum, None if no file was deleted.
        metrics: The metrics of that commit, empty without a commit.
        files: The deleted files, or the files that a dry run would delete: paths relative to the table.
        bytes: The size of these files, in bytes.
        dry_run: Whether the files were only listed.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> result = dv.vacuum("clicks")
        >>> result.files, result.bytes, result.dry_run
        ((), 0, True)
    """

    files: tuple[str, ...]
    bytes: int
    dry_run: bool


def vacuum(
    table: TableLocation,
    retention_hours: float | None = None,
    *,
    dry_run: bool = True,
    enforce_retention_duration: bool = True,
    commit: CommitOptions | None = None,
) -> VacuumResult:
    """Delete the data files, deletion vectors and change data files that a table no longer needs.

    A vacuum deletes files that no version within the retention uses: files whose removal was committed before
    it, and files that no commit added and that were last written before it. Older versions can then no longer
    be read. Folders stay, and so do files and folders whose names start with `_` or `.`, except for
    partitions, the change data feed and the records of Spark tasks. Two commits, VACUUM START and VACUUM END,
    record what was deleted, also if the vacuum is interrupted.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        retention_hours: The retention in hours. None uses `delta.deletedFileRetentionDuration` of the table,
            one week by default.
        dry_run: Only list the files, and delete nothing.
        enforce_retention_duration: Reject a retention that is shorter than that of the table. Pass False only
            if no other program reads or writes the table.
        commit: The metadata of both commits; see `CommitOptions`. None, the default, sets none.

    Returns:
        The deleted files, or the files that would be deleted.

    Raises:
        RetentionDurationError: `retention_hours` is less than the retention of the table.
        ValueError: `retention_hours` is negative or not finite.
        ArgumentTypeError: `retention_hours` is not a number.
        TableNotFoundError: There is no Delta log at `table`.
        UnsupportedFeatureError: This version cannot commit to the table.
        CommitConflictError: A concurrent commit added one of the files again. Nothing was deleted.
        StoreError: Some files could not be deleted. All others were.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1]}))
        >>> dv.vacuum(table, dry_run=True).files
        ()
    """
    plan = plan_vacuum(
        table, retention_hours, enforce_retention_duration=enforce_retention_duration, commit=commit
    )
    return VacuumResult(None, plan.files, plan.bytes, dry_run) if dry_run else run_vacuum(plan, table)


def run_vacuum(plan: VacuumPlan, table: Any) -> VacuumResult:
    """Delete the files of a plan between two commits; without files, commit nothing."""
    if not plan.files:
        return VacuumResult(None, (), 0, dry_run=False)
    committed = _run(plan, executor_of(table, plan.snapshot.store, "VACUUM"))
    return VacuumResult(committed.version, plan.files, plan.bytes, dry_run=False, metrics=committed.metrics)


@dataclass(frozen=True)
class VacuumPlan:
    """The files that a vacuum of a version deletes, and the arguments that its commits record."""

    snapshot: Snapshot
    files: tuple[str, ...]
    bytes: int
    retention_hours: float | None
    commit: CommitOptions

    def describe(self) -> Description:
        them = "it" if len(self.files) == 1 else "them"
        size = f"{count(len(self.files), 'file')}, {size_text(self.bytes)}"
        sentence = f"delete {size}; earlier versions that need {them} can no longer be read"
        return Description(
            (sentence if self.files else "there is no file to delete",),
            {"files": list(self.files), "bytes": self.bytes},
            self.files,
        )


def plan_vacuum(
    table: TableLocation,
    retention_hours: float | None = None,
    *,
    enforce_retention_duration: bool = True,
    commit: CommitOptions | None = None,
) -> VacuumPlan:
    """Return the files that `vacuum` deletes; raises the errors of its arguments and of the table."""
    commit = without_txn(commit, "vacuum")
    store = open_latest(table)
    snapshot, tombstones = load_with_tombstones(store)
    check_maintenance("vacuum", snapshot.uri, snapshot.protocol)
    snapshot.configuration.check_may_commit()
    retention = _retention(snapshot, retention_hours, enforced=enforce_retention_duration)
    before = max(0, now() - retention)
    begin("listing files")
    needed = _NeededFiles.of(snapshot, _recent_tombstones(snapshot, tombstones, retention, before))
    unused = list(_unused_files(snapshot, needed, before))
    paths = tuple(file.path for file in unused)
    return VacuumPlan(snapshot, paths, sum(file.size for file in unused), retention_hours, commit)


def _retention(snapshot: Snapshot, hours: float | None, *, enforced: bool) -> int:
    """Return the retention of removed files in milliseconds."""
    least = snapshot.configuration.get(properties.DELETED_FILE_RETENTION_DURATION)
    if hours is None:
        return least
    if not is_number(hours) or not 0 <= hours < inf:
        error = ValueError if is_number(hours) else ArgumentTypeError
        raise error(f"retention_hours: expected a finite number of at least 0, got {hours!r}")
    retention = int(hours * HOUR)
    if enforced and retention < least:
        raise RetentionDurationError(
            f"cannot vacuum {snapshot.uri} with a retention of {hours:g} hours because readers and writers "
            f"can need the removed files, which the table keeps for {least / HOUR:g} hours: set "
            "delta.deletedFileRetentionDuration, or, if nothing else uses the table",
            table=snapshot.uri,
            remedies=(("enforce_retention_duration", False),),
        )
    return retention


def _recent_tombstones(snapshot: Snapshot, tombstones: pa.Table, retention: int, before: int) -> pa.Table:
    """Return the tombstones of files that were removed within the retention."""
    if retention > snapshot.configuration.get(properties.DELETED_FILE_RETENTION_DURATION):
        # Checkpoints omit tombstones that are older than the table's own retention.
        actions = (action for commit in read_all_commits(snapshot.store) for action in commit)
        removes = [action for action in actions if isinstance(action, RemoveFile)]
        tombstones = pa.concat_tables([tombstones, tombstones_table(removes)])
    return tombstones.filter(pc.greater_equal(tombstones["deletion_timestamp"], pa.scalar(before)))


@dataclass(frozen=True)
class _NeededFiles:
    """The files that a table needs: relative paths, and the names of files with absolute paths."""

    paths: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot, tombstones: pa.Table) -> _NeededFiles:
        paths, names = set(), set()
        for text in (*_texts(snapshot.files), *_texts(tombstones)):
            path = posixpath.normpath(text)
            # A file can have several absolute paths, so its name alone must be enough.
            if is_absolute(text) or path.startswith("../"):
                names.add(posixpath.basename(path))
            else:
                paths.add(path)
        return cls(frozenset(paths), frozenset(names))

    def has(self, path: str) -> bool:
        return path in self.paths or posixpath.basename(path) in self.names


def _texts(files: pa.Table) -> Iterator[str]:
    """Yield the paths of data files and deletion vectors, decoded and as the log has them."""
    yield from paths_of(files)
    for batch in files.select(["path", "encoded_path"]).to_batches():
        plain: Any = batch.column(0)
        is_plain = are_unencoded(plain)
        for path, encoded in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if encoded or not is_plain:
                # Not every writer encodes paths, so the text in the log can be the name of the file.
                yield encoded or encode_path(path)


def _unused_files(snapshot: Snapshot, needed: _NeededFiles, before: int) -> Iterator[StoredFile]:
    stored = list(walk(snapshot.store))
    others = {each.path[: each.path.rindex(LOG_FOLDER)] for each in stored if LOG_FOLDER in each.path}
    prefixes = tuple(_partition_prefixes(snapshot))
    for each in stored:
        if (
            each.modification_time < before
            and not needed.has(each.path)
            and not _is_hidden(each.path, prefixes)
            and not _is_of_iceberg(each.path, snapshot.properties)
            and (not others or others.isdisjoint(_folders(each.path)))
        ):
            yield each


def _partition_prefixes(snapshot: Snapshot) -> Iterator[str]:
    """Yield the prefixes of the names of partition folders, in each spelling that writers use."""
    mode = snapshot.configuration.mapping_mode
    fields = [field for field in snapshot.schema.fields if field.name in snapshot.partition_columns]
    for name in {name for field in fields for name in (field.name, physical_name(field, mode))}:
        yield f"{name}="
        yield f"{quote(name, safe='')}="


def _is_hidden(path: str, prefixes: tuple[str, ...]) -> bool:
    *folders, name = path.split("/")
    if folders[:1] in ([CHANGE_DATA], [TASK_RECORDS]):
        folders = folders[1:]
    return name.startswith(("_", ".")) or any(
        folder.startswith(("_", ".")) and not folder.startswith(prefixes) for folder in folders
    )


def _is_of_iceberg(path: str, configuration: Mapping[str, str]) -> bool:
    return "iceberg" in configuration.get(UNIFORM_FORMATS, "") and path.startswith(f"{ICEBERG_FOLDER}/")


def _folders(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _delete_some(paths: Sequence[str], store: Store, name: NameFile) -> dict[str, StoreError]:
    """Delete files, and return the errors of those that could not be deleted, by path."""
    size = FILES_OF_TASK if isinstance(store.objects, DeletesInBulk) else 1
    parts = list(pack_by_size(paths, lambda _: 1, size))
    failures: dict[str, StoreError] = {}
    with Threads(16) as threads:
        for part, failed in zip(parts, threads.map(partial(_delete, store), parts), strict=True):
            advance(files=len(part))
            failures.update(failed)
    return failures


def _delete(store: Store, paths: Sequence[str]) -> dict[str, StoreError]:
    try:
        delete_all(store, paths)
    except StoreError as error:
        if len(paths) == 1:
            return {paths[0]: error}
        return {path: error for each in paths for path, error in _delete(store, [each]).items()}
    return {}


def _run(plan: VacuumPlan, executor: Executor) -> CommitResult:
    """Delete the files of a plan between two commits, and return the result of the last one."""
    snapshot, hours, commit = plan.snapshot, plan.retention_hours, plan.commit
    least = snapshot.configuration.get(properties.DELETED_FILE_RETENTION_DURATION)
    parameters = {
        "retentionCheckEnabled": hours is None or bool(hours * HOUR >= least),
        "defaultRetentionMillis": least,
        "specifiedRetentionMillis": None if hours is None else int(hours * HOUR),
    }
    metrics = {"numFilesToDelete": len(plan.files), "sizeOfDataToDelete": plan.bytes}
    committed = _commit(snapshot, VACUUM_START, parameters, metrics, commit)
    try:
        _check_not_added_again(snapshot, plan.files)
        failures = _delete_files(plan, executor)
    except BaseException as error:
        # The results of tasks that have ended are lost.
        left = {file.path for file in walk(snapshot.store)}
        deleted = sum(path not in left for path in plan.files)
        _commit_end(plan, deleted)
        if not isinstance(error, KeyboardInterrupt):
            raise
        raise VacuumInterrupted(
            f"interrupted: {deleted:,} of {len(plan.files):,} unused files were deleted; the latest version "
            "of the table needs none of them, and is intact"
        ) from error
    committed = _commit_end(plan, len(plan.files) - len(failures)) or committed
    if failures:
        first = next(iter(failures.values()))
        raise StoreError(
            f"cannot delete {len(failures):,} of {len(plan.files):,} files: {first}",
            table=snapshot.uri,
            file=first.file,
        )
    return committed


def _delete_files(plan: VacuumPlan, executor: Executor) -> Mapping[str, StoreError]:
    begin("deleting", files=len(plan.files))
    groups = executor.split(plan.files, lambda _: 1, limit=FILES_OF_TASK)
    failures: dict[str, StoreError] = {}
    for failed in executor.run("delete files", (partial(_delete_some, tuple(paths)) for paths in groups)):
        failures.update(failed)
    return failures or executor.find_kept(plan.files)


def _check_not_added_again(snapshot: Snapshot, paths: Sequence[str]) -> None:
    """Raise CommitConflictError if a commit since the snapshot added one of the files, or a vector in one."""
    unused = set(paths)
    for version, actions in read_commits(snapshot.store, snapshot.version):
        added = files_table([action for action in actions if isinstance(action, AddFile)])
        again = next((path for path in paths_of(added) if posixpath.normpath(path) in unused), None)
        if again is not None:
            raise CommitConflictError(
                f"concurrent version {version} re-added {again}, which this vacuum would delete; nothing was "
                "deleted, retry",
                table=snapshot.uri,
                file=again,
                version=version,
            )


def _commit_end(plan: VacuumPlan, deleted: int) -> CommitResult | None:
    """Commit the end of a vacuum; log a warning if that is not possible."""
    status = {"status": "COMPLETED" if deleted == len(plan.files) else "FAILED"}
    try:
        return _commit(plan.snapshot, VACUUM_END, status, {"numDeletedFiles": deleted}, plan.commit)
    except DeltaVariantError:
        _LOGGER.warning("%s: cannot commit VACUUM END", plan.snapshot.uri, exc_info=True)
        return None


def _commit(
    snapshot: Snapshot,
    operation: str,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, int],
    commit: CommitOptions,
) -> CommitResult:
    context = commit_context(operation, parameters, metrics, commit)
    version = transaction.add_files(snapshot, (), context=context, data_change=False)
    return CommitResult(version, metrics=context.metrics)
