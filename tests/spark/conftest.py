"""The Spark session, shared with the tests of interop, the engines, and the marker of classic sessions."""

from __future__ import annotations

import os

import pytest
from interop.conftest import compiled_casts, configured, spark, spark_with_delta
from pyspark.sql import SparkSession

from delta_variant.spark import SparkEngine, executor
from delta_variant.typing import Engine

__all__ = ["compiled_casts", "configured", "spark", "spark_with_delta"]


@pytest.fixture(params=["in one process", "by tasks"])
def engine(request: pytest.FixtureRequest, spark: SparkSession) -> Engine | None:
    """Return the engine of a table: none, or the executors of the session."""
    return SparkEngine(spark) if request.param == "by tasks" else None


@pytest.fixture(autouse=True)
def merges_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks merge into small tables, as they do into large ones."""
    monkeypatch.setattr(executor, "DRIVER_BYTES", -1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that are marked as classic on Spark Connect."""
    marker = item.get_closest_marker("classic")
    if marker and "SPARK_REMOTE" in os.environ:
        pytest.skip(f"not on Spark Connect: {marker.args[0]}")
