"""The storage interface of a table, and its two implementations: local files and object stores.

Python reads and writes local files itself. The object stores of `obstore` run on threads that a forked
process does not inherit, so a call in the child process would never return. They raise an error there. Local
tables work in every process.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, cast, runtime_checkable
from uuid import uuid4

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PreconditionError,
    UnknownConfigurationKeyError,
)
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from .._logging import get_logger
from .._redaction import redact
from ..errors import StoreError

if TYPE_CHECKING:
    from obstore import ObjectMeta

PART_BYTES = 8 << 20
"""Size in bytes of the parts of an upload; a smaller file is uploaded with one request."""

PARTS_AT_ONCE = 4

_LOGGER = get_logger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class StoredFile:
    """A file of a listing: its key, size in bytes and modification time in milliseconds since 1970.

    `e_tag` changes with the content, also within the resolution of the modification time. None if the store
    has none.
    """

    path: str
    size: int
    modification_time: int
    e_tag: str | None = field(default=None, compare=False)

    def is_same_as(self, other: StoredFile | None) -> bool:
        """Return whether another listing shows the same file, which was not replaced in between."""
        return other is not None and self == other and self.e_tag == other.e_tag


class NotWrittenError(Exception):
    """A file was certainly not created, for the reason in `reason`."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Objects(Protocol):
    """Files, addressed by key. A call for a file that does not exist raises FileNotFoundError."""

    def get(self, key: str) -> bytes:
        """Return the content of a file."""

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each half-open range `(start, end)` of a file."""

    def get_end(self, key: str, length: int) -> tuple[int, bytes]:
        """Return the size of a file and its last `length` bytes, or all bytes of a shorter file."""

    def head(self, key: str) -> StoredFile:
        """Return the size and the modification time of a file."""

    def list_files(self, prefix: str, after: str | None) -> Iterator[StoredFile]:
        """Yield the files below the folder `prefix` in any order; if `after` is set, only greater keys."""

    def put(self, key: str, data: bytes | BinaryIO) -> None:
        """Write or replace a file atomically: readers see either the old or the new content.

        The data is the content, or a temporary file that has it.
        """

    def create(self, key: str, data: bytes | BinaryIO) -> None:
        """Write a new file atomically, or raise FileExistsError and keep the existing file.

        The data is the content, or a temporary file that has it. Raises NotWrittenError if the file was
        certainly not created. After any other error it may exist.
        """

    def delete(self, key: str) -> None:
        """Delete a file."""


class Upload(Protocol):
    """A remote file that is written in pieces, and exists once it is closed."""

    def write(self, data: bytes) -> None:
        """Append bytes. Send a full part, and wait while `PARTS_AT_ONCE` others are in flight."""

    def close(self) -> None:
        """Complete the upload."""

    def abort(self) -> None:
        """Discard the parts that were sent, so that the file does not exist."""


@runtime_checkable
class AcceptsUploads(Protocol):
    """Objects that data files are uploaded to. The kernel writes files on a local disk."""

    def open_upload(self, key: str) -> Upload:
        """Start a file, which replaces an existing one when the upload is closed."""


@runtime_checkable
class DeletesInBulk(Protocol):
    """Objects of which many are deleted by one request."""

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete files, of which some may not exist."""


@runtime_checkable
class CopiesFiles(Protocol):
    """Objects that the server of a store copies, so that no byte of a file passes through this process."""

    def copy_file(self, key: str, target: Objects, new_key: str) -> bool:
        """Copy a file to other objects, or return False if no server does that."""


class LocalFiles:
    """Files on the local disk, with absolute paths as keys. A directory is not a file."""

    def get(self, key: str) -> bytes:
        with _open_file(key) as file:
            return file.read()

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with _open_file(key) as file:
            return [_read_range(file, start, end) for start, end in ranges]

    def get_end(self, key: str, length: int) -> tuple[int, bytes]:
        with _open_file(key) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - length))
            return size, file.read(length)

    def head(self, key: str) -> StoredFile:
        state = os.stat(key)
        if stat.S_ISDIR(state.st_mode):
            raise _no_file(key)
        return _stored(key, state)

    def list_files(self, prefix: str, after: str | None) -> Iterator[StoredFile]:
        with suppress(FileNotFoundError), os.scandir(prefix or "/") as entries:
            for entry in entries:
                # Most files of a long log are before `after`: they cost nothing else.
                if (after is not None and _is_before(entry.path, after)) or not _is_text(entry.path):
                    continue
                # A file may be deleted between the listing and the call of stat.
                with suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        yield from self.list_files(entry.path, after)
                    elif (after is None or entry.path > after) and stat.S_ISREG(entry.stat().st_mode):
                        yield _stored(entry.path, entry.stat())

    def walk(self, root: str) -> list[StoredFile]:
        """Return all files below a folder, with paths relative to it.

        Symbolic links, their targets, and names that are not valid UTF-8 are omitted.
        """
        found: list[StoredFile] = []
        linked: set[str] = set()
        folders = [root]
        while folders:
            with suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        linked.add(os.path.realpath(entry.path))
                    elif entry.is_dir():
                        folders.append(entry.path)
                    elif entry.is_file() and _is_text(entry.path):
                        with suppress(FileNotFoundError):
                            found.append(_stored(entry.path, entry.stat(follow_symlinks=False)))
        if linked:
            found = [
                file for file in found if linked.isdisjoint((file.path, *map(str, Path(file.path).parents)))
            ]
        start = len(root.rstrip(os.sep)) + 1
        return [replace(file, path=file.path[start:]) for file in found]

    def put(self, key: str, data: bytes | BinaryIO) -> None:
        staged = _stage(key, data)
        try:
            os.replace(staged, key)
        except BaseException:
            _remove_staged(staged)
            raise

    def create(self, key: str, data: bytes | BinaryIO) -> None:
        try:
            staged = _stage(key, data)
        except OSError as error:
            raise NotWrittenError(error) from error
        try:
            os.link(staged, key)
        except OSError as error:
            outcome = _link_outcome(staged, key, error)
            if outcome == "rejected":
                raise NotWrittenError(error) from error
            if outcome == "unknown":
                raise
        finally:
            # The file exists, or the error of the link is the one to report.
            _remove_staged(staged)

    def delete(self, key: str) -> None:
        os.unlink(key)

    def open_upload(self, key: str) -> Upload:
        return LocalUpload(key)


