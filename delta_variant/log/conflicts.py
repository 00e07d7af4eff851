"""Conflicts of a commit with concurrent commits: what another writer may not have changed.

An append depends only on the protocol, the metadata and its `txn`. A commit that replaces files also depends
on the files that it read, and a commit that adds files of the table again depends on these files. A commit
with `RowReads` depends on rows: another commit may mark other rows of the same files by deletion vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import starmap
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    commit_infos,
    decode_path,
    file_key,
)
from .file_tables import path_keys
from .pending_commit import FileChanges, RebasedFiles

VACUUM_START = "VACUUM START"
"""The operation of the commit that precedes the deletions of a vacuum."""

VACUUM_END = "VACUUM END"
"""The operation of the commit that follows them."""

FindConflict: TypeAlias = Callable[[Sequence[Action]], "str | None"]
"""Returns the conflict with the actions of a concurrent commit, None if they do not conflict."""


Vector: TypeAlias = "Mapping[str, Any] | None"
"""The deletion vector of a file, as `Snapshot.files` has it."""


class RowReads(ABC):
    """The rows that a commit read in files, and those that it marks by deletion vectors."""

    @abstractmethod
    def find_conflict(self, before: Vector, after: AddFile) -> str | None:
        """Return the conflict with a concurrent commit that added a file again, None if its rows permit it.

        Args:
            before: The deletion vector that the operation read.
            after: The action of the concurrent commit.
        """

    @abstractmethod
    def rebase(self, files: RebasedFiles) -> RebasedFiles:
        """Return the files to commit on top of the commits that `find_conflict` checked."""


@dataclass(frozen=True)
class Reads:
    """The files that a commit depends on.

    `files` are the files that the operation read, as rows of `Snapshot.files`. `may_match` returns whether
    files that another writer adds may contain a row that the operation selects. `with_appends` states that
    blind appends conflict in a `WriteSerializable` table too. `returns_files` states that the commit adds
    files that an earlier version removed, which a concurrent vacuum may delete. Without `rows`, each commit
    that removes a file conflicts, whether it adds the file again or not.
    """

    files: pa.Table
    may_match: Callable[[Sequence[AddFile]], bool]
    rows: RowReads | None = None
    with_appends: bool = False
    returns_files: bool = False


def append_conflicts(txn: Txn | None, *, changes_table: bool) -> FindConflict:
    """Return the check for a commit that only adds files, and perhaps changes the table."""
    return lambda actions: _table_change(actions, txn, changes_table)


def replacement_conflicts(
    files: FileChanges,
    reads: Reads,
    domains: Sequence[DomainMetadata],
    txn: Txn | None,
    *,
    changes_table: bool,
    changes_rows: bool,
    tolerates_appends: bool,
) -> FindConflict:
    """Return the check for a commit that replaces files.

    Added files conflict only if the commit `changes_rows`. Blind appends are ignored if it
    `tolerates_appends`.
    """
    names = {each.domain for each in domains}

    def find_conflict(actions: Sequence[Action]) -> str | None:
        found = _table_change(actions, txn, changes_table) or _domain_change(actions, names)
        if found is None and reads.returns_files:
            found = _vacuum(actions)
        if found:
            return found
        rows = reads.rows
        again = {} if rows is None else _added_again(actions, [reads.files, files.rebased.before])
        found = _removal(actions, [files.removed]) or _removal(actions, [reads.files], again.keys())
        if found is None and rows is not None:
            found = next(filter(None, starmap(rows.find_conflict, again.values())), None)
        is_blind = any(info.fields.get("isBlindAppend") is True for info in commit_infos(actions))
        if found or not changes_rows or (tolerates_appends and is_blind):
            return found
        return _addition(actions, again.keys(), reads.may_match)

    return find_conflict


def recommit_conflicts(files: pa.Table, txn: Txn | None) -> FindConflict:
    """Return the check for a commit that adds files of the table again, rows of `Snapshot.files`."""
    return lambda actions: _table_change(actions, txn, False) or _file_change(actions, files)


def _table_change(actions: Sequence[Action], txn: Txn | None, changes_table: bool) -> str | None:
    # Other high water marks of identity columns concern only a commit that replaces the metadata.
    is_tolerated = not changes_table and any(info.only_advances_identities for info in commit_infos(actions))
    for action in actions:
        if isinstance(action, Protocol):
            return "changed the protocol"
        if isinstance(action, Metadata) and not is_tolerated:
            return "changed the metadata"
        if isinstance(action, Txn) and txn is not None and action.app_id == txn.app_id:
            return f"has a transaction of the same application {txn.app_id!r}"
    return None


def _removal(
    actions: Sequence[Action], files: Sequence[pa.Table], added_again: Set[str] = frozenset()
) -> str | None:
    removed = [file_key(action)[0] for action in actions if isinstance(action, RemoveFile)]
    present = _present([path for path in removed if path not in added_again], files)
    path = next((path for path in removed if path in present), None)
    return None if path is None else f"removed {path}, which this operation read"


def _added_again(
    actions: Sequence[Action], files: Sequence[pa.Table]
) -> Mapping[str, tuple[Vector, AddFile]]:
    """Return by path key those of some files that a commit adds again, each with its vector before."""
    added = {file_key(action)[0]: action for action in actions if isinstance(action, AddFile)}
    present = _present(list(added), files)
    return {path: (present[path], action) for path, action in added.items() if path in present}


def _present(paths: Sequence[str], tables: Sequence[pa.Table]) -> Mapping[str, Vector]:
    """Return those of some path keys that files of tables have, with the deletion vectors of the files."""
    wanted = pa.array(paths, pa.string())
    found: dict[str, Vector] = {}
    columns = ["path", "deletion_vector"]
    for batch in (batch for table in tables for batch in table.select(columns).to_batches() if paths):
        keys: Array = path_keys(batch)
        is_wanted = pc.is_in(keys, value_set=wanted)
        vectors: Array = batch["deletion_vector"]
        found.update(zip(*(each.filter(is_wanted).to_pylist() for each in (keys, vectors)), strict=True))
    return found


def _domain_change(actions: Sequence[Action], names: Set[str]) -> str | None:
    changed = (action.domain for action in actions if isinstance(action, DomainMetadata))
    return next((f"changed the domain {domain}" for domain in changed if domain in names), None)


def _file_change(actions: Sequence[Action], files: pa.Table) -> str | None:
    changes = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
    present = _present([file_key(action)[0] for action in changes], [files])
    for action in changes:
        if file_key(action)[0] in present:
            verb = "removed" if isinstance(action, RemoveFile) else "committed"
            return f"{verb} {decode_path(action.path)}"
    return None


def _addition(
    actions: Sequence[Action], checked: Set[str], may_match: Callable[[Sequence[AddFile]], bool]
) -> str | None:
    # Rows that a commit only rearranges were in files that the same commit removes.
    adds = [
        action
        for action in actions
        if isinstance(action, AddFile) and action.data_change and file_key(action)[0] not in checked
    ]
    return "added rows that this operation may have to see" if adds and may_match(adds) else None


def _vacuum(actions: Sequence[Action]) -> str | None:
    operations = {info.operation for info in commit_infos(actions)}
    for operation, verb in ((VACUUM_START, "started"), (VACUUM_END, "ended")):
        if operation in operations:
            return f"{verb} a vacuum, which may delete files that this operation adds again"
    return None
