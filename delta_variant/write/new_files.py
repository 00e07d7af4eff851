"""The files that replace others in a rewrite, of which several replaced files share some."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import chain, count
from threading import Lock
from typing import TypeAlias

import pyarrow as pa

from .._arrow import Array
from .._options import Numeric
from .._threads import Threads
from ..data_file.options import WriteOptions
from ..data_file.shredding import PerSchema, numeric_of, shredding_of
from ..execution import NameFile
from ..log.snapshot import TableVersion
from ..protocol import properties
from ..protocol.table_configuration import TableConfiguration
from ..read.file_reader import FileReader
from ..read.row_tracking import with_row_ids
from .change_files import ChangeWriter
from .changed_rows import MOST_REPLACED, read_remaining_rows, read_updated_rows
from .partitions import NO_FILES, WrittenFiles
from .preparation import restrict_to_table
from .rewrite import RewrittenPart, RowChange
from .router import ResidualFiles, Router
from .stored_rows import StoredRows

MAX_SMALL_SHARE = 0.01
"""The share of the target file size below which a file is small: to write a file of its own takes longer than
to write its rows."""

MAX_SHARED = 4
"""For how many kinds of small files new files are open at most."""

MAX_SAMPLES = 4
"""For how many partitions files are open at most of which others share the sample."""

FILES_AHEAD = 2
"""The rows of how many files are read while those of another one are written."""

Kind: TypeAlias = tuple[int, Numeric, bool, bool]
"""What files have in common whose rows share a new file: the number of their schema, how their numbers are
shredded, and whether they have or separate residual rows."""


class NewFileWriters:
    """Writers of the files that replace others.

    They share the residual files, so that the residual rows of a partition are in few files. The rows of
    small files, and the updated rows of marked files, are in few files, too.
    """

    def __init__(
        self, table: TableVersion, after: TableConfiguration, options: WriteOptions, name: NameFile
    ) -> None:
        self.after = after
        self.options = options
        self.name = name
        self.stored = with_row_ids(after)
        """The table with the columns that files of moved rows have."""
        self.store = table.store
        self._residual: dict[Numeric, ResidualFiles] = {}
        self._samples: dict[object, PerSchema[pa.RecordBatch]] = {}
        self._lock = Lock()
        self._moved: dict[tuple[Numeric, bool], Router] = {}
        self._reading: deque[tuple[Router, Iterator[pa.RecordBatch], Future[pa.RecordBatch | None]]] = deque()
        self._joined: dict[Kind, tuple[Router, frozenset[str]]] = {}
        self._schemas, self._numbers = PerSchema[int](), count()
        self._changes = self.changes()

    def options_for(self, file: FileReader) -> WriteOptions:
        """Return options for rows of a file, which keep its shredding and the types of its numbers."""
        files = replace(self.options.files, numeric=numeric_of(file.native))
        shredding, is_residual = shredding_of(file.native), file.file.is_residual
        same = replace(self.options, shredding=shredding, files=files, is_residual=is_residual)
        return restrict_to_table(same, self.after)

    def options_for_all(self, file: FileReader) -> WriteOptions:
        """Return options for all rows of a file.

        A file that has residual rows keeps them: otherwise it would become two files.
        """
        options = self.options_for(file)
        if file.native.is_separated:
            return options
        return replace(options, files=replace(options.files, residual_rows="inline"))

    def residual(self, options: WriteOptions) -> ResidualFiles | None:
        """Return the residual files for a file with these options, None if it separates no rows."""
        if not options.separates:
            return None
        numeric = options.files.numeric
        with self._lock:
            if numeric not in self._residual:
                self._residual[numeric] = ResidualFiles(self.store, self.stored, options, self.name)
            return self._residual[numeric]

    def read_remaining(
        self,
        file: FileReader,
        rows: Array,
        change: RowChange,
        shredded: frozenset[str],
        writer: ChangeWriter | None,
    ) -> Iterator[pa.RecordBatch | StoredRows]:
        """Yield the remaining rows of a file for a new one, like `read_remaining_rows`.

        Pages are not copied if new files have a compression that the file lacks.
        """
        wanted = self.options.files.compression or self.after.get(properties.COMPRESSION_CODEC)
        as_pages = wanted is None or file.native.has_compression(wanted)
        alike = tuple(sorted(file.file.partition_values.items())), shredded
        with self._lock:
            if alike not in self._samples and len(self._samples) == MAX_SAMPLES:
                self._samples.clear()
            samples = self._samples.setdefault(alike, PerSchema())
        return read_remaining_rows(file, rows, change, shredded, writer, samples=samples, as_pages=as_pages)

    def _new_router(self, options: WriteOptions) -> Router:
        return Router(self.store, self.stored, options, name=self.name, residual=self.residual(options))

    def changes(self) -> ChangeWriter | None:
        """Return a writer of change data files, None if the table has no change data feed."""
        if not self.after.enables("changeDataFeed"):
            return None
        return ChangeWriter(self.store, self.after, self.name)

    def shredded(
        self, file: FileReader, rows: Array, change: RowChange, options: WriteOptions
    ) -> frozenset[str]:
        """Return the Variant columns of a file that a new file with these options takes in shredded form.

        These are the columns that pass through a change of some rows, and others if the rows are few.
        """
        # Change data files do not have the shredding of the file.
        if self._changes is not None:
            return frozenset()
        is_few = len(rows) <= MOST_REPLACED * file.native.num_rows
        others = change.columns.assigned if is_few else frozenset()
        return file.shredded(change.columns.copied | others, options.shredding)

    def join(self, file: FileReader, rows: Array, change: RowChange) -> bool:
        """Write the rows of a small file after a change to a new file that it shares with others.

        `rows` are the numbers of the changed rows in ascending order. Return False if the file is not small,
        or if more kinds of small files share new ones than can be open.
        """
        if (file.file.size or 0) >= MAX_SMALL_SHARE * self.options.files.target_file_size:
            return False
        number = self._schemas.of(file.native, partial(next, self._numbers))
        kind = number, numeric_of(file.native), file.file.is_residual, file.native.is_separated
        if kind not in self._joined:
            if len(self._joined) == MAX_SHARED:
                return False
            options = self.options_for_all(file)
            self._joined[kind] = self._new_router(options), self.shredded(file, rows, change, options)
        router, shredded = self._joined[kind]
        router.add_all(self.read_remaining(file, rows, change, shredded, self._changes))
        return True

    def move(self, file: FileReader, rows: Array, change: RowChange, threads: Threads) -> None:
        """Write those of some rows of a file that remain after a change.

        `rows` are their numbers in ascending order. New files are shredded like the first of such files. Of
        few rows, the first are read by a thread, while rows of other files are read or written.
        """
        key = numeric_of(file.native), file.file.is_residual
        if key not in self._moved:
            self._moved[key] = self._new_router(self.options_for(file))
        router, updated = self._moved[key], read_updated_rows(file, rows, change, self._changes)
        found = (new for *_, new in updated)
        # One file at a time writes change data.
        if self._changes is None and len(rows) <= MOST_REPLACED * file.native.num_rows:
            self._reading.append((router, found, threads.submit(next, found, None)))
            self._write_moved(FILES_AHEAD)
            return
        self._write_moved()
        for batch in found:
            router.add(batch)

    def _write_moved(self, ahead: int = 0) -> None:
        """Write the rows that were read first, until those of at most `ahead` files are left."""
        while len(self._reading) > ahead:
            router, rest, first = self._reading.popleft()
            for batch in chain([] if (begun := first.result()) is None else [begun], rest):
                router.add(batch)

    def _routers(self) -> Iterator[Router]:
        return chain(self._moved.values(), (router for router, _ in self._joined.values()))

    def close(self) -> RewrittenPart:
        """Finish the files that several replaced files share, and return them."""
        self._write_moved()
        files = [router.close() for router in self._routers()]
        files += [residual.close() for residual in self._residual.values()]
        changes = NO_FILES if self._changes is None else self._changes.close()
        none = pa.array([], pa.string())
        return RewrittenPart(none, (), WrittenFiles.join(files), changes, 0, 0)

    def discard(self) -> None:
        for each in (*self._routers(), *self._residual.values(), self._changes):
            if each is not None:
                each.discard()
