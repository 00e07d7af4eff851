"""The location of a table: its root, and functions for the files below it.

Paths are relative to the root, have `/` between segments, and are not percent-encoded. A path may also be an
absolute path or a URI. A file outside the root, whether by `..` or by a symbolic link, is rejected unless the
storage option `allow_paths_outside_table` is true. Every failure is a StoreError of one sentence.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from obstore.store import MemoryStore, from_url

from .._checks import is_unicode
from .._redaction import redact, redact_location, remember_secrets
from .._system_errors import reason_of
from ..errors import ArgumentTypeError, CommitUnknownError, StoreError, VersionExistsError
from ..protocol.actions import is_absolute, local_path_of
from .objects import (
    PART_BYTES,
    AcceptsUploads,
    CopiesFiles,
    DeletesInBulk,
    LocalFiles,
    LocalUpload,
    NotWrittenError,
    Objects,
    RemoteObjects,
    StoredFile,
)
from .options import (
    ALLOW_PATHS_OUTSIDE_TABLE,
    PROFILE,
    Profile,
    StoreOptions,
    client_options,
    find_profile,
    parse_options,
)
from .request import NO_RETRIES, Retries, translate_errors
from .uris import ABSOLUTE_URI, check_location, check_scheme, local_file, plain_scheme, relative_path

if TYPE_CHECKING:
    from .unity import CatalogTable


class HasTableUri(Protocol):
    """An object with the URI of a table, such as a `deltalake.DeltaTable`."""

    @property
    def table_uri(self) -> str:
        """The URI of the table's root."""


TableLocation: TypeAlias = str | os.PathLike[str] | HasTableUri

LATEST = (None, None)
"""The version and the timestamp of a handle that stands for the latest version."""

Result = TypeVar("Result")
ObjectKey: TypeAlias = tuple[Objects, str]
"""The storage of a file, and its key in that storage."""


class Memo:
    """What was loaded last from a table, so that the next load reads only what was committed since.

    The stores of one handle share a memo, which `log` fills. Its copies, also in other processes, are empty.
    Only the memo of a handle keeps what was loaded: it refers to its store, and the memory of such a cycle is
    in use until the garbage collector runs. Other memos forget it when nothing else uses it.
    """

    __slots__ = ("keeps", "loaded")

    def __init__(self, keeps: bool = False) -> None:
        self.keeps = keeps
        self.loaded: Any = None

    def __reduce__(self) -> tuple[type[Memo], tuple[bool]]:
        return Memo, (self.keeps,)

    @classmethod
    def of_handle(cls) -> Memo:
        """Return a memo that keeps what was loaded."""
        return cls(keeps=True)


@dataclass(frozen=True)
class Store:
    """The root of a table and the object store that contains it.

    Every operation accepts a `Store` as the location of its table. A store whose `objects` wrap those of
    another observes, delays or fails the calls that an operation makes.

    `local_root` is the root of a local table, None for a remote one. `real_root` is the same path with
    symbolic links resolved. `outside` has the storage options for files outside the root, None if these are
    rejected.
    """

    uri: str
    objects: Objects
    local_root: Path | None
    real_root: str | None = None
    outside: Mapping[str, str] | None = field(default=None, repr=False)
    retries: Retries = NO_RETRIES
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    catalog: CatalogTable | None = field(default=None, repr=False, compare=False)
    """The table in a Unity Catalog, of a table that was opened as `uc://catalog.schema.table`."""

    @property
    def table_uri(self) -> str:
        """Return the URI or local path of the root, which makes a store a `TableLocation`."""
        return self.uri


@dataclass(frozen=True)
class RememberedTable:
    """A location with a memo: its calls read only what was committed since the call before.

    `engine` runs its operations, None for this process.
    """

    table_uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)
    _memo: Memo = field(default_factory=Memo.of_handle, repr=False, compare=False)
    engine: Any = None


def remember(table: TableLocation) -> TableLocation:
    """Return a location with a memo, which is `table` itself if it has one."""
    if isinstance(table, Store) or hasattr(table, "_memo"):
        return table
    return RememberedTable(table_uri(table), storage_options_of(table))


@contextmanager
def removing_new_folders(store: Store) -> Iterator[None]:
    """If the body fails, remove the folders of the table that did not exist before and are empty."""
    absent = missing_folders(store)
    try:
        yield
    except BaseException:
        remove_if_empty(absent)
        raise


