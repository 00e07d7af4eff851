"""Input files that are not in a table: their names, and their content as seekable binary files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

from .._system_errors import reason_of
from ..errors import SourceError, SourceNotFoundError
from .store import Store, get_ranges, list_files, local_location, open_store, size
from .web import WebFile, is_web, without_query

__all__ = ["InputFile", "is_remote", "list_inputs", "total_size"]

BUFFER_BYTES = 4 << 20
REMOTE_SCHEMES = {"s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"}


@dataclass(frozen=True)
class InputFile:
    """An input file.

    Attributes:
        name: The path or URI, for messages: without the query of a URL, which may contain credentials.
        path: The path relative to the folder that was listed, or the name of a single file.
        store: The object store of the file, None for other files.
        key: The path in the store.
        url: The URL of a file on a web server, None for other files.
    """

    name: str
    path: str
    store: Store | None = None
    key: str = ""
    url: str | None = None

    @property
    def size(self) -> int | None:
        """Return the size in bytes, None if a web server does not state it.

        Raise SourceError or StoreError if the file cannot be read.
        """
        if self.url is not None:
            with closing(WebFile(self.url)) as file:
                return file.size
        if self.store is not None:
            return size(self.store, self.key)
        try:
            return os.stat(self.name).st_size
        except OSError as error:
            raise SourceError(f"cannot read {self.name}: {reason_of(error)}", file=self.name) from error

    def open(self) -> BinaryIO:
        """Return the content as a seekable file. Raise SourceError or StoreError if it cannot be read."""
        if self.url is not None:
            return cast(BinaryIO, io.BufferedReader(WebFile(self.url), BUFFER_BYTES))
        if self.store is not None:
            return cast(BinaryIO, io.BufferedReader(_RemoteFile(self), BUFFER_BYTES))
        try:
            return open(self.name, "rb")
        except FileNotFoundError as error:
            raise SourceNotFoundError(f"file not found: {self.name}", file=self.name) from error
        except OSError as error:
            raise SourceError(f"cannot read {self.name}: {reason_of(error)}", file=self.name) from error


class _RemoteFile(io.RawIOBase):
    """A remote file, of which each read is a request for a range."""

    def __init__(self, file: InputFile) -> None:
        assert file.store is not None
        self._store, self._key, self.name = file.store, file.key, file.name
        self._size = size(file.store, file.key)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        (data,) = get_ranges(self._store, self._key, [(self._position, end)])
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def is_remote(text: str) -> bool:
    """Return whether text is the URI of a file in an object store: `s3://bucket/events.json`."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme.lower() in REMOTE_SCHEMES


def total_size(files: Iterable[InputFile]) -> int | None:
    """Return the size of files in bytes, None if that of one of them is not known."""
    sizes = [file.size for file in files]
    return None if None in sizes else sum(cast(Sequence[int], sizes))


def list_inputs(
    texts: Sequence[str], suffixes: Sequence[str], storage_options: Mapping[str, str] | None
) -> list[InputFile]:
    """Return the files of paths, globs, folders and URIs, in order of their names.

    A URL of a web server is one file. A folder contains the files below it whose names end with one of
    `suffixes`. Names that start with `_` or `.` are not data, as in Spark. Raise SourceNotFoundError for a
    path without files, and SourceError for a folder that contains a Delta table.
    """
    return [file for text in texts for file in _files(text, suffixes, storage_options)]


def _files(
    text: str, suffixes: Sequence[str], storage_options: Mapping[str, str] | None
) -> Iterator[InputFile]:
    if is_web(text):
        name = unquote(urlsplit(text).path).rpartition("/")[2]
        return iter([InputFile(without_query(text), name, url=text)])
    if is_remote(text):
        return _remote(text, suffixes, storage_options)
    return _local(os.fspath(local_location("an input file", text)), tuple(suffixes))


def _local(text: str, suffixes: tuple[str, ...]) -> Iterator[InputFile]:
    if os.path.isfile(text):
        yield InputFile(text, os.path.basename(text))
        return
    if os.path.isdir(text):
        names = sorted(path.relative_to(text).as_posix() for path in Path(text).rglob("*") if path.is_file())
        _check_no_table(text, names)
        found = [name for name in names if _is_data(name, suffixes)]
        yield from (InputFile(os.path.join(text, name), name) for name in found)
    else:
        found = sorted(filter(os.path.isfile, glob(text, recursive=True))) if has_magic(text) else []
        yield from (InputFile(name, name) for name in found)
    if not found:
        raise _not_found(text, suffixes)


def _remote(
    text: str, suffixes: Sequence[str], storage_options: Mapping[str, str] | None
) -> Iterator[InputFile]:
    # In globs and keys, ? and # are characters like others.
    scheme, _, rest = text.partition("://")
    bucket, _, path = rest.partition("/")
    root = f"{scheme}://{bucket}"
    store = open_store(root, storage_options)
    path = path.lstrip("/")
    if not has_magic(path) and not path.endswith("/"):
        yield InputFile(text, path.rpartition("/")[2], store, path)
        return
    folder = path[: min(path.index(mark) for mark in "*?[" if mark in path)] if has_magic(path) else path
    folder = folder.rpartition("/")[0]
    names = list_files(store, folder)
    if not has_magic(path):
        _check_no_table(text, names)
    found = [
        each
        for each in names
        if (_matches(each, path) if has_magic(path) else _is_data(each[len(path) :], tuple(suffixes)))
    ]
    for each in found:
        yield InputFile(f"{root}/{each}", each[len(folder) :].lstrip("/"), store, each)
    if not found:
        raise _not_found(text, suffixes)


def _check_no_table(text: str, names: Iterable[str]) -> None:
    """Raise SourceError for a folder that contains a Delta table: its files also have deleted rows."""
    if any("_delta_log" in name.split("/") for name in names):
        raise SourceError(f"cannot read {text} as files because it contains a Delta table", file=text)


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a glob, in which only `**` stands for several folders."""
    if "**" in pattern:
        return fnmatchcase(path, pattern.replace("**/", "*"))
    steps, patterns = path.split("/"), pattern.split("/")
    return len(steps) == len(patterns) and all(map(fnmatchcase, steps, patterns))


def _is_data(path: str, suffixes: tuple[str, ...]) -> bool:
    # `_day=1` is a partition.
    is_hidden = any(part[:1] in "._" and "=" not in part for part in path.split("/"))
    return path.lower().endswith(suffixes) and not is_hidden


def _not_found(text: str, suffixes: Sequence[str]) -> SourceError:
    """Return the error for a path or URI without a readable file."""
    if os.path.isdir(text) or text.endswith("/"):
        kinds = ", ".join(suffix for suffix in suffixes if suffix.count(".") == 1)
        return SourceNotFoundError(f"{text} contains no file that ends with {kinds}", file=text)
    try:
        os.stat(text)
    except (FileNotFoundError, NotADirectoryError):
        what = "no file matches" if has_magic(text) else "file not found:"
        return SourceNotFoundError(f"{what} {text}", file=text)
    except (OSError, ValueError) as error:
        return SourceError(f"cannot read {text}: {reason_of(error)}", file=text)
    return SourceError(
        f"cannot read {text} because it is not a regular file: redirect it to standard input and pass -",
        file=text,
    )
