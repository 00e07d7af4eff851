"""The batch reader of the data source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType as SparkStruct

from ..errors import SchemaError
from ..operations.read.query import Query
from ..operations.read.rows import load_readable
from ..scan.plan import plan_files
from ..scan.reader import FileEntry
from .columns import quote
from .reading import FileReader, file_groups, sized_files
from .task_errors import report_errors
from .tasks import strip_files

__all__ = ["TASKS", "BatchSource", "FileGroup", "file_reader", "read_group"]

TASKS = 8
"""The minimum number of tasks of a read, because a reader does not know the number of cores."""


def file_reader(options: Mapping[str, Any], spark_schema: SparkStruct | None = None) -> FileReader:
    """Return the reader that options specify, for the columns of a schema if the user passed one to Spark.

    Raises SchemaError for a schema with columns that the table does not have.
    """
    snapshot = load_readable(options["path"], options.get("version"), options["storage_options"])
    snapshot = snapshot.in_timezone(options["timezone"])
    reader = FileReader(
        strip_files(snapshot),
        options.get("columns"),
        options.get("where"),
        options.get("on_conflict", "error"),
        options["storage_options"],
    )
    if spark_schema is None or spark_schema.names == reader.schema.names:
        return reader
    if unknown := [name for name in spark_schema.names if name not in reader.schema.names]:
        raise SchemaError(
            f"{snapshot.uri} has no column {unknown[0]!r}, which the schema of the read names",
            table=snapshot.uri,
            column=unknown[0],
        )
    if reader.columns is not None:
        raise SchemaError("the option columns and a schema exclude each other: set one", table=snapshot.uri)
    return replace(reader, columns={name: quote(name) for name in spark_schema.names})


@dataclass
class FileGroup(InputPartition):
    """The files of one task."""

    files: tuple[FileEntry, ...]


class BatchSource(DataSourceReader):
    """Plans and reads the files of a table."""

    def __init__(self, reader: FileReader) -> None:
        self._reader = reader

    def partitions(self) -> Sequence[InputPartition]:
        """Return the files that may contain a matching row, in groups."""
        reader = self._reader
        snapshot = load_readable(reader.snapshot.uri, reader.snapshot.version, reader.storage_options)
        snapshot = snapshot.in_timezone(reader.snapshot.timezone)
        query = Query.of(snapshot, reader.columns, reader.where)
        files = plan_files(snapshot, query.predicate).files
        return [FileGroup(group) for group in file_groups(sized_files(files), TASKS)] or [FileGroup(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a group of files."""
        return read_group(self._reader, partition)


def read_group(reader: FileReader, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of a group of files."""
    assert isinstance(partition, FileGroup)
    with report_errors():
        yield from reader.read(partition.files)
