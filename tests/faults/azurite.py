"""Azurite, Azure's emulator of its blob storage, on a free port, and its containers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from uuid import uuid4

import pytest
from buckets import free_port, wait_until_ready
from support.processes import start

PROGRAM = Path(__file__).resolve().parents[2] / ".cache/azurite/node_modules/.bin/azurite-blob"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key of every Azurite server."""
API_VERSION = "2021-08-06"


@contextmanager
def azurite() -> Iterator[str]:
    """Run the emulator, and yield the endpoint of its account."""
    if not PROGRAM.exists():
        pytest.skip("Azure's emulator is not installed: `make test` installs it with npm")
    port = free_port()
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    # If this process is killed, the server remains. It must not keep the output of the tests open.
    closed = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    with start([PROGRAM, *address, *options], **closed) as server:
        wait_until_ready(f"http://127.0.0.1:{port}", server, "Azure's emulator did not start")
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"


def new_container(endpoint: str) -> str:
    """Return the name of a new container; the request is signed with the account's key."""
    name = f"container-{uuid4()}"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": API_VERSION}
    lines = [f"{key}:{value}" for key, value in headers.items()]
    lines += [f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"]
    text = "PUT" + "\n" * 12 + "\n".join(lines)
    digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    request = urllib.request.Request(f"{endpoint}/{name}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=30).close()
    return name
