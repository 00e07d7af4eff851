"""Input files that are not in a table: local, in an object store or on a web server, as seekable files."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob, has_magic
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from time import sleep
from typing import BinaryIO, TypeVar, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from .._logging import get_logger
from .._system_errors import reason_of
from ..errors import SourceError, SourceNotFoundError
from .store import Store, get_ranges, list_files, open_store, size
from .uris import local_location

BUFFER_BYTES = 4 << 20
MAX_SHOWN = 3
"""How many files that are not read a warning names."""
_LOGGER = get_logger(__name__)

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
    `suffixes`; a warning names the others. Names that start with `_` or `.` are not data, as in Spark. Raise
    SourceNotFoundError for a path without files, and SourceError for a folder that contains a Delta table.
    """
    return [file for text in texts for file in _files(text, suffixes, storage_options)]


def _files(
    text: str, suffixes: Sequence[str], storage_options: Mapping[str, str] | None
) -> Iterator[InputFile]:
    if is_web(text):
        name = unquote(urlsplit(text).path).rpartition("/")[2]
        return iter([InputFile(_without_query(text), name, url=text)])
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
        found = _data_of(text, names, suffixes)
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
    if has_magic(path):
        found = [each for each in names if _matches(each, path)]
    else:
        found = [path + each for each in _data_of(text, [each[len(path) :] for each in names], suffixes)]
    for each in found:
        yield InputFile(f"{root}/{each}", each[len(folder) :].lstrip("/"), store, each)
    if not found:
        raise _not_found(text, suffixes)


