"""Sort the rows of a group by keys, with an external sort in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array
from ..._packing import pack_by_size
from ..._progress import advance, begin
from ...log.snapshot import TableVersion
from ...read.file_reader import files_of
from .layout import FileGroup, read_keys, read_rows
from .sort_order import SortOrder

BATCH_ROWS = 32 << 10
BATCH_BYTES = 256 << 20
"""The size of the sorted rows that are assembled at a time, in bytes."""

SAMPLE_BYTES = 2 << 20
SAMPLE_ROWS = 16 << 10
"""The size of the sample of a new file. All of its rows are counted to infer how the file is shredded."""


@dataclass(frozen=True)
class SortedRun:
    """The rows of a new file: `order` has their numbers in `batches`, sorted."""

    batches: Sequence[pa.RecordBatch]
    order: Array

    @property
    def num_rows(self) -> int:
        return len(self.order)

    def rows(self) -> Iterator[pa.RecordBatch]:
        for first in range(0, self.num_rows, BATCH_ROWS):
            yield from _take(self.batches, self.order.slice(first, BATCH_ROWS))

    def sample(self) -> list[pa.RecordBatch]:
        """Return rows that are evenly spread over the file: rows that are alike follow each other."""
        size = sum(batch.nbytes for batch in self.batches)
        count = max(1, min(SAMPLE_ROWS, self.num_rows, self.num_rows * SAMPLE_BYTES // max(size, 1)))
        places = [number * self.num_rows // count for number in range(count)]
        return list(_take(self.batches, self.order.take(pa.array(places, pa.int64()))))


def sort_into_runs(version: TableVersion, group: FileGroup, order: SortOrder) -> Iterator[SortedRun]:
    """Yield the rows of each new file of a group. The keys of a file follow those of the previous one."""
    begin("sorting", files=len(group.paths), rows=group.rows)
    with TemporaryDirectory() as folder:
        paths = _spill(version, group, order, Path(folder), group.files_estimated)
        begin("rewriting", files=len(group.paths), rows=group.rows)
        for path in paths:
            yield _sort_file(path, len(order.types))


def _spill(version: TableVersion, group: FileGroup, order: SortOrder, folder: Path, count: int) -> list[Path]:
    """Partition rows by key range into `count` files, and return their paths in key order."""
    bucket_of = _assign_files(version, group, order, count)
    paths = [folder / f"{number}.arrow" for number in range(count)]
    writers: dict[int, Any] = {}
    first = 0
    with ExitStack() as stack:
        for batch, keys in read_rows(version, files_of(group.files), order.keys):
            values = order.values(keys)
            places = bucket_of.slice(first, batch.num_rows)
            first += batch.num_rows
            advance(rows=batch.num_rows)
            names = [*batch.schema.names, *_key_names(len(values))]
            whole = pa.record_batch([*batch.columns, *values], names=names)
            for number in pc.unique(places).to_pylist():
                if number not in writers:
                    options = pa.ipc.IpcWriteOptions(compression="zstd")
                    opened = pa.ipc.new_file(str(paths[number]), whole.schema, options=options)
                    writers[number] = stack.enter_context(opened)
                writers[number].write_batch(whole.filter(pc.equal(places, number)))
    return [path for path in paths if path.exists()]


def _assign_files(version: TableVersion, group: FileGroup, order: SortOrder, count: int) -> Array:
    """Return the number of the new file for each row of a group, in read order."""
    batches = (order.values(keys) for keys in read_keys(version, files_of(group.files), order.keys))
    names = _key_names(len(order.types))
    table = pa.Table.from_batches([pa.record_batch(values, names=names) for values in batches])
    rank = pc.sort_indices(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))
    return pc.divide(pc.multiply(rank.cast(pa.int64()), count), max(1, table.num_rows))


def _key_names(count: int) -> list[str]:
    return [f"\0key{number}" for number in range(count)]


def _sort_file(path: Path, keys: int) -> SortedRun:
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    names = _key_names(keys)
    order = pc.sort_indices(table.select(names), sort_keys=[(name, "ascending") for name in names])
    batches = [
        _concatenate(batches)
        for batches in pack_by_size(
            table.drop_columns(names).to_batches(), lambda batch: batch.nbytes, BATCH_BYTES
        )
    ]
    return SortedRun(batches, order)


def _concatenate(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _take(batches: Sequence[pa.RecordBatch], rows: Array) -> Iterator[pa.RecordBatch]:
    """Yield the rows with these numbers, counted over all batches, in their order.

    The rows are split into several batches if one would be too large: Arrow cannot take strings of more than
    2 GiB in total.
    """
    first, parts, places = 0, [], []
    for batch in batches:
        before_end: Array = pc.less(rows, pa.scalar(first + batch.num_rows))
        within: Array = pc.and_not(before_end, pc.less(rows, pa.scalar(first)))
        if within.true_count:
            parts.append(batch.take(pc.subtract(rows.filter(within), first)))
            places.append(pc.indices_nonzero(within))
        first += batch.num_rows
    if len(rows) > 1 and sum(part.nbytes for part in parts) > BATCH_BYTES:
        half = len(rows) // 2
        yield from _take(batches, rows.slice(0, half))
        yield from _take(batches, rows.slice(half))
    else:
        yield _concatenate(parts).take(pc.sort_indices(pa.concat_arrays(places)))
