"""Run the tasks of operations on the executors of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from .._packing import pack_by_size
from ..errors import StoreError
from ..execution import Engine, Executor, NameFile, Task
from ..protocol.actions import Txn
from ..storage.store import Store, TableLocation, exists, open_store, uri_of
from .attempts import Attempt, Job, remove_lost
from .credentials import session_options
from .locations import SHARED
from .queries.table_names import resolve_table
from .running import Jobs, parallelism, run_task
from .task_errors import restore_errors
from .tasks import attempt_of, message, messages, unpack_batches

__all__ = ["SparkEngine", "SparkExecutor"]

T = TypeVar("T")
Result = TypeVar("Result")


@dataclass(frozen=True)
class SparkEngine(Engine):
    """Runs the operations of a `delta_variant.Table` on the executors of a Spark session.

    The driver plans each operation and commits it. Executors read and write the data files, with the code
    and the results of one process. A location is a path, a URI, or the name of a Delta table in the
    session's catalog or of a view of `create_view`. Options of the object store are by default those of the
    session's settings for Hadoop's file systems. They are sent to the executors.

    Files of tasks that fail or that Spark repeats are removed. A job that fails commits nothing.

    Attributes:
        spark: A session, classic or of Spark Connect.

    Example:
        >>> import tempfile
        >>> import delta_variant as dv
        >>> from delta_variant import spark as dvs
        >>> table = dv.Table(tempfile.mkdtemp(), engine=dvs.SparkEngine(spark))
        >>> _ = table.append([{"id": 1}, {"id": 2}])
        >>> _ = table.delete("id = 1")
        >>> table.restore(0).version
        2
    """

    spark: SparkSession

    def locate(self, table: TableLocation) -> TableLocation:
        """Return the location of a table: a name is that of the session, as in `read_table`."""
        return resolve_table(self.spark, table)

    def storage_options(
        self, table: TableLocation, storage_options: Mapping[str, str] | None
    ) -> Mapping[str, str] | None:
        """Return the options of the store of a table, with those of the session."""
        return session_options(self.spark, table, storage_options)

    def executor(
        self, store: Store, storage_options: Mapping[str, str] | None, txn: Txn | None
    ) -> SparkExecutor:
        """Return an executor for one operation on a table."""
        return SparkExecutor(store, storage_options, self, Job.of(txn))


class SparkExecutor(Executor):
    """Runs the tasks of one operation, and finds the files of the attempts that Spark does not deliver."""

    def __init__(
        self, store: Store, storage_options: Mapping[str, str] | None, engine: SparkEngine, job: Job
    ) -> None:
        super().__init__(store)
        self.engine = engine
        self.job = job
        self._storage_options = storage_options

    def split(
        self, items: Iterable[T], size_of: Callable[[T], int], total: int, limit: int, rounds: int = 1
    ) -> Iterator[Iterable[T]]:
        tasks = rounds * max(parallelism(self.engine.spark), 1)
        return iter(pack_by_size(items, size_of, min(limit, total // tasks + 1)))

    def run(self, tasks: Iterable[Task[Result]]) -> Iterator[Result]:
        spark, runner = self.engine.spark, TaskRunner(self.store.uri, self._storage_options, self.job)
        packed = list(tasks)
        if not packed:
            return
        jobs = Jobs(spark)
        try:
            with restore_errors():
                delivered = messages(run_task(spark, packed, runner).collect())
        except BaseException:
            jobs.wait()
            remove_lost([self.store], self.job, (), of_all_runs=False)
            raise
        yield from delivered

    def find_kept(self, paths: Sequence[str]) -> Mapping[str, StoreError]:
        if self.store.local_root is None:
            return {}
        return {path: _not_shared(self.store, path) for path in paths if exists(self.store, path)}


def _not_shared(store: Store, path: str) -> StoreError:
    return StoreError(
        f"cannot delete {uri_of(store, path)} because executors have a disk of their own there: {SHARED}",
        table=store.uri,
        file=path,
    )


@dataclass(frozen=True)
class TaskRunner:
    """Runs tasks on an executor, with the store that it opens there."""

    uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)
    job: Job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a message with the result of each task."""
        store = open_store(self.uri, self.storage_options)
        name = names_of(attempt_of(store, self.job))
        for task in unpack_batches(batches):
            yield message(task.run(store, name))


def names_of(attempt: Attempt) -> NameFile:
    """Return the names of all files of an attempt, whichever of its writers asks for them."""
    numbers: Any = count()
    return lambda _: attempt.file_name(next(numbers))
