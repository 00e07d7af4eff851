"""Read files with Spark's own Parquet scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import reduce
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.utils import is_remote

from .._arrow import total
from .._text import quote
from ..expressions.parse import parse_columns
from ..log.snapshot import Snapshot
from ..protocol.actions import is_absolute
from ..protocol.schema.char_types import char_widths
from ..protocol.schema.partition_values import partition_value_from_string
from ..protocol.types import VOID, StructField, StructType, has_variant, primitives_of
from ..read.file_reader import FileEntry, files_of
from .columns import to_spark
from .running import parallelism
from .versions import INSTALLED, SPARK_ERRORS

MAX_PARTITIONS = 32
"""The maximum number of partitions of a table in one scan, because Spark plans each separately."""

MANY_FILES = 32
"""A larger number of files is listed by tasks of Spark before a scan."""

SMALL_BYTES = 32 << 10
"""The mean size below which the kernel reads whole files in the time that Spark takes to open them."""

LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTING = Lock()

GLOB = frozenset("{}[]*?\\")
TYPE_WIDENING = ("typeWidening", "typeWidening-preview")
LOCAL = "file:"


def unsupported_by_scan(
    spark: SparkSession, snapshot: Snapshot, files: pa.Table, *, own_credentials: bool
) -> str | None:
    """Return why Spark's Parquet scan cannot read these rows of `Snapshot.files` correctly, or None."""
    if snapshot.configuration.mapping_mode != "none":
        return "it uses column mapping"
    if any(snapshot.configuration.supports(name) for name in TYPE_WIDENING):
        return "the types of its columns were widened"
    if VOID.name in primitives_of(snapshot.schema):
        return "it has a column of the type void"
    if INSTALLED < (4, 1) and has_variant(snapshot.schema):
        return "Spark 4.0 fails at Parquet files with the type VARIANT"
    if files["deletion_vector"].null_count < files.num_rows:
        return "it has deletion vectors"
    if any(GLOB & set(path) or is_absolute(path) for path in files["path"].to_pylist() if path):
        return "Spark would parse paths of its files as patterns, or not find them in its folder"
    if len(_by_partition(files)) > MAX_PARTITIONS:
        return f"the read covers more than {MAX_PARTITIONS} of its partitions"
    if snapshot.store.local_root is None and (own_credentials or not _has_file_system(spark, snapshot)):
        return "Spark does not have its store configured, or does not have the credentials in storage_options"
    return None


def has_our_semantics(spark: SparkSession) -> bool:
    """Return whether this session evaluates SQL text as we do.

    We raise an error for a cast that fails, and `timestamp` is the type of instants. Spark 4.0 does not know
    paths such as `event:id`.
    """
    if INSTALLED < (4, 1):
        return False
    ours = {"spark.sql.ansi.enabled": "true", "spark.sql.timestampType": "TIMESTAMP_LTZ"}
    return all(spark.conf.get(name) == value for name, value in ours.items())


def scan(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> DataFrame:
    """Return the rows of files, including partition columns, as Spark reads them."""
    parts = [
        _scan_partition(spark, snapshot, dict(values), part) for values, part in _by_partition(files).items()
    ]
    if not parts:
        return spark.createDataFrame([], to_spark(snapshot.schema))
    return reduce(DataFrame.unionAll, parts)


def select(df: DataFrame, columns: Mapping[str, str] | Sequence[str] | None, where: str | None) -> DataFrame:
    """Return the rows and columns that SQL text selects, evaluated by Spark."""
    if where is not None:
        df = df.where(where)
    if columns is None:
        return df
    texts = columns.values() if isinstance(columns, Mapping) else columns
    names = parse_columns(columns)
    return df.select([sql.expr(text).alias(name) for text, name in zip(texts, names, strict=True)])


def _by_partition(files: pa.Table) -> dict[tuple[tuple[str, str | None], ...], list[FileEntry]]:
    groups: dict[tuple[tuple[str, str | None], ...], list[FileEntry]] = {}
    for file in files_of(files):
        groups.setdefault(tuple(file.partition_values.items()), []).append(file)
    return groups


def _scan_partition(
    spark: SparkSession, snapshot: Snapshot, values: Mapping[str, str | None], files: Sequence[FileEntry]
) -> DataFrame:
    stored = tuple(field for field in snapshot.schema.fields if field.name not in snapshot.partition_columns)
    root = f"{LOCAL}{snapshot.uri}" if snapshot.store.local_root else snapshot.uri
    reader = spark.read.schema(to_spark(StructType(stored))).option("mergeSchema", "false")
    with _few_listing_tasks(spark) if len(files) > MANY_FILES else nullcontext():
        df = reader.parquet(*(f"{root}/{file.path}" for file in files))
    return df.select([_column(field, values, snapshot) for field in snapshot.schema.fields])


@contextmanager
def _few_listing_tasks(spark: SparkSession) -> Iterator[None]:
    """Let Spark list files in as many tasks as it runs at once, and not each file in a task."""
    tasks = parallelism(spark)
    with _LISTING:
        before = None
        # Some platforms, such as Databricks serverless, forbid most settings.
        with suppress(*SPARK_ERRORS):
            known = str(spark.conf.get(LISTING_TASKS))
            spark.conf.set(LISTING_TASKS, tasks)
            before = known
        try:
            yield
        finally:
            if before is not None:
                spark.conf.set(LISTING_TASKS, before)


def are_small(files: pa.Table) -> bool:
    """Return whether the kernel reads files faster than Spark's scan, whichever columns are used later."""
    return files.num_rows > MANY_FILES and total(files["size"]) < SMALL_BYTES * files.num_rows


def _column(field: StructField, values: Mapping[str, str | None], snapshot: Snapshot) -> Any:
    if field.name not in snapshot.partition_columns:
        return sql.col(quote(field.name))
    (spark_field,) = to_spark(StructType((field,))).fields
    value = partition_value_from_string(values.get(field.name), field.type, snapshot.timezone)
    if isinstance(value, datetime) and value.tzinfo is None:
        # Spark would interpret a datetime without time zone in the session's time zone.
        value = value.isoformat(" ")
    if isinstance(value, str):
        value = value.ljust(char_widths(field).get((), 0))
    return sql.lit(value).cast(spark_field.dataType).alias(field.name, metadata=spark_field.metadata)


def _has_file_system(spark: SparkSession, snapshot: Snapshot) -> bool:
    """Return whether Spark has a file system for the table's URI; a client of Spark Connect cannot know."""
    if is_remote():
        return False
    jvm: Any = spark.sparkContext._jvm
    context: Any = spark.sparkContext._jsc
    scheme = snapshot.uri.split(":", 1)[0]
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, context.hadoopConfiguration())
    except SPARK_ERRORS:
        return False
    return True
