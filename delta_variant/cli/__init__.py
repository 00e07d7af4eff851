"""The command line `delta-variant`: `entry_point` runs it, and `app` registers the commands."""

from __future__ import annotations

from .entry_point import main

__all__ = ["main"]
