"""What every test shares: where the corpora are."""

from __future__ import annotations

from pathlib import Path

import pytest
from locations import CORPORA


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Return the folder of the corpora; a missing one is a failure, not a skip."""
    if not CORPORA.is_dir():
        pytest.fail(f"the corpora are missing: expected them at {CORPORA} (see CONTRIBUTING.md)")
    return CORPORA
