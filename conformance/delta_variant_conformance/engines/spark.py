"""Apache Spark with Delta's own JARs, through PySpark.

Requires Java 17 or 21. Uses the JARs in PYSPARK_SUBMIT_ARGS, or Spark downloads them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark

from ..cells import column_types
from ..engine import Engine, VariantBytes
from .spark_session import ClassicAdapter, quote, start_session

__all__ = ["start"]

DELTA_VERSION = "4.4.0"
DELTA_PACKAGE = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"

SETTINGS = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def start(scratch: Path) -> Engine:
    """Start a session, and return the engine."""
    # Without these JARs, Spark downloads Delta.
    packages = {} if "PYSPARK_SUBMIT_ARGS" in os.environ else {"spark.jars.packages": DELTA_PACKAGE}
    adapter = _Adapter(start_session(scratch, {**SETTINGS, **packages}))
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


class _Adapter(ClassicAdapter):
    """The capabilities of one session with Delta; some call Delta's classes in its JVM."""

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
