"""Locations of the data that the tests read."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

OWN_CASES = ROOT / "protocol_fixtures"
"""The folder whose `cases` contains the conformance cases of this project."""

# `make corpora` assembles this folder from public sources; `corpora.toml` lists its content.
CORPORA = Path(os.environ.get("DELTA_VARIANT_CORPORA") or ROOT.parent / "shared" / "corpora").absolute()


def list_corpus(pattern: str) -> list[Path]:
    """Return the paths in the corpora that match a pattern, sorted: the parameters of tests.

    Without the corpora there are none. Each test file that uses this also has a test that counts them and
    requests the `corpora` fixture, so that a missing corpus is a failure.
    """
    return sorted(CORPORA.glob(pattern))
