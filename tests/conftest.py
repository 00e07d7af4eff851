"""What every test shares: where the corpora are, and that no property is a race against a clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from locations import CORPORA

# A busy machine is no fault of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Return the folder of the corpora; a missing one is a failure, not a skip."""
    if not CORPORA.is_dir():
        pytest.fail(f"the corpora are missing: expected them at {CORPORA} (see CONTRIBUTING.md)")
    return CORPORA
