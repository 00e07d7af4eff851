"""Write batches to data files, and start a new file when one reaches its target size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path as FilePath
from typing import Generic, TypeVar

import pyarrow as pa

from .. import _native
from .._system_errors import reason_of, with_remedy
from ..errors import DataFileError, StoreError
from ..protocol.statistics import FileStatistics, Path, from_report
from ..storage import store
from ..storage.store import Store, Upload
from .options import WriteOptions
from .shredding import encoding

__all__ = ["Fault", "FileSeries", "ShreddedPath", "WrittenFile"]

ROW_GROUP_BYTES = 16 << 20
FOLDER_ATTEMPTS = 10


@dataclass(frozen=True)
class ShreddedPath:
    """A shredded path of one file, and how many values are in `typed_value` and in the `value` beside it.

    In `path`, None stands for the elements of a list.
    """

    path: tuple[str | None, ...]
    type: pa.DataType
    typed: int
    values: int


@dataclass(frozen=True)
class WrittenFile:
    """A data file that was written; `path` is relative to the table, and not percent-encoded.

    `variants` has the shredded paths of each Variant column.
    """

    path: str
    rows: int
    bytes: int
    stats: FileStatistics
    variants: Mapping[str, tuple[ShreddedPath, ...]]


@dataclass(frozen=True)
class Fault:
    """A value that is not valid JSON: where in its batch and column, at which byte of its text, and why."""

    row: int
    column: int
    offset: int
    message: str


Context = TypeVar("Context")


class FileSeries(Generic[Context]):
    """Files of one partition, written one after another as they fill.

    Each batch comes with a context, which is handed to `report` together with the faults found in the batch;
    with `on_invalid="error"`, `report` must raise. A file's Variants are shredded by one schema, so its first
    rows are held back until they are enough to infer it from.
    """

    def __init__(
        self,
        place: Store,
        new_path: Callable[[], str],
        options: WriteOptions,
        indexed: Collection[Path] | None,
        variants: Collection[str],
        report: Callable[[Context, pa.RecordBatch, list[Fault]], None],
    ) -> None:
        self._store = place
        self._new_path = new_path
        self._options = options
        self._indexed = indexed
        self._variants = frozenset(variants)
        self._report = report
        self._held: list[tuple[pa.RecordBatch, Context]] = []
        self._held_bytes = 0
        self._open: _OpenFile | None = None
        self.files: list[WrittenFile] = []
        self.paths: list[str] = []
        """All paths that were begun, to be removed when the write fails."""

    def add(self, batch: pa.RecordBatch, context: Context) -> None:
        """Write a batch, or hold it back."""
        if self._open is not None:
            self._write(self._open, batch, context)
            return
        self._held.append((batch, context))
        self._held_bytes += batch.nbytes
        if self._options.shredding != "infer" or self._held_bytes >= self._options.sample_bytes:
            self._begin()

    def close(self) -> list[WrittenFile]:
        """Finish the file in progress and return all files."""
        if self._held:
            self._begin()
        self._end()
        return self.files

    def _begin(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        path = self._new_path()
        self.paths.append(path)
        batches = [batch for batch, _ in held]
        self._open = _OpenFile.create(self._store, path, batches, self._variants, self._options)
        for batch, context in held:
            self.add(batch, context)

    def _write(self, file: _OpenFile, batch: pa.RecordBatch, context: Context) -> None:
        faults = file.write(batch)
        if faults:
            self._report(context, batch, faults)
        if file.writer.bytes_written >= self._options.target_file_size:
            self._end()

    def _end(self) -> None:
        if self._open is not None:
            file, self._open = self._open, None
            self.files.append(file.close(self._options.max_stats_paths, self._indexed))

    def discard(self) -> None:
        """Remove every file that was begun."""
        if self._open is not None and self._open.upload is not None:
            with suppress(StoreError):
                self._open.upload.abort()
        self._open = None
        for path in self.paths:
            with suppress(StoreError):
                store.delete(self._store, path)


@dataclass(frozen=True)
class _OpenFile:
    """A file in progress; `upload` is that of a remote one, which is there once it is whole."""

    path: str
    uri: str
    writer: _native.DataFileWriter
    upload: Upload | None
    names: tuple[str, ...]

    @classmethod
    def create(
        cls,
        place: Store,
        path: str,
        sample: Sequence[pa.RecordBatch],
        variants: Collection[str],
        options: WriteOptions,
    ) -> _OpenFile:
        schema = sample[0].schema
        local = store.local_path(place, path)
        upload = Upload(place, path) if local is None else None
        encodings = [
            encoding(
                (field.name,),
                field,
                [batch.column(index) for batch in sample],
                options,
                is_variant=field.name in variants,
            )
            for index, field in enumerate(schema)
        ]
        new_writer = partial(
            _native.DataFileWriter,
            local or upload,  # type: ignore[arg-type]
            schema,
            encodings,
            numeric=options.numeric,
            floats=options.floats,
            duplicate_keys=options.duplicate_keys,
            on_invalid=options.on_invalid,
            annotate=options.annotate,
            compression=options.compression,
            row_group_bytes=ROW_GROUP_BYTES,
        )
        with _naming_writes(store.uri_of(place, path)):
            writer = new_writer() if local is None else _in_folder(local.parent, new_writer)
        return cls(path, store.uri_of(place, path), writer, upload, tuple(schema.names))

    def write(self, batch: pa.RecordBatch) -> list[Fault]:
        """Write a batch and return the values that are not valid JSON."""
        with _naming_writes(self.uri):
            return [
                Fault(each.row, each.column, each.offset, each.message) for each in self.writer.write(batch)
            ]

    def close(self, max_stats_paths: int, indexed: Collection[Path] | None) -> WrittenFile:
        with _naming_writes(self.uri):
            report = self.writer.close(max_stats_paths)
        if self.upload is not None:
            self.upload.close()
        variants = {
            name: tuple(
                ShreddedPath(tuple(each.path), each.type, each.typed, each.values) for each in column["paths"]
            )
            for name, column in zip(self.names, report["columns"], strict=True)
            if isinstance(column, dict)
        }
        statistics = from_report(report["rows"], report["columns"], self.names, indexed)
        return WrittenFile(self.path, report["rows"], report["bytes"], statistics, variants)


@contextmanager
def _naming_writes(uri: str) -> Iterator[None]:
    try:
        yield
    except DataFileError as error:
        raise DataFileError(f"cannot write {uri}: {with_remedy(str(error))}") from error


def _in_folder(folder: FilePath, new_writer: Callable[[], _native.DataFileWriter]) -> _native.DataFileWriter:
    """Return a writer of a file in a folder, which another writer that fails may remove at the same time."""
    for attempt in count():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataFileError(f"cannot create {folder}: {reason_of(error)}") from error
        try:
            return new_writer()
        except DataFileError:
            if attempt == FOLDER_ATTEMPTS or folder.exists():
                raise
    raise AssertionError
