"""Row groups of data files that the kernel moves to another file, without passing their rows to Python.

Large ones are copied as they are encoded, also if some of their columns get other values. The columns of
others are decoded and encoded again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TypeAlias

import msgspec
import pyarrow as pa

from ..data_file.options import ROW_GROUP_BYTES
from ..data_file.reader import NativeFile, RowRange
from ..data_file.shredding import PerSchema
from ..read.file_reader import FileReader
from ..read.row_tracking import RowTracking

MIN_COPIED_BYTES = ROW_GROUP_BYTES // 8
MIN_COPIED_ROWS = 1 << 16
"""A row group of this size in bytes or in rows is copied as it is encoded; smaller ones are combined."""

ReadRows: TypeAlias = Callable[[Sequence[RowRange] | None], Iterator[pa.RecordBatch]]
"""Yields the rows of a file in ranges, or all of its rows, as they are written to the new file."""


class Replacement(msgspec.Struct, frozen=True):
    """New values of some columns of a row group.

    `read` yields the values in a range of rows, and `read_before` these rows of the file as they are.
    """

    columns: Collection[str]
    read: Callable[[RowRange], Iterator[pa.RecordBatch]]
    read_before: Callable[[RowRange], Iterator[pa.RecordBatch]]


class StoredRows(msgspec.Struct, frozen=True):
    """A row group that the kernel moves if the new file permits it, and else is read and written.

    `sample` is a row of a file with the same schema and partition values. `read` reads the rows. With
    `as_pages`, its pages are copied as they are encoded, but for the columns in `replacement`.
    """

    file: NativeFile
    row_group: int
    rows: RowRange
    sample: pa.RecordBatch
    read: ReadRows
    as_pages: bool
    replacement: Replacement | None = None

    @property
    def num_rows(self) -> int:
        return self.rows[1] - self.rows[0]

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self.read([self.rows])


def copyable_row_groups(
    file: FileReader, tracking: RowTracking | None, *, with_small: bool = False
) -> Sequence[int]:
    """Return the large row groups of a file, or all, whose rows can be in another file unchanged.

    No rows can if some rows are deleted, or if rows are tracked, because the ids of rows that move to
    another file are stored in its columns.
    """
    if tracking is not None or file.file.deletion_vector is not None:
        return ()
    return [
        number
        for number, (rows, size) in enumerate(file.native.row_groups)
        if _is_large(rows, size) or (rows and with_small)
    ]


def _is_large(rows: int, size: int) -> bool:
    return size >= MIN_COPIED_BYTES or rows >= MIN_COPIED_ROWS


def read_or_copy(
    file: FileReader,
    read: ReadRows,
    copied: Collection[int],
    samples: PerSchema[pa.RecordBatch],
    *,
    replacements: Mapping[int, Replacement] | None = None,
    as_pages: bool,
) -> Iterator[pa.RecordBatch | StoredRows]:
    """Yield the rows of a file in order: the row groups in `copied` as stored rows, the others as batches.

    `samples` has the samples of other files with the same partition values. `replacements` has the new
    values of columns for some of the copied row groups. With `as_pages`, large row groups can be copied as
    they are encoded.
    """
    if not copied:
        yield from read(None)
        return
    sizes = file.native.row_groups
    groups = enumerate(file.row_groups)
    for is_copied, members in groupby(groups, key=lambda member: member[0] in copied):
        if not is_copied:
            yield from read([rows for _, rows in members])
            continue
        for number, rows in members:
            new = (replacements or {}).get(number)
            before = new.read_before if new else lambda group: read([group])
            sample = samples.of(file.native, partial(_first_row, before, rows))
            is_page = as_pages and _is_large(*sizes[number])
            yield StoredRows(file.native, number, rows, sample, read, is_page, new)


def _first_row(read: Callable[[RowRange], Iterator[pa.RecordBatch]], rows: RowRange) -> pa.RecordBatch:
    return next(read((rows[0], rows[0] + 1)))
