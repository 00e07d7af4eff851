"""The newest Spark. It reads Parquet files alone, because Delta has no JARs for this version yet."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

from ..engine import Engine
from .spark_session import ClassicAdapter, start_session

__all__ = ["start"]


def start(scratch: Path) -> Engine:
    """Start a session, and return the engine."""
    # These arguments name the JARs of Delta for the other Spark.
    os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
    adapter = ClassicAdapter(start_session(scratch, {}))
    return Engine(
        name="spark-newest",
        version=f"{pyspark.__version__} without Delta",
        to_json=adapter.to_json,
        parse_json=adapter.parse_json,
        shred=adapter.shred,
        read=adapter.read,
    )
