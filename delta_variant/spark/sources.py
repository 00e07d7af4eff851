"""Readers of the data source: tables in batch, and appends to them as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType as SparkStruct

from ..errors import SchemaError
from ..operations.read.query import Query
from ..operations.read.rows import load_readable
from ..scan.plan import plan_files
from ..scan.reader import FileEntry
from ..storage.store import open_store
from .columns import quote
from .following import Follower, Position
from .predicates import filters_to_sql
from .reading import FileReader, file_groups, sized_files
from .task_errors import report_errors
from .tasks import strip_files

__all__ = ["BatchSource", "FilteringBatchSource", "StreamSource", "file_reader"]

TASKS = 8
"""The minimum number of tasks of a read, because a reader does not know the number of cores."""

MAX_FILES_PER_TRIGGER = 1000


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
        return _read(self._reader, partition)


class FilteringBatchSource(BatchSource):
    """A BatchSource that accepts pushed filters; needs `spark.sql.python.filterPushdown.enabled`."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Skip files by the filters, and return them all, so that Spark evaluates them again."""
        self._reader = replace(self._reader, where=filters_to_sql(filters, self._reader.where))
        return filters


class StreamSource(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a version of a table, and then the rows that are appended to it."""

    def __init__(self, reader: FileReader, options: Mapping[str, Any]) -> None:
        self._reader = reader
        self._follower = Follower(open_store(reader.snapshot.uri, reader.storage_options), reader.snapshot)
        self._start = options.get("starting_version")
        self._limit = _limit(options.get("max_files_per_trigger"), options.get("max_bytes_per_trigger"))
        self._last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset at which a new query starts."""
        if self._start == "latest":
            return Position(self._follower.latest() + 1).offset
        if self._start is not None:
            return Position(self._start).offset
        return Position(self._reader.snapshot.version, is_initial=True).offset

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a micro-batch."""
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Stop the query at the latest version at the time of this call."""
        self._last = self._follower.latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset at which the next micro-batch ends; it has at least one file."""
        end, files, size = Position.of(start), 0, 0
        for step in self._follower.steps(end, self._last):
            if step.file is not None:
                files, size = files + 1, size + step.size
                if _exceeds(limit, files, size):
                    break
            end = step.after
        return end.offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the files between two positions, in groups."""
        files: list[tuple[FileEntry, int]] = []
        first, last = Position.of(start), Position.of(end)
        if first != last:
            for step in self._follower.steps(first):
                if step.file is not None:
                    files.append((step.file, step.size))
                if step.after == last:
                    break
        return [FileGroup(group) for group in file_groups(files, TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a group of files."""
        return _read(self._reader, partition)


def _read(reader: FileReader, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, FileGroup)
    with report_errors():
        yield from reader.read(partition.files)


def _limit(files: int | None, size: int | None) -> ReadLimit:
    if files is not None and size is not None:
        raise ValueError("max_files_per_trigger and max_bytes_per_trigger exclude each other: set one")
    return ReadMaxFiles(files or MAX_FILES_PER_TRIGGER) if size is None else ReadMaxBytes(size)


def _exceeds(limit: ReadLimit, files: int, size: int) -> bool:
    if isinstance(limit, ReadMaxFiles):
        return files > limit.max_files
    if isinstance(limit, ReadMaxBytes):
        return files > 1 and size > limit.max_bytes
    assert isinstance(limit, ReadAllAvailable)
    return False
