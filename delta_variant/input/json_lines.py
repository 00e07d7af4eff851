"""Read the values of JSON files as Arrow batches of JSON text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import TextIOBase
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

import pyarrow as pa

from .. import _native
from .._checks import check_option, check_text, to_integer
from .._options import DuplicateKeys, Floats
from .._system_errors import reason_of
from ..data_file.options import JsonOptions, OnInvalid
from ..errors import (
    ArgumentTypeError,
    InvalidJsonError,
    SourceError,
    error_location,
)
from ..storage.inputs import InputFile, list_inputs, total_size

__all__ = ["JSON_SUFFIXES", "JsonLines", "Origin", "read_json"]

Source: TypeAlias = "str | PathLike[str] | BinaryIO"
Format: TypeAlias = Literal["auto", "lines", "array"]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes of input read so far (before decompression) and the values found so far."""

PIECE_BYTES = 4 << 20
"""How much input is split at a time."""

COMPRESSED_BYTES = 256 << 10
"""How much of a compressed file is read at a time."""

MAX_VALUE_BYTES = 128 << 20
STANDARD_INPUT = "-"

JSON_SUFFIXES = tuple(
    name + compression
    for name in (".json", ".ndjson", ".jsonl")
    for compression in ("", ".gz", ".zst", ".xz", ".bz2")
)
"""Names of the files that are read in a folder."""


@dataclass(frozen=True)
class Origin:
    """The positions of the values of a batch in their file."""

    name: str
    positions: _native.Positions
    max_value_bytes: int

    def locate(self, row: int, text: bytes, offset: int, message: str) -> tuple[int, int, str]:
        """Return line, column and reason of an error `offset` bytes into the text of the value `row`."""
        if row in self.positions.oversized:
            message = f"the value has more than {self.max_value_bytes:,} bytes"
        line, column = self.positions.locate(row, text[:offset]) or (0, 0)
        return line, column, message


