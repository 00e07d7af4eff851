"""Where the data of the tests is."""

from __future__ import annotations

from pathlib import Path

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "corpora"
