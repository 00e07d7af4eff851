"""Adapters of engines, one module each. Only this module imports the packages of its engine."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..engine import Engine

__all__ = ["ENGINES", "start"]

ENGINES = ("ours", "spark", "duckdb", "sail", "deltalake", "pyarrow")


def start(name: str, scratch: Path) -> Engine:
    """Start an engine and return it; raises the errors of the engine, and ImportError if it is not installed.

    `scratch` is an empty folder that exists as long as the engine.
    """
    engine: Engine = import_module(f"{__name__}.{name}").start(scratch)
    return engine