@dataclass(frozen=True)
class JsonLines:
    """The values of JSON files as an Arrow stream with one column of JSON text (type `arrow.json`)."""

    sources: tuple[InputFile | BinaryIO, ...]
    column: str
    format: Format = "auto"
    max_value_bytes: int = MAX_VALUE_BYTES
    progress: Progress | None = None
    json: JsonOptions = field(default_factory=JsonOptions)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the stream."""
        return pa.schema([pa.field(self.column, pa.json_())])

    @property
    def size(self) -> int | None:
        """Return the size of all files in bytes, None if that of a source is not known."""
        files = [source for source in self.sources if isinstance(source, InputFile)]
        return None if len(files) < len(self.sources) else total_size(files)

    def batches(self) -> Iterator[tuple[pa.RecordBatch, Origin]]:
        """Yield batches of the text of values, as binary that may not be valid UTF-8, and their origins.

        Raises InvalidJsonError for missing commas or brackets around the elements of an array.
        """
        taken = rows = 0
        for source in self.sources:
            with _Opened(source) as opened:
                splitter = _native.LineSplitter(_format_of(self.format, opened.name), self.max_value_bytes)
                for text, positions in _split(splitter, opened):
                    rows += len(text)
                    if self.progress is not None:
                        self.progress(taken + opened.taken(), rows)
                    if len(text):
                        batch = pa.record_batch({self.column: text})
                        yield batch, Origin(opened.name, positions, self.max_value_bytes)
                taken += opened.taken()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the values as text; the reader raises InvalidJsonError for invalid UTF-8."""
        return pa.RecordBatchReader.from_batches(self.schema, self._text_batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the values as a stream of the Arrow PyCapsule interface."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def _text_batches(self) -> Iterator[pa.RecordBatch]:
        for batch, origin in self.batches():
            try:
                text = batch.column(0).cast(pa.string())
            except pa.ArrowInvalid as error:
                raise InvalidJsonError(str(error)).at(file=origin.name) from error
            yield pa.record_batch([pa.ExtensionArray.from_storage(pa.json_(), text)], schema=self.schema)


def read_json(
    source: Source | Sequence[Source],
    *,
    column: str = "value",
    format: Format = "auto",  # noqa: A002 - the name that callers expect
    max_value_bytes: int = MAX_VALUE_BYTES,
    on_invalid: OnInvalid = "error",
    rejects: str | PathLike[str] | None = None,
    floats: Floats = "decimal",
    duplicate_keys: DuplicateKeys = "error",
    progress: Progress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> JsonLines:
    """Return the values of JSON files as an Arrow stream with one column of JSON text.

    The files are read when the stream is consumed. Byte order marks, CRLF line ends and blank lines are
    skipped. Values are not validated here: `write_table` parses them with the options `on_invalid` to
    `duplicate_keys`, and raises InvalidJsonError with file, line and column.

    Args:
        source: A path, a URI (`s3://…`, `https://…`), a glob, a folder, `"-"` for standard input, an open
            binary file, or a sequence of these. A folder contains the `.json`, `.ndjson` and `.jsonl` files
            below it. Files named `.gz`, `.zst`, `.xz` and `.bz2` are decompressed.
        column: The name of the column, `"value"` by default.
        format: `"lines"` for one value on each line, `"array"` for one array whose elements are the values.
            `"auto"`, the default, detects the format from the start of each file; `.ndjson` and `.jsonl`
            files always have lines.
        max_value_bytes: The maximum length of a value in bytes, 128 MiB by default. Longer values count as
            invalid JSON.
        on_invalid: What `write_table` does with invalid JSON: `"error"`, the default, raises
            InvalidJsonError, `"reject"` omits the row and appends it to `rejects`, `"null"` stores SQL NULL.
        rejects: The path of the file to which `on_invalid="reject"` appends rejected values as JSON lines,
            with location and reason. None by default.
        floats: How numbers with a fraction or exponent are stored: `"decimal"`, the default, as decimals
            where they fit, `"double"` always as doubles.
        duplicate_keys: What to do with duplicate keys of an object: `"error"`, the default, treats them as
            invalid JSON, `"last"` keeps the last value.
        progress: Called after each piece of input with the bytes read so far (before decompression) and the
            number of values found so far. None, the default, reports nothing.
        storage_options: Options of the object store of URIs, such as credentials. None, the default, takes
            them from the environment.

    Returns:
        An object with `__arrow_c_stream__`, for `write_table` or another Arrow consumer.

    Raises:
        SourceNotFoundError: A file does not exist. It is also a `FileNotFoundError`.
        SourceError: A source cannot be read, or is a folder that contains a Delta table.
        StoreError: The object store of a URI cannot be opened or read.
        ArgumentTypeError: An argument has the wrong type.
        ValueError: An argument has an invalid value.

    Example:
        >>> import io
        >>> import pyarrow as pa
        >>> from delta_variant import read_json
        >>> lines = read_json(io.BytesIO(b'{"a": 1}\\n[2, 3]\\n'), column="event")
        >>> pa.table(lines).num_rows
        2
    """
    check_option("format", format, get_args(Format))
    check_text("column", column)
    limit = to_integer("max_value_bytes", max_value_bytes, 0)
    is_list = isinstance(source, Sequence) and not isinstance(source, str | bytes | bytearray)
    sources: Any = source if is_list else [source]
    files = tuple(file for each in sources for file in _expand(each, storage_options))
    json = JsonOptions(on_invalid, rejects, floats, duplicate_keys)
    return JsonLines(files, column, format, limit, progress, json)


def _expand(source: Source, storage_options: Mapping[str, str] | None) -> Sequence[InputFile | BinaryIO]:
    if source == STANDARD_INPUT:
        return [sys.stdin.buffer]
    if isinstance(source, str | PathLike):
        return list_inputs([fspath(source)], JSON_SUFFIXES, storage_options)
    is_text: bool = isinstance(source, TextIOBase)
    if is_text or not hasattr(source, "read"):
        raise ArgumentTypeError(
            'source: expected a path, a URI, a glob, "-" for standard input or an open binary file, got '
            f"{source!r}; wrap bytes in io.BytesIO"
        )
    return [source]


def _split(splitter: _native.LineSplitter, opened: _Opened) -> Iterator[tuple[Any, _native.Positions]]:
    for piece in opened.pieces():
        with error_location(file=opened.name):
            found = splitter.feed(piece)
        # Only the values, which are a copy, stay in memory while they are written.
        del piece
        yield found
    with error_location(file=opened.name):
        found = splitter.finish()
    yield found


def _format_of(requested: Format, name: str) -> Format:
    """Return the format of a file: `.ndjson` and `.jsonl` files have lines, even if a line is an array."""
    stem = Path(name).name.lower()
    for suffix in DECOMPRESSORS:
        stem = stem.removesuffix(suffix)
    return "lines" if requested == "auto" and stem.endswith((".ndjson", ".jsonl")) else requested


class _Borrowed:
    """A file that pyarrow reads but must not close."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.read = file.read

    def close(self) -> None:
        """Do nothing."""


def _read_plain(stream: Any) -> Iterator[bytes]:
    return iter(lambda: bytes(stream.read(PIECE_BYTES) or b""), b"")


def _read_zstd(file: Any) -> Iterator[bytes]:
    source: Any = _Borrowed(file)
    return _read_plain(pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd"))


def _read_streams(file: Any, new_decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the content of all streams of a file; Python's own readers silently skip damaged streams."""
    data = file.read(COMPRESSED_BYTES)
    while data:
        decompressor = new_decompressor()
        while not decompressor.eof:
            if decompressor.needs_input and not data:
                data = file.read(COMPRESSED_BYTES)
                if not data:
                    raise EOFError("the compressed data is truncated")
            yield decompressor.decompress(data, PIECE_BYTES)
            data = b""
        data = decompressor.unused_data.lstrip(b"\0") or file.read(COMPRESSED_BYTES).lstrip(b"\0")


DECOMPRESSORS: dict[str, Callable[[Any], Iterator[bytes]]] = {
    ".gz": lambda file: _read_plain(gzip.GzipFile(fileobj=file)),
    ".zst": _read_zstd,
    ".xz": partial(_read_streams, new_decompressor=lzma.LZMADecompressor),
    ".bz2": partial(_read_streams, new_decompressor=bz2.BZ2Decompressor),
}


class _Opened:
    """A source that is being read: its name, its decompressed bytes, and how many bytes were read."""

    def __init__(self, source: InputFile | BinaryIO) -> None:
        self._owned = isinstance(source, InputFile)
        if isinstance(source, InputFile):
            self.name = source.name
            self._file: Any = source.open()
        else:
            is_standard_input = source is sys.stdin.buffer
            self.name = (
                "standard input" if is_standard_input else str(getattr(source, "name", "the open file"))
            )
            self._file = source
        self._taken = 0

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._owned:
            self._file.close()

    def taken(self) -> int:
        """Return how many bytes were read, before decompression if the source is a path."""
        if not self._owned:
            return self._taken
        return int(self._file.tell())

    def _count(self, piece: bytes) -> bytes:
        self._taken += len(piece)
        return piece

    def pieces(self) -> Iterator[bytes]:
        """Yield the decompressed bytes; raises InvalidJsonError for damaged compression."""
        name = self.name.lower()
        read = next((read for suffix, read in DECOMPRESSORS.items() if name.endswith(suffix)), _read_plain)
        try:
            # A loop would keep each piece in memory while its values are written.
            yield from map(self._count, read(self._file))
        except SourceError:
            raise
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                message = f"cannot read {self.name}: {reason_of(error)}"
                raise SourceError(message, file=self.name) from error
            raise InvalidJsonError(f"cannot decompress {self.name}: {error}", file=self.name) from error
