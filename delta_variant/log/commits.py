"""Read and write commits, and read log compactions instead of them (PROTOCOL.md, "Log Compaction Files").

Up to 16 files are fetched concurrently. Their content and the actions of one of them are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from .._threads import Threads
from ..errors import DeltaVariantError, MalformedLogError, StoreError, VersionNotFoundError
from ..protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    RemoveFile,
    decode_commit,
    decode_commit_in_parts,
    decode_commit_info,
    decode_compaction,
    duplicate_error,
    identity,
)
from ..storage.store import Store, put_if_absent, read, read_if_present
from .catalog import stage_and_ratify
from .file_set import in_order
from .file_tables import FILES_SCHEMA, TOMBSTONES_SCHEMA, FileKeys, files_table, tombstones_table
from .listing import LAST_VERSION, Span, commit_file_name, commit_path, list_log, managing_catalog
from .replay import Commit, CommitTables

Decoded = TypeVar("Decoded")

CommitActions: TypeAlias = tuple[int, list[Action]]

_AT_ONCE = 16
"""The number of files that are fetched concurrently."""

LARGE_COMMIT_BYTES = 16 << 20
"""The size from which a commit is replayed as tables. As actions, it needs four times its size of memory."""

_PART_BYTES = 8 << 20

_FEW_LOCAL = 8
"""Up to this number of local files, to start threads takes longer than to read the files one by one."""


def read_commits(store: Store, after_version: int) -> list[CommitActions]:
    """Return the commits after `after_version`, oldest first, each with its version.

    Raises MalformedLogError for a gap between two commits, and for a malformed commit.
    """
    listing = msgspec.structs.replace(list_log(store, after_version + 1), compactions=())
    spans = listing.spans(after_version + 1, max(listing.commits, default=after_version), store.uri)
    return [(span.first, actions) for span, actions in zip(spans, read_spans(store, spans), strict=True)]


def read_next_commits(store: Store, after_version: int) -> list[CommitActions]:
    """Return the consecutive commits after `after_version`, oldest first, each with its version.

    Does not list the log, so a writer that lags by a few versions sends few requests; a catalog lists the
    commits of its tables. Raises MalformedLogError for a malformed commit.
    """
    if managing_catalog(store) is not None:
        return read_commits(store, after_version)
    found: list[CommitActions] = []
    while more := _read_present(store, after_version + 1 + len(found), min(len(found) + 1, _AT_ONCE)):
        found += more
    return found


def _read_present(store: Store, first: int, count: int) -> list[CommitActions]:
    paths = [commit_file_name(version) for version in range(first, first + count)]
    with Threads(count) as threads:
        contents = list(threads.map(lambda path: read_if_present(store, path), paths))
    found: list[CommitActions] = []
    for version, (path, content) in enumerate(zip(paths, contents, strict=True), start=first):
        if content is None:
            break
        with _error_version(version):
            found.append((version, decode_commit(content, f"{store.uri}/{path}")))
    return found


def read_all_commits(store: Store) -> Iterator[list[Action]]:
    """Yield the actions of every commit that is still in the log, oldest first."""
    spans = [Span(version, version) for version in sorted(list_log(store, None).commits)]
    for first in range(0, len(spans), _AT_ONCE):
        yield from read_spans(store, spans[first : first + _AT_ONCE])


def read_versions(store: Store, first: int, last: int) -> Iterator[CommitActions]:
    """Yield the commits from `first` to `last` inclusive, each with its version.

    Raises VersionNotFoundError for a commit that is not in the log.
    """
    commits = list_log(store, first).commits
    missing = next((version for version in range(first, last + 1) if version not in commits), None)
    if missing is not None:
        raise VersionNotFoundError(
            f"the log of {store.uri} has no commit of version {missing}; it may have been cleaned up",
            table=store.uri,
            version=missing,
        )
    for start in range(first, last + 1, _AT_ONCE):
        versions = range(start, min(start + _AT_ONCE, last + 1))
        actions = read_spans(store, [Span(version, version) for version in versions])
        yield from zip(versions, actions, strict=True)


def read_commit_info(store: Store, version: int) -> CommitInfo | None:
    """Return the `commitInfo` of a commit, None if the commit lacks it or does not exist."""
    path = commit_path(store, version)
    data = read_if_present(store, path)
    with _error_version(version):
        return None if data is None else decode_commit_info(data, f"{store.uri}/{path}")


def read_spans(store: Store, spans: Sequence[Span]) -> Iterator[list[Action]]:
    """Yield the actions of each file, oldest first.

    The commits are read instead of a compaction that cannot be read or has several actions with one
    reconciliation key. If they cannot be read either, the first action of each key in the compaction is used.
    """
    return _decode_spans(store, spans, decode_commit)


def read_spans_to_replay(store: Store, spans: Sequence[Span]) -> Iterator[Commit]:
    """Yield what `read_spans` yields, but large commits as tables."""
    return _decode_spans(store, spans, _decode_to_replay)


def _decode_spans(
    store: Store, spans: Sequence[Span], decode: Callable[[bytes, str], Decoded]
) -> Iterator[Decoded | list[Action]]:
    for span, content in _fetch_all(store, spans):
        if span.is_commit:
            with _error_version(span.first):
                actions = decode(_raise_if_error(content), f"{store.uri}/{span.path}")
            yield actions
        else:
            yield from _read_compaction(store, span, content)


def _decode_to_replay(data: bytes, name: str) -> Commit:
    return decode_commit(data, name) if len(data) < LARGE_COMMIT_BYTES else _decode_tables(data, name)


def _decode_tables(data: bytes, name: str) -> CommitTables:
    """Return a commit as `decode_commit` does, with its files as tables."""
    others: list[Action] = []
    added: list[pa.RecordBatch] = []
    removed: list[pa.RecordBatch] = []
    for actions in decode_commit_in_parts(data, name, _PART_BYTES):
        adds = [action for action in actions if isinstance(action, AddFile)]
        removes = [action for action in actions if isinstance(action, RemoveFile)]
        added += files_table(adds).to_batches()
        removed += tombstones_table(removes).to_batches()
        others += [action for action in actions if not isinstance(action, (AddFile, RemoveFile))]
    commit = CommitTables(
        others, pa.Table.from_batches(added, FILES_SCHEMA), pa.Table.from_batches(removed, TOMBSTONES_SCHEMA)
    )
    if len({identity(action) for action in others}) < len(others) or any(
        FileKeys.of_table(files).has_duplicates for files in (commit.added, commit.removed)
    ):
        raise duplicate_error(data, name)
    return commit


def write_commit(store: Store, version: int, text: bytes | BinaryIO, actions: Sequence[Action]) -> None:
    """Commit a version atomically: create its file, or let the catalog of the table ratify a staged commit.

    `text` is the content of its file, or a temporary file that has it. `actions` are those of its actions
    that are not on files.

    Raises VersionExistsError if another writer has committed it, MalformedLogError for a version that no
    reader would find because it exceeds 64 bits, and what `stage_and_ratify` raises.
    """
    if version > LAST_VERSION:
        raise MalformedLogError(
            f"cannot commit to {store.uri} because its latest version, {LAST_VERSION}, is the greatest "
            "that a table can have",
            table=store.uri,
            version=LAST_VERSION,
        )
    with _error_version(version):
        if (catalog := managing_catalog(store)) is not None:
            stage_and_ratify(store, catalog, version, text, actions)
        else:
            put_if_absent(store, commit_file_name(version), text)


@contextmanager
def _error_version(version: int) -> Iterator[None]:
    """Set the version of errors; their messages do not repeat it, because the file name contains it."""
    try:
        yield
    except DeltaVariantError as error:
        error.version = version
        raise


def _read_compaction(store: Store, compaction: Span, content: bytes | StoreError) -> list[list[Action]]:
    try:
        data = _raise_if_error(content)
        actions, duplicates = decode_compaction(data, f"{store.uri}/{compaction.path}")
    except (MalformedLogError, StoreError) as error:
        return _read_commits_instead(store, compaction, error)
    if not duplicates:
        return [actions]
    try:
        return _read_commits_of(store, compaction)
    except (MalformedLogError, StoreError):
        return [actions]


def _read_commits_instead(store: Store, compaction: Span, error: Exception) -> list[list[Action]]:
    try:
        return _read_commits_of(store, compaction)
    except StoreError:
        # The commits may have been cleaned up. The error of the compaction is the cause then.
        raise error from None
    finally:
        del error  # Its traceback refers to this frame.


def _read_commits_of(store: Store, compaction: Span) -> list[list[Action]]:
    return [actions for commit in compaction.commits for actions in read_spans(store, [commit])]


def _raise_if_error(content: bytes | StoreError) -> bytes:
    if isinstance(content, StoreError):
        try:
            raise content
        finally:
            del content  # Its traceback refers to this frame.
    return content


def _fetch_all(store: Store, spans: Sequence[Span]) -> Iterator[tuple[Span, bytes | StoreError]]:
    """Yield the content of each file; at most `_AT_ONCE` files are fetched ahead of the consumer."""
    if not spans:
        return
    if store.local_root is not None and len(spans) <= _FEW_LOCAL:
        yield from ((span, _fetch(store, span)) for span in spans)
        return
    fetched = in_order(partial(_fetch, store), spans, min(_AT_ONCE, len(spans)), per_thread=1)
    yield from zip(spans, fetched, strict=True)


def _fetch(store: Store, span: Span) -> bytes | StoreError:
    try:
        return read(store, commit_path(store, span.first) if span.is_commit else span.path)
    except StoreError as error:
        return error
