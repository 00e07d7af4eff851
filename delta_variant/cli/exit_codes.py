"""Exit statuses of the commands."""

from __future__ import annotations

__all__ = ["CLEAN", "ERROR", "FINDINGS", "INTERRUPTED"]

CLEAN = 0
FINDINGS = 1
ERROR = 2
INTERRUPTED = 130
