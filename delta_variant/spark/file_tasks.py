"""The tasks that write rows of a DataFrame to files: at once, or in an optimized write by chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from .._arrow import row_numbers
from .._packing import pack_until
from ..errors import UnsupportedFeatureError
from ..execution import NameFile
from ..input.invalid_json import Batches, InvalidValueHandler, PartRows
from ..operations.write import WriteTask, WrittenRows
from ..protocol.identity_columns import assigned_identities
from ..protocol.schema.conforming import conform
from ..protocol.table_configuration import TableConfiguration
from ..storage import store as storage
from ..storage.store import Store, open_store
from ..write.partitions import split_by_partition
from .attempts import Attempt, Job
from .tasks import from_ipc, message, to_ipc

MAX_OPEN_PARTITIONS = 16
"""Partitions of the table that a task keeps open if its rows are not sorted by partition."""

REJECTS_BYTES = 8 << 20


@dataclass(frozen=True)
class FileTask:
    """Writes the rows of a partition of a DataFrame.

    `rejects` is the folder for rows with invalid JSON, and `write` has the fields by which rejects name the
    write, such as a micro-batch.
    """

    step: ClassVar[str] = "write files"
    task: WriteTask
    rejects: str | None
    storage_options: Mapping[str, str] | None = field(repr=False)
    write: Mapping[str, Any]

    def run(self, store: Store, name: NameFile, batches: Iterator[pa.RecordBatch]) -> Iterator[WrittenRows]:
        """Yield the new files, nothing without rows."""
        written = self.write_groups(store, name, [self.task.apply_rules((batch, None) for batch in batches)])
        if written.files or written.invalid:
            yield written

    def write_groups(self, store: Store, name: NameFile, groups: Iterable[Batches]) -> WrittenRows:
        """Write groups of rows that the rules have passed, each to files of its own."""
        folder = None if self.rejects is None else open_store(self.rejects, self.storage_options)
        on_invalid = self.task.options.json.on_invalid
        with _Rejects(folder, name) as rejects:
            invalid_values = InvalidValueHandler(on_invalid, rejects.keep, _partition(), self.write)
            files = self.task.write(store, name, groups, invalid_values)
        return WrittenRows(files, invalid_values.count, rejects.name).compress()


def attempt_of(table: Store, job: Job) -> Attempt:
    """Return a new attempt for the task that runs in this process."""
    return Attempt(table, job, _partition())


def _partition() -> int:
    """Return the number of the partition whose task runs in this process, 0 outside of tasks."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


class _Rejects:
    """Files of rejected values as JSON lines, each of about REJECTS_BYTES."""

    def __init__(self, folder: Store | None, name: NameFile) -> None:
        self._folder = folder
        self._name = name
        self._lines: list[bytes] = []
        self._bytes = 0
        self._files = 0
        self.name: str | None = None

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._flush()

    def keep(self, reject: dict[str, object]) -> None:
        line = msgspec.json.encode(reject) + b"\n"
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes >= REJECTS_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._lines and self._folder is not None:
            self.name = f"{self._name(self._files)}.ndjson"
            storage.put(self._folder, self.name, b"".join(self._lines))
            self._files += 1
        self._lines, self._bytes = [], 0


def check_no_identities(table: TableConfiguration, given: Collection[str]) -> None:
    """Raise UnsupportedFeatureError for an identity column that is not in `given`."""
    for identity in assigned_identities(table.schema, given):
        raise UnsupportedFeatureError(
            f"cannot add rows to {table.uri} because merges of large sources and the format delta_variant do "
            f"not assign its identity column {identity.name!r}: add the rows with append or INSERT INTO",
            table=table.uri,
            column=identity.name,
        )


CHUNK = "task int, number int, partition string, rows long, bytes long, message binary"
"""The schema of chunks: the columns are those of Chunk, and the rows as a stream of Arrow IPC."""
_CHUNK_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("task", "number"), pa.int32()),
    "partition": pa.string(),
    **dict.fromkeys(("rows", "bytes"), pa.int64()),
    "message": pa.binary(),
}
CHUNK_SCHEMA = pa.schema(_CHUNK_FIELDS)

