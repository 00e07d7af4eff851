"""Run the tasks of an operation: in this process, or in others that an engine has.

An operation decides on the driver, which is the process that calls it, and returns a plan. Its tasks do the
work, and may run anywhere. The driver commits their results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import uuid4

from .errors import StoreError
from .protocol.actions import Txn
from .storage.store import Store, TableLocation, merged_storage_options

__all__ = [
    "Description",
    "Engine",
    "Executor",
    "LocalExecutor",
    "NameFile",
    "Plan",
    "Task",
    "executor_of",
    "new_name",
]

T = TypeVar("T")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

NameFile: TypeAlias = Callable[[int], str]
"""Returns the name of the file of a write with a number, without folder and suffix."""


def new_name(number: int) -> str:
    """Return a unique name for the file of a write with the given number."""
    return f"part-{number:05}-{uuid4()}-c000"


@dataclass(frozen=True)
class Description:
    """What a plan will do: sentences for a person, facts for a program, and the files that it deletes."""

    sentences: tuple[str, ...]
    facts: Mapping[str, Any]
    files: tuple[str, ...] = ()


class Plan(Protocol):
    """What an operation decided. It is frozen, and has all that the tasks and the commit need."""

    def describe(self) -> Description:
        """Return what the operation will do, as a dry run reports and a person confirms."""


class Task(Protocol[Result_co]):
    """A share of the work of an operation. It can be pickled, and so can its result."""

    def run(self, store: Store, name: NameFile) -> Result_co:
        """Do the work on the files in the store of the table; `name` names new files."""


class Executor(ABC):
    """Runs the tasks of one operation on one table.

    Attributes:
        store: The store of the table, as the driver opened it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @abstractmethod
    def split(
        self, items: Iterable[T], size_of: Callable[[T], int], total: int, limit: int, rounds: int = 1
    ) -> Iterator[Iterable[T]]:
        """Yield the items of each task, whose sizes add up to at most `limit`, and those of all to `total`.

        `rounds` is the number of tasks for each one that can run at once, because tasks take different times.
        """

    @abstractmethod
    def run(self, tasks: Iterable[Task[Result]]) -> Iterator[Result]:
        """Run tasks and yield their results in order; raises the errors of the tasks."""

    def find_kept(self, paths: Sequence[str]) -> Mapping[str, StoreError]:
        """Return the files that tasks deleted, and that the driver still finds."""
        return {}


class LocalExecutor(Executor):
    """Runs tasks in this process. Each operation is one task, which uses threads."""

    def split(
        self, items: Iterable[T], size_of: Callable[[T], int], total: int, limit: int, rounds: int = 1
    ) -> Iterator[Iterable[T]]:
        yield items

    def run(self, tasks: Iterable[Task[Result]]) -> Iterator[Result]:
        return (task.run(self.store, new_name) for task in tasks)


class Engine(ABC):
    """Processes that run the tasks of operations on a `Table`, such as `delta_variant.spark.SparkEngine`."""

    @abstractmethod
    def locate(self, table: TableLocation) -> TableLocation:
        """Return the location of a table as the engine means it."""

    @abstractmethod
    def storage_options(
        self, table: TableLocation, storage_options: Mapping[str, str] | None
    ) -> Mapping[str, str] | None:
        """Return the options of the store of a table, where a caller passes some or none."""

    @abstractmethod
    def executor(self, store: Store, storage_options: Mapping[str, str] | None, txn: Txn | None) -> Executor:
        """Return an executor for one operation on a table, which runs with the same `txn` repeat."""


def executor_of(
    table: TableLocation,
    store: Store,
    storage_options: Mapping[str, str] | None = None,
    txn: Txn | None = None,
) -> Executor:
    """Return an executor for one operation on a table: that of the engine of a handle, or a local one."""
    engine: Engine | None = getattr(table, "engine", None)
    if engine is None:
        return LocalExecutor(store)
    return engine.executor(store, merged_storage_options(table, storage_options), txn)
