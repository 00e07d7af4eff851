"""Apache Spark with Delta's own JARs, the newest Spark without Delta, and Sail, a Spark Connect server.

Spark requires Java 17 or 21. It uses the JARs in PYSPARK_SUBMIT_ARGS, or downloads them.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import lit, parse_json
from pyspark.sql.types import VariantVal

from ..engine import Cell, Engine, NotOfferedError, Query, VariantBytes, column_types
from ..typed_values import Schema, decimal_of
from .spark_sql import TYPES, condition, projection, quote

DELTA_VERSION = "4.4.0"
DELTA_PACKAGE = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"
DELTA_SETTINGS = {
    "spark.databricks.delta.snapshotPartitions": "1",
    # The versions of a case are older than the retention of deleted files.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
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


def start_spark(scratch: Path) -> Engine:
    """Start a session with Delta, and return the engine."""
    # Without these JARs, Spark downloads Delta.
    packages = {} if "PYSPARK_SUBMIT_ARGS" in os.environ else {"spark.jars.packages": DELTA_PACKAGE}
    adapter = _SparkWithDelta(_start_session(scratch, {**DELTA_SETTINGS, **packages}))
    return Engine.of("spark", f"{pyspark.__version__} with Delta {DELTA_VERSION}", adapter)


def start_spark_newest(scratch: Path) -> Engine:
    """Start a session, and return the engine. It reads Parquet files alone: Delta has no JARs for it yet."""
    # These arguments name the JARs of Delta for the other Spark.
    os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
    adapter = _Spark(_start_session(scratch, {}))
    return Engine.of("spark-newest", f"{pyspark.__version__} without Delta", adapter)


def start_sail(scratch: Path) -> Engine:
    """Start the server in this process, and return the engine."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer()
    server.start(background=True)
    # The server stops when it is garbage collected, so keep a reference.
    atexit.register(server.stop)
    _, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
    return Engine.of("sail", version("pysail"), _SessionWithDelta(session))


def _start_session(scratch: Path, settings: Mapping[str, str]) -> SparkSession:
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
    _Session(session).parse_json("1")
    return session


class _Session:
    """The capabilities of a session of any server."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def _column(self, file: Path, column: str) -> DataFrame:
        return self.session.read.schema(f"{quote(column)} variant").parquet(str(file))

    def to_json(self, file: Path, column: str) -> str:
        [row] = self._column(file, column).selectExpr(f"to_json({quote(column)})").collect()
        return str(row[0])

    def parse_json(self, text: str) -> Cell:
        [row] = self.session.range(1).select(parse_json(lit(text))).collect()
        return _cell(row[0])

    def read(self, file: Path, column: str) -> Sequence[Cell]:
        return [_cell(row[0]) for row in self._column(file, column).collect()]


class _SessionWithDelta(_Session):
    """A session that also reads Delta tables."""

    def read_table(self, folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return _row_cells(reader.load(str(folder)).collect())

    def read_changes(self, folder: Path, first: int, last: int) -> Sequence[Mapping[str, Cell]]:
        reader = self.session.read.format("delta").option("readChangeFeed", "true")
        versions = reader.option("startingVersion", first).option("endingVersion", last)
        return _row_cells(versions.load(str(folder)).collect())

    def select(self, folder: Path, query: Query) -> Sequence[Mapping[str, Cell]]:
        return select_rows(self.session.read.format("delta").load(str(folder)), query)


class _Spark(_Session):
    """A session of Spark itself, which can shred by a given schema."""

    def shred(self, file: Path, column: str, schema: Schema, out: Path) -> None:
        # A new session keeps these settings from later cases.
        new = _Spark(self.session.newSession())
        new.session.conf.set(WRITE_SHREDDING, str(schema is not None).lower())
        new.session.conf.set(FORCED_SCHEMA, "" if schema is None else _sql_type(schema))
        folder = out.with_suffix(".spark")
        new._column(file, column).coalesce(1).write.parquet(str(folder))
        [written] = folder.glob("part-*.parquet")
        written.rename(out)


class _SparkWithDelta(_Spark, _SessionWithDelta):
    """The capabilities of Spark with Delta; some call Delta's classes in its JVM."""

    @property
    def jvm(self) -> Any:
        return self.session._jvm

    def rewrite(self, folder: Path, deleted: int | None) -> None:
        table = f"delta.{quote(str(folder))}"
        self.session.sql(
            f"OPTIMIZE {table}" if deleted is None else f"DELETE FROM {table} WHERE id = {deleted}"
        )

    def decode_stats(self, text: str) -> VariantBytes:
        return _variant(self._delta("util.DeltaStatsJsonUtils").decodeVariantFromZ85(text))

    def encode_stats(self, given: VariantBytes) -> str:
        variant = self.jvm.org.apache.spark.types.variant.Variant(given.value, given.metadata)
        return str(self._delta("util.DeltaStatsJsonUtils").encodeVariantAsZ85(variant))

    def collect_stats(self, file: Path, column: str) -> Mapping[str, Any]:
        """Return the bounds that Delta on Spark would write for the file."""
        path = self.jvm.org.apache.hadoop.fs.Path(str(file))
        configuration = self.session._jsc.hadoopConfiguration()
        footer = self.jvm.org.apache.parquet.hadoop.ParquetFileReader.readFooter(configuration, path)
        # Keep dates and times of the proleptic calendar unchanged.
        unchanged = getattr(self.jvm.scala.Predef, "$conforms")()
        derived = self._delta("stats.VariantStatsData").apply(footer, unchanged, unchanged)
        prefix = self.jvm.org.apache.spark.api.python.PythonUtils.toSeq([column])
        sides = {"min": "stats.MIN_STAT", "max": "stats.MAX_STAT"}
        bounds = {
            side: derived.forPrefixAndStatType(prefix, self._delta(kind)) for side, kind in sides.items()
        }
        return {side: None if bound is None else _variant(bound) for side, bound in bounds.items()}

    def load_log(self, folder: Path, version: int | None) -> Mapping[str, Any]:
        log = self._delta("DeltaLog").forTable(self.session._jsparkSession, str(folder))
        none = self.jvm.scala.Option.empty()
        if version is None:
            snapshot = log.update(False, none, none)
        else:
            snapshot = log.getSnapshotAt(version, none, none, False)
        protocol = json.loads(snapshot.protocol().json())["protocol"]
        metadata = json.loads(snapshot.metadata().json())["metaData"]
        files = snapshot.allFiles().toDF().select("path", _no_columns(self.jvm)).collectAsList()
        return {
            "version": snapshot.version(),
            "files": [unquote(row.getString(0)) for row in files],
            "reader_features": protocol.get("readerFeatures", []),
            "writer_features": protocol.get("writerFeatures", []),
            "properties": metadata["configuration"],
            "schema": column_types(metadata["schemaString"]),
        }

    def _delta(self, name: str) -> Any:
        """Return a Scala object of Delta."""
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        name = f"org.apache.spark.sql.delta.{name}$"
        return self.jvm.java.lang.Class.forName(name, True, loader).getField("MODULE$").get(None)


def _no_columns(jvm: Any) -> Any:
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq([])


def _variant(found: Any) -> VariantBytes:
    return VariantBytes(bytes(found.getMetadata()), bytes(found.getValue()))


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
