"""A proxy that injects faults of a bad network or a busy server into chosen requests."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Lock, Thread
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

Kind: TypeAlias = Literal[
    "slow_down",
    "error",
    "conflict",
    "expired",
    "unauthorized",
    "missing",
    "invalid",
    "reset",
    "lost",
    "cut",
    "slow",
]
"""A fault of a request.

`slow_down`, `error`, `conflict`, `expired`, `unauthorized`, `missing` and `invalid` are responses of status
503, 500, 409, 403, 401, 404 and 400; the server receives the request only if the fault is `performed`.
`reset` closes the connection before the server receives the request, `lost` after the server has responded.
`cut` sends half of the response, `slow` sends it in pieces.
"""

Translate: TypeAlias = Callable[[str, dict[str, str]], tuple[str, dict[str, str]]]
"""Translates the target and the headers of a request to those of the server."""

KINDS: tuple[Kind, ...] = ("slow_down", "error", "reset", "lost", "cut", "slow")

_ERRORS = {
    "slow_down": (503, "SlowDown"),
    "error": (500, "InternalError"),
    "conflict": (409, "ConditionalRequestConflict"),
    "expired": (403, "ExpiredToken"),
    "unauthorized": (401, "InvalidToken"),
    "missing": (404, "NoSuchKey"),
    "invalid": (400, "InvalidRequest"),
}
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
PIECES = 8
PAUSE = 0.02


@dataclass
class Fault:
    """A fault of the next `times` requests of a method whose path and query match a pattern."""

    kind: Kind
    method: str = ".*"
    target: str = ".*"
    times: int = 1
    performed: bool = False
    """Whether the server receives the request before the response of an error."""

    def matches(self, method: str, target: str) -> bool:
        return (
            self.times > 0
            and re.fullmatch(self.method, method) is not None
            and re.search(self.target, target) is not None
        )


@dataclass
class Proxy:
    """A proxy at `url`. The first entry of `faults` that matches applies; `seen` lists requests."""

    url: str
    faults: list[Fault] = field(default_factory=list)
    fault_rate: float = 0.0
    """The share of all other requests that get a random fault."""
    seen: list[tuple[str, str, Kind | None]] = field(default_factory=list)
    is_expired: Callable[[str], bool] = lambda token: False
    """Returns whether the session token of a request has expired, which all its requests then report."""
    random: Random = field(default_factory=lambda: Random(7))
    most_concurrent: int = 0
    _running: int = 0
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def count_running(self) -> Iterator[None]:
        """Count a request as running."""
        with self._lock:
            self._running += 1
            self.most_concurrent = max(self.most_concurrent, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def fault(self, method: str, target: str) -> Fault | None:
        """Record a request, and return its fault."""
        with self._lock:
            fault = self._choose(method, target)
            self.seen.append((method, target, None if fault is None else fault.kind))
            return fault

    def _choose(self, method: str, target: str) -> Fault | None:
        for each in self.faults:
            if each.matches(method, target):
                each.times -= 1
                return each
        return Fault(self.random.choice(KINDS)) if self.random.random() < self.fault_rate else None

    def count(self, method: str, target: str = "") -> int:
        """Return the number of requests of a method whose target matches a pattern."""
        return sum(each == method and re.search(target, where) is not None for each, where, _ in self.seen)

    def clear(self) -> None:
        """Remove all faults and recorded requests."""
        self.faults.clear()
        self.seen.clear()
        self.fault_rate = 0.0
        self.most_concurrent = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: str
    translate: Translate
    proxy: Proxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.proxy.count_running():
            self._handle(body)

    def _handle(self, body: bytes) -> None:
        fault = self.proxy.fault(self.command, unquote(self.path))
        kind = None if fault is None else fault.kind
        if fault is not None and fault.performed:
            self._send(body)
        if self.proxy.is_expired(self.headers.get("X-Amz-Security-Token") or ""):
            kind = "expired"
        if kind == "reset":
            self._reset_connection()
        elif kind in _ERRORS:
            self._respond_with_error(*_ERRORS[kind])
        else:
            with suppress(BrokenPipeError, ConnectionResetError):
                self._forward(body, kind)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - names of http.server

    def log_message(self, *_: Any) -> None:
        pass

    def _respond_with_error(self, status: int, code: str) -> None:
        data = f"<Error><Code>{code}</Code><Message>injected by the proxy</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _forward(self, body: bytes, kind: Kind | None) -> None:
        response, data = self._send(body)
        if kind == "lost":
            self._reset_connection()
            return
        self._respond(response, data, kind)

    def _send(self, body: bytes) -> tuple[HTTPResponse, bytes]:
        """Send the request to the server, and return the response and its body."""
        connection = HTTPConnection(self.upstream, timeout=60)
        try:
            target, headers = self.translate(self.path, dict(self.headers))
            connection.request(self.command, target, body, headers)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def _respond(self, response: HTTPResponse, data: bytes, kind: Kind | None) -> None:
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        length = response.headers.get("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if kind == "cut":
            self.wfile.write(data[: len(data) // 2])
            self._reset_connection()
        elif kind == "slow":
            self._send_slowly(data)
        else:
            self.wfile.write(data)

    def _send_slowly(self, data: bytes) -> None:
        step = len(data) // PIECES + 1
        for start in range(0, len(data), step):
            self.wfile.write(data[start : start + step])
            self.wfile.flush()
            time.sleep(PAUSE)

    def _reset_connection(self) -> None:
        self.wfile.flush()
        # Closing a socket with a linger time of zero sends a reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def shutdown_request(self, request: Any) -> None:
        with suppress(OSError):
            super().shutdown_request(request)

    def handle_error(self, *_: Any) -> None:
        pass


def _keep(target: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
    return target, headers


@contextmanager
def proxy_to(url: str, translate: Translate = _keep) -> Iterator[Proxy]:
    """Run a proxy in front of the server at `url`."""
    members = {"upstream": urlsplit(url).netloc, "translate": staticmethod(translate)}
    handler = type("Handler", (_Handler,), members)
    server = _Server(("127.0.0.1", 0), handler)
    handler.proxy = proxy = Proxy(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
