"""Tasks of Spark and their messages: values that are pickled and sent to the executors."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, TypeAlias

import msgspec
import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from .._version import package_version
from ..errors import UnsupportedFeatureError
from ..execution import NameFile
from ..input.invalid_json import Batches, InvalidValueHandler
from ..log.snapshot import TableVersion
from ..operations.write import WriteTask, WrittenRows
from ..protocol.identity_columns import assigned_identities
from ..protocol.table_configuration import TableConfiguration
from ..storage import store as storage
from ..storage.store import Store, open_store
from .attempts import Attempt, Job
from .task_errors import DriverPackage, explain_missing_package, other_package, report_errors

__all__ = [
    "MAX_OPEN_PARTITIONS",
    "MESSAGE",
    "FileTask",
    "NamedColumns",
    "ReportingTask",
    "Task",
    "TaskTable",
    "attempt_of",
    "check_no_identities",
    "freeze_modules",
    "message",
    "messages",
    "pack",
    "to_executors",
    "unpack",
    "unpack_batches",
]

MESSAGE = "message binary"
"""The schema of rows that driver and tasks exchange, each with a pickled value."""

MAX_OPEN_PARTITIONS = 16
"""Partitions of the table that a task keeps open if its rows are not sorted by partition."""

REJECTS_BYTES = 8 << 20


Task: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class NamedColumns:
    """Runs a task on batches after it has renamed their columns."""

    task: Task
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the task yields for the renamed batches."""
        return self.task(batch.rename_columns(list(self.names)) for batch in batches)


@dataclass(frozen=True)
class ReportingTask:
    """Runs a task and reports its errors to the driver."""

    task: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the task yields; raises TaskError for its errors."""
        freeze_modules()
        with report_errors():
            yield from self.task(batches)


def to_executors(task: Task) -> Task:
    """Return a task as a function for `mapInArrow`, which explains a missing or another package.

    The function has the name of the task, if it has one.
    """
    # As Spark pickles functions: a task may have values of classes that an executor cannot import.
    content = cloudpickle.dumps(ReportingTask(task))  # type: ignore[no-untyped-call]
    explanation, expected = explain_missing_package(), package_version()
    other = other_package(expected, "{}")

    # Spark sends a function within a function by value, which an executor can run without this package.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle
        from importlib import import_module

        try:
            found = import_module("delta_variant._version").package_version()
            reporting = pickle.loads(content) if found == expected else None
        except ImportError as error:
            raise ImportError(f"{error}; {explanation}") from None
        if reporting is None:
            raise ImportError(other.format(found))
        yield from reporting(batches)

    # Spark's plans show the name of the function.
    run.__name__ = getattr(task, "name", run.__name__)
    return run


@cache
def freeze_modules() -> None:
    """Keep what a worker has imported out of garbage collections: Spark runs one after each task."""
    gc.freeze()


@dataclass(frozen=True)
class TaskTable:
    """A version of a table as it is sent to tasks, which open its store."""

    configuration: TableConfiguration
    version: int
    storage_options: Mapping[str, str] | None = field(repr=False)
    package: DriverPackage = field(default_factory=DriverPackage, repr=False)

    @classmethod
    def of(cls, table: TableVersion, storage_options: Mapping[str, str] | None) -> TaskTable:
        return cls(table.configuration, table.version, storage_options)

    def open(self) -> TableVersion:
        """Return the version with its store."""
        store = open_store(self.configuration.uri, self.storage_options)
        return TableVersion(store, self.version, self.configuration)


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
        context = TaskContext.get()
        with _Rejects(folder, name) as rejects:
            on_invalid, partition = self.task.options.json.on_invalid, context.partitionId() if context else 0
            invalid_values = InvalidValueHandler(on_invalid, rejects.keep, partition, self.write)
            files = self.task.write(store, name, groups, invalid_values)
        return WrittenRows(files, invalid_values.count, rejects.name).compress()


def pack(value: object) -> bytes:
    """Return a value as the content of a message."""
    return pickle.dumps(value)


def unpack(content: bytes) -> Any:
    """Return the value of a message's content."""
    return pickle.loads(content)


def message(value: object) -> pa.RecordBatch:
    """Return a message to the driver: a batch of one row."""
    return pa.record_batch([pa.array([pack(value)], pa.binary())], names=["message"])


def messages(rows: Sequence[Any]) -> list[Any]:
    """Return the values of messages."""
    return [unpack(row["message"]) for row in rows]


def unpack_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the values of the messages to a task."""
    for batch in batches:
        yield from messages(batch.to_pylist())


def attempt_of(table: Store, job: Job) -> Attempt:
    """Return a new attempt for the task that runs in this process."""
    context = TaskContext.get()
    return Attempt(table, job, 0 if context is None else context.partitionId())


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
            f"cannot add rows of a DataFrame to {table.uri} because tasks do not assign its identity column "
            f"{identity.name!r}: write rows in memory, such as df.toArrow()",
            table=table.uri,
            column=identity.name,
        )
