"""Print the result of a command: sentences, tables and a hint, rows of a table, or JSON.

Tables have aligned columns that fit a terminal, tab-separated lines in a pipe, or a line for each field.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite, isnan
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from .._text import count
from ..errors import printable
from ..expressions.cast import cast_values
from ..variant.objects import is_variant
from ..variant.values import to_json
from .output import console, escaped_json, print_hint, print_json, print_lines

Heading: TypeAlias = tuple[str, Literal["left", "right", "key", "detail"]]
"""The title of a table column, and how it is shown.

Numbers are on the right, and are not truncated. A key, which says what a row is about, is truncated last.
Details are hidden first.
"""


def headings(text: str) -> tuple[Heading, ...]:
    """Return the headings that a text lists, such as `path: key, type, rows: right`; others are `left`."""
    parts = (part.partition(": ") for part in text.split(", "))
    return tuple((title, side or "left") for title, _, side in parts)  # type: ignore[misc]


GAP = 2
ELLIPSIS = "…"
LEAST_WIDTH = 12
"""Columns of text shrink to this width, or to the width of their title, before a column is hidden."""
MAX_LEAST_WIDTH = 24
"""Titles and numbers that are wider than this shrink, too."""
MAX_KEY_WIDTH = 40


@dataclass(frozen=True)
class Layout:
    """How a table is printed: fitted to the terminal, with all columns, or with one field per line."""

    wide: bool = False
    expanded: bool = False


FIT = Layout()


def print_table(
    out: Console, headings: Sequence[Heading], rows: Iterable[Sequence[Any]], layout: Layout = FIT
) -> None:
    """Print rows of cells with headings, one line for each row.

    On a terminal, long cells are truncated, and columns in the middle are hidden if the others do not fit. In
    a pipe, cells are complete and separated by tabs, which cells cannot contain.
    """
    titles = [printable(title) for title, _ in headings]
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if layout.expanded:
        _print_expanded(out, titles, cells)
    elif not out.is_terminal:
        _print_raw(out, "\t".join(titles), *("\t".join(row) for row in cells))
    else:
        _print_aligned(out, headings, [titles, *cells], sys.maxsize if layout.wide else out.width)


def _print_raw(out: Console, *lines: str) -> None:
    for line in lines:
        out.file.write(f"{line}\n")


def _print_aligned(
    out: Console, headings: Sequence[Heading], lines: Sequence[Sequence[str]], space: int
) -> None:
    natural = [max(map(cell_len, texts)) for texts in zip(*lines, strict=True)]
    sides = [side for _, side in headings]
    least = [_least(*each) for each in zip(natural, map(cell_len, lines[0]), sides, strict=True)]
    shown = _columns_that_fit(least, sides, space)
    hidden = len(natural) - len(shown)
    preferred = [min(natural[each], MAX_KEY_WIDTH) if sides[each] == "key" else 0 for each in shown]
    widths = _widths([(least[each], natural[each]) for each in shown], space, hidden, preferred)
    first_hidden = next((place for place, column in enumerate(shown) if place != column), len(shown))
    for number, line in enumerate(lines):
        parts = [
            _fitted(line[column], width, sides[column]) for column, width in zip(shown, widths, strict=True)
        ]
        if hidden:
            parts.insert(first_hidden, ELLIPSIS)
        style = "bold" if number == 0 else ""
        out.print(Text((" " * GAP).join(parts).rstrip(), style=style), soft_wrap=True)
    if hidden:
        columns = f"{hidden:,} of {len(natural):,} columns are hidden"
        print_hint(f"{columns}: --wide shows all, -x prints one column per line")


def _least(natural: int, title: int, side: str) -> int:
    """Return the width to which a column can shrink."""
    readable = natural if side in ("right", "key") else max(LEAST_WIDTH, title)
    return min(natural, readable, MAX_LEAST_WIDTH)


def _columns_that_fit(least: Sequence[int], sides: Sequence[str], space: int) -> list[int]:
    """Return the positions of the columns to show. Details are hidden first, then those in the middle."""
    shown = list(range(len(least)))
    while len(shown) > 1 and _total([least[each] for each in shown], len(least) - len(shown)) > space:
        details = [place for place, column in enumerate(shown) if sides[column] == "detail"]
        del shown[details[-1] if details else len(shown) // 2]
    return shown


def _total(widths: Sequence[int], hidden: int) -> int:
    return sum(widths) + GAP * (len(widths) - 1) + (GAP + len(ELLIPSIS) if hidden else 0)


def _widths(
    columns: Sequence[tuple[int, int]], space: int, hidden: int, preferred: Sequence[int]
) -> list[int]:
    """Return the widths of columns that fit in a line, given the least and the natural width of each.

    The widest columns are truncated to the same width, but not below their preferred width if that fits.
    """
    wanted = [max(least, width) for (least, _), width in zip(columns, preferred, strict=True)]
    if _total(wanted, hidden) <= space:
        columns = [(width, natural) for width, (_, natural) in zip(wanted, columns, strict=True)]

    def limited(limit: int) -> list[int]:
        return [max(least, min(natural, limit)) for least, natural in columns]

    low, high = 0, max((natural for _, natural in columns), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if _total(limited(middle), hidden) <= space:
            low = middle
        else:
            high = middle - 1
    return [min(width, space) for width in limited(low)]


def _fitted(text: str, width: int, side: str) -> str:
    used = cell_len(text)
    if used > width:
        return set_cell_size(text, width - 1) + ELLIPSIS
    padding = " " * (width - used)
    return padding + text if side == "right" else text + padding


def _print_expanded(out: Console, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(cell_len, titles), default=0)
    for number, row in enumerate(rows, 1):
        heading = f"-[ record {number} ]".ljust(width + GAP + 1, "-")
        fields = (
            f"{_fitted(title, width, 'left')} | {cell}" for title, cell in zip(titles, row, strict=True)
        )
        _print_raw(out, heading, *(field.rstrip() for field in fields))


Rows: TypeAlias = tuple[Sequence[Heading], Iterable[Sequence[Any]]]
"""A table: its headings and its rows."""


@dataclass(frozen=True)
class Report:
    """A result as a command prints it.

    `json` is an object, or a list of objects for one line each. `hint` explains on standard error what the
    text omits.
    """

    json: object
    lines: Iterable[str] = ()
    tables: Iterable[Rows] = ()
    hint: str | None = None


def facts(value: object, names: str) -> dict[str, Any]:
    """Return attributes of a value, whose names are separated by spaces, for an object of JSON."""
    return {name: getattr(value, name) for name in names.split()}


def render(report: Report, *, json: bool, layout: Layout = FIT) -> None:
    """Print a report: an empty line precedes each table that follows something."""
    if json:
        for each in report.json if isinstance(report.json, list) else [report.json]:
            print_json(each)
        return
    out, is_first = console(), True
    for line in report.lines:
        print_lines(out, line)
        is_first = False
    for headings, rows in report.tables:
        if not is_first:
            print_lines(out, "")
        print_table(out, headings, rows, layout)
        is_first = False
    if report.hint is not None:
        print_hint(report.hint)


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
