"""Adapters of engines, one module each. Only this module imports the packages of its engine."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..engine import Engine

__all__ = ["ENGINES", "start"]

ENGINES = (
    "ours",
    "spark",
    "spark-newest",
    "sail",
    "duckdb",
    "parquet-java",
    "iceberg",
    "pyiceberg",
    "deltalake",
    "delta-kernel",
    "datafusion",
    "chdb",
    "polars",
    "pyarrow",
)
"""The module of an engine has its name, with `_` for `-`."""


def start(name: str, scratch: Path) -> Engine:
    """Start an engine and return it; raises the errors of the engine, and ImportError if it is not installed.

    `scratch` is an empty folder that exists as long as the engine.
    """
    engine: Engine = import_module(f"{__name__}.{name.replace('-', '_')}").start(scratch)
    return engine
