"""The examples in docstrings of public functions run as written."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = [
    "operations.changes",
    "operations.delete",
    "operations.merge.builder",
    "operations.read",
    "operations.update",
    "operations.write",
    "writer.json_lines",
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module: str):
    result = doctest.testmod(import_module(f"delta_variant.{module}"), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
