"""JSON files as Arrow batches of their values' text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import glob, has_magic
from io import TextIOBase
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeGuard, get_args

import pyarrow as pa

from .. import _native
from .._checks import check_option, check_text, to_integer
from .._system_errors import reason_of
from ..errors import ArgumentTypeError, InvalidJsonError, SourceError, SourceNotFoundError
from ..storage.store import local_location

__all__ = ["JsonLines", "Origin", "read_json_lines"]

Source: TypeAlias = "str | PathLike[str] | BinaryIO"
Format: TypeAlias = Literal["auto", "lines", "array"]
Progress: TypeAlias = Callable[[int, int], None]
"""Told the bytes of input taken so far, compressed where it is, and the values found."""

PIECE_BYTES = 4 << 20
COMPRESSED_BYTES = 256 << 10
MAX_VALUE_BYTES = 128 << 20
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Origin:
    """Where the values of a batch stand in their file."""

    name: str
    positions: _native.Positions
    max_value_bytes: int

    def locate(self, row: int, text: bytes, offset: int, message: str) -> tuple[int, int, str]:
        """Return line, column and reason of a fault `offset` bytes into the text of the value `row`."""
        if row in self.positions.oversized:
            message = f"the value has more than {self.max_value_bytes:,} bytes"
        place = self.positions.locate(row, text[:offset])
        line, column = place or (0, 0)
        return line, column, message


@dataclass(frozen=True)
class JsonLines:
    """The values of JSON files: an Arrow stream of one column of JSON text (extension `arrow.json`)."""

    sources: tuple[Source, ...]
    column: str
    format: Format
    max_value_bytes: int
    progress: Progress | None

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the stream."""
        return pa.schema([pa.field(self.column, pa.json_())])

    @property
    def size(self) -> int | None:
        """Return the bytes of all files on disk; None when one of the sources is not a file."""
        if not all(_is_path(source) for source in self.sources):
            return None
        return sum(Path(source).stat().st_size for source in self.sources if _is_path(source))

    def batches(self) -> Iterator[tuple[pa.RecordBatch, Origin]]:
        """Yield the text of the values, as binary that is not checked to be UTF-8, and where it stands.

        Raises InvalidJsonError where the commas and brackets around the elements of an array are wrong.
        """
        taken = rows = 0
        for source in self.sources:
            with _Opened(source) as opened:
                splitter = _native.LineSplitter(_format(self.format, opened.name), self.max_value_bytes)
                for text, positions in _split(splitter, opened):
                    rows += len(text)
                    if self.progress is not None:
                        self.progress(taken + opened.taken(), rows)
                    if len(text):
                        batch = pa.record_batch({self.column: text})
                        yield batch, Origin(opened.name, positions, self.max_value_bytes)
                taken += opened.taken()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the stream; text that is not UTF-8 raises InvalidJsonError."""
        reader: Any = pa.RecordBatchReader.from_batches(self.schema, self._text_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _text_batches(self) -> Iterator[pa.RecordBatch]:
        for batch, origin in self.batches():
            try:
                text = batch.column(0).cast(pa.string())
            except pa.ArrowInvalid as error:
                raise InvalidJsonError(f"{origin.name}: {error}") from error
            yield pa.record_batch([pa.ExtensionArray.from_storage(pa.json_(), text)], schema=self.schema)


def read_json_lines(
    source: Source | Sequence[Source],
    *,
    column: str = "value",
    format: Format = "auto",  # noqa: A002 - the word that a caller expects
    max_value_bytes: int = MAX_VALUE_BYTES,
    progress: Progress | None = None,
) -> JsonLines:
    """Return the values of JSON files as an Arrow stream of one column, `column`, of JSON text.

    A source is a path, a glob, `-` for standard input, or an open binary file; `.gz`, `.zst`, `.xz` and
    `.bz2` are decompressed. A file holds one value a line, or one array whose elements are the values. Byte
    order marks, CRLF and blank lines are passed over. Nothing is read before the stream is; what is not JSON
    is found by the reader of the stream, such as `write_table`, which then names file, line and column.
    Raises SourceNotFoundError, a FileNotFoundError, for a file that does not exist, SourceError for a
    directory or another source that cannot be read, StoreError for a URI of a file that is not on a local
    disk, ValueError and ArgumentTypeError for invalid arguments.
    """
    check_option("format", format, get_args(Format))
    check_text("column", column)
    limit = to_integer("max_value_bytes", max_value_bytes, 0)
    files = tuple(file for each in _each(source) for file in _expand(each))
    return JsonLines(files, column, format, limit, progress)


def _each(source: Source | Sequence[Source]) -> Sequence[Source]:
    if isinstance(source, Sequence) and not isinstance(source, str | bytes | bytearray):
        return source
    return [source]


def _is_path(source: Source) -> TypeGuard[str | PathLike[str]]:
    return isinstance(source, str | PathLike) and source != STANDARD_INPUT


def _expand(source: Source) -> Iterator[Source]:
    if not _is_path(source):
        if source != STANDARD_INPUT and (isinstance(source, TextIOBase) or not hasattr(source, "read")):
            raise ArgumentTypeError(
                f"a source is {source!r}: give a path, a glob, - for standard input, or a file that is open "
                "in binary mode; bytes that are at hand are one by io.BytesIO"
            )
        yield source
        return
    path = str(local_location("a JSON file", source))
    if os.path.isfile(path):
        yield path
        return
    found = sorted(filter(os.path.isfile, glob(path, recursive=True))) if has_magic(path) else []
    if not found:
        raise _absent(path)
    yield from found


def _absent(path: str) -> SourceError:
    """Return why no file can be read at a path, and what to pass instead."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        what = "no file matches" if has_magic(path) else "there is no file"
        return SourceNotFoundError(f"{what} {path}")
    except (OSError, ValueError) as error:
        return SourceError(f"cannot read {path}: {reason_of(error)}")
    if stat.S_ISDIR(mode):
        example = os.path.join(path, "*.json")
        return SourceError(f"cannot read {path}: it is a directory; pass files, or a glob such as {example}")
    return SourceError(
        f"cannot read {path}: it is not a regular file; redirect it to standard input, and pass -"
    )


