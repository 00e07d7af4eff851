"""ClickHouse through chdb: files as a tuple of bytes, and Delta tables with delta-kernel-rs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import chdb
import pyarrow as pa

from ..engine import Cell, Engine, table_cells, variant_cells


def start(scratch: Path) -> Engine:
    """Return the engine. It has no Variant functions."""
    # Local tables have to lie in the working directory.
    os.chdir("/")
    [clickhouse] = _table("SELECT version()").column(0).to_pylist()
    version = f"{chdb.__version__} with ClickHouse {clickhouse.decode()}"
    return Engine(name="chdb", version=version, read=_read, read_table=_read_table)


def _table(query: str, settings: str = "") -> Any:
    settings = f"output_format_arrow_string_as_string = 0{settings}"
    answer = chdb.query(f"{query} SETTINGS {settings}", "ArrowStream")
    return pa.ipc.open_stream(answer.bytes()).read_all()


def _read(file: Path, column: str) -> Sequence[Cell]:
    source = f"file({_literal(str(file))}, Parquet)"
    return variant_cells(_table(f"SELECT {_quote(column)} FROM {source}").column(0))


def _read_table(folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
    at = "" if version is None else f", delta_lake_snapshot_version = {version}"
    return table_cells(_table(f"SELECT * FROM deltaLakeLocal({_literal(str(folder))})", at))


def _quote(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
