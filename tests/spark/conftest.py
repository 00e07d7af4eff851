"""The Spark session, shared with the tests of interop."""

from __future__ import annotations

from interop.conftest import compiled_casts, spark, spark_with_delta

__all__ = ["compiled_casts", "spark", "spark_with_delta"]
