"""parquet-java, whose Avro records have Variants as bytes."""

from __future__ import annotations

from pathlib import Path

from ..engine import Engine
from .java_server import JavaServer

__all__ = ["start"]


def start(scratch: Path) -> Engine:
    """Start the JVM, and return the engine. It prints no JSON: its accessors decode."""
    server = JavaServer("ParquetJava", scratch)
    return Engine(
        name="parquet-java",
        version=server.version,
        decode=server.decode,
        parse_json=server.parse_json,
        shred=server.shred,
        read=server.read,
    )
