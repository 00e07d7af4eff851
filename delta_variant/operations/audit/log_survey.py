"""The log of a table as an audit reads it: the parts that can be decoded, and the errors of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from ..._threads import Threads
from ...errors import DeltaVariantError, MalformedLogError, StoreError, VersionNotFoundError
from ...log.checksum import checksum_path
from ...log.file_tables import files_table
from ...log.listing import (
    LOG,
    Span,
    checkpoint_name,
    commit_file_name,
    commit_version,
    compaction_of,
    listing_of,
    table_not_found,
)
from ...log.load import load_snapshot
from ...log.snapshot import Snapshot, TableVersion
from ...protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    decode_commit,
    decode_compaction,
    file_key,
)
from ...storage import store as storage
from ...storage.objects import StoredFile
from ...storage.store import Store
from .replay import Replay, replay_log

THREADS = 16

Kind = TypeVar("Kind", Protocol, Metadata)


@dataclass(frozen=True)
class Commit:
    """A commit: the actions that can be decoded, and the violations, each a rule id and a message."""

    version: int
    actions: tuple[Action, ...]
    violations: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Compaction:
    """A log compaction file: one action for each reconciliation key, and the other actions with these keys.

    `read_error` says why the file cannot be read, and is None for a file that can.
    """

    span: Span
    actions: Sequence[Action] = ()
    duplicates: Sequence[Action] = ()
    read_error: str | None = None

    @property
    def name(self) -> str:
        return self.span.path.removeprefix(f"{LOG}/")


@dataclass(frozen=True)
class LogSurvey:
    """The log of a table up to a version.

    `table` is the table as readers load it, without its files if only some of these are checked. It is None
    for a table that cannot be loaded: `load_error` says why, and the properties are derived from the commits
    that can be decoded.
    """

    store: Store
    version: int
    names: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    table: TableVersion | None = None
    load_error: str | None = None
    stored: Sequence[StoredFile] = ()
    checksums: Mapping[int, bytes | StoreError] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot | None:
        """Return the table with its files, None if it is unknown."""
        return self.table if isinstance(self.table, Snapshot) else None

    @cached_property
    def replay(self) -> Replay:
        """Return what a replay of all commits finds."""
        commits = {each.version: None if each.violations else each.actions for each in self.commits}
        checkpoints = [each for each in listing_of(self.stored).checkpoints if each.version <= self.version]
        written = {file.path: file.modification_time for file in self.stored}
        return replay_log(self.store, commits, checkpoints, self.checksums, written)

    @property
    def protocol(self) -> Protocol | None:
        return self.table.protocol if self.table else self._last(Protocol)

    @property
    def metadata(self) -> Metadata | None:
        return self.table.metadata if self.table else self._last(Metadata)

    @property
    def domains(self) -> Mapping[str, DomainMetadata]:
        if self.snapshot:
            return self.snapshot.domain_metadata
        return {each.domain: each for each in self._actions() if isinstance(each, DomainMetadata)}

    @cached_property
    def compactions(self) -> tuple[Compaction, ...]:
        """Return the log compaction files that end at the version or before it."""
        spans = (span for name in self.names if (span := compaction_of(name)) is not None)
        return tuple(_read_compaction(self.store, span) for span in spans if span.last <= self.version)

    @property
    def files(self) -> Sequence[Mapping[str, Any]]:
        """Return the known add actions as rows of FILES_SCHEMA."""
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
        decoded: list[dict[str, Any]] = files_table(list(added.values())).to_pylist()
        return decoded

    def _actions(self) -> Iterator[Action]:
        return (action for commit in self.commits for action in commit.actions)

    def _last(self, kind: type[Kind]) -> Kind | None:
        found = [action for action in self._actions() if isinstance(action, kind)]
        return found[-1] if found else None


def survey_log(store: Store, version: int | None) -> LogSurvey:
    """Read the log of a table up to a version, the latest for None, and keep everything that can be decoded.

    Raises TableNotFoundError if there is no log, VersionNotFoundError if the table does not have the version,
    and StoreError if the log cannot be listed.
    """
    stored = storage.list_file_info(store, LOG)
    names = tuple(file.path.removeprefix(f"{LOG}/") for file in stored)
    versions = sorted(each for name in names if (each := commit_version(name)) is not None)
    checkpoints = [found.version for name in names if (found := checkpoint_name(name)) is not None]
    checksum_paths = {file.path for file in stored if file.path.endswith(".crc")}
    if not versions and not checkpoints:
        raise table_not_found(store)
    latest = max([*versions, *checkpoints]) if version is None else version
    snapshot, load_error = _load(store, version)
    with Threads(THREADS) as threads:
        commits = tuple(threads.map(lambda each: _read(store, each), (v for v in versions if v <= latest)))
        summed = [each for each in versions if each <= latest and checksum_path(each) in checksum_paths]
        checksums = dict(
            zip(summed, threads.map(lambda each: _read_checksum(store, each), summed), strict=True)
        )
    return LogSurvey(store, latest, names, commits, snapshot, load_error, stored, checksums)


def _read_checksum(store: Store, version: int) -> bytes | StoreError:
    try:
        return storage.read(store, checksum_path(version))
    except StoreError as error:
        return error


def _load(store: Store, version: int | None) -> tuple[Snapshot | None, str | None]:
    try:
        return load_snapshot(store, version), None
    except VersionNotFoundError:
        raise
    except DeltaVariantError as error:
        return None, str(error)


def _read(store: Store, version: int) -> Commit:
    path = commit_file_name(version)
    try:
        data = storage.read(store, path)
    except StoreError as error:
        return Commit(version, (), (("L1", f"cannot be read ({error})"),))
    try:
        actions = tuple(decode_commit(data, path))
        return Commit(version, actions, _contradictions(actions))
    except MalformedLogError as error:
        actions, violations = _decode_lines(data, path)
        if not data.strip():
            violations = (("L1", "is empty, so its actions are lost"),)
        return Commit(version, actions, violations or (("L3", f"is not valid: {error.message}"),))


def _contradictions(actions: Sequence[Action]) -> tuple[tuple[str, str], ...]:
    """Return a violation if a commit adds and removes one logical file: its actions have no order."""
    added, removed = (
        {file_key(action) for action in actions if isinstance(action, kind)} for kind in (AddFile, RemoveFile)
    )
    paths = sorted(path for path, _ in added & removed)
    return (("L3", f"adds and removes the file {paths[0]}"),) if paths else ()


def _read_compaction(store: Store, span: Span) -> Compaction:
    try:
        return Compaction(span, *decode_compaction(storage.read(store, span.path), span.path))
    except DeltaVariantError as error:
        return Compaction(span, read_error=str(error))


def _decode_lines(data: bytes, path: str) -> tuple[tuple[Action, ...], tuple[tuple[str, str], ...]]:
    """Return the actions of the valid lines of a commit, and a violation for each invalid line."""
    actions: list[Action] = []
    violations: list[tuple[str, str]] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            actions += decode_commit(line, path)
        except MalformedLogError as error:
            violations.append(("L1", f"has an invalid line {number} ({error.message})"))
    return tuple(actions), tuple(violations)
