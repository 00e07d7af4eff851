"""Replay a log: reconcile the actions of its commits (PROTOCOL.md, "Action Reconciliation").

`replay` streams the batches of the checkpoint to build a snapshot, and only copies those of which later
commits remove files. A `ReplayedState` goes through all versions of a log, at the cost of its actions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import pyarrow as pa

from ..errors import MalformedLogError
from ..protocol import properties
from ..protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    decode_path,
    file_key,
)
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import Store, path_in_table
from .file_set import FileSet, append_batches
from .file_tables import (
    TOMBSTONES_SCHEMA,
    FileKey,
    FileKeys,
    drop_files,
    drop_files_at_once,
    files_table,
    tombstones_table,
)
from .snapshot import Snapshot


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint: the actions that are not files, and batches of files.

    `files` have FILES_SCHEMA, `tombstones` have TOMBSTONES_SCHEMA. Both may be streams that can be iterated
    over only once. A FileSet is not read before it is used.
    """

    actions: Sequence[Action]
    files: Iterable[pa.RecordBatch]
    tombstones: Iterable[pa.RecordBatch] = ()


class CommitTables(msgspec.Struct, frozen=True):
    """A commit with its files as tables, which need less memory than actions.

    `actions` are the others. `added` has FILES_SCHEMA. `removed` has FILES_SCHEMA or TOMBSTONES_SCHEMA.
    """

    actions: Sequence[Action]
    added: pa.Table
    removed: pa.Table

    @property
    def touched(self) -> FileKeys:
        return FileKeys.of_table(self.removed).union(FileKeys.of_table(self.added))


Commit: TypeAlias = "Sequence[Action] | CommitTables"


def table_actions(commit: Commit) -> Sequence[Action]:
    """Return the actions of a commit, of which those on files may be missing."""
    return commit.actions if isinstance(commit, CommitTables) else commit


def replay(
    store: Store,
    version: int,
    checkpoint: Checkpoint | None,
    commits: Iterable[Commit],
    *,
    timestamp: int | None = None,
) -> Snapshot:
    """Return the snapshot at `version` from a checkpoint and the commits after it, oldest first.

    The latest action on a logical file `(path, dvId)`, a `txn` application or a domain applies; tombstones
    remove files. `timestamp` is the in-commit timestamp of the version if the last of `commits` does not have
    it. Raises MalformedLogError if there is no protocol or no metaData, and what `parse_schema` raises for
    the schema.
    """
    state = _State()
    if checkpoint is not None:
        state.apply(checkpoint.actions)
    touched, added = FileKeys(), list[pa.RecordBatch]()
    for commit in commits:
        if isinstance(commit, CommitTables):
            touched, added = _after_changes(touched, added, *state.take_files())
            state.apply(commit.actions)
            touched, added = _after_changes(touched, added, commit.touched, commit.added)
        else:
            state.apply(commit)
    touched, added = _after_changes(touched, added, *state.take_files())
    if state.timestamp is None:
        state.timestamp = timestamp
    if state.metadata is not None and not properties.get(
        state.metadata.configuration, properties.ENABLE_IN_COMMIT_TIMESTAMPS
    ):
        state.timestamp = None
    files = () if checkpoint is None else checkpoint.files
    if isinstance(files, FileSet):
        return _snapshot(store, version, state, files.after(touched, added))
    # A checkpoint is a stream, of which only the remaining files are kept.
    remaining = append_batches(map(drop_files(touched), files), added)
    return _snapshot(store, version, state, FileSet.of(remaining))


def _after_changes(
    touched: FileKeys, added: Sequence[pa.RecordBatch], keys: FileKeys, files: pa.Table
) -> tuple[FileKeys, list[pa.RecordBatch]]:
    """Return the files that commits touched and those that they added, after changes of a later commit."""
    remaining = [batch for batch in drop_files_at_once(added, keys) if batch.num_rows]
    return touched.union(keys), [*remaining, *files.to_batches()]


def as_checkpoint(snapshot: Snapshot) -> Checkpoint:
    """Return a snapshot as what the replay of later commits starts from."""
    actions: list[Action] = [snapshot.protocol, snapshot.metadata]
    actions += [*snapshot.txns.values(), *snapshot.domain_metadata.values()]
    return Checkpoint(actions, snapshot.file_set)


def replay_tombstones(checkpoint: Checkpoint | None, commits: Iterable[Commit]) -> pa.Table:
    """Return the tombstones of a checkpoint and the commits after it, as a table of TOMBSTONES_SCHEMA."""
    removed: dict[FileKey, RemoveFile] = {}
    touched: set[FileKey] = set()
    batches: Iterable[pa.RecordBatch] = () if checkpoint is None else checkpoint.tombstones
    for commit in commits:
        if isinstance(commit, CommitTables):
            batches = _after_removals(batches, touched, removed)
            batches = [*drop_files_at_once(batches, commit.touched), *commit.removed.to_batches()]
            removed, touched = {}, set()
            continue
        for action in commit:
            if isinstance(action, (AddFile, RemoveFile)):
                key = file_key(action)
                touched.add(key)
                removed.pop(key, None)
                if isinstance(action, RemoveFile):
                    removed[key] = action
    return pa.Table.from_batches(_after_removals(batches, touched, removed), TOMBSTONES_SCHEMA)


def _after_removals(
    batches: Iterable[pa.RecordBatch], touched: set[FileKey], removed: Mapping[FileKey, RemoveFile]
) -> list[pa.RecordBatch]:
    later = tombstones_table(list(removed.values())).to_batches()
    # Each batch becomes a row group of the next checkpoint, so there must be few of them.
    return append_batches(map(drop_files(FileKeys.of(touched)), batches), later)


