"""pyarrow: a Variant column is a struct of bytes to it, which is a Variant only where it is unshredded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..cells import variant_cells
from ..engine import Cell, Engine

__all__ = ["start"]


def start(scratch: Path) -> Engine:
    """Return the engine. It has no functions of Variants."""
    return Engine(name="pyarrow", version=pa.__version__, read=_read)


def _read(file: Path, column: str) -> Sequence[Cell]:
    return variant_cells(pq.read_table(file, columns=[column]).column(column))
