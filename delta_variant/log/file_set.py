"""The files of a version: an Arrow table, or a list in a large checkpoint, which is read when it is used."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Protocol, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from .._arrow import total
from .._threads import Threads
from ..errors import MalformedLogError
from .file_tables import BATCH_ROWS, FILES_SCHEMA, FileKeys, drop_files, drop_files_at_once, pool_for_files

Item = TypeVar("Item")
Result = TypeVar("Result")

PartitionValues: TypeAlias = list[dict[str, str | None]]
"""The partition values of files, by the physical names of the columns."""

MAX_THREADS = 4
PIECES_PER_THREAD = 2


class Piece(Protocol):
    """Row groups of a file of a checkpoint: what one thread reads."""

    def files(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield the files as rows of FILES_SCHEMA, of which only `columns` are read and others are null.

        Raises MalformedLogError.
        """


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """The bounds of the files of a sidecar.

    `stats` has the form of `AddFile.stats` and holds for all files together. `partition_values` are those of
    its files, each once; None if they are many. `sidecar` and `size_in_bytes` state the file that it is of.
    `is_ordered` states that it was written when all files were put in order.
    """

    sidecar: str
    size_in_bytes: int
    num_files: int
    num_bytes: int
    stats: str
    partition_values: PartitionValues | None = None
    is_ordered: bool = False


class Part(Protocol):
    """The files in one file of a checkpoint."""

    @property
    def summary(self) -> Summary | None:
        """Return the bounds of its files, None if they are not known."""

    def pieces(self) -> Sequence[Piece]:
        """Return the row groups that threads can read; raises MalformedLogError."""


@dataclass(frozen=True)
class FileList:
    """The files in `parts` of a checkpoint without those that later commits touched, then the files `added`.

    `recover` returns the files of the checkpoint from other files of the log, and raises MalformedLogError if
    none have the same actions.
    """

    parts: Sequence[Part]
    recover: Callable[[], pa.Table]
    touched: FileKeys = field(default_factory=FileKeys)
    added: Sequence[pa.RecordBatch] = ()

    def after(self, touched: FileKeys, added: pa.Table) -> FileList:
        """Return the list after later commits that touched some files, and added those of a table."""
        drop = drop_files(touched)
        remaining = [batch for batch in map(drop, self.added) if batch.num_rows]
        return replace(self, touched=self.touched.union(touched), added=[*remaining, *added.to_batches()])

    def load(self) -> pa.Table:
        """Return all files; raises MalformedLogError if no files of the log have them."""
        try:
            return self.table()
        except MalformedLogError:
            recovered = map(drop_files(self.touched), self.recover().to_batches())
            return pa.Table.from_batches([*recovered, *self.added], FILES_SCHEMA)

    def table(self) -> pa.Table:
        """Return all files; raises MalformedLogError if the checkpoint cannot be read."""
        return pa.Table.from_batches(self, FILES_SCHEMA)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all files in batches; raises MalformedLogError if the checkpoint cannot be read."""
        columns = FILES_SCHEMA.names
        for batches in in_order(lambda piece: list(self.read(piece, columns)), self.pieces()):
            yield from batches
        yield from self.added

    def stream(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield all files with some columns, and hold one batch at a time; raises MalformedLogError."""
        for piece in self.pieces():
            yield from self.read(piece, columns)
        yield from self.added

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces of all parts; raises MalformedLogError."""
        return (piece for part in self.parts for piece in part.pieces())

    def read(self, piece: Piece, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield the files of a piece that later commits did not touch; raises MalformedLogError."""
        needed = {*columns, "path", "deletion_vector"} if self.touched else columns
        return map(drop_files(self.touched), piece.files(needed))

    @cached_property
    def totals(self) -> tuple[int, int]:
        """Return the number of files and their size in bytes; raises MalformedLogError."""
        totals = list(in_order(lambda piece: _sums(self.read(piece, {"size"})), self.pieces()))
        totals.append(_sums(self.added))
        return sum(files for files, _ in totals), sum(size for _, size in totals)


