"""A log that may be broken: every part of it that can be read, and what is wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import msgspec

from ...data_file.reader import open_file
from ...errors import (
    DeltaVariantError,
    MalformedLogError,
    StoreError,
    TableNotFoundError,
    VersionNotFoundError,
)
from ...log.checksum import checksum_discrepancies
from ...log.listing import (
    LAST_CHECKPOINT,
    LAST_VERSION,
    LOG,
    Span,
    checkpoint_name,
    commit_file_name,
    commit_version,
    compaction_of,
    impossible_version,
)
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot, files_table
from ...protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    decode_commit,
    decode_compaction,
    file_key,
)
from ...storage import store
from ...storage.store import Store
from .findings import Violation

__all__ = ["LogSurvey", "survey_log"]

THREADS = 16

PREFIX = re.compile(r"line, (?:line|action) 1: ")

Kind = TypeVar("Kind", Protocol, Metadata)


@dataclass(frozen=True)
class Commit:
    """One commit: the actions that can be read, and what is wrong with the others, by rule."""

    version: int
    actions: tuple[Action, ...]
    violations: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Compaction:
    """One log compaction: one action for each key, and the other actions for these keys.

    `refusal` says why the file cannot be read, and is None for a file that can.
    """

    span: Span
    actions: Sequence[Action] = ()
    duplicates: Sequence[Action] = ()
    refusal: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return self.span.path.removeprefix(f"{LOG}/")


@dataclass(frozen=True)
class LogSurvey:
    """What a log holds up to a version.

    `snapshot` is the table as readers see it, None where they cannot load it; then `refusal` says why, and
    the other properties are made of the commits that can be read.
    """

    store: Store
    version: int
    names: tuple[str, ...]
    commits: tuple[Commit, ...]
    snapshot: Snapshot | None = None
    refusal: str | None = None

    @property
    def protocol(self) -> Protocol | None:
        """Return the protocol, as far as it is known."""
        return self.snapshot.protocol if self.snapshot else self._last(Protocol)

    @property
    def metadata(self) -> Metadata | None:
        """Return the metadata, as far as it is known."""
        return self.snapshot.metadata if self.snapshot else self._last(Metadata)

    @property
    def domains(self) -> Mapping[str, DomainMetadata]:
        """Return the domains, as far as they are known."""
        if self.snapshot:
            return self.snapshot.domain_metadata
        return {each.domain: each for each in self._actions() if isinstance(each, DomainMetadata)}

    @cached_property
    def compactions(self) -> tuple[Compaction, ...]:
        """Return the log compactions that end at the version or before it."""
        spans = (span for name in self.names if (span := compaction_of(name)) is not None)
        return tuple(_read_compaction(self.store, span) for span in spans if span.last <= self.version)

    @property
    def files(self) -> Sequence[Mapping[str, Any]]:
        """Return the AddFiles as rows of FILES_SCHEMA, as far as they are known."""
        if self.snapshot:
            rows: list[dict[str, Any]] = self.snapshot.files.to_pylist()
            return rows
        added: dict[object, AddFile] = {}
        for action in self._actions():
            if isinstance(action, AddFile | RemoveFile):
                try:
                    key = file_key(action)
                except MalformedLogError:
                    continue
                if isinstance(action, AddFile):
                    added[key] = action
                else:
                    added.pop(key, None)
        broken: list[dict[str, Any]] = files_table(list(added.values())).to_pylist()
        return broken

    def _actions(self) -> Iterator[Action]:
        return (action for commit in self.commits for action in commit.actions)

    def _last(self, kind: type[Kind]) -> Kind | None:
        found = [action for action in self._actions() if isinstance(action, kind)]
        return found[-1] if found else None


def survey_log(place: Store, version: int | None) -> LogSurvey:
    """Return what the log of a table holds, however broken it is.

    Raises TableNotFoundError where there is no log at all, VersionNotFoundError for a version that it does
    not have, StoreError where it cannot be listed.
    """
    names = tuple(path.removeprefix(f"{LOG}/") for path in store.list_files(place, LOG))
    versions = sorted(each for name in names if (each := commit_version(name)) is not None)
    checkpoints = [found.version for name in names if (found := checkpoint_name(name)) is not None]
    if not versions and not checkpoints:
        raise TableNotFoundError(f"there is no Delta table at {place.uri}: it has no {LOG}")
    latest = max([*versions, *checkpoints]) if version is None else version
    snapshot, refusal = _load(place, version)
    with ThreadPoolExecutor(THREADS) as threads:
        commits = tuple(threads.map(lambda each: _read(place, each), (v for v in versions if v <= latest)))
    return LogSurvey(place, latest, names, commits, snapshot, refusal)


def _load(place: Store, version: int | None) -> tuple[Snapshot | None, str | None]:
    try:
        return load_snapshot(place, version), None
    except VersionNotFoundError:
        raise
    except DeltaVariantError as error:
        return None, str(error)


def _read(place: Store, version: int) -> Commit:
    path = commit_file_name(version)
    try:
        data = store.read(place, path)
    except StoreError as error:
        return Commit(version, (), (("L1", str(error)),))
    try:
        return Commit(version, tuple(decode_commit(data, path)))
    except MalformedLogError as error:
        actions, faults = _decode_lines(data)
        return Commit(version, actions, faults or (("L3", _without_name(error, path)),))


def _read_compaction(place: Store, span: Span) -> Compaction:
    try:
        return Compaction(span, *decode_compaction(store.read(place, span.path), span.path))
    except DeltaVariantError as error:
        return Compaction(span, refusal=str(error))


def _decode_lines(data: bytes) -> tuple[tuple[Action, ...], tuple[tuple[str, str], ...]]:
    """Return the lines of a commit that can be understood, and what is wrong with the others."""
    actions: list[Action] = []
    faults: list[tuple[str, str]] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            actions += decode_commit(line, "line")
        except MalformedLogError as error:
            why = PREFIX.sub("", str(error))
            faults.append(("L1", f"line {number} cannot be understood ({why})"))
    return tuple(actions), tuple(faults)


def _without_name(error: MalformedLogError, path: str) -> str:
    return str(error).removeprefix(f"{path}, ")


# Rules of the log.


def not_loadable(subject: LogSurvey) -> Iterator[Violation]:
    """L0: readers can load the table."""
    if subject.refusal is not None:
        yield Violation(f"the table cannot be loaded at version {subject.version} ({subject.refusal})")


def commit_violations(rule: str) -> Callable[[LogSurvey], Iterator[Violation]]:
    """Return the check for one kind of fault in commits."""

    def check(subject: LogSurvey) -> Iterator[Violation]:
        for commit in subject.commits:
            for found, what in commit.violations:
                if found == rule:
                    yield Violation(f"in {commit.version:020d}.json, {what}", version=commit.version)

    return check


def gaps(subject: LogSurvey) -> Iterator[Violation]:
    """L2: there is a commit for every version behind the oldest that is needed."""
    versions = [commit.version for commit in subject.commits]
    if not versions:
        return
    for before, after in pairwise([*versions, subject.version + 1]):
        first, last = before + 1, after - 1
        if first < last:
            yield Violation(
                f"{last - first + 1:,} commits are missing, from {first:020d}.json to {last:020d}.json, and "
                "other versions around them are there",
                first,
            )
        elif first == last:
            yield Violation(f"{first:020d}.json is missing, and other versions around it are there", first)
    if versions[0] > 0 and all(checkpoint_name(name) is None for name in subject.names):
        yield Violation(f"{0:020d}.json is missing, and no checkpoint stands in for it", 0)


def no_protocol_or_metadata(subject: LogSurvey) -> Iterator[Violation]:
    """L4: there is a protocol and a metaData."""
    for name, action in (("protocol", subject.protocol), ("metaData", subject.metadata)):
        if action is None:
            yield Violation(f"no commit or checkpoint up to version {subject.version} has a {name} action")


def checkpoints(subject: LogSurvey) -> Iterator[Violation]:
    """L5: checkpoints are whole, and can be read."""
    parts: dict[tuple[int, int], set[int]] = {}
    for name in subject.names:
        found = checkpoint_name(name)
        if found is None or found.version > subject.version:
            continue
        if found.part is not None and found.parts is not None:
            parts.setdefault((found.version, found.parts), set()).add(found.part)
        elif (why := _unreadable(subject.store, name)) is not None:
            yield Violation(f"the checkpoint {name} cannot be read ({why})", found.version)
    for (version, count), there in parts.items():
        missing = count - sum(1 <= part <= count for part in there)
        if missing:
            yield Violation(
                f"the checkpoint of version {version} lacks {missing} of its {count} parts", version
            )


def _unreadable(place: Store, name: str) -> str | None:
    """Return why a checkpoint's file cannot be read: the footer of Parquet, or the lines of JSON."""
    path = f"{LOG}/{name}"
    try:
        if name.endswith(".json"):
            decode_commit(store.read(place, path), name)
        else:
            open_file(place, path)
    except DeltaVariantError as error:
        return str(error)
    return None


