"""The function that reports the Python of an executor, and runs where this package is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

NOT_FOUND = "the file is missing"
"""The value of `storage` in the report of an executor that does not find the file of the driver."""


def probe_function(
    uri: str, storage_options: Mapping[str, str] | None, folder: str, version: str, seconds: float
) -> Callable[[int], str]:
    """Return a function that reports the process that runs it, for a Python UDF.

    Args:
        uri: The location of a table.
        storage_options: The options of its store.
        folder: A folder below it, with a file `driver` whose content is the name of the folder. Empty to
            leave the store out.
        version: The version of this package on the driver. Another version does not open the store.
        seconds: How long the function occupies its task slot, so that other tasks run on other executors.

    Returns:
        A function of the number of the task. It returns an object in JSON with the fields of a
        `WorkerReport`, except that `clock` is the time since the epoch, and `daemon` is added: the process
        that starts the Python workers of the executor.
    """

    # Spark sends a function within a function by value, which an executor can run without this package.
    def probe(number: int) -> str:
        import calendar
        import json
        import os
        import platform
        import socket
        import sys
        import time

        clock = time.time()
        months = [calendar.timegm((time.gmtime().tm_year, month, 1, 0, 0, 0)) for month in (1, 7)]
        offsets = sorted({time.localtime(month).tm_gmtoff for month in months})
        report = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "daemon": os.getppid(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "timezone": "/".join(f"UTC{offset / 3600:+g}" for offset in offsets),
            "clock": clock,
            **find_package(),
        }
        name = f"{report['host']}-{report['process']}-{number}"
        is_comparable = folder and report["package"] == version and report["import_error"] is None
        report["storage"] = look_into_store(name) if is_comparable else None
        time.sleep(seconds)
        return json.dumps(report)

    def find_package() -> dict[str, str | None]:
        import hashlib
        from importlib import import_module
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as version_of
        from pathlib import Path

        found: dict[str, str | None] = {"package": None, "build": None, "import_error": None}
        try:
            found["package"] = version_of("delta-variant")
        except PackageNotFoundError:
            found["package"] = "unknown"
        try:
            package = import_module("delta_variant.spark")
            import_module("delta_variant._native")
        except ImportError as error:
            return {**found, "import_error": f"{type(error).__name__}: {error}"}
        digest = hashlib.sha256()
        for path in sorted(Path(package.__path__[0]).parent.rglob("*.py")):
            digest.update(path.read_bytes())
        return {**found, "build": digest.hexdigest()[:12]}

    def look_into_store(name: str) -> str:
        from importlib import import_module

        storage = import_module("delta_variant.storage.store")
        try:
            store = storage.open_store(uri, storage_options)
            if storage.read_if_present(store, f"{folder}/driver") != folder.encode():
                return NOT_FOUND
            storage.put(store, f"{folder}/{name}", b"")
        except Exception as error:  # Any error is a finding.
            return str(error) or repr(error)
        return ""

    return probe
