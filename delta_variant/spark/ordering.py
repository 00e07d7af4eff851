"""The rows of groups of files in the order of keys, by Spark's own sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType as SparkStruct

from ..expressions.tree import Expression, output_type
from ..log.snapshot import Snapshot
from ..operations.optimize.layout import FileGroup, read_rows
from ..protocol.schema.arrow import from_arrow
from ..protocol.types import StructField, StructType
from ..scan.reader import DataFile
from ..scan.row_tracking import RowTracking
from .columns import for_spark, quoted, to_spark
from .reading import file_groups, sized_files
from .running import dealt_out
from .tasks import TaskTable, messages_in

__all__ = ["by_group", "row_columns", "rows_in_order"]


def rows_in_order(
    spark: SparkSession, table: TaskTable, groups: Sequence[FileGroup], keys: Sequence[Expression]
) -> DataFrame:
    """Return the rows of groups, a partition for each file that there is to be, sorted by group and keys."""
    tasks = spark.sparkContext.defaultParallelism
    parts = [
        (number, files)
        for number, group in enumerate(groups)
        for files in file_groups(sized_files(group.files), tasks)
    ]
    reader = KeyedRows(table, tuple(keys))
    rows = dealt_out(spark, parts).mapInArrow(reader, reader.schema)
    order = [sql.col(quoted(name)).asc_nulls_last() for name in reader.names]
    count = sum(group.files_estimated for group in groups)
    return rows.repartitionByRange(count, *order).sortWithinPartitions(*order)


def row_columns(snapshot: Snapshot) -> tuple[StructField, ...]:
    """Return the columns that rows have on their way: those of the table, and those that keep their ids."""
    tracking = RowTracking.of(snapshot)
    return (*snapshot.schema.fields, *(tracking.columns if tracking else ()))


def by_group(
    batches: Iterable[pa.RecordBatch], columns: int
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Yield the numbers of groups and their rows, of so many columns, where rows come in that order."""
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
    """Reads the rows of files, and behind their columns the number of their group and the values of keys."""

    table: TaskTable
    keys: tuple[Expression, ...]

    @property
    def names(self) -> list[str]:
        """Return the names of what stands behind the columns, which are longer than all of theirs."""
        longest = max(len(field.name) for field in row_columns(self.table.snapshot))
        return [f"{'_' * longest}{number}" for number in range(1 + len(self.keys))]

    @property
    def schema(self) -> SparkStruct:
        """Return the schema of the rows that are read."""
        types: list[Any] = [pa.int32(), *(output_type(key) for key in self.keys)]
        beside = pa.schema(list(zip(self.names, types, strict=True)))
        columns = (*row_columns(self.table.snapshot), *from_arrow(beside).fields)
        return to_spark(StructType(columns))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files that came as messages with the number of their group."""
        for number, files in messages_in(batches):
            yield from for_spark(self._rows(number, files), self.schema)

    def _rows(self, number: int, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        for batch, values in read_rows(self.table.opened(), files, self.keys):
            group: Any = pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows)
            names = [*batch.schema.names, *self.names]
            yield pa.record_batch([*batch.columns, group, *values], names=names)
