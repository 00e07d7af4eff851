"""Deleting the files that a table no longer needs (PROTOCOL.md, "Data Files" and "VACUUM Protocol Check").

What is not known for certain to be left over stays: files that are young, hidden or of another table,
symbolic links and what they lead to.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from .._checks import is_number
from ..errors import (
    ArgumentTypeError,
    CommitConflictError,
    DeltaVariantError,
    RetentionDurationError,
    StoreError,
)
from ..log import deletion_vectors, transaction
from ..log.commits import read_all_commits, read_commits
from ..log.conflicts import VACUUM_START
from ..log.load import load_with_tombstones
from ..log.snapshot import Snapshot, are_unencoded, tombstones_table
from ..protocol import features, properties
from ..protocol.actions import AddFile, RemoveFile, decode_path, encode_path, is_absolute
from ..protocol.schema.column_mapping import physical_name
from ..storage.objects import StoredFile
from ..storage.store import Store, TableLocation, delete, open_store, walk
from ..writer.table_state import commit_context, now

__all__ = ["Vacuum", "vacuum"]

_LOGGER = logging.getLogger(__name__)

HOUR = 3_600_000
CHANGE_DATA = "_change_data"
LOG_FOLDER = "/_delta_log/"
ICEBERG_FOLDER = "metadata"
UNIFORM_FORMATS = "delta.universalFormat.enabledFormats"


@dataclass(frozen=True)
class Vacuum:
    """What a vacuum deleted, or in a dry run would delete: paths below the table's root, and bytes of all."""

    files: tuple[str, ...]
    bytes: int
    dry_run: bool


def vacuum(
    table: TableLocation,
    retention_hours: float | None = None,
    dry_run: bool = True,
    enforce_retention_duration: bool = True,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Vacuum:
    """Delete the files that a table no longer needs; with `dry_run` only say which they are.

    What goes is what no version within the retention needs, and what no commit ever took up: files that were
    last written before, and whose removal was committed before. The retention is that of the table's
    `delta.deletedFileRetentionDuration`, a week by default; versions that are older cannot be read any more.
    Data files, deletion vectors and files of the change data feed are concerned. Folders, and files and
    folders whose names begin with `_` or `.`, stay, but for those of partitions and of the change data feed.
    A deletion is told in the log by two commits, VACUUM START and VACUUM END.

    Raises RetentionDurationError for `retention_hours` that are less than the table's, unless
    `enforce_retention_duration=False` says that no other program writes to or reads the table;
    UnsupportedFeatureError for a table that this version cannot commit to; CommitConflictError where another
    commit brought a file back meanwhile; StoreError, when all else is deleted, for files that cannot be.
    """
    store = open_store(table, storage_options)
    snapshot, tombstones = load_with_tombstones(store)
    features.check_may_commit(snapshot.protocol, snapshot.configuration, snapshot.schema, snapshot.uri)
    retention = _retention(snapshot, retention_hours, enforce_retention_duration)
    before = max(0, now() - retention)
    needed = _Needed.of(snapshot, _kept(snapshot, tombstones, retention, before))
    left_over = list(_left_over(snapshot, needed, before))
    found = Vacuum(tuple(each.path for each in left_over), sum(each.size for each in left_over), dry_run)
    if not dry_run and left_over:
        _delete(snapshot, found, retention_hours)
    return found


def _retention(snapshot: Snapshot, hours: float | None, enforced: bool) -> int:
    """Return the milliseconds for which files that are gone are kept."""
    least = properties.get(snapshot.configuration, properties.DELETED_FILE_RETENTION_DURATION)
    if hours is None:
        return least
    if not is_number(hours) or not 0 <= hours < inf:
        error = ValueError if is_number(hours) else ArgumentTypeError
        raise error(f"retention_hours is a number from 0, and not {hours!r}")
    retention = int(hours * HOUR)
    if enforced and retention < least:
        raise RetentionDurationError(
            f"{snapshot.uri} keeps files for {least / HOUR:g} hours, and a vacuum after {hours:g} may break "
            "its readers and writers: set delta.deletedFileRetentionDuration, or where there are none pass "
            "enforce_retention_duration=False"
        )
    return retention


def _kept(snapshot: Snapshot, tombstones: pa.Table, retention: int, before: int) -> pa.Table:
    """Return the tombstones of files that went within the retention."""
    if retention > properties.get(snapshot.configuration, properties.DELETED_FILE_RETENTION_DURATION):
        # Checkpoints leave out what the table's own retention does not ask for.
        actions = (action for commit in read_all_commits(snapshot.store) for action in commit)
        removes = [action for action in actions if isinstance(action, RemoveFile)]
        tombstones = pa.concat_tables([tombstones, tombstones_table(removes)])
    return tombstones.filter(pc.greater_equal(tombstones["deletion_timestamp"], pa.scalar(before)))


@dataclass(frozen=True)
class _Needed:
    """The files that a table needs: their paths below its root, and names of those that may be anywhere."""

    paths: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot, tombstones: pa.Table) -> _Needed:
        paths, names = set(), set()
        for text in (*_texts(snapshot.files), *_texts(tombstones)):
            path = posixpath.normpath(text)
            # One place has many absolute names, so that of the file alone has to be enough.
            if is_absolute(text) or path.startswith("../"):
                names.add(posixpath.basename(path))
            else:
                paths.add(path)
        return cls(frozenset(paths), frozenset(names))

    def has(self, path: str) -> bool:
        return path in self.paths or posixpath.basename(path) in self.names


