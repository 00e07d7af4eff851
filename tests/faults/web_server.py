"""A web server on this machine that misbehaves as a test asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class WebServer:
    """Files by their paths, and what goes wrong.

    Attributes:
        files: The content of each path, which may have a query.
        answers: Status codes of the next requests, before requests succeed.
        ends: The number of bytes after which the next connections are closed.
        supports_ranges: Whether a request for a range is answered with that range.
        states_size: Whether the size of a file is stated, which needs chunks otherwise.
        changes: Whether each answer has an entity tag of its own.
        requests: The path and the range of each request.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    answers: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    supports_ranges: bool = True
    states_size: bool = True
    changes: bool = False
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[WebServer]:
    """Run a server on a free port as long as the block runs."""
    state = WebServer()

    class Handler(_Handler):
        web = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    web: WebServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.web.requests.append((self.path, wanted))
        if self.path in self.web.redirects:
            self._answer(302, b"", {"Location": self.web.redirects[self.path]})
        elif self.web.answers:
            self._answer(self.web.answers.pop(0), b"")
        elif self.path not in self.web.files:
            self._answer(404, b"no such file")
        else:
            self._send_file(self.web.files[self.path], RANGE.fullmatch(wanted))

    def _send_file(self, content: bytes, wanted: re.Match[str] | None) -> None:
        tag = len(self.web.requests) if self.web.changes else 0
        headers = {"ETag": f'"{tag}"'}
        if wanted is None or not self.web.supports_ranges:
            self._answer(200, content, headers)
            return
        start, end = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        if start >= len(content):
            self._answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        self._answer(206, content[start : end + 1], headers)

    def _answer(self, code: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.web.states_size:
            self.send_header("Content-Length", str(len(content)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.web.ends and code < 300:
            content = content[: self.web.ends.pop(0)]
            self.close_connection = True
        self.wfile.write(content)
