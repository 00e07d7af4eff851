"""Tasks of Spark and their messages: values that are pickled and sent to the executors."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark import cloudpickle

from .._version import package_version
from ..log.snapshot import TableVersion
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import open_store
from .task_errors import DriverPackage, explain_missing_package, other_package, report_errors

MESSAGE = "message binary"
"""The schema of rows that driver and tasks exchange, each with a pickled value."""

SHARED_BYTES = 64 << 10
"""From which size on tasks have batches and arrays in common: Spark sends a function to an executor once."""

Shared: TypeAlias = "pa.RecordBatch | pa.Array[Any]"

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
        store = open_store(self.configuration.uri, self.storage_options)
        return TableVersion(store, self.version, self.configuration)


def pack(value: object) -> bytes:
    return pickle.dumps(value)


def unpack(content: bytes) -> Any:
    """Return the value of a message's content."""
    return pickle.loads(content)


class _Sharing(pickle.Pickler):
    """Pickles a value without its large batches and arrays, which it adds to `shared`, each once."""

    def __init__(self, sink: BytesIO, shared: list[Shared]) -> None:
        super().__init__(sink)
        self._shared = shared

    def persistent_id(self, value: object) -> int | None:
        if not isinstance(value, pa.RecordBatch | pa.Array) or value.nbytes < SHARED_BYTES:
            return None
        known = (number for number, each in enumerate(self._shared) if each is value)
        if (number := next(known, None)) is None:
            self._shared.append(value)
            return len(self._shared) - 1
        return number


class _Shared(pickle.Unpickler):
    """Returns values with the batches and arrays that they share."""

    def __init__(self, source: BytesIO, shared: Sequence[Shared]) -> None:
        super().__init__(source)
        self._shared = shared

    def persistent_load(self, number: int) -> Shared:
        return self._shared[number]


def pack_sharing(value: object, shared: list[Shared]) -> bytes:
    """Return a value as the content of a message; its large batches and arrays are in `shared`, each once."""
    sink = BytesIO()
    _Sharing(sink, shared).dump(value)
    return sink.getvalue()


def unpack_sharing(content: bytes, shared: Sequence[Shared]) -> Any:
    """Return a value that `pack_sharing` packed."""
    return _Shared(BytesIO(content), shared).load()


def to_ipc(rows: pa.Table | pa.RecordBatch, compression: Literal["zstd"] | None = None) -> bytes:
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write(rows)
    return sink.getvalue().to_pybytes()


def from_ipc(stream: bytes) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()


def message(value: object) -> pa.RecordBatch:
    """Return a message to the driver: a batch of one row."""
    return pa.record_batch([pa.array([pack(value)], pa.binary())], names=["message"])


def messages(rows: Sequence[Any]) -> list[Any]:
    return [unpack(row["message"]) for row in rows]


def unpack_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the values of the messages to a task."""
    for batch in batches:
        yield from messages(batch.to_pylist())
