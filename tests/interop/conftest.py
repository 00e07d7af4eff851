"""Fixtures of the reference engines: Spark with Delta's own JARs, and DuckDB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import socket

import duckdb
import pyspark
import pytest
from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
JARS = HERE.parents[1] / ".cache" / "jars"
JAR_NAMES = ("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
# Spark downloads this package if Maven is not installed.
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
# The JARs are for Spark 4.2; other versions are tested without them.
HAS_DELTA = pyspark.__version__.startswith("4.2.")

SETTINGS = {
    "spark.driver.memory": "3g",
    # Most code runs a few times only: the JVM's second compiler and concurrent collector do not pay off.
    # That compiler reserves 48 MB for its code, and the JVM only interprets what comes after these are full.
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
    ),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "support.spark_daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # A VACUUM lists files by as many tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # To compile or to adapt a query takes longer than to interpret it, for the few rows of a test.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
DELTA_SETTINGS = {
    "spark.databricks.delta.snapshotPartitions": "1",
    # Versions of stored tables are older than the retention of deleted files.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Spark writes Variant statistics only with both of these and the shredding feature.
    "spark.databricks.delta.stats.limitPerVariant": "32",
    "spark.databricks.delta.variantShredding.parseFooterForStats": "true",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return the Spark session of the run, in which Delta's JARs read and write tables by path."""
    # Otherwise the workers run the python3 on the PATH, which does not have pyspark.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    # With SPARK_REMOTE=local[2,3], this starts a server of Spark Connect and returns the session of a client.
    remote = os.environ.get("SPARK_REMOTE")
    builder = _connect(remote) if remote else SparkSession.builder.master("local[2,3]")
    builder = builder.appName("delta_variant interop")
    warehouse = tmp_path_factory.mktemp("warehouse")
    delta = {**DELTA_SETTINGS, **_delta_jars(warehouse)} if HAS_DELTA else {}
    for name, value in {**SETTINGS, **delta, "spark.sql.warehouse.dir": str(warehouse)}.items():
        builder = builder.config(name, value)
    try:
        with warnings.catch_warnings():
            # The client repeats the settings of the server, which cannot change.
            warnings.filterwarnings("ignore", "Failed to set spark")
            session = builder.getOrCreate()
    except Exception as error:
        pytest.fail(f"Spark did not start (it needs Java 17 or 21 on the PATH or in JAVA_HOME): {error}")
    yield session
    session.stop()


def _connect(remote: str) -> SparkSession.Builder:
    """Return the builder of a session whose server has an unused port and imports the modules of tests."""
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # type: ignore[method-assign]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    return SparkSession.builder.remote(remote).config("spark.connect.grpc.binding.port", port)


@pytest.fixture
def compiled_casts(spark: SparkSession) -> Iterator[None]:
    """Let Spark compile expressions: it cannot interpret its own casts of shredded leaves."""
    mode = "spark.sql.codegen.factoryMode"
    spark.conf.set(mode, "FALLBACK")
    yield
    spark.conf.set(mode, SETTINGS[mode])


@pytest.fixture
def spark_with_delta(spark: SparkSession) -> SparkSession:
    """Return the session, or skip the test if Spark's version has no Delta JARs."""
    if not HAS_DELTA:
        pytest.skip(f"Delta has no JARs for PySpark {pyspark.__version__}; with those of 4.2 this test runs")
    return spark


@pytest.fixture
def duckdb_connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection to an in-memory DuckDB."""
    with duckdb.connect(config={"threads": 2}) as connection:
        yield connection


@pytest.fixture
def unpack_table(corpora: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that unpacks a table of the delta-spark corpus by name and returns its folder."""

    def unpack(name: str) -> Path:
        with tarfile.open(corpora / "delta-spark" / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path / name

    return unpack


def _delta_jars(warehouse: Path) -> dict[str, str]:
    """Return the settings that put Delta's JARs on Spark's class path; downloads the JARs if needed."""
    jars = [JARS / name for name in JAR_NAMES]
    if not all(jar.is_file() for jar in jars):
        maven = shutil.which("mvn")
        if maven is None:
            # Processes that share a cache of Ivy may read incomplete files of each other.
            return {"spark.jars.packages": DELTA_PACKAGE, "spark.jars.ivy": str(warehouse / "ivy")}
        _copy_jars(maven)
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
    }


def _copy_jars(maven: str) -> None:
    command = [maven, "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    JARS.mkdir(parents=True, exist_ok=True)
    # Another process may start Spark while this one copies: a JAR has to be complete when it gets its name.
    with tempfile.TemporaryDirectory(dir=JARS) as folder:
        command.append(f"-DoutputDirectory={folder}")
        copied = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        if copied.returncode != 0:
            pytest.fail(f"Maven could not fetch Delta's JARs: {copied.stdout}{copied.stderr}")
        for name in JAR_NAMES:
            os.replace(Path(folder) / name, JARS / name)


@pytest.fixture
def configured(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Return a function that sets a configuration of Spark until the test ends."""
    before = {}

    def configure(name: str, value: str) -> None:
        before[name] = spark.conf.get(name)
        spark.conf.set(name, value)

    yield configure
    for name, value in before.items():
        spark.conf.set(name, value)
