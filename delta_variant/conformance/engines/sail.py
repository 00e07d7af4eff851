"""Sail, a Spark Connect server, through PySpark's client."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pysail.spark import SparkConnectServer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, parse_json

from ..engine import Cell, Engine, Query
from .spark_rows import cell, quote, row_cells, select_rows

__all__ = ["start"]


def start(scratch: Path) -> Engine:
    """Start the server in this process, and return the engine."""
    server = SparkConnectServer()
    server.start(background=True)
    # The server stops when it is garbage collected, so keep a reference.
    atexit.register(server.stop)
    _, port = server.listening_address
    adapter = _Adapter(SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate())
    return Engine(
        name="sail",
        version=version("pysail"),
        to_json=adapter.to_json,
        parse_json=adapter.parse_json,
        read=adapter.read,
        read_table=adapter.read_table,
        select=adapter.select,
    )


@dataclass(frozen=True)
class _Adapter:
    """The capabilities of one session: neither a given shredding schema nor statistics nor the log."""

    session: SparkSession

    def _column(self, file: Path, column: str) -> DataFrame:
        return self.session.read.schema(f"{quote(column)} variant").parquet(str(file))

    def to_json(self, file: Path, column: str) -> str:
        [row] = self._column(file, column).selectExpr(f"to_json({quote(column)})").collect()
        return str(row[0])

    def parse_json(self, text: str) -> Cell:
        [row] = self.session.range(1).select(parse_json(lit(text))).collect()
        return cell(row[0])

    def read(self, file: Path, column: str) -> Sequence[Cell]:
        return [cell(row[0]) for row in self._column(file, column).collect()]

    def read_table(self, folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return row_cells(reader.load(str(folder)).collect())

    def select(self, folder: Path, query: Query) -> Sequence[Mapping[str, Cell]]:
        return select_rows(self.session.read.format("delta").load(str(folder)), query)
