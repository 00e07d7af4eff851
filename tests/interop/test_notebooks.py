"""The notebooks of `examples/` run, and show what they showed when they were committed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.notebooks import NOTEBOOKS, read, run, shown


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_committed(notebook: Path):
    committed = read(notebook)
    assert sum(cell.cell_type == "code" for cell in committed.cells) > 5
    assert shown(run(notebook)) == shown(committed)