def missing_folders(store: Store) -> list[Path]:
    """Return the folders of a local table, and above it, that do not exist, the innermost first."""
    root = store.local_root
    wanted = () if root is None else (root / "_delta_log", root, *root.parents)
    return [folder for folder in wanted if not folder.exists()]


def remove_empty_folders(store: Store, path: str) -> None:
    """Remove the empty folders between a table's root and a deleted file."""
    if store.local_root is not None and (local := local_path(store, path)) is not None:
        remove_if_empty(folder for folder in local.parents if store.local_root in folder.parents)


def remove_if_empty(folders: Iterable[Path]) -> None:
    """Remove folders, of which some may not exist, up to the first that is not empty."""
    with suppress(OSError):
        for folder in folders:
            with suppress(FileNotFoundError):
                folder.rmdir()


def table_uri(table: TableLocation) -> str:
    """Return the URI or local path of a table, which is text, a path, a `Table` or a `deltalake.DeltaTable`.

    Raises ArgumentTypeError for any other type, and ValueError for text that is empty, or has NUL or an
    unpaired surrogate.
    """
    uri: object = os.fspath(table) if isinstance(table, os.PathLike) else getattr(table, "table_uri", table)
    expected = "expected a path, a URI, a Table or a deltalake.DeltaTable"
    if not isinstance(uri, str):
        raise ArgumentTypeError(f"{expected}, got {redact(repr(table))}")
    # An empty path, such as that of an unset variable of a shell, would be the current folder.
    if not uri or not is_unicode(uri) or "\0" in uri:
        raise ValueError(f"{expected}, got {redact_location(repr(table))}")
    return uri


def location_key(table: TableLocation) -> str:
    """Return a text that is the same for all spellings of a table's location.

    Relative paths, symbolic links and `file:` URIs become the real path. Schemes of the same store, such as
    `s3` and `s3a`, become one.
    """
    uri = table_uri(table)
    local = local_file(uri)
    return plain_scheme(uri.rstrip("/")) if local is None else os.path.realpath(local)


def storage_options_of(table: TableLocation) -> Mapping[str, str] | None:
    """Return the options for the store of a table that its handle has, None without one."""
    # A Table has the first attribute, a deltalake.DeltaTable the second.
    options: Mapping[str, str] | None = getattr(table, "storage_options", None) or getattr(
        table, "_storage_options", None
    )
    return options


def pinned_version(table: TableLocation) -> tuple[int | None, Any]:
    """Return the version or the timestamp that a handle stands for, each None by default."""
    if isinstance(table, Store | str | os.PathLike):
        return None, None
    selected: tuple[int | None, Any] | None = getattr(table, "_as_of", None)
    if selected is not None:
        return selected
    # A `deltalake.DeltaTable`.
    version = getattr(table, "version", None)
    return (version() if callable(version) else None), None


def is_as_of(table: TableLocation) -> bool:
    """Return whether a location is a `Table` whose `as_of` selected a version or a timestamp."""
    return getattr(table, "_as_of", LATEST) != LATEST


def open_latest(table: TableLocation) -> Store:
    """Return the store of a table that an operation changes; raises what `open_store` raises.

    Raises ValueError for a handle of an earlier version. A `deltalake.DeltaTable` stands for the table.
    """
    version, timestamp = pinned_version(table)
    if is_as_of(table):
        at = f"version {version}" if timestamp is None else f"timestamp {timestamp}"
        shown = redact_location(table_uri(table))
        raise ValueError(f"cannot change {shown} at {at}: pass the table without as_of")
    return open_store(table)


def open_store(table: TableLocation, storage_options: Mapping[str, str] | None = None) -> Store:
    """Return the store of a table's root, which need not exist yet. A `Store` is returned as it is.

    Text that starts with a scheme, such as `s3:`, is a URI; `./s3:` is a local path. `~/` is the home
    directory; `./~/` is a local folder. A table in `memory://` exists until the process ends.
    `uc://catalog.schema.table` is a table that exists in a Unity Catalog. Raises StoreError for an
    unsupported URI or storage option, and for a path that is not a directory, and TableNotFoundError for a
    table that its catalog does not have.
    """
    if isinstance(table, Store):
        return table
    uri = table_uri(table)
    if storage_options is None:
        storage_options = storage_options_of(table)
    memo = getattr(table, "_memo", None) or Memo()
    options = parse_options(storage_options or {})
    outside = dict(storage_options or {}) if options.allow_paths_outside_table else None
    if local_file(uri) is None:
        remember_secrets(storage_options or {}, os.environ)
    if uri.lower().startswith("uc://"):
        check_location(uri)
        # Imported here, because most programs use no catalog.
        from .unity import open_catalog_table

        catalog = open_catalog_table(uri, options.catalog, Retries.of(options.retry))
        store = _open_root(catalog.location, options, outside, catalog.credentials)
        return replace(store, uri=catalog.uri, memo=memo, catalog=catalog)
    return replace(_open_root(uri, options, outside), memo=memo)


