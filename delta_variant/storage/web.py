"""Files on web servers, read by HTTP as seekable binary files."""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from time import sleep
from typing import TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from ..errors import SourceError, SourceNotFoundError

__all__ = ["WebFile", "is_web", "without_query"]

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

_LOGGER = logging.getLogger(__name__)


def is_web(text: str) -> bool:
    """Return whether text is the URL of a file on a web server."""
    return text.lower().startswith(("http://", "https://"))


def without_query(url: str) -> str:
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
        self.name = without_query(url)
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
