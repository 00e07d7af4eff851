"""The Spark session, shared with the tests of interop, and the marker of tests that need a classic one."""

from __future__ import annotations

import os

import pytest
from interop.conftest import compiled_casts, spark, spark_with_delta

__all__ = ["compiled_casts", "spark", "spark_with_delta"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that are marked as classic on Spark Connect."""
    marker = item.get_closest_marker("classic")
    if marker and "SPARK_REMOTE" in os.environ:
        pytest.skip(f"not on Spark Connect: {marker.args[0]}")