def _open_root(
    uri: str,
    options: StoreOptions,
    outside: Mapping[str, str] | None,
    credentials: Callable[[], Mapping[str, Any]] | None = None,
) -> Store:
    """Return the store of a location; `credentials` returns some for a remote one."""
    local_root = local_file(uri)
    if local_root is not None:
        local_root = Path(os.path.abspath(local_root))
        _check_folder(local_root)
        root = os.path.realpath(local_root)
        return Store(str(local_root), _LOCAL, local_root, root, outside)
    check_scheme(uri)
    check_location(uri)
    uri = uri.rstrip("/")
    if urlsplit(uri).scheme.lower() == "memory":
        return Store(uri, _memory(uri), None, outside=outside)
    config = dict(options.store)
    if credentials is None and uri.lower().startswith(("s3://", "s3a://")):
        credentials = _apply_profile(uri, config)
    with translate_errors(uri):
        # Each store has its own options, so their common type is only known at run time.
        arguments: Any = {
            name: value
            for name, value in (
                ("config", config),
                ("client_options", client_options(options, os.environ)),
                ("retry_config", dict(options.retry)),
                ("credential_provider", credentials),
            )
            if value
        }
        objects = RemoteObjects(from_url(uri, **arguments))
    return Store(uri, objects, None, outside=outside, retries=Retries.of(options.retry))


def _apply_profile(uri: str, config: dict[str, str]) -> Profile | None:
    """Replace the name of a profile in the options of a store by its settings, and return the profile."""
    name = find_profile(config, os.environ)
    config.pop(PROFILE, None)
    if name is None:
        return None
    profile = Profile(name, uri)
    config.update(profile.settings(config, os.environ))
    return profile


def _check_folder(root: Path) -> None:
    try:
        mode = os.stat(root).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot open a table at {root}: {reason_of(error)}", table=str(root)) from error
    if not stat.S_ISDIR(mode):
        raise StoreError(
            f"cannot open a table at {root}: expected a directory, got a file; write it to a table first",
            table=str(root),
        )


@cache
def _memory(uri: str) -> RemoteObjects:
    return RemoteObjects(MemoryStore())


def read(store: Store, path: str) -> bytes:
    """Return the content of a file. Raises StoreError, also if the file does not exist."""
    return _request(store, path, lambda objects, key: objects.get(key))


def read_if_present(store: Store, path: str) -> bytes | None:
    """Return the content of a file, or None if it does not exist."""

    def send(objects: Objects, key: str) -> bytes | None:
        try:
            return objects.get(key)
        except FileNotFoundError:
            return None

    return _request(store, path, send)


