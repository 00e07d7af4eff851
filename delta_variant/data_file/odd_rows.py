"""Odd rows: rows with values for which the shredding schema of their file has no column.

A path is as fast as a typed column, and has bounds, only in a file where all its values are in `typed_value`.
So a file sets its odd rows apart, and the odd rows of all files of a partition have files of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..variant.shredding import ShreddingSchema, unshred
from .options import Shredding, WriteOptions
from .writer import Context, FileSeries, TakeFew, WrittenFile

__all__ = ["OddFileSeries", "odd_file_options", "separates"]

SAMPLE_BYTES = 4 << 20
"""How many odd rows wait in memory for others while the file that they come from is open."""


def separates(options: WriteOptions) -> bool:
    """Return whether files set odd rows apart; without shredding, no row is odd."""
    is_apart = options.files.odd_rows == "apart" and not options.has_odd_rows
    return is_apart and options.shredding is not None


def odd_file_options(options: WriteOptions) -> WriteOptions:
    """Return the options of files of odd rows, which are shredded by a schema of their own.

    An explicit schema for all Variants is kept.
    """
    shredding: Shredding = options.shredding if isinstance(options.shredding, ShreddingSchema) else "infer"
    sample_bytes = min(options.sample_bytes, SAMPLE_BYTES)
    return replace(options, shredding=shredding, sample_bytes=sample_bytes, has_odd_rows=True)


class OddFileSeries(FileSeries[Context]):
    """Files of the odd rows of one partition, which wait until they fill a sample."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._waiting: list[tuple[pa.RecordBatch, Context]] = []
        self._waiting_bytes = 0

    def add(self, batch: pa.RecordBatch, context: Context) -> None:
        """Add odd rows of another file, whose columns of Variants may be shredded."""
        self._waiting.append((batch, context))
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= self._options.sample_bytes:
            self._write_waiting()

    @property
    def memory(self) -> int:
        """Return about how many bytes of memory the waiting rows and the open file use."""
        return self._waiting_bytes + super().memory

    def take_few(self, schema: pa.Schema) -> list[pa.RecordBatch]:
        """Return all rows, and keep none, if they are too few to have filled a sample.

        Rows of a file with other columns than `schema` stay, because their Variants are shredded differently.
        """
        if self.paths or any(batch.schema != schema for batch, _ in self._waiting):
            return []
        rows = [batch for batch, _ in self._waiting]
        self._waiting, self._waiting_bytes = [], 0
        return rows

    def _write_waiting(self) -> None:
        (_, context) = self._waiting[0]
        # One batch of many small ones, each of which would become a page. It replaces them in memory.
        rows = pa.Table.from_batches([self._unshredded(batch) for batch, _ in self._waiting])
        self._waiting, self._waiting_bytes = [], 0
        rows = rows.combine_chunks()
        for whole in rows.to_batches():
            self._add(whole, context)

    def _unshredded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with Variants that can be shredded by another schema."""
        for index, field in enumerate(batch.schema):
            if field.name in self._variants and pa.types.is_struct(field.type):
                column = unshred(batch.column(index))
                batch = batch.set_column(index, field.with_type(column.type), column)
        return batch

    def close(self, take_few: TakeFew | None = None) -> list[WrittenFile]:
        """Complete the open file and return all files."""
        if self._waiting:
            self._write_waiting()
        return super().close(take_few)
