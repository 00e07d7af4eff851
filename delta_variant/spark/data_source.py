"""The data source `delta_variant` of `spark.read`, `df.write`, `spark.readStream` and `df.writeStream`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from ..errors import TableNotFoundError, UnsupportedFeatureError
from ..log.timestamps import to_instant
from ..variant.moments import UTC
from .locations import (
    LOCAL_FS,
    HadoopSettings,
    add_options,
    default_file_system,
    hadoop_settings,
    is_location,
    locate,
)
from .options import LOCATIONS, READ, STREAM_READ, STREAM_WRITE, TIMESTAMPS, WRITE, Parse, parse_options
from .running import check_session, session_timezone
from .sources import BatchSource, ChangeSource, check_batch_options, file_reader, first_version
from .versions import check_version


def register(spark: SparkSession) -> None:
    """Register the data source format `delta_variant` with a session.

    Spark's Python data sources support the save modes append and overwrite. They do not support
    `partitionBy` (set the option `partition_by`), SQL that changes rows, column pruning (set the option
    `columns`, or pass a schema), or filters that skip files (set the option `where`).
    A `delta_variant.Table` with a `SparkEngine` and the functions of `delta_variant.spark` do not have these
    limits. Options of the format `delta` have their names and meanings, such as `versionAsOf`,
    `readChangeFeed` and `replaceWhere`; those that are not supported raise an error.

    A DataFrame or temporary view of the format is of the version that is the latest at its first action, also
    after an INSERT INTO the view: Spark plans the reader once. Create it again to read later versions, with
    `CREATE OR REPLACE TEMPORARY VIEW` in SQL. REFRESH TABLE has no effect. Spark cannot have tables of the
    format in its catalog.

    Spark does not pass its settings to Python data sources. The format interprets local times in SQL text in
    the session's time zone at the time of this call, unless the option `timezone` is set. It opens object
    stores with the credentials that the session then has for Hadoop's file systems, unless options with the
    prefix `storage.` configure the store. Register the format again after you change these settings.

    Args:
        spark: The session.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = tempfile.mkdtemp()
        >>> result = dv.write_table(table, pa.table({"id": [1, 2]}))
        >>> dvs.register(spark)
        >>> spark.read.format("delta_variant").load(table).count()
        2
    """
    check_session(spark)
    in_session = {"timezone": session_timezone(spark), "hadoop": hadoop_settings(spark)}
    in_session["default_fs"] = default_file_system(spark)
    with _python_path(spark):
        spark.dataSource.register(type("DeltaVariantSource", (DeltaVariantSource,), in_session))


PYTHON_PATH = str(Path(__file__).with_name("python_path"))
"""The folder of the module that shortens the start of Spark's Python processes."""


@contextmanager
def _python_path(spark: SparkSession) -> Iterator[None]:
    """Let what is sent to Spark within the block start Python with the folder on its path."""
    if is_remote():
        yield
        return
    environment = spark.sparkContext.environment
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (PYTHON_PATH, before)))
    try:
        yield
    finally:
        del environment["PYTHONPATH"]
        environment.update({} if before is None else {"PYTHONPATH": before})


class DeltaVariantSource(DataSource):
    """A table at a path or URI, with the options of `delta_variant.spark.options`."""

    timezone: ClassVar[str] = UTC
    """The default of the option `timezone`."""

    hadoop: ClassVar[HadoopSettings] = {}
    """The session's settings of Hadoop's file systems."""

    default_fs: ClassVar[str] = LOCAL_FS
    """The file system of paths without a scheme."""

    @classmethod
    def name(cls) -> str:
        return "delta_variant"

    def schema(self) -> StructType:
        return file_reader(self._parse_options({**READ, **STREAM_READ})).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._parse_options(READ)
        check_batch_options(options)
        reader = file_reader(options, schema)
        if options.get("read_change_feed"):
            return ChangeSource(reader, first_version(options))
        return BatchSource(reader)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .sinks import BatchSink

        return BatchSink(schema, self._parse_options(WRITE), overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        check_version((4, 2), "stream from a table", "read it as a batch")
        from .stream_sources import StreamSource

        options = self._parse_options(STREAM_READ)
        return StreamSource(file_reader(options, schema), options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        check_version((4, 1), "stream into the format", "write with delta_variant.spark.batch_writer")
        from .stream_sinks import StreamSink

        if overwrite:
            raise UnsupportedFeatureError(
                "a stream into the format delta_variant can only append: for outputMode('complete') write "
                "with foreachBatch(delta_variant.spark.batch_writer(table, mode='overwrite'))"
            )
        options = self._parse_options(STREAM_WRITE)
        return StreamSink(schema, options, self.options.get("checkpointlocation"), self.default_fs)

    def _parse_options(self, known: Mapping[str, Parse]) -> dict[str, Any]:
        options = {"timezone": self.timezone, **parse_options(self.options, known)}
        if not is_location(path := options["path"]):
            raise TableNotFoundError(
                f"cannot open {path!r} because a Python data source does not see the session's catalog: pass "
                "the name to read_table or sql of delta_variant.spark, or to a Table with a SparkEngine, or "
                f"write {f'./{path}'!r} for a path",
                table=path,
            )
        located = {name: locate(options[name], self.default_fs) for name in LOCATIONS if name in options}
        options |= located
        storage_options = add_options(options["path"], options["storage_options"], self.hadoop)
        times = {
            name: to_instant(options[name], options["timezone"]) for name in TIMESTAMPS if name in options
        }
        return {**options, **times, "storage_options": storage_options}
