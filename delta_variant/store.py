"""Where a table lives: a root, and plain functions on the files below it.

Paths are relative to the root, `/` between segments, not percent-encoded; an absolute path or URI stands for
itself where the store can reach it. Every failure is a StoreError in one sentence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast
from urllib.parse import unquote

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import LocalStore, ObjectStore, from_url

from .errors import StoreError, VersionExistsError

__all__ = [
    "Store",
    "StoredFile",
    "TableLocation",
    "delete",
    "exists",
    "get_ranges",
    "list_files",
    "list_stored",
    "local_path",
    "open_store",
    "put",
    "put_if_absent",
    "read",
    "read_if_present",
    "size",
    "table_uri",
]


class HasTableUri(Protocol):
    """What a `deltalake.DeltaTable` has in common with whatever else knows where its table is."""

    @property
    def table_uri(self) -> str:
        """Return the URI of the table's root."""


TableLocation: TypeAlias = str | os.PathLike[str] | HasTableUri

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FILE_URI = re.compile(r"file://(?:localhost)?(?=/)", re.IGNORECASE)


@dataclass(frozen=True)
class Store:
    """The root of a table and the object store that holds it; `local_root` is None for a remote one."""

    uri: str
    objects: ObjectStore
    local_root: Path | None


@dataclass(frozen=True)
class StoredFile:
    """A file that a listing shows; its modification time is in milliseconds since 1970."""

    path: str
    size: int
    modification_time: int


def table_uri(table: TableLocation) -> str:
    """Return the URI or local path of a table given as text, as a path, or as a `deltalake.DeltaTable`."""
    if isinstance(table, str):
        return table
    if isinstance(table, os.PathLike):
        return os.fspath(table)
    return table.table_uri


def open_store(table: TableLocation, storage_options: Mapping[str, str] | None = None) -> Store:
    """Return the store of a table's root, which need not exist yet.

    Raises StoreError for a URI or a storage option that no store understands.
    """
    uri = table_uri(table)
    local_root = _local_file(uri)
    if local_root is not None:
        local_root = Path(os.path.abspath(local_root))
        return Store(str(local_root), LocalStore(), local_root)
    with _plain_errors(uri):
        # Every store takes its own options, so their common type is only known at run time.
        options = cast(Any, dict(storage_options)) if storage_options else None
        return Store(uri.rstrip("/"), from_url(uri, config=options), None)


def read(store: Store, path: str) -> bytes:
    """Return the bytes of a file. Raises StoreError, also when there is none."""
    with _plain_errors(_name(store, path)):
        return bytes(obstore.get(store.objects, _key(store, path)).bytes())


def read_if_present(store: Store, path: str) -> bytes | None:
    """Return the bytes of a file, or None when there is none."""
    with _plain_errors(_name(store, path)):
        try:
            return bytes(obstore.get(store.objects, _key(store, path)).bytes())
        except FileNotFoundError:
            return None


def get_ranges(store: Store, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of each half-open range `(start, end)` of a file; neighbours share a request."""
    starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
    with _plain_errors(_name(store, path)):
        return [
            bytes(part)
            for part in obstore.get_ranges(store.objects, _key(store, path), starts=starts, ends=ends)
        ]


def size(store: Store, path: str) -> int:
    """Return the size of a file in bytes."""
    with _plain_errors(_name(store, path)):
        return obstore.head(store.objects, _key(store, path))["size"]


def exists(store: Store, path: str) -> bool:
    """Tell whether there is a file."""
    with _plain_errors(_name(store, path)):
        try:
            obstore.head(store.objects, _key(store, path))
        except FileNotFoundError:
            return False
        return True


def list_files(store: Store, prefix: str, after: str | None = None) -> list[str]:
    """Return the sorted paths of all files below the folder `prefix`, or of those that sort behind `after`.

    A folder that does not exist has no files.
    """
    return [file.path for file in list_stored(store, prefix, after)]


def list_stored(store: Store, prefix: str, after: str | None = None) -> list[StoredFile]:
    """Return what `list_files` does, each file with its size and modification time."""
    start = len(_key(store, ""))
    offset = None if after is None else _key(store, after)
    with _plain_errors(_name(store, prefix)):
        try:
            listing = obstore.list(store.objects, _key(store, prefix), offset=offset)
            found = [
                StoredFile(entry["path"][start:], entry["size"], _milliseconds(entry["last_modified"]))
                for chunk in listing
                for entry in chunk
            ]
        except FileNotFoundError:
            return []
    return sorted(found, key=lambda file: file.path)


def put(store: Store, path: str, data: bytes) -> None:
    """Write a file, in place of the one that may be there; a reader sees the old or the new one whole."""
    with _plain_errors(_name(store, path)):
        obstore.put(store.objects, _key(store, path), data, use_multipart=False)


def put_if_absent(store: Store, path: str, data: bytes) -> None:
    """Write a file whole, or raise VersionExistsError and leave the one that is there.

    On a local disk this is a hard link to a finished file, elsewhere a conditional put: no reader ever sees a
    part of it.
    """
    with _plain_errors(_name(store, path)):
        try:
            obstore.put(store.objects, _key(store, path), data, mode="create")
        except (AlreadyExistsError, PreconditionError) as error:
            raise VersionExistsError(f"{_name(store, path)} exists already") from error


def delete(store: Store, path: str) -> None:
    """Delete a file; it is no error when there is none."""
    with _plain_errors(_name(store, path)):
        try:
            obstore.delete(store.objects, _key(store, path))
        except FileNotFoundError:
            return


def local_path(store: Store, path: str) -> Path | None:
    """Return where on the local disk a file of the table is, or None for a file elsewhere."""
    if store.local_root is None and not _FILE_URI.match(path):
        return None
    if (local := _local_file(path)) is None:
        return None
    return local if store.local_root is None else store.local_root / local


def _milliseconds(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _local_file(uri: str) -> Path | None:
    if match := _FILE_URI.match(uri):
        return Path(unquote(uri[match.end() :]))
    return None if _URI.match(uri) else Path(uri)


def _key(store: Store, path: str) -> str:
    if store.local_root is not None:
        return (local_path(store, path) or Path(path)).as_posix().lstrip("/") + ("" if path else "/")
    if _URI.match(path):
        raise StoreError(f"{path} is outside the table {store.uri}: files of other stores are not read")
    return path


def _name(store: Store, path: str) -> str:
    return path if _URI.match(path) else f"{store.uri}/{path}"


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    # obstore puts the debug form of an error behind its first line, and answers a bad path with ValueError.
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(f"there is no file {name}") from error
    except (BaseError, OSError, ValueError) as error:
        raise StoreError(f"{name}: {str(error).splitlines()[0]}") from error
