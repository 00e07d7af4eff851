"""Maintain the log of a table: write a checkpoint, delete its expired part, repair what its commits derive.

See PROTOCOL.md, "Checkpoints" and "Metadata Cleanup".
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from .._progress import begin
from .._text import count, size_text
from ..errors import MalformedLogError
from ..execution import Description
from ..log.catalog import check_maintenance
from ..log.checkpoints import writing
from ..log.checksum import checksum_path
from ..log.cleanup import ExpiredLog, delete_expired, find_expired
from ..log.commit_context import CommitOptions, commit_context, now
from ..log.listing import LAST_CHECKPOINT, LOG, checkpoint_name
from ..log.load import load_latest
from ..log.pending_commit import NO_ROW_IDS, read_high_water_mark, row_id_record
from ..log.transaction import change_next
from ..protocol.actions import ROW_TRACKING_DOMAIN
from ..storage.store import Store, TableLocation, copy, delete, open_latest
from .audit.log_rules import wrong_files
from .audit.log_survey import LogSurvey, survey_log
from .audit.table_rules import row_id_ranges


def write_checkpoint(table: TableLocation) -> int:
    """Write a checkpoint of the latest version, so that readers load it without the commits before.

    A commit writes one every `delta.checkpointInterval` versions, so this is only useful before many readers
    load a version in between, or after the log lost one. `delta.checkpointPolicy` decides its kind. A
    checkpoint that exists is written again.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.

    Returns:
        The version of the checkpoint.

    Raises:
        TableNotFoundError: There is no table at this location.
        UnsupportedFeatureError: The table has unknown features, whose actions a checkpoint would lose, or a
            catalog manages it.
        StoreError: The checkpoint cannot be written.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.write_checkpoint("clicks")
        0
    """
    snapshot = load_latest(table)
    check_maintenance("write a checkpoint of", snapshot.uri, snapshot.protocol)
    snapshot.configuration.check_may_commit()
    begin("writing the checkpoint")
    writing.write_checkpoint(snapshot.store, snapshot.version, now=now(), unique_id=str(uuid4()))
    return snapshot.version


@dataclass(frozen=True)
class LogCleanupResult:
    """The result of a cleanup of the log.

    Attributes:
        first_version: The first version that can still be loaded, None if no file expired.
        files: The deleted files, or the files that a dry run would delete: paths relative to the table.
        bytes: The size of these files, in bytes.
        dry_run: Whether the files were only listed.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.clean_up_log("clicks")
        LogCleanupResult(first_version=None, files=(), bytes=0, dry_run=True)
    """

    first_version: int | None
    files: tuple[str, ...]
    bytes: int
    dry_run: bool


def clean_up_log(table: TableLocation, *, dry_run: bool = True) -> LogCleanupResult:
    """Delete the commits, checkpoints and checksums of a table that are older than the retention of its log.

    The property `delta.logRetentionDuration`, 30 days by default and at least one day, decides which versions
    remain. The newest checkpoint that is not later than the first of them remains too, and is read before
    anything is deleted. Without such a checkpoint, nothing is deleted. Earlier versions can then no longer be
    loaded, and the history begins later. Writers do the same after the first checkpoint of a day, unless the
    table sets `delta.enableExpiredLogCleanup` to false. Data files stay: see `vacuum`.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        dry_run: Only list the files, and delete nothing.

    Returns:
        The deleted files, or the files that would be deleted.

    Raises:
        TableNotFoundError: There is no Delta log at `table`.
        UnsupportedFeatureError: This version cannot commit to the table.
        StoreError: Some files could not be deleted. The remaining versions can be loaded.

    Example:
        >>> import delta_variant as dv, pyarrow as pa
        >>> table = "events"
        >>> _ = dv.write_table(table, pa.table({"id": [1]}))
        >>> dv.clean_up_log(table, dry_run=True).files
        ()
    """
    plan = plan_log_cleanup(table)
    return plan.result(dry_run=True) if dry_run else run_log_cleanup(plan)


@dataclass(frozen=True)
class LogCleanupPlan:
    """The files that a cleanup of the log deletes."""

    store: Store
    expired: ExpiredLog

    def result(self, *, dry_run: bool) -> LogCleanupResult:
        files = self.expired.files
        paths, size = tuple(file.path for file in files), sum(file.size for file in files)
        return LogCleanupResult(self.expired.first_version, paths, size, dry_run)

    def describe(self) -> Description:
        """Return which files the cleanup deletes, and what is lost with them."""
        result = self.result(dry_run=True)
        files = f"{count(len(result.files), 'file')} of the log, {size_text(result.bytes)}"
        lost = f"delete {files}; versions before {result.first_version} can no longer be loaded"
        facts = {"first_version": result.first_version, "files": list(result.files), "bytes": result.bytes}
        return Description((lost if result.files else "no file of the log has expired",), facts, result.files)


def plan_log_cleanup(table: TableLocation) -> LogCleanupPlan:
    """Return the files that a cleanup deletes; raises the errors of the table."""
    snapshot = load_latest(table)
    check_maintenance("clean up the log of", snapshot.uri, snapshot.protocol)
    snapshot.configuration.check_may_commit()
    begin("listing files")
    return LogCleanupPlan(snapshot.store, find_expired(snapshot.store, snapshot.configuration, now()))


def run_log_cleanup(plan: LogCleanupPlan) -> LogCleanupResult:
    begin("deleting", files=len(plan.expired.files))
    delete_expired(plan.store, plan.expired)
    return plan.result(dry_run=False)


SET_ASIDE = "_log_set_aside"
"""The folder of the table for the files. No reader and no vacuum looks into it, because of its underscore."""


@dataclass(frozen=True)
class LogRepairResult:
    """The result of a repair of a log.

    Attributes:
        files: The names of the files in `_delta_log` that contradict the commits.
        folder: The folder in the table that they were moved to, None for a dry run and if there are none.
        checkpoint: The version of the new checkpoint, None if none was written.
        row_id_mark: The greatest row id that was missing in the mark, None if the mark is right.
        version: The version that commits the mark, None without one.
        dry_run: Whether the files were only listed.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> dv.repair_log("clicks").files
        ()
    """

    files: tuple[str, ...]
    folder: str | None
    checkpoint: int | None
    row_id_mark: int | None
    version: int | None
    dry_run: bool


def repair_log(table: TableLocation, *, dry_run: bool = True) -> LogRepairResult:
    """Move files that contradict the commits out of the log, and raise a mark of row ids that is too low.

    Readers that begin with a wrong checkpoint see another table than the commits have. Checkpoints, version
    checksums and log compactions repeat what commits say, so that none of them is needed: each is compared
    with a replay of all commits, as `audit_table` does (rules L5, L6, L8, L10, L11 and L13). The files are
    moved to a new folder in `_log_set_aside`, from which they can be restored, and a new checkpoint takes the
    place of a wrong one. The commits stay as they are. If files have row ids above `rowIdHighWaterMark` (rule
    F14), so that the next commit would assign these again, a commit raises it.

    Args:
        table: A path, a URI, a `Table` or a `deltalake.DeltaTable`.
        dry_run: Only list the files, which is the default, and change nothing.

    Returns:
        A `LogRepairResult` with the files.

    Raises:
        TableNotFoundError: There is no table at this location.
        MalformedLogError: The commits do not decide which files are wrong: one is missing or cannot be read,
            the log begins with a checkpoint that others contradict, or a checkpoint and a checksum of one
            version contradict its commits.
        UnsupportedFeatureError: A catalog manages the table, or a new checkpoint would lose actions of
            unknown features.
        StoreError: A file cannot be moved or written.
        CommitConflictError: A concurrent commit came before that of the mark.

    Example:
        >>> from pathlib import Path
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> _ = Path("clicks/_delta_log/00000000000000000000.crc").write_text("{}")
        >>> dv.repair_log("clicks", dry_run=False).files
        ('00000000000000000000.crc',)
    """
    plan = plan_log_repair(table)
    return plan.result() if dry_run else run_log_repair(plan)


@dataclass(frozen=True)
class LogRepairPlan:
    """The paths of the files to set aside, and the mark of row ids to commit, None if it is right."""

    store: Store
    version: int
    paths: tuple[str, ...]
    row_id_mark: int | None

    def result(self) -> LogRepairResult:
        return LogRepairResult(self.files, None, None, self.row_id_mark, None, True)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(path.removeprefix(f"{LOG}/") for path in self.paths)

    @property
    def replaces_checkpoint(self) -> bool:
        """Return whether one of the files is a checkpoint, or the file that points to the last one."""
        return LAST_CHECKPOINT in self.paths or any(map(checkpoint_name, self.files))

    def describe(self) -> Description:
        after = ", and write a checkpoint" if self.replaces_checkpoint else ""
        move = f"move {count(len(self.files), 'file')} from {LOG} to {SET_ASIDE}{after}"
        sentences = [move if self.files else "no file of the log contradicts its commits"]
        if self.row_id_mark is not None:
            sentences.append(f"version {self.version + 1}, raise rowIdHighWaterMark to {self.row_id_mark:,}")
        facts = {"version": self.version, "files": list(self.files), "row_id_mark": self.row_id_mark}
        return Description(tuple(sentences), facts, self.files)


def plan_log_repair(table: TableLocation) -> LogRepairPlan:
    """Return the files that contradict the commits; raises the errors of `repair_log` without any move."""
    begin("comparing the log with its commits")
    store = open_latest(table)
    survey = survey_log(store, None)
    protocol = survey.protocol
    if protocol is not None:
        check_maintenance("repair the log of", store.uri, protocol)
    if (reason := _doubt(survey)) is not None:
        text = (
            f"cannot repair the log, because {reason}: compare it with a backup, and see what an audit says"
        )
        raise MalformedLogError(text, table=store.uri)
    return LogRepairPlan(store, survey.version, tuple(wrong_files(survey)), _missing_mark(survey))


def _missing_mark(survey: LogSurvey) -> int | None:
    """Return the greatest row id of a file if it is above the mark of row ids, else None."""
    greatest = max((last for _, last, _ in row_id_ranges(survey.snapshot)), default=NO_ROW_IDS)
    domain = survey.domains.get(ROW_TRACKING_DOMAIN)
    try:
        mark = read_high_water_mark([domain] if domain else [], NO_ROW_IDS)
    except MalformedLogError:
        mark = NO_ROW_IDS
    return greatest if greatest > mark else None


def _doubt(survey: LogSurvey) -> str | None:
    """Return why the commits do not decide which files are wrong, None if they do."""
    wrong = survey.replay.wrong_files
    if survey.replay.state is None:
        return "a commit is missing or cannot be read"
    if wrong and survey.commits[0].version > 0:
        return f"it begins with a checkpoint, which can be the wrong one, and {min(wrong)} contradicts it"
    versions = list(wrong.values())
    for path, version in wrong.items():
        if path == checksum_path(version) and versions.count(version) > 1:
            return f"a checkpoint and the checksum of version {version} contradict its commits"
    return None


def run_log_repair(plan: LogRepairPlan) -> LogRepairResult:
    """Move the files, write a checkpoint if one of them was a checkpoint, and commit the mark."""
    folder = f"{SET_ASIDE}/{now()}"
    begin("moving files of the log", files=len(plan.files))
    for path, name in zip(plan.paths, plan.files, strict=True):
        copy(plan.store, path, plan.store, f"{folder}/{name}")
        delete(plan.store, path)
    # What the store remembers may have been loaded from them.
    plan.store.memo.loaded = None
    checkpoint = write_checkpoint(plan.store) if plan.replaces_checkpoint else None
    version = None if plan.row_id_mark is None else _raise_mark(plan.store, plan.row_id_mark)
    moved = folder if plan.files else None
    return LogRepairResult(plan.files, moved, checkpoint, plan.row_id_mark, version, False)


def _raise_mark(store: Store, mark: int) -> int:
    snapshot = load_latest(store)
    context = commit_context("REPAIR LOG", {"rowIdHighWaterMark": mark}, {}, CommitOptions())
    return change_next(snapshot, snapshot.configuration, context=context, domains=[row_id_record(mark)])
