"""Rules of the log, and of the files derived from its commits (PROTOCOL.md, "Delta Table Specification")."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import msgspec

from ...data_file.reader import open_file
from ...errors import DeltaVariantError, ProtocolError
from ...log.checkpoints.reading import sidecars_of
from ...log.conflicts import VACUUM_START
from ...log.listing import (
    LAST_CHECKPOINT,
    LAST_VERSION,
    LOG,
    CheckpointFiles,
    checkpoint_name,
    file_span,
    impossible_version,
    listing_of,
)
from ...protocol import properties
from ...protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Protocol,
    RemoveFile,
    decode_path,
    reconciliation_key,
)
from ...storage import store as storage
from ...write.rewrite import CHANGE_DATA
from .findings import Rules, Violation
from .log_survey import Commit, Compaction, LogSurvey

Key = tuple[Any, ...]

LIKE_LOG_FILE = re.compile(r"[0-9]+[^/]*\.(json|crc|parquet)", re.IGNORECASE)

LOG_RULES = Rules[LogSurvey]()
rule = LOG_RULES.add


@rule("L0", "error", "fix the other findings first")
def not_loadable(subject: LogSurvey) -> Iterator[Violation]:
    """L0: readers can load the table."""
    if subject.load_error is not None:
        yield Violation(f"cannot load the table at version {subject.version} ({subject.load_error})")


def commit_violations(rule: str) -> Callable[[LogSurvey], Iterator[Violation]]:
    """Return the check that reports the violations of one rule in commits."""

    def check(subject: LogSurvey) -> Iterator[Violation]:
        for commit in subject.commits:
            for found, message in commit.violations:
                if found == rule:
                    yield Violation(f"{commit.version:020d}.json {message}", version=commit.version)

    return check


rule("L1", "error", "restore the commit from a backup; the audit cannot determine what it changed")(
    commit_violations("L1")
)


@rule("L2", "error", "restore the commits from a backup")
def gaps(subject: LogSurvey) -> Iterator[Violation]:
    """L2: every version from the oldest required one has a commit."""
    versions = [commit.version for commit in subject.commits]
    if not versions:
        return
    for before, after in pairwise([*versions, subject.version + 1]):
        first, last = before + 1, after - 1
        if first < last:
            yield Violation(
                f"{last - first + 1:,} commits are missing, from {first:020d}.json to {last:020d}.json, "
                "between commits that exist",
                first,
            )
        elif first == last:
            yield Violation(f"{first:020d}.json is missing, but the commits around it exist", first)
    if versions[0] > 0 and all(checkpoint_name(name) is None for name in subject.names):
        yield Violation(f"{0:020d}.json is missing, and there is no checkpoint", 0)


rule("L3", "error", "readers can apply either action; commit the intended one again")(commit_violations("L3"))


@rule("L4", "error", "restore the commit that had the action")
def no_protocol_or_metadata(subject: LogSurvey) -> Iterator[Violation]:
    """L4: the log has a protocol and a metaData action."""
    for name, action in (("protocol", subject.protocol), ("metaData", subject.metadata)):
        if action is None:
            yield Violation(f"no commit or checkpoint up to version {subject.version} has a {name} action")


NEW_CHECKPOINT = (
    "if the log has all commits up to its version, run repair-log, which moves the checkpoint out of the log "
    "and writes a new one; otherwise restore it from a backup"
)


@rule("L5", "warning", NEW_CHECKPOINT)
def incomplete_checkpoints(subject: LogSurvey) -> Iterator[Violation]:
    """L5: checkpoints have all their parts."""
    for version, count, names in incomplete(subject):
        missing = count - len(names)
        yield Violation(f"the checkpoint of version {version} lacks {missing} of its {count} parts", version)


def incomplete(subject: LogSurvey) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the version, the number of parts and the existing files of each checkpoint that lacks parts."""
    parts: dict[tuple[int, int], list[str]] = {}
    for name in subject.names:
        found = checkpoint_name(name)
        if found is None or found.version > subject.version or found.part is None or found.parts is None:
            continue
        names = parts.setdefault((found.version, found.parts), [])
        if 1 <= found.part <= found.parts:
            names.append(name)
    yield from ((*key, names) for key, names in parts.items() if len(names) < key[1])


def replayed(rule: str) -> Callable[[LogSurvey], Iterator[Violation]]:
    """Return the check that reports the violations of one rule in the replay of the log."""

    def check(subject: LogSurvey) -> Iterator[Violation]:
        return (violation for found, violation in subject.replay.violations if found == rule)

    return check


rule("L5", "warning", NEW_CHECKPOINT)(replayed("L5"))


class _Manifest(msgspec.Struct):
    path: str | None = None


