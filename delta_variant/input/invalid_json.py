"""Handle values that are not valid JSON: locate them, then raise, reject or replace by NULL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from .._system_errors import reason_of
from ..data_file.options import OnInvalid, WriteOptions
from ..data_file.writer import InvalidValue
from ..errors import InvalidJsonError, StoreError
from ..protocol.schema.arrow import variant_field
from ..protocol.types import VARIANT, StructType
from ..storage.uris import local_location
from ..variant.values import LAST_DUPLICATE, VARIANT_TYPE, parse_valid_json, plain_variants, to_json
from .json_lines import JsonLines, Origin

RowLocator: TypeAlias = Callable[[int], Mapping[str, Any]]
"""Returns the location of a row of a batch, as arguments of `DeltaVariantError.at`."""

# An error at the end of the first line is typical of files with indented values.
ACROSS_LINES = "the line ends within the value"

REMEDIES = (("on_invalid", "reject"), ("on_invalid", "null"))
"""The options of a write that accept other rows, for messages."""

DOCUMENTS = (("format", "documents"),)
"""The option that reads values over several lines."""


@dataclass(frozen=True)
class PartRows:
    """The origin of rows that were moved: a part of the data, and the number that each row has in it."""

    part: int
    numbers: pa.Array[Any]


@dataclass(frozen=True)
class BatchOrigin:
    """The origin of the rows of a batch.

    Attributes:
        origin: Where the source batch is in a file of JSON, or its rows in the data if they were moved. None
            for Arrow data in order.
        first: The number of the first row of the source batch in the data.
        positions: The positions of the rows in the source batch, None for all its rows in order.
        rows: The rows with the columns of the table, first those that files store, in their order. None if
            the batch itself has the columns of the source.
    """

    origin: Origin | PartRows | None
    first: int
    positions: pa.Array[Any] | None
    rows: pa.RecordBatch | None = None

    def position(self, row: int) -> int:
        """Return the position of a row in the source batch."""
        return row if self.positions is None else int(self.positions[row].as_py())

    def number(self, row: int) -> int:
        """Return the number of a row in the data, or in its part of it."""
        position = self.position(row)
        if isinstance(self.origin, PartRows):
            return int(self.origin.numbers[position].as_py())
        return self.first + position

    def locate(self, row: int) -> dict[str, Any]:
        """Return the row of the data, or the file and line, as arguments of `DeltaVariantError.at`."""
        if self.origin is None or isinstance(self.origin, PartRows):
            return {"row": self.number(row)}
        return self.origin.place(self.position(row))

    def others(self, row: int, column: int) -> dict[str, Any]:
        """Return the values of the other columns of a row, in forms of JSON."""
        if self.rows is None:
            return {}
        return {
            name: _json_value(array.slice(row, 1))
            for index, (name, array) in enumerate(zip(self.rows.schema.names, self.rows.columns, strict=True))
            if index != column
        }


def _json_value(one: Any) -> Any:
    is_variant = pa.types.is_struct(one.type) and one.type.names == VARIANT_TYPE.names
    return (to_json(one) if is_variant else one)[0].as_py()


Batches: TypeAlias = Iterable[tuple[pa.RecordBatch, Origin | PartRows | None]]
"""Batches of a source, each with its origin if it comes from a file of JSON or was moved."""

RejectRecord: TypeAlias = "dict[str, Any]"
"""A line of the rejects file: the location of a value, the reason why it is not valid JSON, and its text."""


@dataclass
class InvalidValueHandler:
    """Raises an error for values that are not valid JSON, or counts and rejects them.

    `keep` receives the rejected values. `partition` is the number of a part of the data with its own row
    numbers, for messages and rejects. Moved rows have that of their origin. All rejects have the fields of
    `write`, which identify the write.
    """

    on_invalid: OnInvalid
    keep: Callable[[RejectRecord], None] | None = None
    partition: int | None = None
    write: Mapping[str, Any] | None = None
    count: int = 0

    def _remedies(self, value: InvalidValue) -> tuple[tuple[str, str], ...]:
        # Without a file of rejects, the operation has no such options.
        if self.keep is None:
            return ()
        return (LAST_DUPLICATE, *REMEDIES) if value.is_duplicate else REMEDIES

    def report(self, rows: BatchOrigin, batch: pa.RecordBatch, values: list[InvalidValue]) -> None:
        """Raise InvalidJsonError for the first value, or count all and keep the rejected ones."""
        for value in values:
            text = batch.column(value.column)[value.row].as_py()
            text = text.encode() if isinstance(text, str) else text
            column = (batch if rows.rows is None else rows.rows).schema.names[value.column]
            if self.on_invalid == "error":
                raise self._locate(rows, value, column, text)[0]
            if self.on_invalid == "reject" and self.keep is not None:
                _, record = self._locate(rows, value, column, text)
                self.keep({**record, "text": text.decode(errors="backslashreplace"), **(self.write or {})})
        self.count += len(values)

    def _locate(
        self, rows: BatchOrigin, value: InvalidValue, column: str, text: bytes
    ) -> tuple[InvalidJsonError, RejectRecord]:
        if rows.origin is None or isinstance(rows.origin, PartRows):
            return self._locate_in_rows(rows, value, column)
        return self._locate_in_file(rows, rows.origin, value, text)

    def _locate_in_file(
        self, rows: BatchOrigin, origin: Origin, value: InvalidValue, text: bytes
    ) -> tuple[InvalidJsonError, RejectRecord]:
        position = rows.position(value.row)
        line, column, reason = origin.locate(position, text, value.offset, value.message)
        is_open = text.lstrip()[:1] in (b"{", b"[") and value.offset >= len(text.rstrip())
        remedies = self._remedies(value)
        if line == 1 and is_open and position not in origin.positions.oversized:
            reason, remedies = f"{reason}; {ACROSS_LINES}", DOCUMENTS
        error = InvalidJsonError(f"column {column}: {reason}", remedies=remedies).at(
            file=origin.name, line=line
        )
        return error, {"file": origin.name, "line": line, "column": column, "reason": reason}

    def _locate_in_rows(
        self, rows: BatchOrigin, value: InvalidValue, column: str
    ) -> tuple[InvalidJsonError, RejectRecord]:
        row, byte, reason = rows.number(value.row), value.offset + 1, value.message
        number = rows.origin.part if isinstance(rows.origin, PartRows) else self.partition
        partition = {} if number is None else {"partition": number}
        part = "" if number is None else f"partition {number}, "
        error = InvalidJsonError(
            f"{part}byte {byte} of the text: {reason}", remedies=self._remedies(value)
        ).at(row=row, column=column)
        others = rows.others(value.row, value.column) if self.on_invalid == "reject" else {}
        record = {**partition, "row": row, "column_name": column, "byte": byte, "reason": reason}
        return error, {**record, "columns": others}


def parse_lines(lines: JsonLines) -> Iterator[pa.RecordBatch]:
    """Yield the values of JSON files as Variants, by the options of `read_json`.

    Raises InvalidJsonError for the first invalid value, and ValueError unless `on_invalid` is `"error"`.
    """
    if lines.json.on_invalid != "error":
        raise ValueError(
            f"cannot merge values read with on_invalid={lines.json.on_invalid!r}: write them to a table, and "
            f"merge its rows"
        )
    handler, first = InvalidValueHandler("error"), 0
    for batch, origin in lines.batches():
        variants, invalid = parse_valid_json(
            batch.column(0), floats=lines.json.floats, duplicate_keys=lines.json.duplicate_keys
        )
        handler.report(BatchOrigin(origin, first, None), batch, invalid)
        first += batch.num_rows
        yield batch.set_column(0, lines.column, variants)


def parse_json_columns(batch: pa.RecordBatch, columns: StructType) -> pa.RecordBatch:
    """Return a batch with Variants instead of JSON text, which are marked; raises InvalidJsonError."""
    for index, field in enumerate(columns.fields):
        if field.type == VARIANT and not pa.types.is_struct(batch.column(index).type):
            variants, invalid = parse_valid_json(
                batch.column(index), floats="decimal", duplicate_keys="error"
            )
            InvalidValueHandler("error").report(BatchOrigin(None, 0, None), batch, invalid)
            batch = batch.set_column(index, variant_field(field.name), plain_variants(variants))
    return batch


def parse_valid_json_columns(
    batch: pa.RecordBatch, columns: StructType, names: Collection[str], options: WriteOptions
) -> tuple[pa.RecordBatch, set[int]]:
    """Return a batch with Variants instead of JSON text in some columns, and the rows with invalid JSON."""
    invalid: set[int] = set()
    variants_of_table = {field.name for field in columns.fields if field.type == VARIANT}
    for index, name in enumerate(batch.schema.names):
        is_text = not pa.types.is_struct(batch.schema.field(index).type)
        if name in names and name in variants_of_table and is_text:
            variants, found = parse_valid_json(
                batch.column(index), floats=options.json.floats, duplicate_keys=options.json.duplicate_keys
            )
            batch = batch.set_column(index, name, variants)
            invalid.update(each.row for each in found)
    return batch, invalid


class RejectsFile:
    """The file to which rejected values are appended as JSON lines; the first value opens it.

    The constructor raises StoreError for the URI of a file that is not on a local disk. The methods raise
    StoreError if the file cannot be written.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self._path = None if path is None else local_location("the file of rejects", path)
        self._file: Any = None

    def __enter__(self) -> RejectsFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Flush and close the file."""
        if self._file is not None:
            file, self._file = self._file, None
            with self._convert_errors():
                file.close()

    def keep(self, reject: RejectRecord) -> None:
        """Append one value."""
        with self._convert_errors():
            if self._file is None:
                self._file = open(self._path, "ab")  # type: ignore[arg-type]  # noqa: SIM115 - closed by close
            self._file.write(msgspec.json.encode(reject) + b"\n")

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = f"cannot write rejects to {self._path}: {reason_of(error)}"
            raise StoreError(message, file=str(self._path)) from error
