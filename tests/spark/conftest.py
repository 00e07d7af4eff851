"""The session that the tests of the Spark pipeline have in common with those of interop."""

from __future__ import annotations

from interop.conftest import spark, spark_with_delta

__all__ = ["spark", "spark_with_delta"]
