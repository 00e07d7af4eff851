"""Tasks of Spark and their messages: values that are pickled and sent to the executors."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark import cloudpickle

from .._version import package_version
from ..log.snapshot import TableVersion
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import open_store
from .task_errors import DriverPackage, explain_missing_package, other_package, report_errors

__all__ = [
    "MESSAGE",
    "NamedColumns",
    "ReportingTask",
    "Task",
    "TaskTable",
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
