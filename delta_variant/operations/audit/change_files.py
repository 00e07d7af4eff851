"""Rules of change data files, which only readers of changes use (PROTOCOL.md, "Add CDC File")."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ...errors import DeltaVariantError, ProtocolError
from ...protocol import properties
from ...protocol.actions import AddCDCFile, CommitInfo, decode_path
from ...storage import store as storage
from .findings import Rule, Violation
from .log_survey import Commit, LogSurvey

__all__ = ["CHANGE_FILE_RULES"]

CHANGE_DATA = "_change_data"


def _wrong_files(subject: LogSurvey) -> Iterator[tuple[bool, Violation]]:
    """Yield each change file that is missing or of another size, and whether VACUUM may have deleted it."""
    found = [
        (commit, each)
        for commit in subject.commits
        for each in commit.actions
        if isinstance(each, AddCDCFile)
    ]
    if not found:
        return
    sizes = {file.path: file.size for file in storage.list_file_info(subject.store, CHANGE_DATA)}
    oldest = _oldest_kept(subject)
    for commit, action in found:
        try:
            path = decode_path(action.path)
            size = sizes[path] if path in sizes else storage.file_info(subject.store, path).size
        except DeltaVariantError as error:
            message = f"the change data file cannot be found ({error.message})"
            yield _time(subject, commit) < oldest, Violation(message, commit.version, action.path)
            continue
        if size != action.size:
            message = f"the change data file has {size:,} bytes, but its cdc action has {action.size:,}"
            yield False, Violation(message, commit.version, path)


def _oldest_kept(subject: LogSurvey) -> int:
    """Return the time since which VACUUM keeps files, in milliseconds since 1970."""
    configuration = {} if subject.metadata is None else subject.metadata.configuration
    try:
        retention = properties.get(configuration, properties.DELETED_FILE_RETENTION_DURATION)
    except ProtocolError:
        retention = 0
    return time.time_ns() // 10**6 - retention


def _time(subject: LogSurvey, commit: Commit) -> int:
    info = next((each for each in commit.actions if isinstance(each, CommitInfo)), None)
    stated = None if info is None else info.in_commit_timestamp or info.fields.get("timestamp")
    if isinstance(stated, int):
        return stated
    name = f"{commit.version:020d}.json"
    return next((file.modification_time for file in subject.stored if file.path.endswith(name)), 0)


def _check(*, expired: bool) -> Callable[[LogSurvey], Iterator[Violation]]:
    def check(subject: LogSurvey) -> Iterator[Violation]:
        return (violation for is_expired, violation in _wrong_files(subject) if is_expired is expired)

    return check


CHANGE_FILE_RULES: tuple[Rule[LogSurvey], ...] = (
    Rule(
        "F10",
        "error",
        _check(expired=False),
        "restore the file; without it the changes of the version cannot be read",
    ),
    Rule(
        "F10",
        "info",
        _check(expired=True),
        "VACUUM deletes change files after the retention; begin reading changes later",
    ),
)