def _check_no_table(text: str, names: Iterable[str]) -> None:
    """Raise SourceError for a folder that contains a Delta table: its files also have deleted rows."""
    if any("_delta_log" in name.split("/") for name in names):
        raise SourceError(
            f"cannot read {text} as files because it contains a Delta table: pass Table({text!r}), or in a "
            "shell use convert or clone",
            file=text,
        )


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a glob, in which only `**` stands for several folders."""
    if "**" in pattern:
        return fnmatchcase(path, pattern.replace("**/", "*"))
    steps, patterns = path.split("/"), pattern.split("/")
    return len(steps) == len(patterns) and all(map(fnmatchcase, steps, patterns))


def is_hidden(part: str) -> bool:
    """Return whether a file is not data by a part of its path that starts with `_` or `.`, as in Spark."""
    # `_day=1` is a partition.
    return part.startswith(".") or (part.startswith("_") and "=" not in part)


def _data_of(folder: str, names: Iterable[str], suffixes: Sequence[str]) -> list[str]:
    """Return the files of a folder that are data, and log a warning about the others that are not hidden."""
    visible = [name for name in names if not any(map(is_hidden, name.split("/")))]
    found = [name for name in visible if name.lower().endswith(tuple(suffixes))]
    others = sorted(set(visible).difference(found))
    if found and others:
        shown = ", ".join(others[:MAX_SHOWN]) + (", …" if len(others) > MAX_SHOWN else "")
        _LOGGER.warning(
            "%s: %d of %d files are not read because of their suffix: %s; pass them or a glob to read them",
            folder,
            len(others),
            len(visible),
            shown,
        )
    return found


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


TIMEOUT_SECONDS = 60
PAUSES_SECONDS = (0.5, 1.0, 2.0)
"""Before each repetition of a request that failed."""

NOT_FOUND = (404, 410)
RANGE_NOT_SATISFIABLE = 416
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
CONTENT_RANGE = re.compile(r"bytes (?:(?P<start>\d+)-\d+|\*)/(?P<size>\d+)")
# Characters of a URL that are not percent-encoded, apart from letters and digits.
KEPT = "%!$&'()*+,;=:@/~-._?[]"

Result = TypeVar("Result")


def is_web(text: str) -> bool:
    """Return whether text is the URL of a file on a web server."""
    return text.lower().startswith(("http://", "https://"))


def _without_query(url: str) -> str:
    """Return a URL without user, query and fragment, which may contain credentials.

    Raise SourceError for a URL that is not valid.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise SourceError(f"cannot read {url}: {error}", file=url) from error
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class WebFile(io.RawIOBase):
    """A file on a web server.

    One request reads it from start to end. After a seek, each read is a request for a range, which the server
    must support. A request that fails is repeated from where it stopped.
    """

    def __init__(self, url: str) -> None:
        """Request the file. Raise SourceError, or SourceNotFoundError if the server does not have it."""
        self.name = _without_query(url)
        self._url = quote(url.partition("#")[0], safe=KEPT)
        self._position = 0
        self._is_sequential = True
        self._response: HTTPResponse | None = None
        self._is_known = False
        self._tag: str | None = None
        self.size: int | None = None
        """The size in bytes, None if the server does not state it."""
        self._repeated(lambda: self._request(None))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.size is not None

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if self.size is None:
            raise self._error("the server does not state its size; download the file")
        target = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence] + offset
        if target != self._position:
            self._is_sequential = False
            self._disconnect()
        self._position = target
        return target

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self.size is not None and self._position >= self.size:
            return 0
        count = self._repeated(lambda: self._read(buffer))
        self._position += count
        return count

    def close(self) -> None:
        self._disconnect()
        super().close()

    def _read(self, buffer: memoryview) -> int:
        if self._response is None:
            self._request(None if self._is_sequential else len(buffer))
        assert self._response is not None
        count = self._response.readinto(buffer)
        if count == 0 and self.size is not None:
            raise ConnectionError("the connection was closed before the end of the file")
        if not self._is_sequential:
            self._disconnect()
        return count

    def _request(self, length: int | None) -> None:
        """Request `length` bytes at the position, all bytes from there if it is None."""
        end = "" if length is None else self._position + length - 1
        headers = {
            "User-Agent": "delta-variant",
            "Accept-Encoding": "identity",
            "Range": f"bytes={self._position}-{end}",
        }
        try:
            response = urlopen(Request(self._url, headers=headers), timeout=TIMEOUT_SECONDS)
        except HTTPError as error:
            error.close()
            if error.code != RANGE_NOT_SATISFIABLE or self._position > 0:
                raise
            # An empty file has no range that starts at 0.
            self.size = 0
            return
        self._response = response
        self._check(response)

    def _check(self, response: HTTPResponse) -> None:
        """Raise SourceError if the response does not continue what was read before."""
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified")
        found = CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
        start, size = 0, response.length
        if found is not None:
            start, size = int(found["start"] or 0), int(found["size"])
        if start != self._position:
            raise self._error("the server does not support range requests; download the file")
        if self._is_known and (self._tag, self.size) != (tag, size):
            raise self._error("the file changed while it was read; retry")
        self._is_known, self._tag, self.size = True, tag, size

    def _repeated(self, call: Callable[[], Result]) -> Result:
        """Return the result of a call, which is repeated if it fails for a reason that may pass."""
        for pause in (*PAUSES_SECONDS, None):
            try:
                return call()
            except SourceError:
                raise
            except (OSError, HTTPException, ValueError) as error:
                self._disconnect()
                if pause is None or not _is_temporary(error):
                    raise self._translated(error) from error
                _LOGGER.debug("%s: %s; retrying in %s s", self.name, error, pause)
                sleep(pause)
        raise AssertionError

    def _disconnect(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None

    def _translated(self, error: Exception) -> SourceError:
        if isinstance(error, HTTPError):
            if error.code in NOT_FOUND:
                return SourceNotFoundError(f"file not found: {self.name}", file=self.name)
            return self._error(f"the server answered {error.code} {error.reason}")
        reason = error.reason if isinstance(error, URLError) else error
        return self._error(str(getattr(reason, "strerror", None) or reason or type(reason).__name__))

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"cannot read {self.name}: {reason}", file=self.name)


def _is_temporary(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code in TEMPORARY
    # A URLError is a failure to connect, such as an unknown host or a certificate that is not trusted.
    return isinstance(error, OSError | HTTPException) and not isinstance(error, URLError)
