"""Read ranges of rows that are evenly spaced in a table.

The first rows of a table that is sorted, or that grew in order of time, have few of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import pyarrow as pa

from ...data_file.reader import RowRange
from ...log.snapshot import Snapshot
from ...read.file_reader import FileReader, TableReader, files_of
from ...read.query import Query

MAX_FILES = 16
MAX_RANGES = 32
"""Adjacent rows are often alike, so that many ranges are better than few. Each range costs pages to read."""
MAX_BYTES = 64 << 20


def choose_files(snapshot: Snapshot) -> pa.Table:
    """Return up to 16 files of a table, evenly spaced."""
    number = min(snapshot.num_files, MAX_FILES)
    positions = [at * snapshot.num_files // number for at in range(number)]
    return snapshot.files.take(pa.array(positions, pa.int64()))


def read_ranges(
    snapshot: Snapshot, files: pa.Table, query: Query, limit: int
) -> Iterator[list[pa.RecordBatch]]:
    """Yield ranges of rows of some files of a table, with about `limit` rows in all."""
    for file in TableReader.of(snapshot).open_all(files_of(files)):
        for rows in _ranges(file, -(-limit // files.num_rows), MAX_RANGES // files.num_rows):
            yield list(_first(map(query.result, file.read(query.inputs, [rows], "error"))))


def _ranges(file: FileReader, limit: int, number: int) -> list[RowRange]:
    """Return ranges of a file, evenly spaced, with `limit` rows that are not deleted."""
    stored = sum(rows for rows, _ in file.native.row_groups)
    left = stored - (file.file.deletion_vector or {}).get("cardinality", 0)
    if left <= limit:
        return [(0, stored)]
    wanted, number = limit * stored // left, min(number, limit)
    parts = ((at * stored // number, at * wanted // number) for at in range(number + 1))
    return [(start, min(start + after - before, end)) for (start, before), (end, after) in pairwise(parts)]


def _first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches until they have their part of the bytes."""
    size = 0
    for batch in batches:
        yield batch
        size += batch.nbytes
        if size > MAX_BYTES // MAX_RANGES:
            return