class _LastCheckpoint(msgspec.Struct, rename="camel"):
    version: int
    size: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    parts: int | None = None
    checksum: str | None = None
    v2_checkpoint: _Manifest | None = msgspec.field(default=None, name="v2Checkpoint")


@rule(
    "L6",
    "warning",
    "readers can begin at the wrong checkpoint: keep a copy of the file, and write a checkpoint, which "
    "replaces it",
)
def _last_checkpoint(subject: LogSurvey) -> Iterator[Violation]:
    """L6: `_last_checkpoint` describes an existing checkpoint."""
    data = storage.read_if_present(subject.store, LAST_CHECKPOINT)
    if data is None:
        return
    try:
        stated = msgspec.json.decode(data, type=_LastCheckpoint)
        document = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        yield Violation(f"_last_checkpoint cannot be decoded ({error})")
        return
    version = stated.version
    checkpoints = [each for each in listing_of(subject.stored).checkpoints if each.version == version]
    if not checkpoints:
        yield Violation(f"_last_checkpoint points to version {version}, which has no checkpoint", version)
        return
    expected = _json_checksum(document)
    if stated.checksum is not None and stated.checksum.lower() != expected:
        yield Violation(
            f"the checksum of _last_checkpoint is {stated.checksum}, but its content has {expected}", version
        )
    manifest = stated.v2_checkpoint and stated.v2_checkpoint.path
    if manifest:
        checkpoints = [each for each in checkpoints if each.paths[0].endswith(f"/{manifest}")]
        if not checkpoints:
            yield Violation(f"_last_checkpoint points to {manifest}, which does not exist", version)
    facts = [_checkpoint_facts(subject, files) for files in checkpoints]
    for name in ("size", "size_in_bytes", "num_of_add_files", "parts"):
        found, allowed = getattr(stated, name), [number for fact in facts for number in fact[name]]
        if found is not None and allowed and found not in allowed:
            field = _LastCheckpoint.__struct_encode_fields__[_LastCheckpoint.__struct_fields__.index(name)]
            yield Violation(
                f"_last_checkpoint states {field} {found:,}, but the checkpoint has {allowed[0]:,}", version
            )


def _checkpoint_facts(subject: LogSurvey, files: CheckpointFiles) -> Mapping[str, list[int]]:
    """Return the values that each field may have; none for what cannot be determined.

    PROTOCOL.md does not say whether the actions and bytes of sidecars count, so that writers differ. Early
    versions of delta-rs wrote the bytes to `size`, which no reader uses.
    """
    sizes = {file.path: file.size for file in subject.stored}
    try:
        sidecars = sidecars_of(subject.store, files)
        rows = sum(_num_actions(subject, path) for path in files.paths)
        more = sum(_num_actions(subject, path) for path in sidecars)
    except DeltaVariantError:
        return {"size": [], "size_in_bytes": [], "num_of_add_files": [], "parts": []}
    size = sum(sizes[path] for path in files.paths)
    size_of_sidecars = sum(sizes.get(path, 0) for path in sidecars)
    counted = subject.replay.file_counts.get(files.version)
    parts = len(files.paths)
    return {
        "size": [rows, size] if not sidecars else [rows + more, rows, more, -1],
        "size_in_bytes": [size] if not sidecars else [size + size_of_sidecars, size],
        "num_of_add_files": [] if counted is None else [counted],
        "parts": [parts] if parts > 1 else [1, 0],
    }


def _num_actions(subject: LogSurvey, path: str) -> int:
    if path.endswith(".json"):
        return sum(bool(line.strip()) for line in storage.read(subject.store, path).splitlines())
    return int(open_file(subject.store, path).num_rows)