BUFFER_BYTES = 32 << 20
"""The bytes of rows that a task collects before it splits them by partition."""

ROW_NUMBER = "\0row"
"""A column with the number of a row in its partition of the DataFrame; no column of a table has the name."""


@dataclass(frozen=True)
class Chunk:
    """Some rows of a partition of the table: `number` counts the chunks of the task that read them."""

    task: int
    number: int
    partition: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class ChunkTask:
    """Completes and checks rows, and splits them by the table's partitions into chunks."""

    task: WriteTask
    chunk_bytes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, number = _partition(), 0
        for rows in self._collect(batches):
            for values, positions in split_by_partition(rows, self.task.table):
                part = rows if positions is None else rows.take(positions)
                for chunk in _slices(part, self.chunk_bytes):
                    size = chunk.nbytes - chunk.column(ROW_NUMBER).nbytes
                    partition = msgspec.json.encode(values).decode()
                    row = Chunk(task, number, partition, chunk.num_rows, size)
                    columns = {**vars(row), "message": to_ipc(chunk, "zstd")}
                    yield pa.RecordBatch.from_pylist([columns], CHUNK_SCHEMA)
                    number += 1

    def _collect(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield larger batches with the columns of the table and the numbers of the rows."""
        for kept in pack_until(self._numbered(batches), lambda rows: rows.nbytes, BUFFER_BYTES):
            yield from pa.Table.from_batches(kept).combine_chunks().to_batches()

    def _numbered(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch, _ in self.task.apply_rules((batch, None) for batch in batches):
            rows = conform(batch, self.task.table.row_columns)
            yield rows.append_column(ROW_NUMBER, row_numbers(rows.num_rows, first))
            first += rows.num_rows


def _slices(rows: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Yield rows in parts of a number of bytes, or less."""
    step = max(1, -(-rows.num_rows * size // max(rows.nbytes, size)))
    for first in range(0, rows.num_rows, step):
        yield rows.slice(first, step)


@dataclass(frozen=True)
class FirstRowsTask:
    """Returns the first rows of each chunk, up to about `max_bytes`."""

    max_bytes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a message for each chunk, with a table."""
        for batch in batches:
            for stream in batch.column("message"):
                rows = from_ipc(stream.as_py())
                count = max(1, self.max_bytes * rows.num_rows // max(rows.nbytes, 1))
                yield message(rows.slice(0, count).drop_columns([ROW_NUMBER]).combine_chunks())


@dataclass(frozen=True)
class ChunkFilesTask:
    """Writes each run of chunks with one file number to files of its own."""

    step: ClassVar[str] = "write files"
    file_task: FileTask

    def run(self, store: Store, name: NameFile, batches: Iterator[pa.RecordBatch]) -> Iterator[WrittenRows]:
        """Yield the new files, nothing without rows."""
        rows = (row for batch in batches for row in _rows(batch))
        groups = (_batches(group) for _, group in groupby(rows, key=attrgetter("file")))
        written = self.file_task.write_groups(store, name, groups)
        if written.files or written.invalid:
            yield written


@dataclass(frozen=True)
class _ChunkRow:
    file: int
    task: int
    stream: bytes


def _rows(batch: pa.RecordBatch) -> Iterator[_ChunkRow]:
    files, tasks, streams = (batch.column(name) for name in ("file", "task", "message"))
    for index in range(batch.num_rows):
        yield _ChunkRow(files[index].as_py(), tasks[index].as_py(), streams[index].as_py())


def _batches(chunks: Iterable[_ChunkRow]) -> Batches:
    for chunk in chunks:
        rows = from_ipc(chunk.stream)
        for batch in rows.to_batches():
            numbers: Any = batch.column(ROW_NUMBER)
            yield batch.drop_columns([ROW_NUMBER]), PartRows(chunk.task, numbers)
