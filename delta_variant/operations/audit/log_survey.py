"""The log of a table as an audit reads it: what can be decoded, the errors of the rest, and a replay.

The replay compares checkpoints and version checksums with the state at their version. The commits are the
evidence: a checkpoint or checksum that differs is reported, whichever of the two a reader uses. Where commits
are missing or invalid, the replay goes on from the next checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from ..._threads import Threads
from ...data_file.reader import open_file
from ...errors import (
    DeltaVariantError,
    MalformedLogError,
    ProtocolError,
    SchemaError,
    StoreError,
    VersionNotFoundError,
)
from ...log.checkpoints.reading import read_checkpoint, sidecars_of
from ...log.checksum import TXN_RETENTION, checksum_discrepancies, checksum_path, differences
from ...log.deletion_vectors import is_file_of_vectors
from ...log.file_tables import FileKey, add_actions, files_table
from ...log.listing import (
    LOG,
    CheckpointFiles,
    Span,
    checkpoint_name,
    commit_file_name,
    commit_version,
    compaction_of,
    listing_of,
    table_not_found,
)
from ...log.load import load_snapshot
from ...log.replay import Checkpoint, ReplayedState
from ...log.snapshot import Snapshot, TableVersion
from ...protocol import properties
from ...protocol.actions import (
    Action,
    AddFile,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    decode_commit,
    decode_compaction,
    decode_path,
    file_key,
    path_key,
)
from ...protocol.schema.column_mapping import COLUMN_ID, PHYSICAL_NAME
from ...protocol.schema.json_text import parse as parse_schema
from ...protocol.types import fields_of
from ...storage import store as storage
from ...storage.objects import StoredFile
from ...storage.store import Store
from .findings import Violation
from .statistics_copies import differences_of_copies, footer_differences, types_of_bounds

_RuleViolation: TypeAlias = "tuple[str, Violation]"
"""A violation and the id of its rule."""


MAX_DIFFERENCES = 3
"""How many differences of a checkpoint a message lists."""


class Replay:
    """The violations that a replay of a log finds, and its state at the last version, None if unknown.

    `file_counts` are the numbers of files at the versions with checkpoints. `wrong_files` are the versions of
    the checkpoints and checksums with violations by their paths, without those that a replay begins with.
    """

    def __init__(
        self, store: Store, checkpoints: Mapping[int, Sequence[CheckpointFiles]], written: Mapping[str, int]
    ) -> None:
        self.state: ReplayedState | None = None
        self.violations: list[_RuleViolation] = []
        self.file_counts: dict[int, int] = {}
        self.wrong_files: dict[str, int] = {}
        self._store = store
        self._checkpoints = checkpoints
        self._written = written

    def report(self, rule: str, message: str, version: int, path: str | None = None) -> None:
        self.violations.append((rule, Violation(message, version, file_path=path)))

    def apply(self, version: int, actions: Sequence[Action] | None) -> None:
        """Apply the commit of a version, None for one that is missing or invalid."""
        if actions is None:
            self.state = None
        elif self.state is not None:
            doubled = set(self.state.doubled)
            self._report_moved_columns(version, actions, self.state)
            self._report_inactive(version, actions, self.state.apply(version, actions))
            for path in sorted(self.state.doubled.keys() - doubled):
                paths = {path for path, _ in self.state.doubled[path]}
                other = "another path" if len(paths) > 1 else "another deletion vector"
                message = f"version {version} adds {path}, which is active with {other}"
                self.report("L16", message, version, path)

    def compare(self, version: int, checksum: bytes | StoreError | None) -> None:
        """Compare the checkpoints and the checksum of a version with the state after its commit."""
        for files in self._checkpoints.get(version, ()):
            name, known = files.paths[0].removeprefix(f"{LOG}/"), len(self.violations)
            is_base = self.state is None
            try:
                checkpoint = read_checkpoint(self._store, files)
                self._report_footers(version, files)
                if self.state is None:
                    self.state = _state_of(self._store, version, checkpoint)
                else:
                    self._report_differences(name, checkpoint, self.state)
                self.file_counts[version] = len(self.state.files)
            except DeltaVariantError as error:
                self.report("L5", f"the checkpoint {name} cannot be read ({error.message})", version)
            if len(self.violations) > known and not is_base:
                self.wrong_files.update(dict.fromkeys(files.paths, version))
        messages: list[str] = []
        if isinstance(checksum, StoreError):
            messages = [str(checksum)]
        elif checksum is not None and self.state is not None:
            messages = checksum_discrepancies(checksum, self.state)
        for message in messages:
            self.report("L8", message, version)
            self.wrong_files[checksum_path(version)] = version

    def _report_footers(self, version: int, files: CheckpointFiles) -> None:
        """Report statistics of a checkpoint that exclude actions; readers skip its row groups by them."""
        for path in (*files.paths, *sidecars_of(self._store, files)):
            if path.endswith(".parquet"):
                for _, sentence in footer_differences(open_file(self._store, path)):
                    name = path.removeprefix(f"{LOG}/")
                    self.report("L5", f"the footer of the checkpoint {name} is wrong: {sentence}", version)

    def _report_inactive(self, version: int, actions: Sequence[Action], inactive: Sequence[FileKey]) -> None:
        # Dropping the feature `deletionVectors` removes the files of vectors, so that each vacuum knows them.
        inactive = [key for key in inactive if not is_file_of_vectors(key[0])]
        if not inactive:
            return
        path, more = inactive[0][0], len(inactive) - 1
        what = f"{path}, which was not active" + (f", and {more:,} more such files" if more else "")
        rewrites = any(isinstance(action, AddFile) for action in actions)
        self.report("L14" if rewrites else "L14d", f"version {version} removes {what}", version, path)

    def _report_moved_columns(self, version: int, actions: Sequence[Action], state: ReplayedState) -> None:
        """Report columns that read other data of the files that a commit keeps."""
        metadata = next((action for action in actions if isinstance(action, Metadata)), None)
        if metadata is None or state.metadata is None:
            return
        before, after = _names_of_columns(state.metadata), _names_of_columns(metadata)
        moved = [each for each in before.keys() & after.keys() if before[each] != after[each]]
        removed = {file_key(action) for action in actions if isinstance(action, RemoveFile)}
        if moved and not state.files.keys() <= removed:
            number = min(moved)
            message = (
                f"version {version} changes the name in files of the column with the id {number} from "
                f"{before[number]} to {after[number]}, but keeps files with the former"
            )
            self.report("T19", message, version)

    def _report_differences(self, name: str, checkpoint: Checkpoint, state: ReplayedState) -> None:
        found = list(_differences(checkpoint, state, self._written.get(f"{LOG}/{name}", 0)))
        if found:
            more = len(found) - MAX_DIFFERENCES
            text = "; ".join(found[:MAX_DIFFERENCES]) + (
                f"; and {more:,} more differences" if more > 0 else ""
            )
            message = f"the checkpoint {name} differs from the commits that it covers: {text}"
            self.report("L13", message, state.version)


def _names_of_columns(metadata: Metadata) -> dict[int, str]:
    """Return the name in data files of each column that has an id, by that id."""
    try:
        is_mapped = properties.get(metadata.configuration, properties.COLUMN_MAPPING_MODE) != "none"
        fields = [field for _, field in fields_of(parse_schema(metadata.schema_string))]
    except (ProtocolError, SchemaError):
        return {}
    return {
        field.metadata[COLUMN_ID]: str(field.metadata.get(PHYSICAL_NAME)) if is_mapped else field.name
        for field in fields
        if type(field.metadata.get(COLUMN_ID)) is int
    }


def _state_of(store: Store, version: int, checkpoint: Checkpoint) -> ReplayedState:
    state = ReplayedState(store)
    state.apply(version, checkpoint.actions)
    state.apply(version, _adds(checkpoint))
    state.tombstones.update(
        (key, RemoveFile(path=key[0], data_change=False)) for key in _tombstones(checkpoint)
    )
    return state


def _adds(checkpoint: Checkpoint) -> Iterator[AddFile]:
    for batch in checkpoint.files:
        yield from add_actions(pa.Table.from_batches([batch]))


def _tombstones(checkpoint: Checkpoint) -> Iterator[FileKey]:
    for batch in checkpoint.tombstones:
        for path, vector in zip(batch["path"].to_pylist(), batch["deletion_vector"].to_pylist(), strict=True):
            yield path_key(str(path)), None if vector is None else DeletionVector(**vector).unique_id


def _differences(checkpoint: Checkpoint, state: ReplayedState, written: int) -> Iterator[str]:
    """Yield how a checkpoint differs from a state. It may omit what has expired."""
    yield from _table_differences(checkpoint.actions, state)
    yield from _file_differences(_adds(checkpoint), state)
    tombstones = set(_tombstones(checkpoint))
    for path, _ in tombstones & state.files.keys():
        yield f"it has a remove action for the file {path}, which is active"
    unexpired = _unexpired(state, written)
    for path, _ in unexpired - tombstones:
        yield f"it lacks the remove action for the file {path}, which has not expired"


def _unexpired(state: ReplayedState, written: int) -> set[FileKey]:
    """Return the tombstones that a checkpoint written at a time, in milliseconds since 1970, must have."""
    configuration = {} if state.metadata is None else state.metadata.configuration
    try:
        retention = properties.get(configuration, properties.DELETED_FILE_RETENTION_DURATION)
    except ProtocolError:
        return set()
    tombstones = state.tombstones.items()
    return {key for key, remove in tombstones if (remove.deletion_timestamp or 0) > written - retention}


def _table_differences(actions: Iterable[Action], state: ReplayedState) -> Iterator[str]:
    txns, domains = dict(state.txns), dict(state.domains)
    for action in actions:
        if isinstance(action, Protocol):
            yield from differences("protocol", action.sorted(), state.protocol and state.protocol.sorted())
        elif isinstance(action, Metadata):
            yield from differences("metaData", action, state.metadata)
        elif isinstance(action, Txn):
            known = txns.pop(action.app_id, None)
            stated = None if known is None else known.version
            yield from differences(f"txn of {action.app_id!r}", action.version, stated)
        elif isinstance(action, DomainMetadata) and not action.removed:
            yield from differences(
                f"domainMetadata of {action.domain!r}", action, domains.pop(action.domain, None)
            )
    configuration = {} if state.metadata is None else state.metadata.configuration
    if TXN_RETENTION not in configuration:
        yield from (f"it lacks the txn of {app!r}" for app in txns)
    yield from (f"it lacks the domainMetadata of {domain!r}" for domain in domains)


def _file_differences(adds: Iterable[AddFile], state: ReplayedState) -> Iterator[str]:
    types = types_of_bounds(state.metadata)
    seen: set[FileKey] = set()
    for add in adds:
        key = file_key(add)
        known = state.files.get(key)
        if key in seen:
            yield f"it has the file {key[0]} twice"
        elif known is None:
            yield f"it has the file {key[0]}, which is not active"
        else:
            yield from differences(f"the file {key[0]}", _comparable_file(add), _comparable_file(known))
            for what in differences_of_copies(known.stats or "", add.stats or "", types):
                yield f"the statistics of {key[0]} differ in {what}"
        seen.add(key)
    for path, _ in state.files.keys() - seen:
        yield f"it lacks the file {path}"


def _comparable_file(add: AddFile) -> AddFile:
    """Return the fields of a file that readers use. A checkpoint can omit all other fields."""
    vector = add.deletion_vector
    return msgspec.structs.replace(
        add,
        path=decode_path(add.path),
        # PROTOCOL.md, "Partition Value Serialization": an empty string is NULL, too.
        partition_values={name: value or None for name, value in add.partition_values.items()},
        data_change=False,
        stats=None,
        tags=None,
        clustering_provider=None,
        deletion_vector=vector and msgspec.structs.replace(vector, max_row_index=None),
    )


def _replay_log(
    store: Store,
    commits: Mapping[int, Sequence[Action] | None],
    checkpoints: Iterable[CheckpointFiles],
    checksums: Mapping[int, bytes | StoreError],
    written: Mapping[str, int],
) -> Replay:
    """Replay commits, None for an invalid one. `written` has the modification times of files by path."""
    by_version: dict[int, list[CheckpointFiles]] = {}
    for files in checkpoints:
        by_version.setdefault(files.version, []).append(files)
    replay = Replay(store, by_version, written)
    expected = 0
    for version in sorted(commits.keys() | by_version.keys()):
        if version == 0:
            replay.state = ReplayedState(store)
        if version in commits:
            replay.apply(version, commits[version] if version == expected else None)
        else:
            replay.state = None
        replay.compare(version, checksums.get(version))
        expected = version + 1
    return replay


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
        return _replay_log(self.store, commits, checkpoints, self.checksums, written)

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