def _json_checksum(document: Mapping[str, Any]) -> str:
    """Return the MD5 of a JSON object without `checksum` in canonical form (PROTOCOL.md, "JSON checksum")."""
    rest = {name: value for name, value in document.items() if name != "checksum"}
    # Delta on Spark sorts the texts of the pairs: the eleventh element of a list comes before the second one.
    text = ",".join(sorted(_canonical(rest, "")))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _canonical(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _canonical(part, _joined(path, _quoted(name)))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _canonical(part, _joined(path, str(index)))
    else:
        text = _quoted(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield f"{path}={text}"


def _joined(path: str, step: str) -> str:
    return f"{path}+{step}" if path else step


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'


COMPARE_CHECKSUM = (
    "readers use the log, but either can be wrong: keep both until you know which, and restore the log from "
    "a backup if the file is right"
)
rule("L8", "warning", COMPARE_CHECKSUM)(replayed("L8"))


@rule("L9", "error", "time travel by timestamp returns wrong versions there; select them by number")
def in_commit_timestamps(subject: LogSurvey) -> Iterator[Violation]:
    """L9: with in-commit timestamps, each commit starts with one that is later than the previous."""
    metadata = subject.metadata
    if metadata is None or metadata.configuration.get("delta.enableInCommitTimestamps", "").lower() != "true":
        return
    enabled = metadata.configuration.get("delta.inCommitTimestampEnablementVersion", "0")
    since = int(enabled) if enabled.isdecimal() else 0
    last: int | None = None
    for commit in subject.commits:
        if commit.version < since or commit.violations:
            continue
        first = commit.actions[0] if commit.actions else None
        timestamp = first.in_commit_timestamp if isinstance(first, CommitInfo) else None
        if timestamp is None:
            yield Violation(
                f"version {commit.version} does not start with an inCommitTimestamp", commit.version
            )
        elif last is not None and timestamp <= last:
            yield Violation(
                f"the inCommitTimestamp of version {commit.version} is not later than the previous one",
                commit.version,
            )
        last = timestamp if timestamp is not None else last


def _of_compactions(
    check: Callable[[LogSurvey, Compaction], str | None],
) -> Callable[[LogSurvey], Iterator[Violation]]:
    def violations(subject: LogSurvey) -> Iterator[Violation]:
        for compaction in subject.compactions:
            if (message := check(subject, compaction)) is not None:
                yield Violation(f"the log compaction {compaction.name} {message}", compaction.span.last)

    return violations


def _unreconciled(_: LogSurvey, compaction: Compaction) -> str | None:
    """L10: a log compaction file can be read and has one action for each reconciliation key."""
    if compaction.read_error is not None:
        return f"cannot be read ({compaction.read_error})"
    if not compaction.duplicates:
        return None
    key = reconciliation_key(compaction.duplicates[0]) or ()
    return (
        f"is not reconciled: it has more than one action for {_describe(key)} "
        f"({len(compaction.duplicates):,} duplicates)"
    )


_NAMES = {
    "Protocol": "protocol",
    "Metadata": "metaData",
    "Txn": "txn of",
    "DomainMetadata": "domainMetadata of",
}


def _describe(key: Key) -> str:
    kind, *subject = key
    if kind == "file":
        path, vector = subject
        return f"the file {path}" + (f" with the deletion vector {vector}" if vector else "")
    return " ".join(["the", _NAMES.get(kind.__name__, kind.__name__), *map(str, subject)])


rule(
    "L10",
    "error",
    "readers can return removed rows: if the log has the commits that the file covers, move it out of "
    "the log and keep it; otherwise restore them from a backup",
)(_of_compactions(_unreconciled))
KEEP_DERIVED = (
    "if the version checksums agree with the commits (L8), these are right: run repair-log, which moves the "
    "file out of the log and writes a new checkpoint for a wrong one"
)


def _contradiction(subject: LogSurvey, compaction: Compaction) -> str | None:
    """L11: a log compaction file has the same reconciled actions as the commits that it covers."""
    first, last = compaction.span.first, compaction.span.last
    commits = [each for each in subject.commits if first <= each.version <= last]
    is_comparable = len(commits) == last - first + 1 and not any(each.violations for each in commits)
    if compaction.read_error is not None or not is_comparable:
        return None
    found = list(_differences((each.actions for each in commits), compaction.actions))
    more = f", and {len(found) - 1:,} more differences" if len(found) > 1 else ""
    return f"differs from the commits that it covers: {found[0]}{more}" if found else None


def _differences(commits: Iterable[Iterable[Action]], compacted: Iterable[Action]) -> Iterator[str]:
    """Yield the differences between a compaction and the commits that it covers.

    The compaction can omit the tombstone of a file that the same commits added: no older commit has the file.
    """
    expected: dict[Key, Action] = {}
    added: set[Key] = set()
    for action in (action for actions in commits for action in actions):
        if (key := reconciliation_key(action)) is not None:
            expected[key] = action
            if not _is_tombstone(action):
                added.add(key)
    actual = {key: action for action in compacted if (key := reconciliation_key(action)) is not None}
    for key, action in expected.items():
        if key not in actual:
            if not (_is_tombstone(action) and key in added):
                yield f"it lacks {_describe(key)}"
        elif _comparable(action) != _comparable(actual[key]):
            yield f"it has a different action for {_describe(key)}"
    for key in actual.keys() - expected.keys():
        yield f"it has {_describe(key)}, which no commit has"


def _is_tombstone(action: Action) -> bool:
    return isinstance(action, RemoveFile) or (isinstance(action, DomainMetadata) and action.removed)


def _comparable(action: Action) -> object:
    """Return a value that is equal for two equivalent actions.

    Reconciliation sets `dataChange` to false and can omit fields of tombstones.
    """
    if isinstance(action, AddFile):
        path, tags = decode_path(action.path), action.tags or None
        return msgspec.structs.replace(action, path=path, tags=tags, data_change=False)
    if isinstance(action, RemoveFile):
        return RemoveFile
    return action.sorted() if isinstance(action, Protocol) else action


rule("L11", "error", "readers that use the file see another table than the commits have: " + KEEP_DERIVED)(
    _of_compactions(_contradiction)
)


@rule(
    "L12",
    "error",
    "other readers can fail to load the table, and this library ignores the file: move it out of the "
    "log, and keep it",
)
def impossible_versions(subject: LogSurvey) -> Iterator[Violation]:
    """L12: the versions in file names are 64-bit integers."""
    for name in subject.names:
        if (number := impossible_version(name)) is not None:
            yield Violation(
                f"{name} is not a log file because {number} exceeds the greatest version, {LAST_VERSION}"
            )


rule(
    "L13",
    "error",
    "readers that begin with the checkpoint see another table than the commits have: " + KEEP_DERIVED,
)(replayed("L13"))
rule(
    "L14",
    "error",
    "two writers rewrote the same file, so its rows are in the table twice: restore the version before, "
    "and repeat the operation",
)(replayed("L14"))
rule(
    "L14",
    "warning",
    "nothing to do for the rows; a writer that removes a file twice does not detect conflicts",
)(replayed("L14d"))
rule(
    "T19",
    "error",
    "readers return NULL or the values of another column: commit the schema of the version before again",
)(replayed("T19"))


@rule(
    "L15", "warning", "its actions are not part of the table: compare it with the log before you move it away"
)
def odd_names(subject: LogSurvey) -> Iterator[Violation]:
    """L15: readers recognize the names of the files that look like log files."""
    for name in subject.names:
        if LIKE_LOG_FILE.fullmatch(name) and file_span(name) is None:
            yield Violation(
                f"no reader recognizes {name} as a file of the log: expected a version of 20 digits"
            )


rule(
    "L16",
    "error",
    "readers return the rows of the file twice: restore the version before, and repeat the operation",
)(replayed("L16"))


def _change_files(*, expired: bool) -> Callable[[LogSurvey], Iterator[Violation]]:
    def check(subject: LogSurvey) -> Iterator[Violation]:
        return (violation for is_expired, violation in _wrong_files(subject) if is_expired is expired)

    return check


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
            yield _time_of(subject, commit) < oldest, Violation(message, commit.version, action.path)
            continue
        if size != action.size:
            message = f"the change data file has {size:,} bytes, but its cdc action has {action.size:,}"
            yield False, Violation(message, commit.version, path)


def _oldest_kept(subject: LogSurvey) -> int:
    """Return the time since which files exist, in milliseconds since 1970: VACUUM may delete older ones.

    A VACUUM that states another retention than that of the table has deleted the files before its own.
    """
    configuration = {} if subject.metadata is None else subject.metadata.configuration
    try:
        retention = properties.get(configuration, properties.DELETED_FILE_RETENTION_DURATION)
    except ProtocolError:
        retention = 0
    vacuums = (_vacuumed_before(subject, commit) for commit in subject.commits)
    return max(time.time_ns() // 10**6 - retention, *vacuums, 0)


def _vacuumed_before(subject: LogSurvey, commit: Commit) -> int:
    """Return the time before which a commit of VACUUM says that it deletes files, 0 for others."""
    info = next((each for each in commit.actions if isinstance(each, CommitInfo)), None)
    parameters = info.fields.get("operationParameters") if info is not None else None
    if info is None or info.fields.get("operation") != VACUUM_START or not isinstance(parameters, dict):
        return 0
    stated = str(parameters.get("specifiedRetentionMillis"))
    return _time_of(subject, commit) - int(stated) if stated.isdecimal() else 0


def _time_of(subject: LogSurvey, commit: Commit) -> int:
    info = next((each for each in commit.actions if isinstance(each, CommitInfo)), None)
    stated = None if info is None else info.in_commit_timestamp or info.fields.get("timestamp")
    if isinstance(stated, int):
        return stated
    name = f"{commit.version:020d}.json"
    return next((file.modification_time for file in subject.stored if file.path.endswith(name)), 0)


rule("F10", "error", "restore the file; without it the changes of the version cannot be read")(
    _change_files(expired=False)
)
rule("F10", "info", "VACUUM deletes change files after the retention; begin reading changes later")(
    _change_files(expired=True)
)


def wrong_files(subject: LogSurvey) -> list[str]:
    """Return the paths of the files derived from the commits that contradict them or are incomplete."""
    compactions = (
        compaction.span.path
        for compaction in subject.compactions
        if _unreconciled(subject, compaction) or _contradiction(subject, compaction)
    )
    parts = (f"{LOG}/{name}" for _, _, names in incomplete(subject) for name in names)
    hint = (LAST_CHECKPOINT for _ in _last_checkpoint(subject))
    return sorted({*subject.replay.wrong_files, *compactions, *parts, *hint})
