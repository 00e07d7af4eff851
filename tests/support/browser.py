"""A headless Chromium, controlled through the WebDriver protocol of chromedriver."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from support.processes import start

PROGRAMS = (("chromium", "chromium-browser", "google-chrome"), ("chromedriver", "chromium.chromedriver"))
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
START_SECONDS = 30


def programs() -> tuple[str, str]:
    """Return the browser and its driver. The test fails if they are missing."""
    browser, driver = (next(filter(None, map(shutil.which, names)), None) for names in PROGRAMS)
    if browser is None or driver is None:
        pytest.fail(
            "Chromium or its driver is missing: `make browser` installs them as root on Debian; elsewhere "
            "install chromium and chromedriver"
        )
    return browser, driver


class Browser:
    """One window, controlled by a driver at a port."""

    def __init__(self, port: int, binary: str) -> None:
        self._root = f"http://127.0.0.1:{port}"
        options = {"binary": binary, "args": list(ARGUMENTS)}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{session['sessionId']}"

    def open(self, page: Path | str) -> None:
        """Show a page: a file, or a URL."""
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self._call("POST", f"{self._session}/url", {"url": url})

    def run(self, script: str) -> Any:
        """Run the body of a function in the page and return its result."""
        return self._call("POST", f"{self._session}/execute/sync", {"script": script, "args": []})

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the page in pixels, and its light or dark mode."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._command("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", {"features": [scheme]})

    def screenshot(self) -> bytes:
        """Return a screenshot as PNG."""
        return base64.b64decode(self._call("GET", f"{self._session}/screenshot"))

    def messages(self) -> list[str]:
        """Return the messages of the browser since the last call."""
        entries = self._call("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]

    def close(self) -> None:
        """Close the browser."""
        self._call("DELETE", self._session)

    def _command(self, name: str, parameters: dict[str, Any]) -> None:
        self._call("POST", f"{self._session}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a browser and its driver, and stop both at the end."""
    binary, driver = programs()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with start([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        browser = _start(port, binary)
        try:
            yield browser
        finally:
            browser.close()


def _start(port: int, binary: str) -> Browser:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            return Browser(port, binary)
        except URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
