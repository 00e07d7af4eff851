"""Rules of log compaction files (PROTOCOL.md, "Log Compaction Files")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Protocol,
    RemoveFile,
    decode_path,
    reconciliation_key,
)
from .findings import Violation
from .log_survey import LogSurvey

__all__ = ["contradictions", "unreconciled"]

Key = tuple[Any, ...]


def unreconciled(subject: LogSurvey) -> Iterator[Violation]:
    """L10: a log compaction file can be read and has one action for each reconciliation key."""
    for compaction in subject.compactions:
        if compaction.read_error is not None:
            yield Violation(
                f"the log compaction {compaction.name} cannot be read ({compaction.read_error})",
                compaction.span.last,
            )
        elif compaction.duplicates:
            key = reconciliation_key(compaction.duplicates[0]) or ()
            yield Violation(
                f"the log compaction {compaction.name} is not reconciled: it has more than one action for "
                f"{_describe(key)} ({len(compaction.duplicates):,} duplicates)",
                compaction.span.last,
            )


def contradictions(subject: LogSurvey) -> Iterator[Violation]:
    """L11: a log compaction file has the same reconciled actions as the commits that it covers."""
    for compaction in subject.compactions:
        first, last = compaction.span.first, compaction.span.last
        commits = [each for each in subject.commits if first <= each.version <= last]
        is_comparable = len(commits) == last - first + 1 and not any(each.violations for each in commits)
        if compaction.read_error is not None or not is_comparable:
            continue
        found = list(_differences((each.actions for each in commits), compaction.actions))
        if found:
            more = f", and {len(found) - 1:,} more differences" if len(found) > 1 else ""
            yield Violation(
                f"the log compaction {compaction.name} differs from the commits that it covers: "
                f"{found[0]}{more}",
                last,
            )


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
    if isinstance(action, Protocol):
        lists = (action.reader_features, action.writer_features)
        versions = (action.min_reader_version, action.min_writer_version)
        return *versions, *(None if names is None else frozenset(names) for names in lists)
    return action


def _describe(key: Key) -> str:
    kind, *subject = key
    if kind == "file":
        path, vector = subject
        return f"the file {path}" + (f" with the deletion vector {vector}" if vector else "")
    return " ".join(["the", _NAMES.get(kind.__name__, kind.__name__), *map(str, subject)])


_NAMES = {
    "Protocol": "protocol",
    "Metadata": "metaData",
    "Txn": "txn of",
    "DomainMetadata": "domainMetadata of",
}