def _split(splitter: _native.LineSplitter, opened: _Opened) -> Iterator[tuple[Any, _native.Positions]]:
    for piece in opened.pieces():
        with _naming(opened.name):
            found = splitter.feed(piece)
        yield found
    with _naming(opened.name):
        found = splitter.finish()
    yield found


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except InvalidJsonError as error:
        raise InvalidJsonError(f"{name}, {error}") from error


def _format(asked: Format, name: str) -> Format:
    """Return how a file is laid out, where its name tells: lines may be arrays in `.ndjson` and `.jsonl`."""
    stem = Path(name).name.lower()
    for suffix in DECOMPRESSORS:
        stem = stem.removesuffix(suffix)
    return "lines" if asked == "auto" and stem.endswith((".ndjson", ".jsonl")) else asked


class _Borrowed:
    """A file as pyarrow reads it, whose closing is left to its owner."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.read = file.read

    def close(self) -> None:
        """Do nothing."""


def _plain(stream: Any) -> Iterator[bytes]:
    while piece := stream.read(PIECE_BYTES):
        yield bytes(piece)


def _gunzipped(file: Any) -> Iterator[bytes]:
    return _plain(gzip.GzipFile(fileobj=file))


def _unzstd(file: Any) -> Iterator[bytes]:
    source: Any = _Borrowed(file)
    return _plain(pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd"))


def _streams(file: Any, new_decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the content of all streams of a file; Python's own readers pass over what is broken."""
    data = file.read(COMPRESSED_BYTES)
    while data:
        decompressor = new_decompressor()
        while not decompressor.eof:
            if decompressor.needs_input and not data:
                data = file.read(COMPRESSED_BYTES)
                if not data:
                    raise EOFError("the file ends before its compressed data does")
            yield decompressor.decompress(data, PIECE_BYTES)
            data = b""
        data = decompressor.unused_data.lstrip(b"\0") or file.read(COMPRESSED_BYTES).lstrip(b"\0")


DECOMPRESSORS: dict[str, Callable[[Any], Iterator[bytes]]] = {
    ".gz": _gunzipped,
    ".zst": _unzstd,
    ".xz": partial(_streams, new_decompressor=lzma.LZMADecompressor),
    ".bz2": partial(_streams, new_decompressor=bz2.BZ2Decompressor),
}


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise SourceNotFoundError(f"there is no file {name}") from error
    except OSError as error:
        raise SourceError(f"cannot read {name}: {reason_of(error)}") from error


class _Opened:
    """One source while it is read: its name, its bytes decompressed, and how many of them were taken."""

    def __init__(self, source: Source) -> None:
        self._owned = _is_path(source)
        self._file: Any = source
        if _is_path(source):
            self.name = fspath(source)
            with _readable(self.name):
                self._file = open(self.name, "rb")  # noqa: SIM115 - closed by __exit__
        elif source == STANDARD_INPUT:
            self.name, self._file = "standard input", sys.stdin.buffer
        else:
            self.name = str(getattr(source, "name", "the open file"))
        self._taken = 0

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._owned:
            self._file.close()

    def taken(self) -> int:
        """Return how many bytes of the file were taken, before decompression where that can be told."""
        if not self._owned:
            return self._taken
        return int(self._file.tell())

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, decompressed; damaged compression is InvalidJsonError."""
        name = self.name.lower()
        read = next((read for suffix, read in DECOMPRESSORS.items() if name.endswith(suffix)), _plain)
        try:
            for piece in read(self._file):
                self._taken += len(piece)
                yield piece
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise SourceError(f"cannot read {self.name}: {reason_of(error)}") from error
            raise InvalidJsonError(f"{self.name} cannot be decompressed: {error}") from error
