"""Apache Spark with Delta's own JARs, through PySpark.

Requires Java 17 or 21. Uses the JARs in PYSPARK_SUBMIT_ARGS, or Spark downloads them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, parse_json

from ..engine import Cell, Engine, NotOfferedError, Query, VariantBytes
from ..shredding_schema import Schema, decimal_of
from .delta_schema import column_types
from .spark_rows import cell, quote, row_cells, select_rows

__all__ = ["start"]

DELTA_VERSION = "4.4.0"
DELTA_PACKAGE = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"

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
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
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


def start(scratch: Path) -> Engine:
    """Start a session, and return the engine."""
    # Otherwise the workers run the python3 on the PATH, which may not have pyspark.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        **SETTINGS,
        "spark.sql.warehouse.dir": str(scratch),
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}",
    }
    if "PYSPARK_SUBMIT_ARGS" not in os.environ:
        settings["spark.jars.packages"] = DELTA_PACKAGE
    builder = SparkSession.builder.master("local[1]").appName("delta_variant conformance")
    for name, value in settings.items():
        builder = builder.config(name, value)
    adapter = _Adapter(builder.getOrCreate())
    # The first query of a session takes seconds: run it as part of the start.
    adapter.parse_json("1")
    return Engine(
        name="spark",
        version=f"{pyspark.__version__} with Delta {DELTA_VERSION}",
        to_json=adapter.to_json,
        parse_json=adapter.parse_json,
        shred=adapter.shred,
        read=adapter.read,
        read_table=adapter.read_table,
        select=adapter.select,
        rewrite=adapter.rewrite,
        decode_stats=adapter.decode_stats,
        encode_stats=adapter.encode_stats,
        collect_stats=adapter.collect_stats,
        load_log=adapter.load_log,
    )


@dataclass(frozen=True)
class _Adapter:
    """The capabilities of one session; some call Delta's classes in its JVM."""

    session: SparkSession

    @property
    def jvm(self) -> Any:
        return self.session._jvm

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

    def shred(self, file: Path, column: str, schema: Schema, out: Path) -> None:
        # A new session keeps these settings from later cases.
        adapter = _Adapter(self.session.newSession())
        adapter.session.conf.set(WRITE_SHREDDING, str(schema is not None).lower())
        adapter.session.conf.set(FORCED_SCHEMA, "" if schema is None else _sql_type(schema))
        folder = out.with_suffix(".spark")
        adapter._column(file, column).coalesce(1).write.parquet(str(folder))
        [written] = folder.glob("part-*.parquet")
        written.rename(out)

    def read_table(self, folder: Path, version: int | None) -> Sequence[Mapping[str, Cell]]:
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return row_cells(reader.load(str(folder)).collect())

    def select(self, folder: Path, query: Query) -> Sequence[Mapping[str, Cell]]:
        return select_rows(self.session.read.format("delta").load(str(folder)), query)

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
