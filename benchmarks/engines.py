"""Start each engine with two threads, as its documentation describes."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

THREADS = 2
JARS = Path(__file__).resolve().parents[1] / ".cache" / "jars"
DELTA_JARS = ("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

# Session classes can be imported only if their engine is installed.
Session = Any


def ours() -> Any:
    """Import delta_variant and its lazy imports: the parser of expressions, and pandas through pyarrow."""
    import pyarrow as pa

    import delta_variant as dv
    import delta_variant.expressions.parse

    pa.array([0])
    return dv


def duckdb_connection() -> Session:
    import duckdb

    return duckdb.connect(config={"threads": THREADS})


def clickhouse_session(folder: Path) -> Session:
    from chdb import session

    engine: Session = session.Session(str(folder))  # type: ignore[no-untyped-call]
    engine.query(f"SET max_threads = {THREADS}")
    return engine


def spark_session(extra: Mapping[str, str] | None = None) -> Session:
    """Start Spark with shredding enabled, and run one small job."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Installed packages are compiled; else each worker would compile the sources of an editable installation.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    builder = SparkSession.builder.master(f"local[{THREADS}]")
    settings = {
        "spark.driver.memory": "6g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(THREADS),
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.inferShreddingSchema": "true",
        **(extra or {}),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.range(1000).selectExpr("parse_json(cast(id as string)) as v").selectExpr("sum(v::int)").collect()
    return spark


def delta_session() -> Session:
    """Start Spark with Delta's JARs: those of the tests, or those that Spark downloads."""
    jars = [JARS / name for name in DELTA_JARS]
    extra = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": str(THREADS),
    }
    if all(jar.is_file() for jar in jars):
        extra["spark.jars"] = ",".join(map(str, jars))
        extra["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    else:
        extra["spark.jars.packages"] = DELTA_PACKAGE
    return spark_session(extra)


def sail_session() -> Session:
    """Start Sail's server in this process and return a session."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start(background=True)
    # The server stops when its last reference is dropped.
    atexit.register(server.stop)
    _, port = server.listening_address
    return SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