def get_ranges(store: Store, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of each half-open range `(start, end)` of a file; adjacent ranges share a request."""
    return _request(store, path, lambda objects, key: objects.get_ranges(key, ranges))


def read_end(store: Store, path: str, length: int) -> tuple[int, bytes]:
    """Return the size of a file and its last `length` bytes, or all bytes of a shorter file."""
    return _request(store, path, lambda objects, key: objects.get_end(key, length))


def size(store: Store, path: str) -> int:
    return _request(store, path, lambda objects, key: objects.head(key).size)


def exists(store: Store, path: str) -> bool:
    """Return whether a file exists."""

    def send(objects: Objects, key: str) -> bool:
        try:
            objects.head(key)
        except FileNotFoundError:
            return False
        return True

    return _request(store, path, send)


def file_info(store: Store, path: str) -> StoredFile:
    """Return the size and the modification time of a file, whose path is its key in the store."""
    return _request(store, path, lambda objects, key: objects.head(key))


def list_files(store: Store, prefix: str, after: str | None = None) -> list[str]:
    """Return the sorted paths of all files below the folder `prefix`; if `after` is set, only greater paths.

    A folder that does not exist has no files.
    """
    return [file.path for file in list_file_info(store, prefix, after)]


def list_file_info(store: Store, prefix: str, after: str | None = None) -> list[StoredFile]:
    """Return the files that `list_files` returns, with size and modification time."""
    start = len(_folder(store, ""))
    greater_than = None if after is None else _folder(store, after)

    def send(objects: Objects, key: str) -> list[StoredFile]:
        found = [replace(file, path=file.path[start:]) for file in objects.list_files(key, greater_than)]
        return sorted(found, key=lambda file: file.path)

    return _request(store, prefix, send, (store.objects, _folder(store, prefix)))


def walk(store: Store) -> list[StoredFile]:
    """Return all files of a table, including those of its log.

    On a local disk, symbolic links, their targets, and names that are not valid UTF-8 are omitted.
    """
    if store.local_root is None:
        return list_file_info(store, "")
    with translate_errors(store.uri):
        return _LOCAL.walk(os.path.realpath(store.local_root))


def put(store: Store, path: str, data: bytes | BinaryIO) -> None:
    """Write or replace a file atomically: readers see either the old or the new content.

    The data is the content, or a temporary file that has it.
    """
    _request(store, path, lambda objects, key: objects.put(key, data))


def put_if_absent(store: Store, path: str, data: bytes | BinaryIO) -> None:
    """Write a new file atomically, or raise VersionExistsError and keep the existing file.

    The data is the content, or a temporary file that has it.

    This is a hard link to a complete file on a local disk, and a conditional put elsewhere. The existing file
    may be our own if the answer of an earlier request was lost. Raises CommitUnknownError after an error that
    does not prove that the file was not written. Only an error of the first request can prove it.
    """
    name, requests, is_certain = uri_of(store, path), 0, True

    def send(objects: Objects, key: str) -> None:
        nonlocal requests, is_certain
        requests, is_certain = requests + 1, False
        try:
            objects.create(key, data)
        except NotWrittenError as error:
            is_certain = requests == 1
            raise error.reason from None

    try:
        _request(store, path, send)
    except StoreError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise VersionExistsError(f"{name} already exists", table=store.uri, file=name) from error
        if is_certain:
            raise
        raise CommitUnknownError(
            f"cannot determine whether {name} was written: {error.message}; check the table before retrying",
            table=store.uri,
            file=name,
        ) from error


def delete(store: Store, path: str) -> None:
    """Delete a file if it exists."""

    def send(objects: Objects, key: str) -> None:
        with suppress(FileNotFoundError):
            objects.delete(key)

    _request(store, path, send)


def delete_all(store: Store, paths: Sequence[str]) -> None:
    """Delete files below the root that exist, with few requests where the store deletes many by one."""
    if not isinstance(store.objects, DeletesInBulk):
        for path in paths:
            delete(store, path)
    elif paths:
        objects = store.objects
        _request(store, "", lambda *_: objects.delete_all(paths), (objects, ""))


def discard(store: Store, paths: Iterable[str]) -> None:
    """Remove files and the folders that become empty, ignoring errors of the store."""
    for path in paths:
        with suppress(StoreError):
            delete(store, path)
            remove_empty_folders(store, path)


class Upload:
    """A file of a remote store that is written in pieces, and exists once it is closed.

    As a context manager, it is closed at the end of the block, and aborted after an error in it.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._table, self._file = store.uri, uri_of(store, path)
        objects, key = _locate(store, path)
        assert isinstance(objects, AcceptsUploads), "the kernel writes files on a local disk"
        self._upload = objects.open_upload(key)

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        (self.close if error is None else self.abort)()

    def copy(self, source: Path | None, length: int) -> int:
        """Append the start of a local file if the system can copy it; return the number of bytes."""
        if source is None or not isinstance(self._upload, LocalUpload):
            return 0
        return self._upload.copy(source, length)

    def write(self, data: bytes) -> None:
        """Append bytes. Send a full part, and wait while too many others are in flight."""
        with translate_errors(self._table, self._file):
            self._upload.write(data)

    def close(self) -> None:
        with translate_errors(self._table, self._file):
            self._upload.close()

    def abort(self) -> None:
        """Discard the parts that were sent, so that the file does not exist."""
        with translate_errors(self._table, self._file):
            self._upload.abort()


def copy(
    store: Store, path: str, target: Store, new_path: str, *, end: int | None = None, tail: bytes = b""
) -> None:
    """Copy a file of a table to another table, or the bytes before `end` and then `tail`.

    The server of an object store copies whole files where it can, the kernel of the system copies local ones.
    """
    (objects, key), (others, new_key) = _locate(store, path), _locate(target, new_path)
    if end is None and isinstance(objects, CopiesFiles):
        with translate_errors(store.uri, uri_of(store, path)):
            if objects.copy_file(key, others, new_key):
                return
    length = size(store, path) if end is None else end
    local = Path(key) if isinstance(objects, LocalFiles) else None
    with Upload(target, new_path) as upload:
        for start in range(upload.copy(local, length), length, PART_BYTES):
            [part] = get_ranges(store, path, [(start, min(start + PART_BYTES, length))])
            upload.write(part)
        upload.write(tail)


def absolute_path(store: Store, path: str) -> str:
    """Return the URI of a file of a table, as other tables refer to it: not percent-encoded."""
    if store.local_root is not None:
        return path if ABSOLUTE_URI.match(path) else f"file:{store.local_root / path}"
    root = store.uri if store.catalog is None else store.catalog.location
    return path if is_absolute(path) else f"{unquote(root)}/{path}"


def path_in_table(store: Store, path: str) -> str | None:
    """Return the path relative to the table of a file with an absolute path, None for a file outside."""
    return relative_path(store.uri if store.catalog is None else store.catalog.location, path)


def local_path(store: Store, path: str) -> Path | None:
    """Return the local path of a file of the table, or None for a remote file.

    Raises StoreError for a file outside the table, unless these are allowed.
    """
    name = uri_of(store, path)
    if "\0" in path:
        raise StoreError(f"invalid file name {name!r}: it contains NUL", table=store.uri, file=name)
    if (absolute := local_path_of(path)) is not None:
        local = Path(absolute)
    elif store.local_root is not None and not ABSOLUTE_URI.match(path):
        local = store.local_root / path
    else:
        return None
    if store.outside is None and not _is_below(local, store.real_root):
        raise _outside(store, path)
    if _is_special(local):
        raise StoreError(f"cannot access {name} because it is not a regular file", table=store.uri, file=name)
    return local


def _is_special(local: Path) -> bool:
    """Return whether a path is a pipe or a device, which may block a reader forever."""
    try:
        mode = os.stat(local).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _is_below(local: Path, real_root: str | None) -> bool:
    return real_root is not None and os.path.realpath(local).startswith(real_root.rstrip(os.sep) + os.sep)


def _locate(store: Store, path: str) -> ObjectKey:
    """Return the storage of a file of the table, and its key in that storage."""
    if (local := local_path(store, path)) is not None:
        return _LOCAL if store.local_root is None else store.objects, os.path.abspath(local)
    if not is_absolute(path):
        return store.objects, path
    if (relative := path_in_table(store, path)) is not None:
        return store.objects, relative
    if store.outside is None or not ABSOLUTE_URI.match(path):
        raise _outside(store, path)
    check_scheme(path)
    scheme, rest = path.split("://", 1)
    host, _, key = rest.partition("/")
    return _other_store(f"{scheme}://{host}", tuple(store.outside.items())).objects, key


def _folder(store: Store, path: str) -> str:
    """Return the common prefix of the keys of files below a folder."""
    if store.local_root is None:
        return path
    return os.path.abspath(store.local_root / path) + ("" if path else "/")


def _outside(store: Store, path: str) -> StoreError:
    path = redact_location(path)
    return StoreError(
        f"cannot access {path} because it is outside the table {store.uri}; set the storage option "
        f"{ALLOW_PATHS_OUTSIDE_TABLE}=true to allow this",
        table=store.uri,
        file=path,
    )


_LOCAL = LocalFiles()


@lru_cache(maxsize=16)
def _other_store(root: str, options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(root, dict(options))


def uri_of(store: Store, path: str) -> str:
    """Return the path or URI of a file for messages."""
    return redact_location(path) if ABSOLUTE_URI.match(path) else f"{store.uri}/{path}"


def _request(
    store: Store, path: str, send: Callable[[Objects, str], Result], key: ObjectKey | None = None
) -> Result:
    """Return the result of a request for a file, which is repeated if its connection breaks."""
    name = uri_of(store, path)
    with translate_errors(store.uri, name):
        objects, located = key or _locate(store, path)
        return store.retries.run(name, lambda: send(objects, located))
