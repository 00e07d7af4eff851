"""Texts from logs and users are read, or refused by one of our errors."""

from __future__ import annotations

import pytest
from hostile_text import READERS, mutations, read

MUTATIONS = 3000


@pytest.mark.parametrize("name", READERS)
def test_mutated_text_is_read_or_refused_by_an_error_of_ours(name: str):
    for text in mutations(name, MUTATIONS):
        read(name, text)
