"""An S3 server on a free port, and its buckets."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from urllib.error import HTTPError
from uuid import uuid4

import pytest
from support.processes import start

SERVER = Path(__file__).with_name("s3_server.py")
STARTS_WITHIN = 60.0


@dataclass(frozen=True)
class Bucket:
    """A bucket of an S3 server, with the storage options to reach it."""

    name: str
    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        return options_for(self.endpoint)

    def table(self, name: str = "table") -> str:
        return f"s3://{self.name}/{name}"


def options_for(endpoint: str) -> dict[str, str]:
    """Return storage options with deltalake's keys, and short waits between retries."""
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "backoff_config.init_backoff": "10ms",
        "backoff_config.max_backoff": "200ms",
    }


def free_port() -> int:
    with socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def wait_until_ready(url: str, server: subprocess.Popen[bytes], failure: str) -> None:
    """Return when a server answers with any status. Fail the test with a message if it never answers."""
    end = time.monotonic() + STARTS_WITHIN
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except HTTPError:
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                pytest.fail(failure)
            time.sleep(0.1)


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 server on a free port, and yield its endpoint."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    # The server ends when its input does: also where this process is killed.
    with start([sys.executable, str(SERVER), str(port)], stdin=subprocess.PIPE) as server:
        wait_until_ready(endpoint, server, "the S3 server did not start: `make` installs moto")
        yield endpoint


def new_bucket(endpoint: str) -> Bucket:
    bucket = Bucket(f"bucket-{uuid4()}", endpoint)
    request = urllib.request.Request(f"{endpoint}/{bucket.name}", method="PUT")
    urllib.request.urlopen(request, timeout=30).close()
    return bucket
