"""Mutated texts of logs and users are read, or rejected with an error of this library."""

from __future__ import annotations

import pytest
from support.hostile_text import READERS, mutations, read

MUTATIONS = 3000


@pytest.mark.parametrize("name", READERS)
def test_mutated_text_is_read_or_rejected_with_an_error_of_this_library(name: str):
    for text in mutations(name, MUTATIONS):
        read(name, text)