class _LastCheckpoint(msgspec.Struct):
    version: int


def last_checkpoint(subject: LogSurvey) -> Iterator[Violation]:
    """L6: `_last_checkpoint` names a checkpoint that is there."""
    data = store.read_if_present(subject.store, LAST_CHECKPOINT)
    if data is None:
        return
    try:
        version = msgspec.json.decode(data, type=_LastCheckpoint).version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        yield Violation(f"_last_checkpoint cannot be understood ({error})")
        return
    found = (checkpoint_name(name) for name in subject.names)
    if not any(each is not None and each.version == version for each in found):
        yield Violation(f"_last_checkpoint names version {version}, which has no checkpoint", version)


def impossible_versions(subject: LogSurvey) -> Iterator[Violation]:
    """L12: the versions in file names are 64-bit integers."""
    for name in subject.names:
        if (number := impossible_version(name)) is not None:
            yield Violation(
                f"{name} is not a log file, because {number} exceeds the greatest version, {LAST_VERSION}"
            )


def checksums(subject: LogSurvey) -> Iterator[Violation]:
    """L8: the version checksum says what the snapshot has."""
    if subject.snapshot is None:
        return
    try:
        sentences = checksum_discrepancies(subject.snapshot)
    except StoreError as error:
        sentences = [str(error)]
    yield from (Violation(sentence, subject.version) for sentence in sentences)


def in_commit_timestamps(subject: LogSurvey) -> Iterator[Violation]:
    """L9: with in-commit timestamps, each commit begins with one that is later than the last."""
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
                f"version {commit.version} does not begin with an inCommitTimestamp", commit.version
            )
        elif last is not None and timestamp <= last:
            yield Violation(
                f"the inCommitTimestamp of version {commit.version} is not later than that before",
                commit.version,
            )
        last = timestamp if timestamp is not None else last
