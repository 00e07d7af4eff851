"""Rows of groups of files, sorted by keys with Spark's own sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType as SparkStruct

from ..execution import NameFile
from ..expressions.tree import output_type
from ..log.snapshot import TableVersion
from ..operations.optimize.layout import read_rows
from ..operations.optimize.optimize import GroupsTask, WrittenGroups, write_rows
from ..protocol.schema.arrow import from_arrow
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import StructField, StructType
from ..read.file_reader import FileEntry
from ..read.row_tracking import with_row_ids
from ..storage.store import Store, open_store
from ..write.partitions import WrittenFiles
from .columns import cast_for_spark, to_spark
from .queries.text import quote
from .reading import groups_of_table
from .running import parallelism, run_task
from .tasks import unpack_batches

__all__ = ["SortedGroups"]


@dataclass(frozen=True)
class SortedGroups:
    """Writes groups whose rows Spark sorts, over as many tasks as there will be files."""

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
        snapshot = replace(self.task.snapshot, store=store)
        files = [
            write_rows(snapshot, rows, self.task.groups[number].options, name)
            for number, rows in split_by_group(batches, len(row_columns(snapshot.configuration)))
        ]
        yield WrittenGroups(WrittenFiles.join(files)).compress()


def row_columns(table: TableConfiguration) -> tuple[StructField, ...]:
    """Return the columns that rows have between tasks: those of the table and those of row tracking."""
    return with_row_ids(table).row_columns.fields


def split_by_group(
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
    """Reads rows of files and appends columns for the number of their group and the values of the keys."""

    task: GroupsTask
    uri: str
    storage_options: Mapping[str, str] | None = field(repr=False)

    @property
    def names(self) -> list[str]:
        """Return the names of the appended columns, longer than any name of the table's columns."""
        longest = max(len(field.name) for field in row_columns(self.task.snapshot.configuration))
        return [f"{'_' * longest}{number}" for number in range(1 + len(self.task.keys))]

    @property
    def schema(self) -> SparkStruct:
        """Return the schema of the rows that are read."""
        types: list[Any] = [pa.int32(), *(output_type(key) for key in self.task.keys)]
        appended = pa.schema(list(zip(self.names, types, strict=True)))
        columns = (*row_columns(self.task.snapshot.configuration), *from_arrow(appended).fields)
        return to_spark(StructType(columns))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each group of files."""
        snapshot = replace(self.task.snapshot, store=open_store(self.uri, self.storage_options))
        for number, files in unpack_batches(batches):
            yield from cast_for_spark(self._rows(snapshot, number, files), self.schema)

    def _rows(
        self, snapshot: TableVersion, number: int, files: Sequence[FileEntry]
    ) -> Iterator[pa.RecordBatch]:
        for batch, values in read_rows(snapshot, files, self.task.keys):
            group: Any = pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows)
            names = [*batch.schema.names, *self.names]
            yield pa.record_batch([*batch.columns, group, *values], names=names)
