"""Load a table for reading, and read rows from its files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import total
from .._checks import texts_of
from .._logging import get_logger
from .._options import OnConflict
from .._progress import advance
from .._threads import Threads
from ..errors import error_location
from ..log.load import load_snapshot
from ..log.snapshot import Snapshot, TableVersion
from ..log.timestamps import Timestamp
from ..storage.store import TableLocation
from .explanation import FileReport, ReadReport
from .file_reader import FileEntry, FileReader, TableReader, files_of
from .log_statistics import recorded_rows
from .plan import RowPlan, plan_rows
from .predicate import PruningPredicate
from .query import Query

RowBatches: TypeAlias = Generator[pa.RecordBatch, None, None]
"""Rows that are read as they are requested; closing it stops the read."""

Row = TypeVar("Row", bound=Mapping[str, Any])

_LOGGER = get_logger(__name__)

EXACT = pa.decimal128(38, 0)


def load_readable(
    table: TableLocation | Snapshot, version: int | None, timestamp: Timestamp | None = None
) -> Snapshot:
    """Return a version of a table; raises the errors of `read_table` if this version cannot read it."""
    snapshot = load_snapshot(table, version, timestamp=timestamp)
    snapshot.configuration.check_may_read()
    return snapshot


def read_files(
    table: TableVersion,
    query: Query,
    files: Iterable[FileEntry],
    predicate: PruningPredicate,
    on_conflict: OnConflict = "error",
    report: ReadReport | None = None,
    *,
    ahead: bool = True,
) -> RowBatches:
    """Yield the matching rows of `files`.

    Adds each opened file to `report`. Unless `ahead`, a file is opened after the rows of the one before.
    Files of a local table are read by several threads, ahead of the consumer and in order.
    """
    reader = TableReader.of(table)
    read = _FileRead(reader, query, predicate, on_conflict)
    if not ahead:
        yield from _consume(map(read.start, map(reader.open, files)), report)
    elif table.store.local_root is None:
        yield from _consume(map(read.start, reader.open_all(files)), report)
    else:
        with closing(read_ahead(files, read.open, read.start_ahead)) as started:
            yield from _consume(started, report)


class _Decoded(NamedTuple):
    """The number of rows that were decoded, and those of them that match."""

    num_rows: int
    matching: pa.RecordBatch


class _Started(msgspec.Struct):
    """A file whose rows are being read: those read ahead, then the others."""

    file: FileReader
    plan: RowPlan
    head: list[_Decoded]
    rest: Iterator[_Decoded]
    error: Exception | None = None
    """Raised after the rows that were read ahead."""

    def rows(self) -> Iterator[_Decoded]:
        yield from self.head
        if self.error is not None:
            try:
                raise self.error
            finally:
                # The traceback of the error refers to this object.
                self.error = None
        yield from self.rest


class _FileRead(msgspec.Struct, frozen=True):
    """How the rows of each file are read."""

    table: TableReader
    query: Query
    predicate: PruningPredicate
    on_conflict: OnConflict

    def start(self, file: FileReader) -> _Started:
        """Plan the rows of an open file."""
        plan = plan_rows(file, self.predicate)
        return _Started(file, plan, [], self._batches(file, plan))

    def open(self, entry: FileEntry) -> _Started:
        return self.start(self.table.open(entry))

    def start_ahead(self, entry: FileEntry) -> _Started:
        """Open a file, and read its first rows; an error in them is raised after the rows before it."""
        started = self.open(entry)
        size = 0
        try:
            while size < BYTES_AHEAD and (decoded := next(started.rest, None)) is not None:
                started.head.append(decoded)
                size += decoded.matching.nbytes
        except Exception as error:
            started.error = error
        return started

    def _batches(self, file: FileReader, plan: RowPlan) -> Iterator[_Decoded]:
        if plan.rows == []:
            return
        shredded = [name for name in self.query.shredded if file.stored_type(name) is not None]
        query, before, is_count = self.query, 0, self.query.is_count
        found = file.read_matching(
            query.inputs, query.conditions, plan.rows, self.on_conflict, shredded, is_count=is_count
        )
        for seen, batch in found:
            if is_count and not batch.num_columns:
                matching = batch
            else:
                with error_location(file=file.file.path):
                    matching = query.result(batch)
            yield _Decoded(seen - before, matching)
            before = seen


def _consume(started: Iterable[_Started], report: ReadReport | None) -> RowBatches:
    for each in started:
        native, decoded = each.file.native, 0
        try:
            for count, matching in each.rows():
                decoded += count
                advance(rows=count)
                if matching.num_rows:
                    yield matching
        finally:
            # A limit closes this generator in the middle of a file.
            if report is not None:
                report.files.append(
                    FileReport(each.plan, native.bytes_read, decoded, each.file.file.is_residual)
                )
        _LOGGER.debug("read %s: %d rows decoded, %d bytes", each.file.file.path, decoded, native.bytes_read)
        advance(files=1, bytes_=native.bytes_read)


def count_rows(table: TableVersion, files: pa.Table) -> int:
    """Return the number of live rows of files, from their statistics or else from their footers."""
    counts = recorded_rows(files)
    unknown = files_of(files.filter(counts.is_null())) if counts.null_count else ()
    deleted = pc.struct_field(files["deletion_vector"], "cardinality")
    reader = TableReader.of(table)
    read = sum(reader.open(file).native.num_rows for file in unknown)
    # A sum of 64-bit integers wraps around.
    return read + total(counts.cast(EXACT)) - total(deleted.cast(EXACT))


def known_rows(snapshot: Snapshot) -> int | None:
    """Return the number of live rows of a table from statistics, None if a file has none."""
    counts = recorded_rows(snapshot.files)
    return None if counts.null_count else count_rows(snapshot, snapshot.files)


def select_files(files: Collection[Row], paths: Collection[str] | None, table: str) -> list[Row]:
    """Return those of `files`, rows of `Snapshot.files`, that have one of the paths; None selects all.

    Raises ValueError for a path that the table does not have.
    """
    if paths is None:
        return list(files)
    selected = set(texts_of("paths", "files", paths))
    unknown = sorted(selected - {file["path"] for file in files})
    if unknown:
        raise ValueError(f"{table} has no data file {unknown[0]!r}")
    return [file for file in files if file["path"] in selected]


BYTES_AHEAD = 32 << 20
"""The files that are read ahead of the one that is consumed have less than this size in all."""

MAX_THREADS = 8
FILES_PER_THREAD = 2

Started = TypeVar("Started")


def read_ahead(
    files: Iterable[FileEntry],
    start: Callable[[FileEntry], Started],
    start_ahead: Callable[[FileEntry], Started],
) -> Generator[Started, None, None]:
    """Yield the started files in order; an error is raised in the place of its file.

    The thread of the caller calls `start` for the first file, and for each file that is too large to be read
    ahead. Other threads call `start_ahead` for the next files while the caller consumes the one before.
    Closing the iterator cancels files that have not begun, and waits for the others.
    """
    remaining = iter(files)
    first = next(remaining, None)
    if first is None:
        return
    consumed, following = start(first), next(remaining, None)
    if following is None:
        yield consumed
        return
    threads = min(os.cpu_count() or 1, MAX_THREADS)
    with Threads(threads) as pool:
        ahead = _Ahead(chain([following], remaining), start_ahead, pool, threads * FILES_PER_THREAD)
        while True:
            ahead.submit()
            yield consumed
            if ahead.futures:
                consumed = ahead.take()
            elif ahead.following is not None:
                consumed = start(ahead.skip())
            else:
                return


class _Ahead(Generic[Started]):
    """The files that are read ahead, and the file that follows them."""

    def __init__(
        self, files: Iterator[FileEntry], start: Callable[[FileEntry], Started], pool: Threads, max_files: int
    ) -> None:
        self.futures: deque[tuple[int, Future[Started]]] = deque()
        self.following = next(files, None)
        self._files = files
        self._start = start
        self._pool = pool
        self._max_files = max_files
        self._size = 0

    def submit(self) -> None:
        """Submit files while their number and their total size permit."""
        while self.following is not None and len(self.futures) < self._max_files:
            size = BYTES_AHEAD if self.following.size is None else self.following.size
            if self._size + size >= BYTES_AHEAD:
                return
            self.futures.append((size, self._pool.submit(self._start, self.skip())))
            self._size += size

    def take(self) -> Started:
        """Wait for the first of the files that are read ahead."""
        size, future = self.futures.popleft()
        self._size -= size
        return future.result()

    def skip(self) -> FileEntry:
        """Return the following file, and continue with the one after it."""
        file, self.following = self.following, next(self._files, None)
        assert file is not None
        return file