def _open_file(key: str) -> BinaryIO:
    try:
        return open(key, "rb")
    except IsADirectoryError:
        raise _no_file(key) from None


def _no_file(key: str) -> FileNotFoundError:
    """Return the error for a key that is a directory, because object stores have no directories."""
    return FileNotFoundError(errno.ENOENT, "it is a directory", key)


def _read_range(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    data = file.read(end - start)
    if len(data) < end - start:
        raise OSError(f"cannot read bytes {start} to {end} because the file ends at {start + len(data)}")
    return data


class LocalUpload:
    """A local file that is written to a hidden file of its folder, and renamed at its end."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._staged = _staging_path(key)
        self._file = open(self._staged, "xb")  # noqa: SIM115 - closed by `close` or `abort`

    def copy(self, source: Path, length: int) -> int:
        """Append the start of a local file in the kernel of the system; return the number of bytes.

        File systems such as XFS and Btrfs share the blocks instead of copying them. Nothing is copied by a
        system that has no such call, and between file systems for which it fails.
        """
        done = 0
        with suppress(AttributeError, OSError), source.open("rb") as file:
            while done < length:
                copied = os.copy_file_range(file.fileno(), self._file.fileno(), length - done, done)
                if not copied:
                    break
                done += copied
        return done

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def close(self) -> None:
        self._file.close()
        os.replace(self._staged, self._key)

    def abort(self) -> None:
        try:
            self._file.close()
        finally:
            _remove_staged(self._staged)


def _staging_path(key: str) -> str:
    """Return the path of a hidden file in the folder of `key`, which is created if it does not exist."""
    folder, name = os.path.split(key)
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f".{name}.{uuid4().hex}.tmp")


def _stage(key: str, data: bytes | BinaryIO) -> str:
    """Write `data` to a hidden file in the folder of `key`."""
    staged = _staging_path(key)
    try:
        with open(staged, "xb") as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                data.seek(0)
                shutil.copyfileobj(data, file)
    except BaseException:
        _remove_staged(staged)
        raise
    return staged


def _remove_staged(staged: str) -> None:
    """Remove a staged file. A failure is logged, because it says nothing about the file that was staged."""
    try:
        os.unlink(staged)
    except OSError as error:
        # Nothing was staged on a read-only file system, which says so before it looks for the file.
        if error.errno not in (errno.ENOENT, errno.EROFS):
            _LOGGER.warning("cannot remove the temporary file %s: %s", staged, error.strerror)


# Errors by which a file system rejects a link. Others, such as EIO or ETIMEDOUT of a network file system, may
# follow a link that was made.
_REJECTED_LINK = frozenset(
    (
        errno.EACCES,
        errno.EDQUOT,
        errno.EINVAL,
        errno.ELOOP,
        errno.EMLINK,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOSYS,
        errno.ENOTDIR,
        errno.ENOTSUP,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.EROFS,
        errno.EXDEV,
    )
)


def _link_outcome(staged: str, key: str, error: OSError) -> Literal["created", "rejected", "unknown"]:
    """Return what a failed `os.link` did.

    A network file system repeats a request whose answer was lost. The repetition may fail where the first
    request succeeded, so only the files tell.
    """
    try:
        found = os.stat(key)
    except FileNotFoundError:
        return "rejected" if error.errno in _REJECTED_LINK else "unknown"
    return "created" if os.path.samestat(found, os.stat(staged)) else "unknown"


def _stored(key: str, state: os.stat_result) -> StoredFile:
    e_tag = f"{state.st_ino:x}-{state.st_mtime_ns:x}"
    return StoredFile(key, state.st_size, state.st_mtime_ns // 1_000_000, e_tag)


def _is_before(path: str, after: str) -> bool:
    """Return whether a file, or each file of a folder, certainly has a path that is not greater."""
    return path + os.sep < after[: len(path) + 1]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _content(data: bytes | BinaryIO) -> bytes | mmap:
    """Return what one request sends: the client reads a mapped file from the cache of the disk."""
    return data if isinstance(data, bytes) else mmap(data.fileno(), 0, access=ACCESS_READ)


_NOT_SENT = (
    InvalidPathError,
    NotImplementedError,
    NotSupportedError,
    UnknownConfigurationKeyError,
    ValueError,
)
# The client names the number of its repetitions, if there were any. An earlier request may have succeeded.
_REJECTED_PUT = re.compile(
    r"Error performing PUT \S+ in \S+ - Server returned non-2xx status code: 4(?!08)\d\d "
)


@dataclass(frozen=True)
class RemoteObjects:
    """Objects in an object store, accessed through `obstore`."""

    store: ObjectStore

    @property
    def _checked(self) -> ObjectStore:
        """Return the store; raises StoreError in a process that cannot use it."""
        _check_process()
        return self.store

    def get(self, key: str) -> bytes:
        return bytes(obstore.get(self._checked, key).bytes())

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        return [bytes(part) for part in obstore.get_ranges(self._checked, key, starts=starts, ends=ends)]

    def get_end(self, key: str, length: int) -> tuple[int, bytes]:
        try:
            end = obstore.get(self._checked, key, options={"range": {"suffix": length}})
            return end.meta["size"], bytes(end.bytes())
        except NotSupportedError:
            total = self.head(key).size
            return total, bytes(
                obstore.get_range(self._checked, key, start=max(0, total - length), end=total)
            )

    def head(self, key: str) -> StoredFile:
        meta = obstore.head(self._checked, key)
        return _listed(meta, key)

    def list_files(self, prefix: str, after: str | None) -> Iterator[StoredFile]:
        with suppress(FileNotFoundError):
            for chunk in obstore.list(self._checked, prefix, offset=after):
                for entry in chunk:
                    # Some stores, such as Azure's emulator, ignore the offset.
                    if after is None or entry["path"] > after:
                        yield _listed(entry, entry["path"])

    def put(self, key: str, data: bytes | BinaryIO) -> None:
        obstore.put(self._checked, key, _content(data), use_multipart=False)

    def create(self, key: str, data: bytes | BinaryIO) -> None:
        try:
            store, content = self._checked, _content(data)
        except (OSError, StoreError, ValueError) as error:
            raise NotWrittenError(error) from error
        try:
            obstore.put(store, key, content, mode="create")
        except (AlreadyExistsError, PreconditionError) as error:
            raise FileExistsError(str(error)) from error
        except Exception as error:
            if isinstance(error, _NOT_SENT) or _REJECTED_PUT.search(str(error)):
                raise NotWrittenError(error) from error
            raise

    def delete(self, key: str) -> None:
        obstore.delete(self._checked, key)

    def delete_all(self, keys: Sequence[str]) -> None:
        try:
            obstore.delete(self._checked, list(keys))
        except FileNotFoundError:
            # Some stores stop at a key that does not exist.
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._checked, key)

    def open_upload(self, key: str) -> Upload:
        return _MultipartUpload(self._checked, key)

    def copy_file(self, key: str, target: Objects, new_key: str) -> bool:
        _check_process()
        if not isinstance(target, RemoteObjects) or self.bucket is None or self.bucket != target.bucket:
            return False
        try:
            obstore.copy(self.bucket, self._key_in_bucket(key), target._key_in_bucket(new_key))
        except FileNotFoundError:
            raise
        except BaseError as error:
            # Servers limit the size, 5 GB on S3, and some have no such request.
            _LOGGER.debug("cannot copy %s on the server: %s", key, redact(str(error)))
            return False
        return True

    @cached_property
    def bucket(self) -> ObjectStore | None:
        """The bucket or container of the objects, None for a store without one."""
        store = self.store
        if not isinstance(store, S3Store | GCSStore | AzureStore):
            return None
        # Each store has options of its own, so their common type is only known at run time.
        create: Any = type(store)
        bucket: ObjectStore = create(
            config=store.config,
            client_options=store.client_options,
            retry_config=store.retry_config,
            credential_provider=store.credential_provider,
        )
        return bucket

    def _key_in_bucket(self, key: str) -> str:
        prefix = getattr(self.store, "prefix", None)
        return f"{prefix}/{key}" if prefix else key


class _MultipartUpload:
    def __init__(self, store: ObjectStore, key: str) -> None:
        self._writer = obstore.open_writer(store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.__exit__(StoreError, None, cast(TracebackType, None))


_first_process: int | None = None


def _check_process() -> None:
    """Raise StoreError in a process that was forked after `obstore` had started its threads."""
    global _first_process
    process = os.getpid()
    _first_process = _first_process or process
    if process != _first_process:
        raise StoreError(
            "cannot access an object store from this forked process because its parent process has used one; "
            "start worker processes with multiprocessing.get_context('spawn') or 'forkserver'"
        )


def _listed(meta: ObjectMeta, key: str) -> StoredFile:
    return StoredFile(key, meta["size"], _milliseconds(meta["last_modified"]), meta["e_tag"])


def _milliseconds(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)
