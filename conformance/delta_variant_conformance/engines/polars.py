"""Polars, whose Parquet reader returns Variants as structs of bytes, if at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars

from ..engine import Cell, Engine, table_cells, variant_cells


def start(scratch: Path) -> Engine:
    """Return the engine. It has no Variant functions. It reads the log of a table with deltalake."""
    return Engine(name="polars", version=polars.__version__, read=_read, read_table=_read_table)


def _read(file: Path, column: str) -> Sequence[Cell]:
    return variant_cells(polars.read_parquet(file, columns=[column], glob=False).to_arrow().column(column))


def _read_table(folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
    return table_cells(polars.read_delta(str(folder), version=version).to_arrow())
