"""What the tasks of Spark do: values that are sent to the executors, and know nothing of the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from ..data_file.options import WriteOptions
from ..expressions.tree import Expression
from ..log.snapshot import FILES_SCHEMA, Snapshot
from ..operations.write.overwriting import check_overwrite_predicate
from ..storage import store
from ..storage.store import Store, open_store
from ..writer.invalid_json import InvalidValueHandler
from ..writer.partitioned import PartitionFile, apply_row_rules, write_files
from ..writer.table_state import TableState
from .attempts import Attempt, Job

__all__ = [
    "MAX_OPEN_PARTITIONS",
    "MESSAGE",
    "FileTask",
    "NamedColumns",
    "Task",
    "TaskTable",
    "Written",
    "attempt_of",
    "message",
    "messages",
    "pack",
    "strip_files",
    "unpack_batches",
]

MESSAGE = "message binary"
"""The rows by which driver and tasks tell each other something, as Spark's schema."""

MAX_OPEN_PARTITIONS = 16
"""How many partitions of a table a task writes side by side where its rows are not sorted by them."""

REJECTS_BYTES = 8 << 20


Task: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class NamedColumns:
    """Runs a task on batches whose columns get the names that the task knows."""

    task: Task
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the task yields."""
        return self.task(batch.rename_columns(list(self.names)) for batch in batches)


@dataclass(frozen=True)
class Written:
    """What an attempt of a task wrote; `invalid` counts the values that are not JSON."""

    attempt: str
    files: tuple[PartitionFile, ...]
    invalid: int


@dataclass(frozen=True)
class TaskTable:
    """A version of a table as tasks know it: its snapshot has no list of files, and no store."""

    snapshot: Snapshot
    storage_options: Mapping[str, str] | None

    @classmethod
    def of(cls, snapshot: Snapshot, storage_options: Mapping[str, str] | None) -> TaskTable:
        return cls(strip_files(snapshot), storage_options)

    def open(self) -> Snapshot:
        """Return the snapshot with its store."""
        return replace(self.snapshot, store=open_store(self.snapshot.uri, self.storage_options))


def strip_files(snapshot: Snapshot) -> Snapshot:
    """Return what a task can be sent of a snapshot."""
    nowhere: Any = None
    return replace(snapshot, store=nowhere, files=FILES_SCHEMA.empty_table())


@dataclass(frozen=True)
class FileTask:
    """Writes the rows of a partition of a DataFrame to data files of a table.

    `rejects` is the folder of values that are no JSON. `predicate` has to be true of all rows. One open
    partition of the table is enough where the rows of each follow one another.
    """

    uri: str
    storage_options: Mapping[str, str] | None
    state: TableState
    options: WriteOptions
    job: Job
    rejects: str | None = None
    predicate: Expression | None = None
    max_open_partitions: int = 1

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one message, or none for no rows."""
        written = self.write(batches)
        if written.files or written.invalid:
            yield message(written)

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Return what was written."""
        place, *others = self.folders()
        attempt = attempt_of(place, self.job)
        with _Rejects(others[0] if others else None, attempt) as rejects:
            invalid_values = InvalidValueHandler(self.options.on_invalid, rejects.keep, attempt.partition)
            rows = apply_row_rules(((batch, None) for batch in batches), self.state, self.options)
            files = write_files(
                place,
                check_overwrite_predicate(rows, self.state.columns, self.predicate, self.options),
                self.state,
                self.options,
                invalid_values,
                name=attempt.file_name,
                max_open_partitions=self.max_open_partitions,
            )
        return Written(attempt.identity, tuple(files), invalid_values.count)

    def folders(self) -> list[Store]:
        """Return the places that are written to: the table, and the folder of rejects where there is one."""
        locations = [self.uri, *([] if self.rejects is None else [self.rejects])]
        return [open_store(location, self.storage_options) for location in locations]


def pack(value: object) -> bytes:
    """Return a value as the content of a message."""
    return pickle.dumps(value)


def message(value: object) -> pa.RecordBatch:
    """Return a value as a row for the driver."""
    return pa.record_batch([pa.array([pack(value)], pa.binary())], names=["message"])


def messages(rows: Sequence[Any]) -> list[Any]:
    """Return the values in rows of messages."""
    return [pickle.loads(row["message"]) for row in rows]


def unpack_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the values that came to a task."""
    for batch in batches:
        yield from messages(batch.to_pylist())


def attempt_of(place: Store, job: Job) -> Attempt:
    """Return the attempt that the task which runs here is."""
    context = TaskContext.get()
    return Attempt(place, job, 0 if context is None else context.partitionId())


class _Rejects:
    """Files of rejected values as JSON lines, a new one whenever enough has come together."""

    def __init__(self, place: Store | None, attempt: Attempt) -> None:
        self._place = place
        self._attempt = attempt
        self._lines: list[bytes] = []
        self._bytes = 0
        self._files = 0

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
        if self._lines and self._place is not None:
            name = f"{self._attempt.file_name(self._files)}.ndjson"
            store.put(self._place, name, b"".join(self._lines))
            self._files += 1
        self._lines, self._bytes = [], 0
