"""Run tasks on the executors of a Spark session, and remove the files of attempts that are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.utils import is_remote

from .._packing import pack_evenly
from .._text import quote
from ..errors import StoreError
from ..execution import GROUP_BYTES, Executor, NameFile, Task
from ..log.commit_context import CommitResult
from ..log.snapshot import TableVersion
from ..operations.optimize.layout import read_rows
from ..operations.optimize.optimize import GroupsTask, WrittenGroups, write_rows
from ..protocol.actions import Txn
from ..protocol.schema.arrow import from_arrow
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import StructField, StructType
from ..read.file_reader import FileEntry
from ..read.row_tracking import with_row_ids
from ..storage.store import Store, exists, open_store, uri_of
from ..write.partitions import WrittenFiles
from .attempts import Attempt, Job, commit_won, forget, names_of, remove_lost
from .columns import cast_for_spark, to_spark
from .file_tasks import attempt_of
from .locations import SHARED
from .monitoring import Monitor
from .readers import groups_of_table
from .running import Jobs, distribute, map_by_task, parallelism, run_task
from .task_errors import restore_errors
from .tasks import Shared, message, messages, pack_sharing, unpack_batches, unpack_sharing

COPIED_BYTES = 8 << 20
"""The bytes up to which each task gets all tasks of an operation, packed, because this saves a shuffle."""

DRIVER_FILES = 32
DRIVER_BYTES = 16 << 20
"""The most files, and their most bytes, into which the driver merges the rows of a source in its memory.

Measured with 100,000 rows (10 MB), 8 files (10 MB) and two cores. With deletion vectors, tasks took 0.25 s,
half of it before they had the rows, and the driver took 0.14 s. Without them it was 0.34 and 0.32 s, and more
cores would make the tasks faster. Each small file takes the driver 4 ms. Deletes and updates send no rows,
and were not faster on the driver.
"""


@dataclass(frozen=True)
class SortedGroups:
    """Writes groups whose rows Spark sorts, over as many tasks as there will be files."""

    step: str
    task: GroupsTask

    def rows(self, spark: SparkSession, uri: str, storage_options: Mapping[str, str] | None) -> DataFrame:
        """Return the rows of groups sorted by group and keys, with a partition for each file to write."""
        tasks, groups = parallelism(spark), self.task.groups
        parts = (
            (number, files)
            for number, group in enumerate(groups)
            for files in groups_of_table(group.files, tasks)
        )
        reader = KeyedRows(self.task, uri, storage_options)
        rows = run_task(spark, parts, reader, reader.schema)
        order = [sql.col(quote(name)).asc_nulls_last() for name in reader.names]
        count = sum(group.files_estimated for group in groups)
        return rows.repartitionByRange(count, *order).sortWithinPartitions(*order)

    def run(self, store: Store, name: NameFile, batches: Iterator[pa.RecordBatch]) -> Iterator[WrittenGroups]:
        """Yield the new files of the rows of a partition."""
        version = replace(self.task.version, store=store)
        files = [
            write_rows(version, rows, self.task.groups[number].options, name)
            for number, rows in _split_by_group(batches, len(row_columns(version.configuration)))
        ]
        yield WrittenGroups(WrittenFiles.join(files)).compress()


def row_columns(table: TableConfiguration) -> tuple[StructField, ...]:
    """Return the columns that rows have between tasks: those of the table and those of row tracking."""
    return with_row_ids(table).row_columns.fields


def _split_by_group(
    batches: Iterable[pa.RecordBatch], columns: int
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Yield number and rows of each group of sorted batches; the number is column `columns` of a batch."""
    for number, run in groupby(_runs(batches, columns), key=itemgetter(0)):
        yield number, (rows for _, rows in run)


def _runs(batches: Iterable[pa.RecordBatch], columns: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        groups: Any = batch.column(columns)
        rows = batch.select(list(range(columns)))
        for number in pc.unique(groups).to_pylist():
            yield number, rows.filter(pc.equal(groups, number))


@dataclass(frozen=True)
class KeyedRows:
    """Reads rows of files and appends columns for the number of their group and the values that sort them."""

    task: GroupsTask
    uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)

    @property
    def names(self) -> list[str]:
        """Return the names of the appended columns, longer than any name of the table's columns."""
        longest = max(len(field.name) for field in row_columns(self.task.version.configuration))
        return [f"{'_' * longest}{number}" for number in range(1 + len(self.task.orders[0].types))]

    @property
    def schema(self) -> SparkStruct:
        types: list[Any] = [pa.int32(), *self.task.orders[0].types]
        appended = pa.schema(list(zip(self.names, types, strict=True)))
        columns = (*row_columns(self.task.version.configuration), *from_arrow(appended).fields)
        return to_spark(StructType(columns))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        version = replace(self.task.version, store=open_store(self.uri, self.storage_options))
        for number, files in unpack_batches(batches):
            yield from cast_for_spark(self._rows(version, number, files), self.schema)

    def _rows(
        self, version: TableVersion, number: int, files: Sequence[FileEntry]
    ) -> Iterator[pa.RecordBatch]:
        order = self.task.orders[number]
        for batch, keys in read_rows(version, files, order.keys):
            group: Any = pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows)
            names = [*batch.schema.names, *self.names]
            yield pa.record_batch([*batch.columns, group, *order.values(keys)], names=names)


T = TypeVar("T")
Result = TypeVar("Result")


