"""The engines, one module each, which is the only door to its packages."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..engine import Engine

__all__ = ["ENGINES", "start"]

ENGINES = ("ours", "spark", "duckdb", "sail", "deltalake", "pyarrow")


def start(name: str, scratch: Path) -> Engine:
    """Start an engine and return it; raises whatever the engine raises, ImportError where it is absent.

    `scratch` is an empty folder that lives as long as the engine.
    """
    engine: Engine = import_module(f"{__name__}.{name}").start(scratch)
    return engine
