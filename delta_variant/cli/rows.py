"""Print rows as a table, JSON lines or CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import islice
from math import isfinite, isnan
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa

from .._text import count
from ..errors import printable
from ..expressions.cast import cast_values
from ..variant.objects import is_variant
from ..variant.values import to_json
from .report import FIT, Heading, Layout, print_table
from .terminal import console, escaped_json, print_hint

OutputFormat: TypeAlias = Literal["table", "json", "csv"]

SHOWN_ROWS = 20
CHANGE_TYPE = "_change_type"

ENCODER = msgspec.json.Encoder(decimal_format="number")


def print_rows(
    reader: pa.RecordBatchReader, output_format: OutputFormat, limit: int | None, layout: Layout = FIT
) -> None:
    """Print the first `limit` rows; without a limit all rows, or the first 20 as a table.

    Variants are printed as JSON. In JSON lines, dates and timestamps are ISO 8601, binary is base64, maps are
    objects, and NaN and Infinity are strings, as in Spark.
    """
    if output_format == "json":
        _print_json(reader, limit)
    elif output_format == "csv":
        _print_csv(reader, limit)
    else:
        _print_table(reader, SHOWN_ROWS if limit is None else limit, layout)


def _print_json(reader: pa.RecordBatchReader, limit: int | None) -> None:
    sys.stdout.flush()
    for lines in json_lines(reader, limit):
        sys.stdout.buffer.write(escaped_json(lines))
    sys.stdout.buffer.flush()


def json_lines(reader: pa.RecordBatchReader, limit: int | None) -> Iterator[bytes]:
    """Yield the first `limit` rows as JSON lines, those of a batch together."""
    names = reader.schema.names
    for rows in _rows(reader, limit):
        yield ENCODER.encode_lines([dict(zip(names, row, strict=True)) for row in rows])


def _print_csv(reader: pa.RecordBatchReader, limit: int | None) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    # A file or a pipe gets exact values. A terminal gets control characters escaped.
    text = printable if sys.stdout.isatty() else str
    writer.writerow(map(text, reader.schema.names))
    for rows in _rows(reader, limit):
        writer.writerows([text(_cell(value)) for value in row] for row in rows)


def _print_table(reader: pa.RecordBatchReader, limit: int, layout: Layout) -> None:
    rows = [row for batch in _rows(reader, limit + 1) for row in batch]
    cells = [[_cell(value) for value in row] for row in rows[:limit]]
    print_table(console(), [_heading(field) for field in reader.schema], cells, layout)
    if not rows and limit:
        print_hint("no rows")
    elif len(rows) > limit:
        print_hint(f"the first {count(limit, 'row')}: --limit shows more")


def _heading(field: pa.Field[Any]) -> Heading:
    is_number = (
        pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
    )
    if is_number:
        return field.name, "right"
    return field.name, "key" if field.name == CHANGE_TYPE else "left"


def _rows(reader: pa.RecordBatchReader, limit: int | None) -> Iterator[list[tuple[Any, ...]]]:
    remaining = sys.maxsize if limit is None else limit
    for batch in reader:
        if not remaining:
            return
        batch = batch.slice(0, remaining)
        remaining -= batch.num_rows
        columns = [_values(column, field) for column, field in zip(batch.columns, batch.schema, strict=True)]
        yield list(zip(*columns, strict=True))


def _values(array: Any, field: pa.Field[Any]) -> list[Any]:
    """Return the values of a column as Python objects, and Variants as JSON text."""
    if is_variant(field):
        return [None if text is None else msgspec.Raw(text.encode()) for text in to_json(array).to_pylist()]
    if pa.types.is_struct(array.type):
        parts = [_values(array.field(index), part) for index, part in enumerate(array.type)]
        names = [part.name for part in array.type]
        rows = zip(*parts, strict=True) if parts else ((),) * len(array)
        return [
            dict(zip(names, row, strict=True)) if valid.as_py() else None
            for row, valid in zip(rows, array.is_valid(), strict=True)
        ]
    if pa.types.is_list(array.type):
        return _parts(array, _values(array.values, array.type.value_field))
    if pa.types.is_map(array.type):
        keys = [
            key if isinstance(key, str) else _cell(key) for key in _values(array.keys, array.type.key_field)
        ]
        pairs = list(zip(keys, _values(array.items, array.type.item_field), strict=True))
        return [None if part is None else dict(part) for part in _parts(array, pairs)]
    try:
        values = list(array.to_pylist())
        has_floats = pa.types.is_floating(array.type) or pa.types.is_nested(array.type)
        return [_with_json_names(value) for value in values] if has_floats else values
    except (OverflowError, ValueError):
        # Dates and timestamps outside the range of datetime are printed as strings.
        return list(cast_values(array, pa.string(), strict=True).to_pylist())


def _parts(array: Any, elements: list[Any]) -> list[list[Any] | None]:
    """Return the elements of each list or map; None for a null."""
    offsets = array.offsets.to_pylist()
    bounds = zip(offsets, islice(offsets, 1, None), array.is_valid(), strict=False)
    return [elements[start:end] if valid.as_py() else None for start, end, valid in bounds]


def _with_json_names(value: Any) -> Any:
    """Return a value with strings in place of NaN and Infinity, which JSON numbers cannot represent."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list | tuple):
        return [_with_json_names(part) for part in value]
    if isinstance(value, dict):
        return {name: _with_json_names(part) for name, part in value.items()}
    return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    text = ENCODER.encode(value).decode()
    return text if isinstance(value, msgspec.Raw) else text.strip('"')
