"""DataFusion, which reads a Variant column as a struct of bytes; only an unshredded one is a Variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import datafusion
from deltalake import DeltaTable

from ..engine import Cell, Engine, table_cells, variant_cells


def start(scratch: Path) -> Engine:
    """Return the engine. It has no Variant functions. deltalake provides its tables."""
    return Engine(name="datafusion", version=datafusion.__version__, read=_read, read_table=_read_table)


def _read(file: Path, column: str) -> Sequence[Cell]:
    rows = datafusion.SessionContext().read_parquet(str(file)).to_arrow_table()
    return variant_cells(rows.column(column))


def _read_table(folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
    context = datafusion.SessionContext()
    context.register_table("t", DeltaTable(str(folder), version=version))
    return table_cells(context.table("t").to_arrow_table())
