"""The command line `delta-variant`; `app` registers the commands."""

from __future__ import annotations

from .app import main

__all__ = ["main"]
