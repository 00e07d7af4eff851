"""Commits read and written, and log compactions read in their place (PROTOCOL.md, "Log Compaction Files")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeAlias

from ..errors import MalformedLogError, StoreError, VersionNotFoundError
from ..protocol.actions import (
    Action,
    CommitInfo,
    decode_commit,
    decode_commit_info,
    decode_compaction,
    encode_commit,
)
from ..storage.store import Store, modification_time, put_if_absent, read, read_if_present
from .listing import LAST_VERSION, Span, commit_file_name, list_log

__all__ = [
    "CommitActions",
    "commit_file_time",
    "read_all_commits",
    "read_commit_info",
    "read_commits",
    "read_next_commits",
    "read_spans",
    "read_versions",
    "write_commit",
]

CommitActions: TypeAlias = tuple[int, list[Action]]

_AT_ONCE = 16


def read_commits(store: Store, after_version: int) -> list[CommitActions]:
    """Return the commits behind a version, in order, each with its version.

    Raises MalformedLogError for one that is missing between two others or cannot be understood.
    """
    listing = replace(list_log(store, after_version + 1), compactions=())
    spans = listing.spans(after_version + 1, max(listing.commits, default=after_version), store.uri)
    return [(span.first, actions) for span, actions in zip(spans, read_spans(store, spans), strict=True)]


def read_next_commits(store: Store, after_version: int) -> list[CommitActions]:
    """Return the commits behind a version as far as they follow one another, each with its version.

    The log is not listed, so that who is a few versions behind asks for few files. Raises MalformedLogError
    for a commit that cannot be understood.
    """
    found: list[CommitActions] = []
    while more := _read_present(store, after_version + 1 + len(found), min(len(found) + 1, _AT_ONCE)):
        found += more
    return found


def _read_present(store: Store, first: int, count: int) -> list[CommitActions]:
    paths = [commit_file_name(version) for version in range(first, first + count)]
    with ThreadPoolExecutor(max_workers=count) as threads:
        contents = list(threads.map(lambda path: read_if_present(store, path), paths))
    found: list[CommitActions] = []
    for version, (path, content) in enumerate(zip(paths, contents, strict=True), start=first):
        if content is None:
            break
        found.append((version, decode_commit(content, f"{store.uri}/{path}")))
    return found


def read_all_commits(store: Store) -> Iterator[list[Action]]:
    """Yield the actions of every commit that is still in the log, in order."""
    spans = [Span(version, version) for version in sorted(list_log(store, None).commits)]
    for first in range(0, len(spans), _AT_ONCE):
        yield from read_spans(store, spans[first : first + _AT_ONCE])


def read_versions(store: Store, first: int, last: int) -> Iterator[CommitActions]:
    """Yield the commits from `first` to `last`, each with its version.

    Raises VersionNotFoundError for one that is not in the log.
    """
    commits = list_log(store, first).commits
    missing = next((version for version in range(first, last + 1) if version not in commits), None)
    if missing is not None:
        raise VersionNotFoundError(f"{store.uri}: the log has no commit of version {missing}, or no longer")
    for start in range(first, last + 1, _AT_ONCE):
        versions = range(start, min(start + _AT_ONCE, last + 1))
        actions = read_spans(store, [Span(version, version) for version in versions])
        yield from zip(versions, actions, strict=True)


def read_commit_info(store: Store, version: int) -> CommitInfo | None:
    """Return what a commit says of itself, None where it says nothing or is no longer there."""
    path = commit_file_name(version)
    data = read_if_present(store, path)
    return None if data is None else decode_commit_info(data, f"{store.uri}/{path}")


def read_spans(store: Store, spans: Sequence[Span]) -> Iterator[list[Action]]:
    """Yield the actions of each file, oldest first.

    The commits stand in for a compaction that cannot be read, and for one that holds several actions of one
    key. Where these commits are not readable, the first action of each key counts.
    """
    if not spans:
        return
    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(spans))) as threads:
        for span, content in zip(spans, threads.map(lambda span: _content(store, span), spans), strict=True):
            if span.is_commit:
                yield decode_commit(_raised_if_error(content), f"{store.uri}/{span.path}")
            else:
                yield from _read_compaction(store, span, content)


def commit_file_time(store: Store, version: int) -> int:
    """Return the modification time of a version's commit file, in milliseconds since 1970."""
    return modification_time(store, commit_file_name(version))


def write_commit(store: Store, version: int, actions: Iterable[Action]) -> None:
    """Commit a version, whole or not at all.

    Raises VersionExistsError when another writer has committed it, and MalformedLogError for a version that
    no reader would find because it exceeds 64 bits.
    """
    if version > LAST_VERSION:
        raise MalformedLogError(
            f"cannot commit to {store.uri} because its latest version, {LAST_VERSION}, is the greatest "
            "that a table can have"
        )
    put_if_absent(store, commit_file_name(version), encode_commit(actions))


def _read_compaction(store: Store, compaction: Span, content: bytes | StoreError) -> list[list[Action]]:
    try:
        data = _raised_if_error(content)
        kept, duplicates = decode_compaction(data, f"{store.uri}/{compaction.path}")
    except (MalformedLogError, StoreError) as error:
        return _read_in_place_of(store, compaction, error)
    if not duplicates:
        return [kept]
    try:
        return _read_commits_of(store, compaction)
    except (MalformedLogError, StoreError):
        return [kept]


def _read_in_place_of(store: Store, compaction: Span, error: Exception) -> list[list[Action]]:
    try:
        return _read_commits_of(store, compaction)
    except StoreError:
        # The commits may be cleaned up: what is wrong then is the compaction.
        raise error from None


def _read_commits_of(store: Store, compaction: Span) -> list[list[Action]]:
    return [actions for commit in compaction.commits for actions in read_spans(store, [commit])]


def _raised_if_error(content: bytes | StoreError) -> bytes:
    if isinstance(content, StoreError):
        raise content
    return content


def _content(store: Store, span: Span) -> bytes | StoreError:
    try:
        return read(store, span.path)
    except StoreError as error:
        return error