def _texts(files: pa.Table) -> Iterator[str]:
    """Yield paths of data files and deletion vectors, decoded, and as the log has them."""
    for batch in files.select(["path", "encoded_path", "deletion_vector"]).to_batches():
        plain: Any = batch.column(0)
        is_plain = are_unencoded(plain)
        for path, encoded, vector in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield path
            if encoded or not is_plain:
                # Not every writer encodes a path: then its text is the name of the file.
                yield encoded or encode_path(path)
            stored = None if vector is None else deletion_vectors.file_path(vector)
            if stored is not None:
                yield stored


def _left_over(snapshot: Snapshot, needed: _Needed, before: int) -> Iterator[StoredFile]:
    stored = list(walk(snapshot.store))
    others = {each.path[: each.path.rindex(LOG_FOLDER)] for each in stored if LOG_FOLDER in each.path}
    prefixes = tuple(_partition_prefixes(snapshot))
    for each in stored:
        if (
            each.modification_time < before
            and not needed.has(each.path)
            and not _is_hidden(each.path, prefixes)
            and not _is_of_iceberg(each.path, snapshot.configuration)
            and (not others or others.isdisjoint(_folders(each.path)))
        ):
            yield each


def _partition_prefixes(snapshot: Snapshot) -> Iterator[str]:
    """Yield how the names of folders of partitions begin, as writers spell the columns."""
    mode = properties.get(snapshot.configuration, properties.COLUMN_MAPPING_MODE)
    fields = [field for field in snapshot.schema.fields if field.name in snapshot.partition_columns]
    for name in {name for field in fields for name in (field.name, physical_name(field, mode))}:
        yield f"{name}="
        yield f"{quote(name, safe='')}="


def _is_hidden(path: str, prefixes: tuple[str, ...]) -> bool:
    *folders, name = path.split("/")
    if folders[:1] == [CHANGE_DATA]:
        folders = folders[1:]
    return name.startswith(("_", ".")) or any(
        folder.startswith(("_", ".")) and not folder.startswith(prefixes) for folder in folders
    )


def _is_of_iceberg(path: str, configuration: Mapping[str, str]) -> bool:
    return "iceberg" in configuration.get(UNIFORM_FORMATS, "") and path.startswith(f"{ICEBERG_FOLDER}/")


def _folders(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _delete(snapshot: Snapshot, found: Vacuum, hours: float | None) -> None:
    least = properties.get(snapshot.configuration, properties.DELETED_FILE_RETENTION_DURATION)
    parameters = {
        "retentionCheckEnabled": hours is None or bool(hours * HOUR >= least),
        "defaultRetentionMillis": least,
        "specifiedRetentionMillis": None if hours is None else int(hours * HOUR),
    }
    metrics = {"numFilesToDelete": len(found.files), "sizeOfDataToDelete": found.bytes}
    _tell(snapshot, VACUUM_START, parameters, metrics)
    _check_not_back(snapshot, found.files)
    failures = _delete_files(snapshot.store, found.files)
    status = {"status": "FAILED" if failures else "COMPLETED"}
    try:
        _tell(snapshot, "VACUUM END", status, {"numDeletedFiles": len(found.files) - len(failures)})
    except DeltaVariantError:
        _LOGGER.warning("%s: the end of a vacuum could not be committed", snapshot.uri, exc_info=True)
    if failures:
        raise StoreError(f"{len(failures):,} of {len(found.files):,} files were not deleted: {failures[0]}")


def _check_not_back(snapshot: Snapshot, paths: Sequence[str]) -> None:
    """Raise CommitConflictError where a file became part of the table while files were looked for."""
    left_over = set(paths)
    for version, actions in read_commits(snapshot.store, snapshot.version):
        added = (decode_path(action.path) for action in actions if isinstance(action, AddFile))
        back = next((path for path in added if posixpath.normpath(path) in left_over), None)
        if back is not None:
            raise CommitConflictError(
                f"{snapshot.uri}: version {version}, committed meanwhile, added {back}, which was to be "
                "deleted; nothing was, try again"
            )


def _delete_files(store: Store, paths: Iterable[str]) -> list[StoreError]:
    def attempt(path: str) -> StoreError | None:
        try:
            delete(store, path)
        except StoreError as error:
            return error
        return None

    with ThreadPoolExecutor(max_workers=16) as threads:
        return [error for error in threads.map(attempt, paths) if error is not None]


def _tell(
    snapshot: Snapshot, operation: str, parameters: Mapping[str, Any], metrics: Mapping[str, int]
) -> None:
    context = commit_context(operation, parameters, metrics)
    transaction.add_files(snapshot, (), context=context, data_change=False)
