"""The state of a table as a replay of all commits has it, with totals that each action updates.

A `Snapshot` has one version. This state goes through all versions of a log, at the cost of its actions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from ..errors import MalformedLogError
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
from .snapshot import Snapshot, add_actions

__all__ = ["FileKey", "ReplayedState"]

FileKey: TypeAlias = "tuple[str, str | None]"


class ReplayedState:
    """The reconciled actions of all versions up to `version` (PROTOCOL.md, "Action Reconciliation").

    `tombstones` are the `remove` actions of files that are not active. `doubled` are the paths that are
    active with several deletion vectors, or with and without one.
    """

    def __init__(self) -> None:
        self.version = -1
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.timestamp: int | None = None
        self.files: dict[FileKey, AddFile] = {}
        self.tombstones: dict[FileKey, RemoveFile] = {}
        self.txns: dict[str, Txn] = {}
        self.domains: dict[str, DomainMetadata] = {}
        self.num_bytes = self.num_vectors = self.num_deleted = 0
        self.doubled: set[str] = set()
        self._vectors_of: dict[str, set[str | None]] = {}
        self._histograms: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> ReplayedState:
        """Return the state of a snapshot, without tombstones."""
        state = cls()
        state.apply(snapshot.version, [snapshot.protocol, snapshot.metadata])
        state.apply(snapshot.version, snapshot.txns.values())
        state.apply(snapshot.version, snapshot.domain_metadata.values())
        state.apply(snapshot.version, add_actions(snapshot.files))
        state.timestamp = snapshot.timestamp
        return state

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
            elif isinstance(action, CommitInfo):
                self.timestamp = action.in_commit_timestamp
            elif isinstance(action, Protocol):
                self.protocol = action
            elif isinstance(action, Metadata):
                self.metadata = action
            elif isinstance(action, Txn):
                self.txns[action.app_id] = action
            elif isinstance(action, DomainMetadata):
                self._set_domain(action)
        return inactive

    def histogram(self, boundaries: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the number and the bytes of the files in each bin, which begins at its boundary."""
        known = tuple(boundaries)
        if known not in self._histograms:
            self._histograms[known] = ([0] * len(known), [0] * len(known))
            for add in self.files.values():
                self._count_in_bins(add, 1, [known])
        return self._histograms[known]

    def _set_domain(self, action: DomainMetadata) -> None:
        if action.removed:
            self.domains.pop(action.domain, None)
        else:
            self.domains[action.domain] = action

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
        path, vector = key
        vectors = self._vectors_of.setdefault(path, set())
        (vectors.add if sign > 0 else vectors.discard)(vector)
        (self.doubled.add if len(vectors) > 1 else self.doubled.discard)(path)
        if not vectors:
            del self._vectors_of[path]
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
