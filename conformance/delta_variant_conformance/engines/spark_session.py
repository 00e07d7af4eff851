"""Sessions of Spark and of Spark Connect servers: SQL functions, Parquet files and Delta tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import lit, parse_json
from pyspark.sql.types import VariantVal

from ..engine import Cell, NotOfferedError, Query, VariantBytes
from ..shredding_schema import Schema, decimal_of
from .spark_sql import condition, projection

__all__ = ["ClassicAdapter", "SessionAdapter", "quote", "select_rows", "start_session"]

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.variant.inferShreddingSchema": "false",
}
FORCED_SCHEMA = "spark.sql.variant.forceShreddingSchemaForTest"
WRITE_SHREDDING = "spark.sql.variant.writeShredding.enabled"

TYPES: Mapping[str, str] = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
    "string": "string",
}


def start_session(scratch: Path, settings: Mapping[str, str]) -> SparkSession:
    """Start Spark in a JVM of its own, with one core."""
    # Otherwise the workers run the python3 on the PATH, which may not have pyspark.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").appName("delta_variant conformance")
    folders = {
        "spark.sql.warehouse.dir": str(scratch),
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}",
    }
    for name, value in {**SETTINGS, **settings, **folders}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # The first query of a session takes seconds: run it as part of the start.
    SessionAdapter(session).parse_json("1")
    return session


@dataclass(frozen=True)
class SessionAdapter:
    """The capabilities of a session of any server."""

    session: SparkSession

    def _column(self, file: Path, column: str) -> DataFrame:
        return self.session.read.schema(f"{quote(column)} variant").parquet(str(file))

    def to_json(self, file: Path, column: str) -> str:
        """Print a Variant as JSON text."""
        [row] = self._column(file, column).selectExpr(f"to_json({quote(column)})").collect()
        return str(row[0])

    def parse_json(self, text: str) -> Cell:
        """Parse JSON text to a Variant."""
        [row] = self.session.range(1).select(parse_json(lit(text))).collect()
        return _cell(row[0])

    def read(self, file: Path, column: str) -> Sequence[Cell]:
        """Return the Variants of a file."""
        return [_cell(row[0]) for row in self._column(file, column).collect()]

    def read_table(self, folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
        """Return the rows of a Delta table."""
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return _row_cells(reader.load(str(folder)).collect())

    def select(self, folder: Path, query: Query) -> Sequence[Mapping[str, Cell]]:
        """Return the selected rows of a Delta table."""
        return select_rows(self.session.read.format("delta").load(str(folder)), query)


class ClassicAdapter(SessionAdapter):
    """A session of Spark itself, which can shred by a given schema."""

    def shred(self, file: Path, column: str, schema: Schema, out: Path) -> None:
        """Write a Variant column shredded."""
        # A new session keeps these settings from later cases.
        adapter = ClassicAdapter(self.session.newSession())
        adapter.session.conf.set(WRITE_SHREDDING, str(schema is not None).lower())
        adapter.session.conf.set(FORCED_SCHEMA, "" if schema is None else _sql_type(schema))
        folder = out.with_suffix(".spark")
        adapter._column(file, column).coalesce(1).write.parquet(str(folder))
        [written] = folder.glob("part-*.parquet")
        written.rename(out)


def _sql_type(schema: Schema) -> str:
    if schema is None:
        return "variant"
    if isinstance(schema, Mapping):
        if "array" in schema:
            return f"array<{_sql_type(schema['array'])}>"
        fields = [f"{quote(name)}: {_sql_type(part)}" for name, part in schema["object"].items()]
        return f"struct<{', '.join(fields)}>"
    if decimal_of(schema) is None and schema not in TYPES:
        raise NotOfferedError(f"Spark cannot shred to the type {schema}")
    return TYPES.get(schema, schema)


def select_rows(rows: DataFrame, query: Query) -> list[dict[str, Cell]]:
    """Return the answer of a query on the rows of a table."""
    if query.where:
        return _row_cells(rows.where(condition(query)).select("id").collect())
    return _row_cells(rows.selectExpr("id", f"{projection(query)} AS found").collect())


def _row_cells(rows: list[Row]) -> list[dict[str, Cell]]:
    """Return rows as cells by column name."""
    return [{name: _cell(value) for name, value in row.asDict().items()} for row in rows]


def _cell(value: Any) -> Cell:
    """Return a value of a row, including nested values, as a cell."""
    if isinstance(value, VariantVal):
        return VariantBytes(bytes(value.metadata), bytes(value.value))
    if isinstance(value, Row):
        return {name: _cell(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _cell(part) for name, part in value.items()}
    return [_cell(part) for part in value] if isinstance(value, list) else value


def quote(name: str) -> str:
    """Return a column's name as a quoted SQL identifier."""
    return f"`{name.replace('`', '``')}`"
