"""Set aside checkpoints, version checksums and log compactions that contradict the commits of a log."""

from __future__ import annotations

from dataclasses import dataclass

from .._progress import begin
from .._text import count
from ..errors import MalformedLogError
from ..execution import Description
from ..log.catalog import check_maintenance
from ..log.checksum import checksum_path
from ..log.commit_context import now
from ..log.listing import LAST_CHECKPOINT, LOG, checkpoint_name
from ..storage.store import Store, TableLocation, copy, delete, open_latest
from .audit.log_rules import wrong_files
from .audit.log_survey import LogSurvey, survey_log
from .checkpoint import write_checkpoint

__all__ = ["LogRepairPlan", "LogRepairResult", "plan_log_repair", "repair_log", "run_log_repair"]

SET_ASIDE = "_log_set_aside"
"""The folder of the table for the files. No reader and no vacuum looks into it, because of its underscore."""


@dataclass(frozen=True)
class LogRepairResult:
    """The result of a repair of a log.

    Attributes:
        files: The names of the files in `_delta_log` that contradict the commits.
        folder: The folder in the table that they were moved to, None for a dry run and if there are none.
        checkpoint: The version of the new checkpoint, None if none was written.
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
    dry_run: bool


def repair_log(table: TableLocation, *, dry_run: bool = True) -> LogRepairResult:
    """Move files that contradict the commits out of the log, and write a new checkpoint for one of them.

    Readers that begin with a wrong checkpoint see another table than the commits have. Checkpoints, version
    checksums and log compactions repeat what commits say, so that none of them is needed: each is compared
    with a replay of all commits, as `audit_table` does (rules L5, L6, L8, L10, L11 and L13). The files are
    moved to a new folder in `_log_set_aside`, from which they can be restored. The commits stay as they are.

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

    Example:
        >>> from pathlib import Path
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}])
        >>> _ = Path("clicks/_delta_log/00000000000000000000.crc").write_text("{}")
        >>> dv.repair_log("clicks", dry_run=False).files
        ('00000000000000000000.crc',)
    """
    plan = plan_log_repair(table)
    return LogRepairResult(plan.files, None, None, True) if dry_run else run_log_repair(plan)


@dataclass(frozen=True)
class LogRepairPlan:
    """The paths of the files to set aside."""

    store: Store
    version: int
    paths: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of the files."""
        return tuple(path.removeprefix(f"{LOG}/") for path in self.paths)

    @property
    def replaces_checkpoint(self) -> bool:
        """Return whether one of the files is a checkpoint, or the file that points to the last one."""
        return LAST_CHECKPOINT in self.paths or any(map(checkpoint_name, self.files))

    def describe(self) -> Description:
        """Return which files the repair moves."""
        after = ", and write a checkpoint" if self.replaces_checkpoint else ""
        move = f"move {count(len(self.files), 'file')} from {LOG} to {SET_ASIDE}{after}"
        sentence = move if self.files else "no file of the log contradicts its commits"
        return Description((sentence,), {"version": self.version, "files": list(self.files)}, self.files)


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
    return LogRepairPlan(store, survey.version, tuple(wrong_files(survey)))


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
    """Move the files, and write a checkpoint of the latest version if one of them was a checkpoint."""
    folder = f"{SET_ASIDE}/{now()}"
    begin("moving files of the log", files=len(plan.files))
    for path, name in zip(plan.paths, plan.files, strict=True):
        copy(plan.store, path, plan.store, f"{folder}/{name}")
        delete(plan.store, path)
    # What the store remembers may have been loaded from them.
    plan.store.memo.loaded = None
    checkpoint = write_checkpoint(plan.store) if plan.replaces_checkpoint else None
    return LogRepairResult(plan.files, folder if plan.files else None, checkpoint, False)
