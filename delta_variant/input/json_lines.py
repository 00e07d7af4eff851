"""Read the values of JSON files as Arrow batches of JSON text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import TextIOBase
from os import PathLike, fspath
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

import pyarrow as pa

from .. import _native
from .._checks import check_option, check_text, to_integer
from .._options import DuplicateKeys, Floats
from ..data_file.options import JsonOptions, OnInvalid
from ..errors import ArgumentTypeError, InvalidJsonError, error_location
from ..storage.inputs import InputFile, list_inputs, total_size
from ..variant.paths import parse_path
from .content import COMPRESSED_SUFFIXES, Content, stem_of
from .extracted_columns import ExtractedColumns

Source: TypeAlias = "str | PathLike[str] | BinaryIO"
Format: TypeAlias = Literal["auto", "lines", "array", "documents"]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes of input read so far (before decompression) and the values found so far."""

MAX_VALUE_BYTES = 128 << 20
STANDARD_INPUT = "-"

LINES_SUFFIXES = (".ndjson", ".jsonl", ".jsonlines", ".ldjson")
"""Names of the files that have one value on each line, even if a line is an array."""

NAMES = (".json", *LINES_SUFFIXES, ".geojson", ".topojson", ".jsonld", ".har", ".ipynb", ".sarif")

JSON_SUFFIXES = tuple(name + compression for name in NAMES for compression in ("", *COMPRESSED_SUFFIXES))
"""Names of the files that are read in a folder."""


@dataclass(frozen=True)
class Origin:
    """The positions of the values of a batch in their file."""

    name: str
    positions: _native.Positions
    max_value_bytes: int

    def place(self, row: int) -> dict[str, Any]:
        """Return file and line of a value, as arguments of `DeltaVariantError.at`."""
        return {"file": self.name, "line": self.locate(row, b"", 0, "")[0]}

    def locate(self, row: int, text: bytes, offset: int, message: str) -> tuple[int, int, str]:
        """Return line, column and reason of an error `offset` bytes into the text of the value `row`."""
        if row in self.positions.oversized:
            message = f"the value has more than {self.max_value_bytes:,} bytes"
        line, column = self.positions.locate(row, text[:offset]) or (0, 0)
        return line, column, message


