"""Run the notebooks of `examples/` in a kernel.

    python tests/support/notebooks.py

writes what their cells show into them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))

CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|part-\d{5}-[0-9a-f-]{36}"
    r"|>bytes</td>.*?read</td>|[bB]ytes(: |=|_read=)\d+|[\d.]+ kB"
)
"""Times, names and sizes of files: `optimize` reads them in the order of their names."""


def read(path: Path) -> Any:
    """Return a notebook."""
    return nbformat.read(path, as_version=4)


def run(path: Path) -> Any:
    """Return a notebook with what its cells show, run in a folder whose path is left out of it."""
    notebook = read(path)
    with TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()
        text = nbformat.writes(notebook).replace(f"{folder}/", "")
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def shown(notebook: Any) -> list[Any]:
    """Return what the cells of a notebook show, without what changes in each run."""
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    shown: list[Any] = json.loads(CHANGING.sub("…", json.dumps(outputs)))
    return shown


if __name__ == "__main__":
    for path in NOTEBOOKS:
        nbformat.write(run(path), path)
