"""Commit an optimization on top of commits that deleted rows of the files that it replaces.

If new files have the rows of old ones in the same order, rows that were deleted in the old files are marked
by deletion vectors in the new ones. So an optimization and a delete by vectors do not conflict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate

import msgspec
import pyarrow as pa

from ..data_file.reader import RowRange
from ..log.deletion_vectors import add_rows, subtract_rows
from ..log.file_tables import add_actions
from ..log.pending_commit import RebasedFiles
from ..log.snapshot import TableVersion
from ..protocol.actions import AddFile, decode_path, file_key
from .concurrent_vectors import AddedAgain, ConcurrentVectors
from .deletion_vectors import VectorWriter, count_records, marked_add, vector_metrics


class MovedRows(msgspec.Struct, frozen=True):
    """Paths of new files, and of the old files whose rows they have in the same order."""

    sources: Sequence[str]
    targets: Sequence[str]


class ConcurrentMoves(ConcurrentVectors):
    """The rows that an optimization moved to new files from `removed`, rows of `Snapshot.files`."""

    def __init__(
        self, table: TableVersion, removed: pa.Table, adds: Sequence[AddFile], moved: Sequence[MovedRows]
    ) -> None:
        super().__init__(table)
        self._removed = removed
        self._new = adds
        self._moved = moved
        self._deleted: dict[str, list[int]] = {}
        """The rows that other commits deleted in old files, by path key, without rows deleted before."""

    @cached_property
    def _starts(self) -> Mapping[str, tuple[MovedRows, int]]:
        """For each old file, by path key, the files of its rows, and the number of its first row in them."""
        sources = {decode_path(add.path): add for add in add_actions(self._removed)}
        starts: dict[str, tuple[MovedRows, int]] = {}
        for moved in self._moved:
            files = [sources[path] for path in moved.sources]
            counts = [count_records(add) - _cardinality(add) for add in files]
            # The sums differ if the statistics of a file do not have its number of rows.
            if sum(counts) == sum(count_records(self._new_by_path[path]) for path in moved.targets):
                first = accumulate(counts, initial=0)
                starts |= {file_key(add)[0]: (moved, start) for add, start in zip(files, first, strict=False)}
        return starts

    @cached_property
    def _new_by_path(self) -> Mapping[str, AddFile]:
        return {decode_path(add.path): add for add in self._new}

    def divide(
        self, removed: pa.Table, adds: Sequence[AddFile]
    ) -> tuple[pa.Table, Sequence[AddFile], RebasedFiles]:
        """Return no files that stay the same, because rows of any new file may be marked."""
        return removed.slice(0, 0), (), RebasedFiles(removed, adds)

    def may_match(self, adds: Sequence[AddFile]) -> bool:
        """Return True: an optimization that changed rows would have to see all."""
        return True

    def find_unused(self, paths: Iterable[str]) -> Collection[str]:
        """Return the new files of which no row is left; an optimization writes no vectors itself."""
        if not self._others:
            return ()
        return self._new_by_path.keys() - {decode_path(add.path) for add in self._files.after}

    def _may_follow(self, file: AddedAgain) -> bool:
        if file.deleted and file.key not in self._starts:
            return False
        self._deleted[file.key] = list(_number_without(file.deleted, subtract_rows(file.rows_before, None)))
        self._follow(file.after)
        return True

    def _adds(self, vectors: VectorWriter) -> Iterator[AddFile]:
        deleted = self._deleted_in_new_files()
        for path, add in self._new_by_path.items():
            rows = deleted.get(path)
            if not rows:
                yield add
            elif len(rows) < count_records(add):
                vector, count = add_rows(None, pa.array(sorted(rows), pa.int64()))
                yield marked_add(add, vectors.add(vector, count), count_records(add))

    def _count(self, removed: pa.Table, adds: Sequence[AddFile]) -> Mapping[str, int]:
        vectors = vector_metrics(removed, adds, "OPTIMIZE")
        return {"numAddedFiles": len(adds), "numAddedBytes": sum(add.size for add in adds), **vectors}

    def _deleted_in_new_files(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for key, rows in self._deleted.items():
            if not rows:
                continue
            moved, start = self._starts[key]
            ends = accumulate(count_records(self._new_by_path[path]) for path in moved.targets)
            first, remaining = 0, [start + row for row in rows]
            for path, end in zip(moved.targets, ends, strict=True):
                found[path] += [row - first for row in remaining if first <= row < end]
                first = end
        return found


def _cardinality(add: AddFile) -> int:
    return 0 if add.deletion_vector is None else add.deletion_vector.cardinality


def _number_without(rows: Sequence[RowRange], others: Sequence[RowRange]) -> Iterator[int]:
    """Yield the numbers that some rows have if other rows, which are different, are not counted."""
    skipped, remaining = 0, list(reversed(others))
    for start, end in rows:
        for row in range(start, end):
            while remaining and remaining[-1][0] < row:
                first, last = remaining.pop()
                skipped += last - first
            yield row - skipped
