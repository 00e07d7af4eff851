"""The files of a table whose checkpoint is large: they are read from it when they are used."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._threads import Threads
from ..errors import MalformedLogError
from .file_keys import FileKeys, drop_files

__all__ = ["FileList", "Part", "PartitionValues", "Piece", "Summary", "in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")

PartitionValues: TypeAlias = list[dict[str, str | None]]
"""The partition values of files, by the physical names of the columns."""

MAX_THREADS = 4
PIECES_PER_THREAD = 2


class Piece(Protocol):
    """Row groups of a file of a checkpoint: what one thread reads."""

    def batches(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
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

    `schema` is that of the files. `recover` returns the files of the checkpoint from other files of the log,
    and raises MalformedLogError if none have the same actions.
    """

    schema: pa.Schema
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
            return pa.Table.from_batches([*recovered, *self.added], self.schema)

    def table(self) -> pa.Table:
        """Return all files; raises MalformedLogError if the checkpoint cannot be read."""
        return pa.Table.from_batches(self, self.schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all files in batches; raises MalformedLogError if the checkpoint cannot be read."""
        columns = self.schema.names
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
        return map(drop_files(self.touched), piece.batches(needed))

    def totals(self) -> tuple[int, int]:
        """Return the number of files and their size in bytes; raises MalformedLogError."""
        return self._totals

    @cached_property
    def _totals(self) -> tuple[int, int]:
        totals = list(in_order(lambda piece: _sums(self.read(piece, {"size"})), self.pieces()))
        totals.append(_sums(self.added))
        return sum(files for files, _ in totals), sum(size for _, size in totals)


def _sums(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    sums = [(batch.num_rows, _sum(batch["size"])) for batch in batches]
    return sum(files for files, _ in sums), sum(size for _, size in sums)


def _sum(sizes: Any) -> int:
    return int(pc.sum(sizes).as_py() or 0)


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the results of `work`, which several threads do, in the order of the items.

    Few results are held ahead of the consumer. An error is raised in the place of its item.
    """
    threads = min(os.cpu_count() or 1, MAX_THREADS)
    remaining = iter(items)
    futures: deque[Future[Result]] = deque()
    with Threads(threads) as pool:
        while True:
            for item in islice(remaining, threads * PIECES_PER_THREAD - len(futures)):
                futures.append(pool.submit(work, item))
            if not futures:
                return
            yield futures.popleft().result()
