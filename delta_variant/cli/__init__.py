"""The command line: `delta-variant write | read | inspect | stats | audit | repair | z85`."""

from __future__ import annotations

from .app import main

__all__ = ["main"]