@dataclass(frozen=True)
class JsonLines:
    """The values of JSON files as an Arrow stream: a column of JSON text, and the ones extracted from it."""

    sources: tuple[InputFile | BinaryIO, ...]
    column: str
    format: Format = "auto"
    records: tuple[str, ...] | None = None
    extracted: ExtractedColumns = field(default_factory=ExtractedColumns)
    max_value_bytes: int = MAX_VALUE_BYTES
    progress: Progress | None = None
    json: JsonOptions = field(default_factory=JsonOptions)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the stream."""
        return pa.schema([pa.field(self.column, pa.json_()), *self.extracted.fields])

    @property
    def size(self) -> int | None:
        """Return the size of all files in bytes, None if that of a source is not known."""
        files = [source for source in self.sources if isinstance(source, InputFile)]
        return None if len(files) < len(self.sources) else total_size(files)

    def batches(self) -> Iterator[tuple[pa.RecordBatch, Origin]]:
        """Yield batches of the text of values, as binary that may not be valid UTF-8, and their origins.

        Raises InvalidJsonError for missing commas or brackets around the elements of an array, and for a
        document without the field `records`, and CastError for an extracted column.
        """
        taken = rows = 0
        for source in self.sources:
            with Content(source, InvalidJsonError) as opened:
                for text, positions in _split(self._splitter(opened.name), opened):
                    rows += len(text)
                    if self.progress is not None:
                        self.progress(taken + opened.taken(), rows)
                    if len(text):
                        origin = Origin(opened.name, positions, self.max_value_bytes)
                        batch = pa.record_batch({self.column: text})
                        yield self.extracted.append(batch, origin.name, origin.place, self.json), origin
                taken += opened.taken()

    def _splitter(self, name: str) -> _native.LineSplitter:
        has_lines = self.format == "auto" and stem_of(name).endswith(LINES_SUFFIXES)
        path = None if self.records is None else list(self.records)
        return _native.LineSplitter("lines" if has_lines else self.format, self.max_value_bytes, path)

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
            values = pa.ExtensionArray.from_storage(pa.json_(), text)
            yield pa.record_batch([values, *batch.columns[1:]], schema=self.schema)


def read_json(
    source: Source | Sequence[Source],
    *,
    column: str = "value",
    format: Format = "auto",  # noqa: A002 - the name that callers expect
    records: str | None = None,
    columns: Mapping[str, str] | None = None,
    max_value_bytes: int = MAX_VALUE_BYTES,
    on_invalid: OnInvalid = "error",
    rejects: str | PathLike[str] | None = None,
    floats: Floats = "decimal",
    duplicate_keys: DuplicateKeys = "error",
    progress: Progress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> JsonLines:
    """Return the values of JSON files as an Arrow stream with one column of JSON text.

    The files are read when the stream is consumed. Files that are compressed with gzip, zstd, xz or bzip2 are
    decompressed, whatever their name is, and UTF-16 and UTF-32 with a byte order mark are read as well as
    UTF-8. CRLF line ends and blank lines are skipped. Values are not validated here: `write_table` parses
    them with the options `on_invalid` to `duplicate_keys`, and raises InvalidJsonError with file, line and
    column.

    Args:
        source: A path, a URI (`s3://…`, `https://…`), a glob, a folder, `"-"` for standard input, an open
            binary file, or a sequence of these. A folder contains the files below it that are named `.json`,
            `.ndjson`, `.jsonl`, `.jsonlines`, `.ldjson`, `.geojson`, `.topojson`, `.jsonld`, `.har`, `.ipynb`
            or `.sarif`, compressed or not.
        column: The name of the column, `"value"` by default.
        format: `"lines"` for one value on each line, `"array"` for one array whose elements are the values,
            `"documents"` for values that follow each other and may span lines. `"auto"`, the default, detects
            the format from the start of each file; `.ndjson`, `.jsonl`, `.jsonlines` and `.ldjson` files
            always have lines.
        records: The field of each document with an array whose elements are the values, such as `"features"`,
            or a path such as `"$.data.items"`. A document may be a line, the file, or one of several. None,
            the default, takes whole documents.
        columns: Other columns, by name, with the SQL expression of each over `column` and `_metadata`, such
            as `{"day": "value:date::date"}`, in UTC. `_metadata.file_path` is the name of the file as errors
            have it, `_metadata.file_name` its last part. None, the default, adds none.
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
        ExpressionError: An expression of `columns` cannot be parsed, or names other columns.
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
    path = None if records is None else _parse_records(records, format)
    limit = to_integer("max_value_bytes", max_value_bytes, 0)
    is_list = isinstance(source, Sequence) and not isinstance(source, str | bytes | bytearray)
    sources: Any = source if is_list else [source]
    files = tuple(file for each in sources for file in _expand(each, storage_options))
    json = JsonOptions(on_invalid, rejects, floats, duplicate_keys)
    lines = JsonLines(files, column, format, path, max_value_bytes=limit, progress=progress, json=json)
    return replace(lines, extracted=ExtractedColumns.of(columns, lines.schema))


def _parse_records(text: str, requested: Format) -> tuple[str, ...]:
    """Return the names of a path to records. Raise ValueError for a path with other steps."""
    check_text("records", text)
    if requested != "auto":
        raise ValueError(f"records: pass no format, got {requested!r}: the array at the path has the values")
    steps = parse_path(text) if text.startswith("$") else (text,)
    names = tuple(step for step in steps if isinstance(step, str))
    if not names or len(names) < len(steps):
        raise ValueError(f"records: expected a field or a path of fields, such as $.data.items, got {text!r}")
    return names


def _expand(
    source: Source | InputFile, storage_options: Mapping[str, str] | None
) -> Sequence[InputFile | BinaryIO]:
    if isinstance(source, InputFile):
        return [source]
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


def _split(splitter: _native.LineSplitter, opened: Content) -> Iterator[tuple[Any, _native.Positions]]:
    for piece in opened.pieces():
        with error_location(file=opened.name):
            found = splitter.feed(piece)
        # Only the values, which are a copy, stay in memory while they are written.
        del piece
        yield found
    with error_location(file=opened.name):
        found = splitter.finish()
    yield found
