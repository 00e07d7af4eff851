"""Route rows to data files: to those of their partition, or to those of its residual rows.

A row is residual if it leaves a value in the `value` of a path that has a `typed_value`. A path is as fast as
a typed column, and has bounds, only in a file without such rows. So a file separates its residual rows. Those
of all files of a partition have files of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

import pyarrow as pa

from .._threads import Threads
from ..data_file.options import Shredding, WriteOptions
from ..data_file.shredding import FileShredding, infer_shredding
from ..data_file.writer import FileSeries, ReplacedColumns, WrittenFile
from ..execution import NameFile, new_name
from ..input.invalid_json import Batches, BatchOrigin, InvalidValueHandler, PartRows
from ..input.json_lines import Origin
from ..protocol.schema.conforming import conform
from ..protocol.statistics import Path
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import VARIANT, StructType, has_variant
from ..storage.store import Store
from ..variant.shredding import ShreddingSchema, unshred
from .partitions import (
    MAX_OPEN_PARTITIONS,
    FileColumns,
    PartitionedFiles,
    PartitionValues,
    WrittenFiles,
    check_variants,
    split_by_partition,
)
from .stored_rows import StoredRows

SAMPLE_BYTES = 4 << 20
"""How many residual rows wait in memory for others while the file that they come from is open."""

MAX_WAITING = 4
"""How many batches wait for the thread that writes residual rows. Those of a file are small."""


def write_files(
    store: Store,
    batches: Batches | Iterable[pa.RecordBatch | StoredRows],
    table: TableConfiguration,
    options: WriteOptions,
    invalid_values: InvalidValueHandler | None = None,
    *,
    name: NameFile = new_name,
    max_open_partitions: int = MAX_OPEN_PARTITIONS,
    residual: ResidualFiles | None = None,
) -> WrittenFiles:
    """Write batches to data files and return the files; after an error, remove all of them.

    Does not check rows, because they may come from other files of the table: see `complete_rows`.
    `invalid_values` handles values that are not valid JSON, None as the options say. `name` returns the name
    of the file of a given number. If the rows of each partition are contiguous, one open partition is enough.
    Residual rows go to `residual`, which the caller closes, None to files of this write.
    """
    router = Router(store, table, options, invalid_values, name, max_open_partitions, residual=residual)
    try:
        router.add_all(batches)
        return router.close()
    except BaseException:
        router.discard()
        raise


class Router:
    """Routes rows to files of their partition, below `folder`, and residual rows to files of their own.

    Residual rows go to `residual`, None for files of this router. If the options say that all rows are
    residual, all go to `residual`, and without it to the files of their partition.
    """

    def __init__(
        self,
        store: Store,
        table: TableConfiguration,
        options: WriteOptions,
        invalid_values: InvalidValueHandler | None = None,
        name: NameFile = new_name,
        max_open: int = MAX_OPEN_PARTITIONS,
        folder: str = "",
        residual: ResidualFiles | None = None,
    ) -> None:
        self._table = table
        self._options = options
        self._invalid_values = invalid_values or InvalidValueHandler(options.json.on_invalid)
        self._files = PartitionedFiles(store, table, options, name, max_open, folder, self._new_series)
        self._columns = self._files.columns
        self._nested = [
            field for field in table.schema.fields if field.type != VARIANT and has_variant(field.type)
        ]
        self._own_residual: ResidualFiles | None = None
        if residual is None and options.separates:
            # Its names have the numbers of this router, so that all are different.
            residual = self._own_residual = ResidualFiles(
                store, table, options, lambda _: self._files.next_name(), max_open, folder
            )
        self._all_residual = residual if options.is_residual else None
        self._residual = residual if options.separates else None
        self._small_files: dict[int, Mapping[Path, ShreddingSchema]] = {}
        # The last sample of stored rows, its partition values and its columns in files.
        self._sample: tuple[pa.RecordBatch, PartitionValues, pa.RecordBatch] | None = None

    def add_all(self, batches: Batches | Iterable[pa.RecordBatch | StoredRows]) -> None:
        """Write the batches of a source, and move its row groups."""
        first = 0
        for each in batches:
            rows, origin = each if isinstance(each, tuple) else (each, None)
            if isinstance(rows, StoredRows):
                self.copy(rows, first)
            else:
                self.add(rows, origin, first)
            first += rows.num_rows

    def add(self, batch: pa.RecordBatch, origin: Origin | PartRows | None = None, first: int = 0) -> None:
        """Write a batch; `first` is the number of its first row in the source."""
        conformed = conform(batch, self._table.row_columns)
        for field in self._nested:
            # The kernel checks other Variants.
            check_variants(conformed.column(field.name), field)
        for values, positions in split_by_partition(conformed, self._table):
            part = conformed if positions is None else conformed.take(positions)
            rows = self._columns.of_files(part)
            if self._all_residual is not None:
                self._all_residual.add(values, rows)
            else:
                self._files.add(
                    values, rows, BatchOrigin(origin, first, positions, self._columns.arrange(part))
                )

    def copy(self, rows: StoredRows, first: int = 0) -> None:
        """Move a row group, or write its rows if the new file cannot take it."""
        if self._all_residual is not None or not self._move(rows, BatchOrigin(None, first, None)):
            for batch in rows.batches():
                self.add(batch, None, first)
                first += batch.num_rows

    def _move(self, rows: StoredRows, origin: BatchOrigin) -> bool:
        if self._sample is None or self._sample[0] is not rows.sample:
            conformed = conform(rows.sample, self._table.row_columns)
            ((values, _),) = split_by_partition(conformed, self._table)
            self._sample = rows.sample, values, self._columns.of_files(conformed.slice(0, 0))
        _, values, columns = self._sample
        return self._files.series(values).copy(columns, rows, origin)

    def replaced_columns(self, rows: StoredRows, columns: pa.RecordBatch) -> ReplacedColumns | None:
        """Return the new values of a row group for a file with these columns, None if none changes."""
        if (new := rows.replacement) is None:
            return None
        fields = [field for field in self._table.schema.fields if field.name in new.columns]
        schema = StructType(tuple(fields))
        stored = FileColumns.of(replace(self._table, schema=schema, extra_columns=()))
        positions = [columns.schema.get_field_index(field.name) for field in stored.physical.fields]
        batches = (stored.of_files(conform(batch, schema)) for batch in new.read(rows.rows))
        return ReplacedColumns(positions, batches)

    def _new_series(self, values: PartitionValues) -> _RoutedSeries:
        separates = self._options.separates
        files = self._files.new_files(values, self._invalid_values, separates=separates)
        return _RoutedSeries(self, values, files, self._residual)

    def shredding_of(self, rows: Sequence[pa.RecordBatch]) -> FileShredding | None:
        """Return the schemas of a file that has few rows, None to infer them from these rows alone.

        The small files of partitions have schemas in common, inferred from all buffered rows.
        """
        if not self._table.partition_columns or self._options.shredding != "infer":
            return None
        number = sum(batch.num_rows for batch in rows)
        size = number.bit_length()
        if size not in self._small_files:
            batches = [batch for series in self._files.open.values() for batch in series.files.buffered]
            self._small_files[size] = infer_shredding(batches, self._columns.variants, self._options, number)
        return self._small_files[size]

    def close(self) -> WrittenFiles:
        files = self._files.close()
        own = [] if self._own_residual is None else [self._own_residual.close()]
        return WrittenFiles.join([files, *own])

    def discard(self) -> None:
        """Remove all files written so far."""
        if self._own_residual is not None:
            self._own_residual.discard()
        self._files.discard()


@dataclass(frozen=True)
class _RoutedSeries:
    """Files of a partition, and where the residual rows of these files go."""

    router: Router
    values: PartitionValues
    files: FileSeries[BatchOrigin]
    residual: ResidualFiles | None

    @property
    def memory(self) -> int:
        return self.files.memory

    def add(self, rows: pa.RecordBatch, origin: BatchOrigin) -> None:
        self.files.add(rows, origin)
        self._separate()

    def copy(self, columns: pa.RecordBatch, rows: StoredRows, origin: BatchOrigin) -> bool:
        """Append a row group of another file, and return whether this was possible."""
        replaced = self.router.replaced_columns(rows, columns)
        copied = self.files.copy(
            columns, origin, rows.file, rows.row_group, as_pages=rows.as_pages, replaced=replaced
        )
        self._separate()
        return copied

    def _separate(self) -> None:
        if self.residual is not None:
            for rows in self.files.take_residual_rows():
                self.residual.add(self.values, rows)

    def close(self) -> list[WrittenFile]:
        while buffered := self.files.buffered:
            self.files.write_buffered(self.router.shredding_of(buffered))
        self.files.flush()
        self._separate()
        columns = self.files.small_file_columns
        if self.residual is not None and columns is not None:
            self.files.write_residual_rows(self.residual.take_few(self.values, columns))
        return self.files.close()

    def discard(self) -> None:
        self.files.discard()


class ResidualFiles:
    """Files of residual rows, in one series for each partition. A thread writes them.

    Several routers can share these files, in several threads. The thread works while they write other rows,
    and the next call raises its errors.
    """

    def __init__(
        self,
        store: Store,
        table: TableConfiguration,
        options: WriteOptions,
        name: NameFile = new_name,
        max_open: int = MAX_OPEN_PARTITIONS,
        folder: str = "",
    ) -> None:
        """Take the options of the files that the rows come from.

        Residual files are shredded by a schema of their own, unless all Variants have the same explicit one.
        """
        schema: Shredding = options.shredding if isinstance(options.shredding, ShreddingSchema) else "infer"
        # The other files have reported the values that are not valid JSON, and have rejected their rows.
        json = replace(options.json, on_invalid="null", rejects=None)
        sample_bytes = min(options.sample_bytes, SAMPLE_BYTES)
        options = replace(options, shredding=schema, json=json, sample_bytes=sample_bytes, is_residual=True)
        self._files = PartitionedFiles(store, table, options, name, max_open, folder, self._new_series)
        self._partitions: set[PartitionValues] = set()
        self.num_rows = 0
        """The number of rows that were added."""
        self._thread = Threads(1)
        self._begun: deque[Future[None]] = deque()

    def _new_series(self, values: PartitionValues) -> _ResidualSeries:
        files = self._files.new_files(values, InvalidValueHandler("null"))
        return _ResidualSeries(files, self._files.columns.variants, self._files.options.sample_bytes)

    def add(self, values: PartitionValues, rows: pa.RecordBatch) -> None:
        self._partitions.add(values)
        self.num_rows += rows.num_rows
        self._begun.append(self._thread.submit(self._files.add, values, rows, BatchOrigin(None, 0, None)))
        if len(self._begun) > MAX_WAITING:
            self._begun.popleft().result()

    def take_few(self, values: PartitionValues, columns: pa.Schema) -> list[pa.RecordBatch]:
        """Return the rows of a partition, and keep none of them, if they are too few for a file.

        `columns` are those of the file that gets them.
        """
        if values not in self._partitions:
            return []
        taken: list[pa.RecordBatch] = self._thread.submit(self._take_few, values, columns).result()
        return taken

    def _take_few(self, values: PartitionValues, columns: pa.Schema) -> list[pa.RecordBatch]:
        return self._files.open[values].take_few(columns) if values in self._files.open else []

    def close(self) -> WrittenFiles:
        while self._begun:
            self._begun.popleft().result()
        self._thread.shutdown()
        return self._files.close()

    def discard(self) -> None:
        """Remove all files written so far."""
        self._thread.shutdown(cancel_futures=True)
        self._files.discard()


class _ResidualSeries:
    """Files of the residual rows of a partition, which wait until they fill a sample."""

    def __init__(self, files: FileSeries[BatchOrigin], variants: Collection[str], sample_bytes: int) -> None:
        self._files = files
        self._variants = variants
        self._sample_bytes = sample_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    @property
    def memory(self) -> int:
        return self._waiting_bytes + self._files.memory

    def add(self, rows: pa.RecordBatch, _origin: BatchOrigin) -> None:
        """Add rows, whose Variants may be shredded."""
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= self._sample_bytes:
            self._write_waiting()

    def take_few(self, columns: pa.Schema) -> list[pa.RecordBatch]:
        """Return all rows, and keep none, if they are too few to have filled a sample.

        Rows with other columns stay, because their Variants are shredded differently.
        """
        if self._files.paths or any(rows.schema != columns for rows in self._waiting):
            return []
        taken, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return taken

    def _write_waiting(self) -> None:
        # One batch of many small ones, each of which would become a page. It replaces them in memory.
        rows = pa.Table.from_batches([self._unshredded(batch) for batch in self._waiting])
        self._waiting, self._waiting_bytes = [], 0
        rows = rows.combine_chunks()
        for whole in rows.to_batches():
            self._files.add(whole, BatchOrigin(None, 0, None))

    def _unshredded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with Variants that can be shredded by another schema."""
        for index, field in enumerate(batch.schema):
            if field.name in self._variants and pa.types.is_struct(field.type):
                column = unshred(batch.column(index))
                batch = batch.set_column(index, field.with_type(column.type), column)
        return batch

    def close(self) -> list[WrittenFile]:
        if self._waiting:
            self._write_waiting()
        return self._files.close()

    def discard(self) -> None:
        self._files.discard()
