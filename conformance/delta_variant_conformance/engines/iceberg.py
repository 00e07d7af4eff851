"""Iceberg's Java library, whose metrics of a Parquet file have bounds of a Variant's paths."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..engine import Engine
from ..parquet_annotation import annotate
from .java_server import JavaServer

__all__ = ["start"]


def start(scratch: Path) -> Engine:
    """Start the JVM, and return the engine. It neither prints nor parses JSON: its accessors decode."""
    server = JavaServer("Iceberg", scratch)

    def collect_stats(file: Path, column: str) -> Mapping[str, Any]:
        # Iceberg knows a Variant by its annotation, which files of Delta tables may lack.
        copy = scratch / "annotated.parquet"
        shutil.copyfile(file, copy)
        annotate(copy, column)
        return server.collect_stats(copy, column)

    return Engine(
        name="iceberg",
        version=server.version,
        decode=server.decode,
        shred=server.shred,
        read=server.read,
        collect_stats=collect_stats,
    )
