"""A view over HTTP, for readers of Parquet that know URLs and ranges, such as a page in a browser."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import quote, unquote

from .._logging import get_logger
from ..errors import DeltaVariantError
from .files import OpenFile, View, ViewFile

LOGGER = get_logger(__name__)

CHUNK_BYTES = 256 << 10
"""What a request holds in memory."""

MAX_REQUESTS = 256
"""Requests that are answered at once; others wait."""

IDLE_SECONDS = 60
"""A connection without a request is closed after this time."""

# Python does not convert numbers with thousands of digits, and files are smaller than 10**18 bytes.
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII | re.IGNORECASE)


class ViewServer(ThreadingHTTPServer):
    """Serves the files of a view below a secret path, and a list of them.

    No other file can be reached. Pages of any origin may read the files, because the path is the permission.
    """

    daemon_threads = True
    # With the default of 5, others that connect at once try again after a second or more.
    request_queue_size = MAX_REQUESTS

    def __init__(self, view: View, host: str = "127.0.0.1", port: int = 0) -> None:
        """Bind a port, 0 for any that is free; raises DeltaVariantError if that is not possible."""
        self.root = f"/{secrets.token_urlsafe(24)}/"
        self.view = view
        self.files: dict[str, ViewFile] = {unquote(file.name): file for file in view.files}
        self.turns = BoundedSemaphore(MAX_REQUESTS)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise DeltaVariantError(f"cannot listen on {host}, port {port}: {error}") from error

    @property
    def url(self) -> str:
        """Return the URL of the list of files, to which their names are relative."""
        host = str(self.server_address[0])
        return f"http://{host}:{self.server_port}{self.root}"

    def urls(self) -> list[str]:
        """Return the URL of each file."""
        return [self.url + _escape(file) for file in self.files.values()]

    def handle_error(self, *_: Any) -> None:
        """Log why a request has no answer, or a part of one; readers that close a connection have theirs."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            LOGGER.warning("cannot answer a request: %s", error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: ViewServer

    def log_message(self, *_: Any) -> None:
        """Log nothing: lines of requests have the secret path."""

    def version_string(self) -> str:
        return "delta-variant"

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_OPTIONS(self) -> None:
        """Let pages of other origins ask for ranges."""
        self.send_response(HTTPStatus.NO_CONTENT)
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD")
        self.send_header("Access-Control-Allow-Headers", "Range, If-Range, If-None-Match")
        self._end_headers(0)

    def _answer(self, *, with_body: bool) -> None:
        with self.server.turns:
            path = self.path.partition("?")[0]
            root = self.server.root
            if not secrets.compare_digest(path[: len(root)].encode(), root.encode()):
                self._send_error(HTTPStatus.NOT_FOUND)
            elif path == root:
                self._send_list(with_body=with_body)
            elif (file := self.server.files.get(unquote(path[len(root) :]))) is None:
                self._send_error(HTTPStatus.NOT_FOUND)
            else:
                self._open_and_send(file, with_body=with_body)

    def _send_list(self, *, with_body: bool) -> None:
        files = [{"name": _escape(file), "bytes": file.size} for file in self.server.files.values()]
        columns = {name: list(steps) for name, steps in self.server.view.shape.places.items()}
        text = json.dumps({"files": files, "columns": columns}).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self._end_headers(len(text))
        if with_body:
            self.wfile.write(text)

    def _open_and_send(self, file: ViewFile, *, with_body: bool) -> None:
        try:
            source = file.open()
        except FileNotFoundError as error:
            LOGGER.warning("%s", error)
            self._send_error(HTTPStatus.NOT_FOUND)
        else:
            with source:
                self._send_file(file, source if with_body else None)

    def _send_file(self, file: ViewFile, source: OpenFile | None) -> None:
        """Answer with a file, or a range of it; without `source`, there is no body."""
        tag = _tag(file)
        known = self.headers.get("If-None-Match", "")
        if known.strip() == "*" or tag in known:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.send_header("ETag", tag)
            self._end_headers(0)
            return
        start, end, status = 0, file.size, HTTPStatus.OK
        if self.headers.get("If-Range", tag) == tag and (text := self.headers.get("Range")) is not None:
            asked = _range(text, file.size)
            if asked == ():
                self._send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"bytes */{file.size}")
                return
            if asked:
                (start, end), status = asked, HTTPStatus.PARTIAL_CONTENT
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.apache.parquet")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", tag)
        if status == HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{file.size}")
        self._end_headers(end - start)
        if source is not None:
            source.seek(start)
            while start < end:
                data = source.read(min(CHUNK_BYTES, end - start))
                self.wfile.write(data)
                start += len(data)

    def _send_error(self, status: HTTPStatus, content_range: str | None = None) -> None:
        self.send_response(status)
        if content_range is not None:
            self.send_header("Content-Range", content_range)
        self._end_headers(0)

    def _end_headers(self, length: int) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Expose-Headers", "Content-Range, ETag, Accept-Ranges")
        self.send_header("Content-Length", str(length))
        self.end_headers()


def _escape(file: ViewFile) -> str:
    """Return the name of a file in a URL: readers decode the values of partitions once, as in a path."""
    return quote(file.name, safe="/=%")


def _tag(file: ViewFile) -> str:
    """Return the tag of a file: its data and its footer say what it has."""
    digest = hashlib.sha256(f"{file.store.uri}\0{file.path}\0{file.data_end}\0".encode() + file.footer)
    return f'"{digest.hexdigest()[:32]}"'


def _range(text: str, size: int) -> tuple[int, int] | tuple[()] | None:
    """Return the range that a request asks for, () if the file has none of it, None for the whole file.

    A header that is not a single range of bytes is ignored (RFC 9110, section 14.2).
    """
    found = RANGE.fullmatch(text.strip())
    if found is None or found[0].endswith("=-"):
        return None
    first, last = found[1], found[2]
    if not first:
        length = min(int(last), size)
        return (size - length, size) if length else ()
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        return ()
    return int(first), min(int(last) + 1 if last else size, size)
