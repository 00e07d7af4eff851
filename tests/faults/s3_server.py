"""An S3 server on the loopback interface: moto's, with serialized writes, as a conditional put needs.

`python s3_server.py PORT` runs until its standard input ends, or it is killed.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

REVOKED_KEY = "revoked"


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_: Any) -> None:
        pass


def serialize_writes(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return an application that handles requests that write one after another."""
    lock = Lock()

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return application(environ, start_response)
        with lock:
            return list(application(environ, start_response))

    return answer


def reject_revoked_key(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return an application that rejects requests which are signed with one access key."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if f"Credential={REVOKED_KEY}/" not in environ.get("HTTP_AUTHORIZATION", ""):
            return application(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>InvalidAccessKeyId</Code></Error>"]

    return answer


def exit_after_input() -> None:
    """End this process when the process that started it closes the pipe or dies."""
    sys.stdin.buffer.read()
    os._exit(0)


def main(port: int) -> None:
    Thread(target=exit_after_input, daemon=True).start()
    # Many concurrent writers wait for this one process.
    with suppress(PermissionError):
        os.nice(-10)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    application = reject_revoked_key(serialize_writes(application))
    run_simple("127.0.0.1", port, application, threaded=True, request_handler=Handler)


if __name__ == "__main__":
    main(int(sys.argv[1]))
