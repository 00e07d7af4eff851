"""deltalake, the Python package of delta-rs, which returns Variants as structs of bytes, if at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
from deltalake import DeltaTable

from ..engine import Cell, Engine, column_types, table_cells


def start(scratch: Path) -> Engine:
    """Return the engine. It has no Variant functions and reads Parquet files only as part of a table."""
    version = deltalake.__version__
    return Engine(
        name="deltalake",
        version=version,
        read_table=_read_table,
        read_changes=_read_changes,
        rewrite=_rewrite,
        load_log=_load_log,
    )


def _read_table(folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
    return table_cells(DeltaTable(str(folder), version=version).to_pyarrow_table())


def _read_changes(folder: Path, first: int, last: int) -> Sequence[Mapping[str, Cell]]:
    changes = DeltaTable(str(folder)).load_cdf(starting_version=first, ending_version=last)
    return table_cells(pa.table(changes.read_all()))


def _rewrite(folder: Path, deleted: int | None) -> None:
    table = DeltaTable(str(folder))
    if deleted is None:
        table.optimize.compact()
    else:
        table.delete(f"id = {deleted}")


def _load_log(folder: Path, version: int | None) -> Mapping[str, Any]:
    table = DeltaTable(str(folder), version=version)
    protocol = table.protocol()
    root = f"{folder.resolve()}/"
    return {
        "version": table.version(),
        "files": [unquote(uri).removeprefix("file://").removeprefix(root) for uri in table.file_uris()],
        "reader_features": protocol.reader_features or [],
        "writer_features": protocol.writer_features or [],
        "properties": table.metadata().configuration,
        "schema": column_types(table.schema().to_json()),
    }
