"""pyarrow, which reads a Variant column as a struct of bytes; only an unshredded one is a Variant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..engine import Cell, Engine, variant_cells


def start(scratch: Path) -> Engine:
    """Return the engine. It has no Variant functions."""
    return Engine(name="pyarrow", version=pa.__version__, read=_read)


def _read(file: Path, column: str) -> Sequence[Cell]:
    return variant_cells(pq.read_table(file, columns=[column]).column(column))
