"""Adapters of engines. Only the module of an engine imports its packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from ..engine import Engine

GROUP = "delta_variant_conformance.engines"
"""The entry points by which other packages add engines."""

OWN = {
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
"""The module of each engine in this package and the function that starts it."""

ENGINES: Mapping[str, EntryPoint] = {
    **{found.name: found for found in entry_points(group=GROUP)},
    **{name: EntryPoint(name, f"{__name__}.{function}", GROUP) for name, function in OWN.items()},
}
"""The function that starts each engine. A package cannot replace an engine of this one."""


def start(name: str, scratch: Path) -> Engine:
    """Start an engine and return it; raises the errors of the engine, and ImportError if it is not installed.

    `scratch` is an empty folder that exists as long as the engine.
    """
    engine: Engine = ENGINES[name].load()(scratch)
    return engine