class _TableActions:
    """The reconciled actions that are not on files; each `apply` replaces those of its kind."""

    def __init__(self) -> None:
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.timestamp: int | None = None
        self.txns: dict[str, Txn] = {}
        self.domains: dict[str, DomainMetadata] = {}

    def _apply_table_action(self, action: Action) -> None:
        if isinstance(action, Protocol):
            self.protocol = action
        elif isinstance(action, Metadata):
            self.metadata = action
        elif isinstance(action, Txn):
            self.txns[action.app_id] = action
        elif isinstance(action, CommitInfo):
            self.timestamp = action.in_commit_timestamp
        elif isinstance(action, DomainMetadata):
            if action.removed:
                self.domains.pop(action.domain, None)
            else:
                self.domains[action.domain] = action


class _State(_TableActions):
    """The state during the replay of a log."""

    def __init__(self) -> None:
        super().__init__()
        self.added: dict[FileKey, AddFile] = {}
        self.touched: set[FileKey] = set()

    def take_files(self) -> tuple[FileKeys, pa.Table]:
        """Return the keys of the files that commits touched, and those that they added, and forget both."""
        taken = FileKeys.of(self.touched), files_table(list(self.added.values()))
        self.touched, self.added = set(), {}
        return taken

    def apply(self, actions: Iterable[Action]) -> None:
        self.timestamp = None
        for action in actions:
            if isinstance(action, AddFile):
                key = file_key(action)
                self.touched.add(key)
                self.added[key] = action
            elif isinstance(action, RemoveFile):
                key = file_key(action)
                self.touched.add(key)
                self.added.pop(key, None)
            else:
                self._apply_table_action(action)


def _snapshot(store: Store, version: int, state: _State, files: FileSet) -> Snapshot:
    if state.protocol is None or state.metadata is None:
        lacking = "protocol" if state.protocol is None else "metaData"
        raise MalformedLogError(
            f"the log of {store.uri} lacks {lacking} up to version {version}",
            table=store.uri,
            version=version,
        )
    return Snapshot(
        store=store,
        version=version,
        configuration=TableConfiguration.of(store.uri, state.protocol, state.metadata),
        file_set=files,
        txns=state.txns,
        domain_metadata=state.domains,
        timestamp=state.timestamp,
    )


class ReplayedState(_TableActions):
    """The reconciled actions of all versions up to `version` (PROTOCOL.md, "Action Reconciliation").

    `store` has the table. `tombstones` are the `remove` actions of files that are not active.
    `doubled` has the files that are active several times, each with all its keys: they differ in their
    deletion vectors, or in a relative and an absolute path.
    """

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.version = -1
        self.files: dict[FileKey, AddFile] = {}
        self.tombstones: dict[FileKey, RemoveFile] = {}
        self.num_bytes = self.num_vectors = self.num_deleted = 0
        self.doubled: dict[str, set[FileKey]] = {}
        self._store = store
        self._keys_of: dict[str, set[FileKey]] = {}
        self._histograms: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}

    def paths(self) -> list[str]:
        """Return the decoded paths of the active files in order."""
        return sorted(decode_path(add.path) for add in self.files.values())

    def apply(self, version: int, actions: Iterable[Action]) -> list[FileKey]:
        """Apply the actions of a version, and return the removed files that were not active.

        A commit may list the `remove` of a file before or after the `add` of the same path with another
        deletion vector: these are two logical files.
        """
        self.version, self.timestamp = version, None
        inactive = []
        for action in actions:
            if isinstance(action, AddFile):
                self._add(action)
            elif isinstance(action, RemoveFile):
                if (key := self._remove(action)) is not None:
                    inactive.append(key)
            else:
                self._apply_table_action(action)
        return inactive

    def histogram(self, boundaries: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the number and the bytes of the files in each bin, which begins at its boundary."""
        known = tuple(boundaries)
        if known not in self._histograms:
            self._histograms[known] = ([0] * len(known), [0] * len(known))
            for add in self.files.values():
                self._count_in_bins(add, 1, [known])
        return self._histograms[known]

    def _add(self, add: AddFile) -> None:
        for key in _keys(add):
            if (before := self.files.get(key)) is not None:
                self._count(before, key, -1)
            self.tombstones.pop(key, None)
            self.files[key] = add
            self._count(add, key, 1)

    def _remove(self, remove: RemoveFile) -> FileKey | None:
        """Remove a file, and return its key if it was not active."""
        for key in _keys(remove):
            before = self.files.pop(key, None)
            self.tombstones[key] = remove
            if before is None:
                return key
            self._count(before, key, -1)
        return None

    def _count(self, add: AddFile, key: FileKey, sign: int) -> None:
        self.num_bytes += sign * add.size
        if add.deletion_vector is not None:
            self.num_vectors += sign
            self.num_deleted += sign * add.deletion_vector.cardinality
        path = key[0]
        if path.startswith("/") or ":" in path:
            path = path_in_table(self._store, path) or path
        keys = self._keys_of.setdefault(path, set())
        (keys.add if sign > 0 else keys.discard)(key)
        if len(keys) > 1:
            self.doubled[path] = keys
        else:
            self.doubled.pop(path, None)
        if not keys:
            del self._keys_of[path]
        self._count_in_bins(add, sign, self._histograms)

    def _count_in_bins(self, add: AddFile, sign: int, histograms: Iterable[tuple[int, ...]]) -> None:
        for boundaries in histograms:
            counts, totals = self._histograms[boundaries]
            number = bisect_right(boundaries, add.size) - 1
            if number >= 0:
                counts[number] += sign
                totals[number] += sign * add.size


def _keys(action: AddFile | RemoveFile) -> Iterator[FileKey]:
    """Yield the key of a file, nothing for a path that cannot be decoded: another rule reports it."""
    try:
        yield file_key(action)
    except MalformedLogError:
        return
