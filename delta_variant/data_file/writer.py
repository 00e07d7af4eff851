"""Write batches to data files, and start a new file when one reaches its target size.

Memory is bounded by the sample that a shredding schema is inferred from and one row group, for each open
file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path as FilePath
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from .._arrow import Array, value_bytes
from .._logging import get_logger
from .._system_errors import reason_of, with_remedy
from ..errors import DataFileError, StoreError
from ..protocol.statistics import FileStatistics, Path, from_report, variant_bytes
from ..storage import store as storage
from ..storage.store import Store, Upload
from .options import ROW_GROUP_BYTES, WriteOptions
from .reader import NativeFile
from .shredding import FileShredding, encoding, infer_shredding

_LOGGER = get_logger(__name__)

EXPECTED_GROWTH = 8
"""How many times the rows of a full sample a file is expected to have, while more rows come."""

MIN_SEPARATED_BYTES = 4 << 20
"""Size in bytes of the smallest file that few residual rows are separated from: to request another file takes
as long as to read one of this size, and each small commit would add two files."""

RESIDUAL_ROWS = 8 << 10
"""The number of residual rows that are taken from an open file at a time."""

LARGE_VALUE_BYTES = 1 << 20
LARGE_VALUE_BUFFERS = 8
"""How many times the size of its largest value an open file needs for text, Variants, columns and pages."""

FOLDER_ATTEMPTS = 10
"""How often a folder is created that another writer removes at the same time."""


@dataclass(frozen=True)
class ShreddedPath:
    """A shredded path of one file, and the number of values in `typed_value` and in the adjacent `value`.

    In `path`, None stands for the elements of a list.
    """

    path: tuple[str | None, ...]
    type: pa.DataType
    typed: int
    values: int


@dataclass(frozen=True)
class WrittenFile:
    """A written data file.

    Attributes:
        path: The path relative to the table, not percent-encoded.
        rows: The number of rows.
        bytes: The size of the file.
        stats: The statistics that the log has.
        variants: The shredded paths of each Variant column.
        is_residual: Whether the file has the residual rows of other files.
    """

    path: str
    rows: int
    bytes: int
    stats: FileStatistics
    variants: Mapping[str, tuple[ShreddedPath, ...]]
    is_residual: bool = False


@dataclass(frozen=True)
class ReplacedColumns:
    """New values of some columns of a row group: their ascending positions, and batches of these columns."""

    positions: Sequence[int]
    batches: Iterator[pa.RecordBatch]


InvalidValue: TypeAlias = _native.InvalidValue
"""A value that is not valid JSON: its row and column in the batch, and the byte offset in the text."""

Context = TypeVar("Context")


class FileSeries(Generic[Context]):
    """Files of one partition, written one after another.

    Each batch has a context, which is passed to `report` together with the invalid values of the batch. With
    `on_invalid="error"`, `report` must raise. All Variants of a column of one file are shredded by one
    schema, so the first rows are buffered until there are enough to infer it.

    If `separates`, residual rows are not written to a file whose rows exceed the buffer. `take_residual_rows`
    returns them.
    """

    def __init__(
        self,
        store: Store,
        new_path: Callable[[], str],
        options: WriteOptions,
        indexed: Collection[Path] | None,
        variants: Collection[str],
        report: Callable[[Context, pa.RecordBatch, list[InvalidValue]], None],
        *,
        separates: bool = False,
    ) -> None:
        self._store = store
        self._new_path = new_path
        self._options = options
        self._indexed = indexed
        self._variants = frozenset(variants)
        self._report = report
        self._separates = separates
        self._buffer: list[tuple[pa.RecordBatch, Context]] = []
        self._buffered_bytes = 0
        self._residual_rows: list[pa.RecordBatch] = []
        self._open: _FileWriter | None = None
        self._group_start = self._group_bytes = 0
        self._largest_value = 0
        self.files: list[WrittenFile] = []
        self.paths: list[str] = []
        """The paths of all files that were started, which are removed if the write fails."""

    def add(self, batch: pa.RecordBatch, context: Context) -> None:
        """Write a batch, or buffer it."""
        if self._open is not None:
            self._write(self._open, batch, context)
            return
        self._buffer.append((batch, context))
        self._buffered_bytes += batch.nbytes
        waits = self._options.shredding == "infer" or self._separates
        if not waits or self._buffered_bytes >= self._options.sample_bytes:
            self._begin(self._shredding(EXPECTED_GROWTH), separates=self._separates)

    @property
    def buffered(self) -> list[pa.RecordBatch]:
        """Return the batches that wait for more rows."""
        return [batch for batch, _ in self._buffer]

    @property
    def memory(self) -> int:
        """Return about how many bytes of memory the buffered rows and the open file use."""
        return self._buffered_bytes + self._group_bytes + LARGE_VALUE_BUFFERS * self._largest_value

    def write_buffered(self, shredding: FileShredding | None = None) -> None:
        """Write buffered rows, after which no others follow. Rows of another file may stay in the buffer.

        None infers the shredding from these rows, if it is to be inferred.
        """
        self._begin(self._shredding() if shredding is None else shredding, separates=False)

    def flush(self) -> None:
        """Write the rows that were transferred last, so that all residual rows of the open file are known."""
        if self._open is not None and self._separates:
            self._open.flush()
            self._residual_rows += self._open.writer.take_residual_rows(0)

    def take_residual_rows(self) -> list[pa.RecordBatch]:
        """Return the residual rows that were found since the last call, as they were in the batches."""
        taken, self._residual_rows = self._residual_rows, []
        return taken

    @property
    def small_file_columns(self) -> pa.Schema | None:
        """Return the columns of the open file, None if there is none or it is not small."""
        if self._open is None or self._open.writer.bytes_written >= MIN_SEPARATED_BYTES:
            return None
        return self._open.schema

    def write_residual_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write residual rows to the open file. Their invalid values were reported before."""
        for batch in batches:
            if self._open is not None:
                self._open.writer.separate(False)
                self._open.write(batch)

    def close(self) -> list[WrittenFile]:
        """Write all rows, complete the open file and return all files."""
        while self._buffer:
            self.write_buffered()
        self._end()
        return self.files

    def _begin(self, shredding: FileShredding, *, separates: bool) -> None:
        """Begin a file with the buffered rows."""
        buffer, self._buffer, self._buffered_bytes = self._buffer, [], 0
        path = self._new_path()
        self.paths.append(path)
        schema = buffer[0][0].schema
        self._open = _FileWriter.create(self._store, path, schema, self._variants, self._options, shredding)
        if separates:
            self._open.writer.separate(True)
        for batch, context in buffer:
            self.add(batch, context)

    def _shredding(self, growth: int = 1) -> FileShredding:
        """Return how a file is shredded whose first rows are buffered, one in `growth` of its rows."""
        if self._options.shredding != "infer":
            return self._options.shredding
        rows = sum(batch.num_rows for batch in self.buffered)
        return infer_shredding(self.buffered, self._variants, self._options, rows * growth, rows)

    def _write(self, file: _FileWriter, batch: pa.RecordBatch, context: Context) -> None:
        invalid = file.write(batch)
        large = (_largest_value(each) for each in batch.columns if each.nbytes >= LARGE_VALUE_BYTES)
        self._largest_value = max([self._largest_value, *large])
        if invalid:
            self._report(context, batch, invalid)
        self._end_if_full(file)

    def copy(
        self,
        columns: pa.RecordBatch,
        context: Context,
        file: NativeFile,
        row_group: int,
        *,
        as_pages: bool,
        replaced: ReplacedColumns | None = None,
    ) -> bool:
        """Append a row group of another file, and return whether this was possible.

        `columns` is a batch without rows of the columns of the file. With `as_pages`, the row group stays as
        it is encoded if it has no residual rows, but for the columns in `replaced`.
        """
        if as_pages and self._open is None and self._options.shredding != "infer":
            self._buffer.append((columns, context))
            self._begin(self._options.shredding, separates=self._separates)
        if self._open is None:
            return False
        opened = self._open
        if replaced is None:
            copied = as_pages and opened.copy(file, row_group)
            copied = copied or opened.transfer(file, row_group)
        else:
            copied = as_pages and opened.copy(file, row_group, replaced)
        self._end_if_full(opened)
        return copied

    def _end_if_full(self, file: _FileWriter) -> None:
        if self._separates:
            self._residual_rows += file.writer.take_residual_rows(RESIDUAL_ROWS)
        written = file.writer.bytes_written
        if written - self._group_start >= ROW_GROUP_BYTES:
            self._group_start = written
        self._group_bytes = written - self._group_start
        if written >= self._options.files.target_file_size:
            self._end()

    def _end(self) -> None:
        if self._open is not None:
            self.flush()
            file, self._open = self._open, None
            self._group_start = self._group_bytes = self._largest_value = 0
            written = file.close(self._options, self._indexed)
            _LOGGER.debug("wrote %s: %d rows, %d bytes", file.uri, written.rows, written.bytes)
            self.files.append(written)

    def discard(self) -> None:
        """Remove every file that was started."""
        if self._open is not None and self._open.upload is not None:
            with suppress(StoreError):
                self._open.upload.abort()
        self._open = None
        for path in self.paths:
            with suppress(StoreError):
                storage.delete(self._store, path)