class FileSet:
    """The files of a version, which iterates over batches of FILES_SCHEMA, one row for each logical file.

    The files of a large checkpoint are loaded when `table` is first used. A read that selects files uses
    `listed`, and keeps only those in memory.
    """

    def __init__(self, files: pa.Table | FileList) -> None:
        self._files = files

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch]) -> FileSet:
        """Return files in memory."""
        return cls(pa.Table.from_batches(batches, FILES_SCHEMA))

    @property
    def listed(self) -> FileList | None:
        """Return the list of files while it is not loaded, None once they are a table."""
        return self._files if isinstance(self._files, FileList) else None

    @property
    def table(self) -> pa.Table:
        """Return the files as a table; raises MalformedLogError if no files of the log have them."""
        files = self._files
        if isinstance(files, FileList):
            files = self._files = files.load()
        return files

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all files in batches; raises MalformedLogError if the checkpoint cannot be read."""
        files = self._files
        return iter(files) if isinstance(files, FileList) else iter(files.to_batches())

    def stream(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield all files in batches, of which only some columns may be read, one at a time."""
        files = self._files
        return files.stream(columns) if isinstance(files, FileList) else iter(files.to_batches(BATCH_ROWS))

    def after(self, touched: FileKeys, added: list[pa.RecordBatch]) -> FileSet:
        """Return the files after later commits that touched some of them and added others."""
        files = self._files
        if isinstance(files, FileList):
            return FileSet(files.after(touched, pa.Table.from_batches(added, FILES_SCHEMA)))
        return FileSet.of(append_batches(drop_files_at_once(files.to_batches(), touched), added))

    @property
    def num_files(self) -> int:
        """Return the number of files."""
        totals = self._totals_of_list
        return self.table.num_rows if totals is None else totals[0]

    @property
    def num_bytes(self) -> int:
        """Return the total size of the files in bytes."""
        totals = self._totals_of_list
        return total(self.table["size"]) if totals is None else totals[1]

    @property
    def _totals_of_list(self) -> tuple[int, int] | None:
        """Return the number of files and bytes of the list, None if it is loaded or cannot be read."""
        listed = self.listed
        try:
            return None if listed is None else listed.totals
        except MalformedLogError:
            # Loading the files uses other files of the log, if they have the same actions.
            return None


def append_batches(batches: Iterable[pa.RecordBatch], added: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return all batches, with the last ones merged that are not larger than the rows after them.

    A snapshot that moves on by many small commits has few batches, and copies each row a few times only.
    """
    before = [batch for batch in batches if batch.num_rows]
    merged = sum(batch.num_rows for batch in added)
    while added and before and before[-1].num_rows <= merged:
        if merged + before[-1].num_rows > BATCH_ROWS:
            break
        merged += before[-1].num_rows
        table = pa.Table.from_batches([before.pop(), *added])
        added = table.combine_chunks(pool_for_files()).to_batches()
    return [*before, *added]


def _sums(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    sums = [(batch.num_rows, total(batch["size"])) for batch in batches]
    return sum(files for files, _ in sums), sum(size for _, size in sums)


def in_order(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int | None = None,
    per_thread: int = PIECES_PER_THREAD,
) -> Iterator[Result]:
    """Yield the results of `work`, which several threads do, in the order of the items.

    Few results are held ahead of the consumer: `per_thread`. An error is raised in the place of its item.
    """
    threads = threads or min(os.cpu_count() or 1, MAX_THREADS)
    remaining = iter(items)
    futures: deque[Future[Result]] = deque()
    with Threads(threads) as pool:
        while True:
            for item in islice(remaining, threads * per_thread - len(futures)):
                futures.append(pool.submit(work, item))
            if not futures:
                return
            yield futures.popleft().result()
