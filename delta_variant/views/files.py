"""The files of a view: the bytes of data files with other footers, or rewritten files in a cache."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from errno import EIO, ENOENT
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa

from .._system_errors import reason_of
from .._version import package_version
from ..data_file.writer import write_plain
from ..errors import StoreError, error_location
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol.schema.partition_values import folder_of
from ..read.file_reader import FileEntry, FileReader, TableReader, files_of
from ..read.query import Query
from ..read.rows import load_readable, read_files
from ..storage import store as storage
from ..storage.store import Store, TableLocation
from .shape import Shape


class ViewFile(msgspec.Struct, frozen=True):
    """A file of a view: the first `data_end` bytes of a file in a store, and a footer.

    `rewritten` is why rows were written again as plain columns, None for a data file of the table.
    """

    name: str
    store: Store
    path: str
    data_end: int
    footer: bytes
    rewritten: str | None = None

    @property
    def size(self) -> int:
        return self.data_end + len(self.footer)

    def open(self) -> OpenFile:
        try:
            if self.rewritten is not None:
                os.utime(Path(self.store.uri, self.path))
            return OpenFile(self)
        except FileNotFoundError as error:
            reason = "the file of a view was deleted, for example by a vacuum: create the view again"
            raise FileNotFoundError(ENOENT, reason, self.path) from error


class OpenFile(io.RawIOBase):
    """An open file of a view, not buffered: readers of Parquet read ranges, and keep what they need.

    Each thread has its own position, because the threads of DuckDB share a file, and seek before they read.
    """

    def __init__(self, file: ViewFile) -> None:
        super().__init__()
        self.size = file.size
        self._file = file
        self._position = threading.local()
        local = storage.local_path(file.store, file.path)
        self._local = None if local is None else io.FileIO(local)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        at: int = getattr(self._position, "at", 0)
        return at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET:
            offset += {io.SEEK_CUR: self.tell(), io.SEEK_END: self.size}[whence]
        at = self._position.at = max(0, offset)
        return at

    def read(self, size: int | None = -1) -> bytes:
        start = self.tell()
        end = self.size if size is None or size < 0 else min(self.size, start + size)
        data = self._range(start, end) if start < end else b""
        self._position.at = start + len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._local is not None:
            self._local.close()
        super().close()

    def _range(self, start: int, end: int) -> bytes:
        data_end, footer = self._file.data_end, self._file.footer
        if end <= data_end:
            return self._data(start, end)
        if start >= data_end:
            return footer[start - data_end : end - data_end]
        return self._data(start, data_end) + footer[: end - data_end]

    def _data(self, start: int, end: int) -> bytes:
        if self._local is not None and hasattr(os, "pread"):
            return _read(self._local.fileno(), self._file.path, start, end)
        return storage.get_ranges(self._file.store, self._file.path, [(start, end)])[0]


def _read(descriptor: int, path: str, start: int, end: int) -> bytes:
    """Return the bytes of a range, which may need several calls: one returns 2 GiB at most."""
    parts = []
    while start < end:
        data = os.pread(descriptor, end - start, start)
        if not data:
            reason = (
                f"the file ends at byte {start} and was longer when the view was created: create it again"
            )
            raise OSError(EIO, reason, path)
        parts.append(data)
        start += len(data)
    return b"".join(parts)


class View:
    """The typed columns of one version of a table as a folder of plain Parquet files.

    Attributes:
        shape: The columns, and those of the files.
        created: When the version was read.
    """

    def __init__(self, snapshot: Snapshot, shape: Shape) -> None:
        self._snapshot = snapshot
        self.shape = shape
        self.created = datetime.now(timezone.utc)

    @classmethod
    def of(
        cls,
        table: TableLocation | Snapshot,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        *,
        strict: bool = True,
        version: int | None = None,
        timestamp: Timestamp | None = None,
    ) -> View:
        """Return the view of a table, with the parameters of `to_duckdb`."""
        snapshot = load_readable(table, version, timestamp)
        return cls(snapshot, Shape.of(snapshot, columns, strict=strict))

    @classmethod
    def as_stored(cls, snapshot: Snapshot, query: Query, files: pa.Table) -> View | None:
        """Return the view of some files, rows of `Snapshot.files`, if a footer can show each of them."""
        view = cls(snapshot, Shape.of_query(snapshot, query))
        found: list[ViewFile] = []
        for reader in view.reader.open_all(files_of(files)):
            file = view.shown(reader)
            if isinstance(file, str):
                return None
            found.append(file)
        view.files = found
        return view

    @property
    def schema(self) -> pa.Schema:
        return self.shape.query.schema

    @cached_property
    def reader(self) -> TableReader:
        return TableReader.of(self._snapshot)

    @cached_property
    def files(self) -> list[ViewFile]:
        """Return the files. Those that no footer can show are written to the cache first."""
        return list(map(self._file, self.reader.open_all(files_of(self._snapshot.files))))

    @cached_property
    def by_name(self) -> Mapping[str, ViewFile]:
        return {file.name: file for file in self.files}

    def _file(self, reader: FileReader) -> ViewFile:
        shown = self.shown(reader)
        return self.rewritten(reader, shown) if isinstance(shown, str) else shown

    def shown(self, reader: FileReader) -> ViewFile | str:
        """Return a file with another footer, or why it needs to be rewritten."""
        file = reader.file
        with error_location(file=file.path):
            shown = _obstacle(reader, self.shape) or reader.native.view(list(self.shape.stored), None)
        if isinstance(shown, str):
            return shown
        return ViewFile(self._name(file), self._snapshot.store, file.path, *shown)

    def written(self, reader: FileReader, folder: Path) -> ViewFile:
        """Return a new file of the columns in a folder: their encoded values, or else their rows."""
        reason = _obstacle(reader, self.shape)
        if reason is None:
            path = folder / f"{uuid4()}.parquet"
            with error_location(file=reader.file.path):
                reason = reader.native.write_view(list(self.shape.stored), path)
            if reason is None:
                name, size = self._name(reader.file), path.stat().st_size
                return ViewFile(name, storage.open_store(folder), path.name, size, b"")
            path.unlink()
        return self.rewritten(reader, reason, folder)

    def folder(self, file: FileEntry) -> str:
        """Return the folder of a file, which has its partition values, with a slash at its end."""
        return "".join(
            f"{folder_of(name, file.partition_values.get(physical))}/"
            for name, physical in self.shape.partitions.items()
        )

    def _name(self, file: FileEntry) -> str:
        # pyarrow leaves out files whose names begin with _ or a dot.
        name = re.sub("^(?=[_.])", "-", re.sub("[/:]", "_", file.path))
        return f"{self.folder(file)}{name.removesuffix('.parquet')}.parquet"

    def rewritten(self, reader: FileReader, reason: str, folder: Path | None = None) -> ViewFile:
        """Return a file with the rows as plain columns in a folder, by default that of the cache."""
        file, shape = reader.file, self.shape
        table = self._snapshot.metadata.id
        rows = (file.path, file.size, file.deletion_vector)
        key = (package_version(), table, *rows, shape.query.outputs, str(shape.file_schema))
        path = cached(repr(key), shape.file_schema, lambda: self._rows(reader), folder)
        store = storage.open_store(path.parent)
        return ViewFile(self._name(file), store, path.name, path.stat().st_size, b"", reason)

    def _rows(self, reader: FileReader) -> Iterator[pa.RecordBatch]:
        query = self.shape.query.narrow(self.shape.places.keys(), None)
        return self.shape.rows(read_files(self._snapshot, query, [reader.file], None))


def _obstacle(reader: FileReader, shape: Shape) -> str | None:
    """Return why no file has the rows of a view as they are stored, whatever its columns."""
    if shape.computed is not None:
        return f"the column {shape.computed!r} is computed"
    if reader.file.deletion_vector is not None:
        return "the file has a deletion vector"
    return None


FOLDER = "DELTA_VARIANT_CACHE"
"""The environment variable with the folder of the cache."""

MAX_BYTES = 10 << 30
"""If all files have more bytes, those that were not used for the longest time are removed …"""

MIN_SECONDS = 24 * 3600
"""… unless they were used within this time: a view needs its files while readers use it."""


def cached(
    key: str, schema: pa.Schema, rows: Callable[[], Iterable[pa.RecordBatch]], folder: Path | None = None
) -> Path:
    """Return the file of a key in a folder, by default that of the cache. It is written if it is not there.

    Processes share the files: each one is complete once it has its name. A file that is removed while a
    reader has it open stays readable to it. Raises StoreError or DataFileError if the file cannot be written.
    """
    folder = folder or _folder()
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.parquet"
    try:
        os.utime(path)
    except FileNotFoundError:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write(path, schema, rows())
        except OSError as error:
            raise StoreError(f"cannot write {path}: {reason_of(error)}", file=str(path)) from error
        _forget(folder)
    return path


def _write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    new = path.with_name(f"{uuid4()}.tmp")
    try:
        write_plain(storage.open_store(new.parent), new.name, schema, batches)
        new.replace(path)
    except BaseException:
        # Windows cannot delete a file that the traceback keeps open. `_forget` deletes it later.
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def _forget(folder: Path) -> None:
    """Remove files that were not used for the longest time, those of killed processes among them."""
    found: list[tuple[float, int, Path]] = []
    for each in folder.iterdir():
        try:
            status = each.stat()
        except FileNotFoundError:
            # Another process removed it.
            continue
        found.append((status.st_mtime, status.st_size, each))
    total = sum(size for _, size, _ in found)
    for used, size, path in sorted(found):
        if total <= MAX_BYTES or used > time.time() - MIN_SECONDS:
            return
        path.unlink(missing_ok=True)
        total -= size


def _folder() -> Path:
    if (named := os.environ.get(FOLDER)) is not None:
        return Path(named)
    home = Path.home()
    places: dict[str, Any] = {"darwin": home / "Library" / "Caches", "win32": os.environ.get("LOCALAPPDATA")}
    base = places.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "delta-variant" / "views"
