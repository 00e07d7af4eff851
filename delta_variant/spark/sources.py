"""The batch reader of the data source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType as SparkStruct

from .._arrow import total
from .._text import quote
from ..errors import SchemaError
from ..log.snapshot import Snapshot
from ..operations.changes import ChangedFile, load_end, plan_changes
from ..read.file_reader import FileEntry
from ..read.plan import plan_files
from ..read.rows import load_readable
from ..storage.store import open_store
from .options import RANGE
from .readers import ChangeReader, FileReader, file_groups, groups_of_table, size_of
from .task_errors import report_errors
from .tasks import TaskTable, freeze_modules

TASKS = 8
"""The number of tasks of a read that is worth them: a reader does not know the number of cores."""

TASK_BYTES = 2 << 20
TASK_FILES = 100
"""The bytes, and the files, that are read in about the time that a task takes to start."""


def file_reader(options: Mapping[str, Any], spark_schema: SparkStruct | None = None) -> FileReader:
    """Return the reader that options specify, for the columns of a schema if the user passed one to Spark.

    Raises SchemaError for a schema with columns that the table does not have.
    """
    is_feed = options.get("read_change_feed", False)
    snapshot = _load(options).in_timezone(options["timezone"])
    reader = (ChangeReader if is_feed else FileReader)(
        TaskTable.of(snapshot, options["storage_options"]),
        options.get("columns"),
        options.get("where"),
        options.get("on_conflict", "error"),
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


def first_version(options: Mapping[str, Any]) -> Any:
    """Return the version, `latest` or the time at which a stream or the changes start, None without one."""
    return _either(options, "starting_version", "starting_timestamp")


def check_batch_options(options: Mapping[str, Any]) -> None:
    """Raise ValueError for options of a batch that exclude each other."""
    if options.get("read_change_feed"):
        if others := {"version", "timestamp"} & options.keys():
            raise ValueError(f"the options read_change_feed and {min(others)} exclude each other: set one")
    elif ranges := set(RANGE) & options.keys():
        raise ValueError(f"the option {min(ranges)} needs read_change_feed: set it to true")


def _load(options: Mapping[str, Any]) -> Snapshot:
    end = _either(options, "ending_version", "ending_timestamp")
    if end is None:
        at = _either(options, "version", "timestamp")
        version, timestamp = (None, at) if isinstance(at, datetime) else (at, None)
        return load_readable(open_store(options["path"], options["storage_options"]), version, timestamp)
    return load_end(open_store(options["path"], options["storage_options"]), end)


def _either(options: Mapping[str, Any], *names: str) -> Any:
    found = [options[name] for name in names if name in options]
    if len(found) > 1:
        raise ValueError(f"the options {' and '.join(names)} exclude each other: set one")
    return found[0] if found else None


@dataclass
class FileGroup(InputPartition):
    """The files of one task."""

    files: tuple[FileEntry | ChangedFile, ...]


class BatchSource(DataSourceReader):
    """Plans and reads the files of a table."""

    def __init__(self, reader: FileReader) -> None:
        self._reader = reader

    def partitions(self) -> Sequence[InputPartition]:
        """Return the files that may contain a matching row, in groups."""
        table = self._reader.table
        snapshot = load_readable(open_store(table.configuration.uri, table.storage_options), table.version)
        snapshot = snapshot.in_timezone(table.configuration.timezone)
        files = plan_files(snapshot, self._reader.query.predicate).files
        tasks = _tasks(files.num_rows, total(files["size"]))
        return [FileGroup(group) for group in groups_of_table(files, tasks)] or [FileGroup(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a group of files."""
        return read_group(self._reader, partition)


class ChangeSource(BatchSource):
    """Plans and reads the files with the changes of a range of versions."""

    def __init__(self, reader: FileReader, start: int | datetime | None) -> None:
        super().__init__(reader)
        self._start = start

    def partitions(self) -> Sequence[InputPartition]:
        """Return the files that may contain a matching change, in groups."""
        reader, table = self._reader, self._reader.table
        changes = plan_changes(
            open_store(table.configuration.uri, table.storage_options),
            start=self._start,
            end=table.version,
            columns=reader.columns,
            where=reader.where,
            timezone=table.configuration.timezone,
            on_conflict=reader.on_conflict,
        )
        return group_files(list(changes.files())) or [FileGroup(())]


def group_files(files: Sequence[FileEntry | ChangedFile]) -> list[FileGroup]:
    """Return files in groups for tasks."""
    tasks = _tasks(len(files), sum(map(size_of, files)))
    return [FileGroup(group) for group in file_groups(files, tasks)]


def _tasks(files: int, size: int) -> int:
    return min(TASKS, 1 + files // TASK_FILES + size // TASK_BYTES)


def read_group(reader: FileReader, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, FileGroup)
    freeze_modules()
    with report_errors():
        yield from reader.read(partition.files)