def write_plain(store: Store, path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a file of columns without Variants, also without rows; raises DataFileError or StoreError."""
    options = WriteOptions()
    file = _FileWriter.create(store, path, schema, (), options, {})
    for batch in batches:
        file.write(batch)
    file.close(options, None)


@dataclass(frozen=True)
class _FileWriter:
    """An open file; `upload` is the upload of a remote file, which exists once the upload is closed."""

    path: str
    uri: str
    writer: _native.DataFileWriter
    upload: Upload | None
    schema: pa.Schema

    @classmethod
    def create(
        cls,
        store: Store,
        path: str,
        schema: pa.Schema,
        variants: Collection[str],
        options: WriteOptions,
        shredding: FileShredding,
    ) -> _FileWriter:
        local = storage.local_path(store, path)
        upload = Upload(store, path) if local is None else None
        encodings = [
            encoding((field.name,), field, shredding, is_variant=field.name in variants) for field in schema
        ]
        new_writer = partial(
            _native.DataFileWriter,
            local or upload,  # type: ignore[arg-type]
            schema,
            encodings,
            numeric=options.files.numeric,
            floats=options.json.floats,
            duplicate_keys=options.json.duplicate_keys,
            on_invalid=options.json.on_invalid,
            annotate=options.files.annotate,
            compression=options.files.codec,
            page_version=options.page_version,
            row_group_bytes=ROW_GROUP_BYTES,
        )
        with _write_errors(storage.uri_of(store, path)):
            writer = new_writer() if local is None else _in_folder(local.parent, new_writer)
        return cls(path, storage.uri_of(store, path), writer, upload, schema)

    def write(self, batch: pa.RecordBatch) -> list[InvalidValue]:
        """Write a batch and return the values that are not valid JSON."""
        with _write_errors(self.uri):
            return self.writer.write(batch)

    def copy(self, file: NativeFile, row_group: int, replaced: ReplacedColumns | None = None) -> bool:
        """Append a row group of another file as it is encoded, and return whether this was possible.

        The columns in `replaced` get other values. They are read only if this is possible, also without a
        column.
        """
        positions = [] if replaced is None else replaced.positions
        with _write_errors(self.uri):
            if not self.writer.copy(file, row_group, positions):
                return False
        for batch in () if replaced is None else replaced.batches:
            if positions:
                with _write_errors(self.uri):
                    self.writer.replace(batch)
        return True

    def transfer(self, file: NativeFile, row_group: int) -> bool:
        """Append the rows of a row group of another file, and return whether this was possible."""
        with _write_errors(self.uri):
            return self.writer.transfer(file, row_group)

    def flush(self) -> None:
        """Write the rows that were transferred last."""
        with _write_errors(self.uri):
            self.writer.flush()

    def close(self, options: WriteOptions, indexed: Collection[Path] | None) -> WrittenFile:
        limit = variant_bytes(options.files.max_variant_stats_bytes)
        with _write_errors(self.uri):
            report = self.writer.close(options.files.max_variant_stats_paths, limit)
        if self.upload is not None:
            self.upload.close()
        variants = {
            name: tuple(
                ShreddedPath(tuple(each.path), each.type, each.typed, each.values) for each in column["paths"]
            )
            for name, column in zip(self.schema.names, report["columns"], strict=True)
            if isinstance(column, dict)
        }
        statistics = from_report(report["rows"], report["columns"], self.schema.names, indexed)
        rows, size = report["rows"], report["bytes"]
        return WrittenFile(self.path, rows, size, statistics, variants, options.is_residual)


def _largest_value(array: Array) -> int:
    return pc.max(value_bytes(array)).as_py() or 0


@contextmanager
def _write_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except DataFileError as error:
        raise DataFileError(f"cannot write {uri}: {with_remedy(error.message)}", file=uri) from error


def _in_folder(folder: FilePath, new_writer: Callable[[], _native.DataFileWriter]) -> _native.DataFileWriter:
    """Create a writer in a folder, which a failing writer may remove at the same time while it is empty."""
    for attempt in count():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            # mkdir also reports a folder that exists, and is removed before mkdir checks that it is one.
            if isinstance(error, FileExistsError) and attempt < FOLDER_ATTEMPTS:
                continue
            raise DataFileError(f"cannot create {folder}: {reason_of(error)}", file=str(folder)) from error
        try:
            return new_writer()
        except DataFileError:
            if attempt == FOLDER_ATTEMPTS or folder.exists():
                raise
    raise AssertionError
