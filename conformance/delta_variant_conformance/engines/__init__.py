"""Adapters of engines. Only the module of an engine imports its packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from ..engine import Engine

__all__ = ["ENGINES", "start"]

ENGINES: Mapping[str, str] = {
    "ours": "ours:start",
    "spark": "spark:start_spark",
    "spark-newest": "spark:start_spark_newest",
    "sail": "spark:start_sail",
    "duckdb": "duckdb:start",
    "parquet-java": "java:start_parquet_java",
    "iceberg": "java:start_iceberg",
    "pyiceberg": "pyiceberg:start",
    "deltalake": "deltalake:start",
    "delta-kernel": "delta_kernel:start",
    "datafusion": "datafusion:start",
    "chdb": "chdb:start",
    "polars": "polars:start",
    "pyarrow": "pyarrow:start",
}
"""The module of each engine and the function that starts it."""


def start(name: str, scratch: Path) -> Engine:
    """Start an engine and return it; raises the errors of the engine, and ImportError if it is not installed.

    `scratch` is an empty folder that exists as long as the engine.
    """
    module, _, function = ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(f".{module}", __name__), function)(scratch)
    return engine
