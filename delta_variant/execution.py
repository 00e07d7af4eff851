"""Run the tasks of an operation: in this process, or in others that an engine has.

An operation decides on the driver, which is the process that calls it, and returns a plan. Its tasks do the
work, and may run anywhere. The driver commits their results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable
from uuid import uuid4

from .errors import StoreError
from .protocol.actions import Txn
from .storage.store import Store, TableLocation, discard, storage_options_of
from .variant.moments import UTC

T = TypeVar("T")
Result = TypeVar("Result")

GROUP_BYTES = 64 << 20
"""The greatest size of the files of a task that reads them."""

ROUNDS = 4
"""Groups of files for each task that can run at once, because groups take different times."""

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


Task: TypeAlias = Callable[[Store, NameFile], Result]
"""A share of the work of an operation on files in the store of a table; the second argument names new files.

It can be pickled, and so can its result: a function of a module in a `partial` with its other arguments.
"""


@runtime_checkable
class NewFiles(Protocol):
    """A result with new files of the table."""

    def paths(self) -> Iterator[str]:
        """Yield the paths of the files."""


class Executor(ABC):
    """Runs the tasks of one operation on one table.

    Attributes:
        store: The store of the table, as the driver opened it.
        auto_compact: Whether small files are compacted after a commit, None as the table's properties say.
    """

    auto_compact: bool | None = None

    def __init__(self, store: Store) -> None:
        self.store = store

    def split(
        self,
        items: Iterable[T],
        size_of: Callable[[T], int],
        *,
        limit: int = GROUP_BYTES,
        total: int | None = None,
        rounds: int = 1,
    ) -> Iterator[Iterable[T]]:
        """Yield the items of each task: all of them, or in several processes at most the size `limit`.

        `total` is the size of all items, None to add their sizes up, for which they must be a sequence.
        `rounds` is the number of tasks for each one that can run at once, because tasks take different times.
        """
        yield items

    def prefers_driver(self, files: int, size: int) -> bool:
        """Return whether this process merges its rows into files, `size` bytes in all, sooner than tasks."""
        return False

    @abstractmethod
    def run(self, step: str, tasks: Iterable[Task[Result]]) -> Iterator[Result]:
        """Run tasks and yield their results in order; `step` says what they do, for a person who watches.

        Raises the errors of the tasks. After an error, all new files of the operation are removed.
        """

    def run_whole(self, step: str, task: Task[Result]) -> list[Result]:
        """Run a task that needs all rows of the operation at once, to sort or join them.

        Processes that do not have all rows exchange them, and return a result for each part.
        """
        return list(self.run(step, [task]))

    def run_on_driver(self, step: str, task: Task[Result]) -> Result:
        """Run a task in this process, which has its rows already, and return its result, like `run`."""
        [result] = self.run(step, [task])
        return result

    def report(self, counts: Mapping[str, int]) -> None:  # noqa: B027 - only some engines show it
        """Show how many files the operation reads and skips, by the names of metrics."""

    def commit(self, commit: Callable[[], Result], files: Iterable[Iterator[str]]) -> Result:
        """Call `commit`, which commits the new files of tasks, each with an iterator of their paths.

        Removes the files of tasks whose results were not used.
        """
        return commit()

    def forget(self) -> None:  # noqa: B027 - only runs by tasks leave something
        """Forget an earlier run of the operation, which is committed."""

    @abstractmethod
    def another(self, operation: str | None = None) -> Executor:
        """Return an executor for another operation on the table, None for a part of this operation."""

    def find_kept(self, paths: Sequence[str]) -> Mapping[str, StoreError]:
        """Return the files that tasks deleted, and that the driver still finds."""
        return {}


class LocalExecutor(Executor):
    """Runs tasks in this process. Each operation is one task, which uses threads."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._written: list[NewFiles] = []

    def run(self, step: str, tasks: Iterable[Task[Result]]) -> Iterator[Result]:
        for task in tasks:
            try:
                result = task(self.store, new_name)
            except BaseException:
                for written in self._written:
                    discard(self.store, written.paths())
                raise
            if isinstance(result, NewFiles):
                self._written.append(result)
            yield result

    def another(self, operation: str | None = None) -> LocalExecutor:
        return LocalExecutor(self.store)


class Engine(ABC):
    """Processes that run the tasks of operations on a `Table`, such as `delta_variant.spark.SparkEngine`."""

    @property
    @abstractmethod
    def timezone(self) -> str:
        """Return the time zone of local times in SQL text."""

    @abstractmethod
    def locate(self, table: TableLocation) -> TableLocation:
        """Return the location of a table as the engine means it."""

    @abstractmethod
    def storage_options(
        self, table: TableLocation, storage_options: Mapping[str, str] | None
    ) -> Mapping[str, str] | None:
        """Return the options of the store of a table, where a caller passes some or none."""

    @abstractmethod
    def rows_to_write(self, data: Any, variant_columns: Sequence[str]) -> Any:
        """Return the rows of a write that are distributed, None for rows in memory."""

    @abstractmethod
    def merge_source(self, source: Any, variant_columns: Sequence[str]) -> Any:
        """Return the source of a merge for rows that are distributed, None for rows in memory."""

    @abstractmethod
    def executor(
        self, store: Store, storage_options: Mapping[str, str] | None, operation: str, txn: Txn | None
    ) -> Executor:
        """Return an executor for one operation on a table, which runs with the same `txn` repeat.

        `operation` is its name, such as `"MERGE"`.
        """


def executor_of(table: Any, store: Store, operation: str, txn: Txn | None = None) -> Executor:
    """Return the executor of a handle's engine for one operation on a table, by default a local executor."""
    engine: Engine | None = getattr(table, "engine", None)
    if engine is None:
        return LocalExecutor(store)
    return engine.executor(store, storage_options_of(table), operation, txn)


def timezone_of(table: Any, timezone: str | None) -> str:
    """Return the time zone of SQL text: of the call, else of the handle's engine, else UTC."""
    if timezone is not None:
        return timezone
    engine: Engine | None = getattr(table, "engine", None)
    return UTC if engine is None else engine.timezone