class SparkExecutor(Executor):
    """Runs the tasks of one operation, and finds the files of the attempts that Spark does not deliver."""

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        storage_options: Mapping[str, str] | None,
        operation: str,
        txn: Txn | None = None,
        auto_compact: bool | None = None,
    ) -> None:
        super().__init__(store)
        self.spark = spark
        self.storage_options = storage_options
        self.auto_compact = auto_compact
        self.monitor = Monitor(spark, operation, store.uri)
        self.job = Job.of(txn)
        self.rejects: Store | None = None
        self.rejected: Sequence[str] = ()
        self._operation = operation
        self._winners: set[str] = set()
        self._counts: dict[str, int] = {}

    @property
    def folders(self) -> list[Store]:
        """Return the stores that tasks write to: the table, and the folder of rejected values."""
        return [self.store, *([] if self.rejects is None else [self.rejects])]

    def split(
        self,
        items: Iterable[T],
        size_of: Callable[[T], int],
        *,
        limit: int = GROUP_BYTES,
        total: int | None = None,
        rounds: int = 1,
    ) -> Iterator[Iterable[T]]:
        total = sum(map(size_of, items)) if total is None else total
        tasks = rounds * max(parallelism(self.spark), 1)
        return pack_evenly(items, size_of, total, tasks, limit)

    def prefers_driver(self, files: int, size: int) -> bool:
        # A client of Spark Connect may be far from the store.
        return files <= DRIVER_FILES and size <= DRIVER_BYTES and not is_remote()

    def run(self, step: str, tasks: Iterable[Task[Result]]) -> Iterator[Result]:
        # Spark distributes the tasks, and returns the results, in an order of its own.
        numbered = list(enumerate(tasks))
        if numbered:
            shared: list[Shared] = []
            packed = [pack_sharing(each, shared) for each in numbered]
            count = len(packed)
            if count * sum(map(len, packed)) <= COPIED_BYTES:
                rows, each = self.spark.range(0, count, 1, count), EachTask(step, shared, packed)
            else:
                rows, each = distribute(self.spark, packed), EachTask(step, shared)
            results = self.run_partitions(rows, each)
            yield from (result for _, result in sorted(results, key=itemgetter(0)))

    def run_whole(self, step: str, task: Task[Result]) -> list[Result]:
        whole: Any = task
        if isinstance(whole, GroupsTask):
            sort = SortedGroups(step, whole)
            return self.run_partitions(sort.rows(self.spark, self.store.uri, self.storage_options), sort)
        return super().run_whole(step, task)

    def run_on_driver(self, step: str, task: Task[Result]) -> Result:
        attempt = Attempt(self.store, self.job, 0)
        try:
            result = task(self.store, names_of(attempt))
        except BaseException:
            remove_lost(self.folders, self.job, (), of_all_runs=False)
            raise
        self._winners.add(attempt.identity)
        return result

    def run_partitions(self, df: DataFrame, task: PartitionTask) -> list[Any]:
        """Run a task for each partition of a DataFrame, and return its results.

        After an error, the new files of the operation are removed.
        """
        runner = TaskRunner(self.store.uri, self.storage_options, self.job, task)
        with self.monitor.step(task.step):
            jobs = Jobs(self.spark)
            try:
                with restore_errors():
                    delivered = messages(map_by_task(df, runner).collect())
            except BaseException:
                jobs.wait()
                remove_lost(self.folders, self.job, (), of_all_runs=False)
                raise
        self._winners.update(attempt for attempt, _ in delivered)
        return [result for _, result in delivered]

    def report(self, counts: Mapping[str, int]) -> None:
        self._counts.update(counts)

    def commit(self, commit: Callable[[], Result], files: Iterable[Iterator[str]]) -> Result:
        """Commit the files of the attempts that Spark delivered, and remove those of all others.

        Raises StoreError if the driver does not find the files of tasks: they are on the disks of executors.
        """
        written = [path for paths in files if (path := next(paths, None)) is not None]
        result = commit_won(
            commit, self.job, self.folders, winners=self._winners, samples=[written, self.rejected]
        )
        if isinstance(result, CommitResult) and result.version is not None:
            self.monitor.report({**self._counts, **result.metrics, "version": result.version})
        return result

    def forget(self) -> None:
        forget(self.store, self.job)

    def another(self, operation: str | None = None) -> SparkExecutor:
        return SparkExecutor(self.spark, self.store, self.storage_options, operation or self._operation)

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


class PartitionTask(Protocol):
    """The work on a partition of a DataFrame; `step` says what it does, for a person who watches."""

    @property
    def step(self) -> str:
        """Return what the task does."""

    def run(self, store: Store, name: NameFile, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        """Yield results for the rows of the partition; `name` names new files."""


@dataclass(frozen=True)
class EachTask:
    """Runs each of the tasks of a partition; they have `shared` in common.

    The rows of the partition have the packed tasks, or the numbers of those in `packed`.
    """

    step: str
    shared: Sequence[Shared]
    packed: Sequence[bytes] = ()

    def run(self, store: Store, name: NameFile, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        for packed in self._of_partition(batches):
            number, task = unpack_sharing(packed, self.shared)
            result = task(store, name)
            # The results of many tasks can describe more files than fit into the memory of the driver.
            yield number, result.compress() if hasattr(result, "compress") else result

    def _of_partition(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        if not self.packed:
            return unpack_batches(batches)
        numbers: Iterator[Any] = (number for batch in batches for number in batch.column(0).to_pylist())
        return map(self.packed.__getitem__, numbers)


@dataclass(frozen=True)
class TaskRunner:
    """Runs a task for each partition, with the store that an executor opens."""

    uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)
    job: Job
    task: PartitionTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a message with the attempt and each of its results."""
        store = open_store(self.uri, self.storage_options)
        attempt = attempt_of(store, self.job)
        for result in self.task.run(store, names_of(attempt), batches):
            yield message((attempt.identity, result))
