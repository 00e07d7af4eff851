"""Sail, a Spark Connect server, through PySpark's client."""

from __future__ import annotations

import atexit
from importlib.metadata import version
from pathlib import Path

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

from ..engine import Engine
from .spark_session import SessionAdapter

__all__ = ["start"]


def start(scratch: Path) -> Engine:
    """Start the server in this process, and return the engine."""
    server = SparkConnectServer()
    server.start(background=True)
    # The server stops when it is garbage collected, so keep a reference.
    atexit.register(server.stop)
    _, port = server.listening_address
    adapter = SessionAdapter(SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate())
    return Engine(
        name="sail",
        version=version("pysail"),
        to_json=adapter.to_json,
        parse_json=adapter.parse_json,
        read=adapter.read,
        read_table=adapter.read_table,
        select=adapter.select,
    )
