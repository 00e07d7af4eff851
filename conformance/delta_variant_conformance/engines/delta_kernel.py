"""delta-kernel-rs with its default engine, through the Python package of Delta Sharing's client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version as version_of
from pathlib import Path

import pyarrow as pa
from delta_kernel_rust_sharing_wrapper import PythonInterface, ScanBuilder, Table

from ..engine import Cell, Engine, NotOfferedError, table_cells

PACKAGE = "delta-kernel-rust-sharing-wrapper"


def start(scratch: Path) -> Engine:
    """Return the engine. It reads the latest version of tables, and nothing else."""
    return Engine(name="delta-kernel", version=f"of {PACKAGE} {version_of(PACKAGE)}", read_table=_read_table)


def _read_table(folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
    if version is not None:
        raise NotOfferedError(f"{PACKAGE} reads only the latest version of a table")
    location = f"{folder.resolve().as_uri()}/"
    interface = PythonInterface(location)
    batches = ScanBuilder(Table(location).snapshot(interface)).build().execute(interface)
    return table_cells(pa.Table.from_batches(batches))
