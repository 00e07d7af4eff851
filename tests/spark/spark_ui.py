"""The REST API of Spark's UI, of the driver that runs the tests, or of the server with Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

from spark.driver import driver


class SparkUI:
    """Reads the REST API at a URL."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/api/v1/applications/{driver().applicationId}"

    def read(self, path: str) -> list[dict[str, Any]]:
        """Return the JSON values at a path, after Spark has processed its events."""
        driver()._jsc.sc().listenerBus().waitUntilEmpty()
        with urlopen(f"{self._url}/{path}") as response:
            values: list[dict[str, Any]] = json.load(response)
        return values

    def executions(self) -> list[dict[str, Any]]:
        """Return the executions of the SQL page with their plans and metrics, the latest first.

        Spark keeps a thousand of them, and for a moment more; the API counts from the oldest.
        """
        found = self.read("sql?details=true&planDescription=true&length=100000")
        return sorted(found, key=lambda execution: -int(execution["id"]))

    @contextmanager
    def jobs(self) -> Iterator[list[dict[str, Any]]]:
        """Yield a list that has the jobs that start in the block, in order, after the block."""
        before = {job["jobId"] for job in self.read("jobs")}
        started: list[dict[str, Any]] = []
        yield started
        found = (job for job in self.read("jobs") if job["jobId"] not in before)
        started += sorted(found, key=lambda job: job["jobId"])


@contextmanager
def spark_ui() -> Iterator[SparkUI]:
    """Start the UI of the session, which the settings of the tests turn off, and yield its API."""
    context, jvm = driver()._jsc.sc(), driver()._jvm
    some = jvm.scala.Option.apply(context)
    ui = jvm.org.apache.spark.ui.SparkUI.create(
        some,
        context.statusStore(),
        context.getConf().set("spark.ui.port", "0"),
        jvm.org.apache.spark.SparkEnv.get().securityManager(),
        context.appName(),
        "",
        context.startTime(),
        context.version(),
    )
    ui.setAppId(context.applicationId())
    ui.bind()
    ui.attachAllHandlers()
    try:
        yield SparkUI(f"http://127.0.0.1:{ui.boundPort()}")
    finally:
        ui.stop()
