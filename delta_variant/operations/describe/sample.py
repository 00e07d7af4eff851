"""The values of columns and paths in a sample of rows."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import pyarrow as pa

from ..._text import path_text, shorten
from ...data_file.reader import RowRange
from ...errors import CastError
from ...log.snapshot import Snapshot
from ...read.file_reader import FileReader, TableReader, files_of
from ...read.query import Query
from ...variant.functions import schema_of_variant
from ...variant.objects import is_variant, rows_of
from ...variant.paths import normalize
from ...variant.values import VARIANT_TYPE, Variant
from .summary import PathSummary

MAX_PATHS = 10_000
MAX_EXAMPLES = 3
MAX_CHARACTERS = 40
YEAR = re.compile(r"([+-]?\d+)(.*)", re.DOTALL)
NAN = float("nan")
"""The one key of all NaN, which do not equal each other."""

Path: TypeAlias = tuple[str | None, ...]

TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "bigint",
    Decimal: "decimal",
    float: "double",
    str: "string",
    bytes: "binary",
    date: "date",
    time: "time",
    UUID: "uuid",
    dict: "object",
    list: "array",
}
"""The SQL types of Python objects; a timestamp has a time zone or none."""
NUMBERS = frozenset({"bigint", "decimal", "double"})
SAMPLED = ("types", "filled", "nulls", "distinct", "min", "max", "examples")


class Unrepresentable(NamedTuple):
    """A value that Python does not have, such as a date after the year 9999: its SQL type and its text."""

    type: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass
class _Values:
    """The values of a path: the rows that have it, and its types and scalars with their counts."""

    rows: int = 0
    nulls: int = 0
    types: Counter[str] = field(default_factory=Counter)
    scalars: Counter[tuple[str, Any]] = field(default_factory=Counter)
    ranges: dict[tuple[str, Any], int | None] = field(default_factory=dict)
    """The range of rows that has a scalar, None if several have it."""

    @property
    def once(self) -> int:
        """Return the number of scalars that one range has.

        Rows that are sorted, or arrived together, share values: how often a range has one says nothing about
        the other rows.
        """
        return sum(each is not None for each in self.ranges.values())

    def count(self, kind: str, value: Any, number: int) -> None:
        """Count a scalar of a range of rows."""
        scalar = kind, NAN if value != value else value
        self.scalars[scalar] += 1
        if self.ranges.setdefault(scalar, number) != number:
            self.ranges[scalar] = None

    def ends(self) -> tuple[str | None, str | None]:
        """Return the least and the greatest of the values of the most frequent type, or of all numbers."""
        if not self.scalars:
            return None, None
        (frequent, _), _ = self.scalars.most_common(1)[0]
        kinds = NUMBERS if frequent in NUMBERS else {frequent}
        # NaN has no order.
        values = [value for (kind, value), _ in self.scalars.items() if kind in kinds and value == value]
        is_mixed = any(isinstance(value, Unrepresentable) for value in values)
        key = _year_and_text if is_mixed else None
        return (_text(min(values, key=key)), _text(max(values, key=key))) if values else (None, None)


class Sample:
    """The values of the columns and paths in some rows. Columns that are not Variants have a SQL type."""

    def __init__(self, columns: Mapping[str, str | None]) -> None:
        self.rows = 0
        self._range = 0
        self.batches: list[pa.RecordBatch] = []
        self._columns = columns
        self._values: dict[tuple[str, Path], _Values] = {(name, ()): _Values() for name in columns}

    def add_range(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add a range of rows out of many."""
        for batch in batches:
            self._add(batch, is_range=True)
        self._range += 1

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch, each as a range of its own."""
        self._add(batch, is_range=False)

    def _add(self, batch: pa.RecordBatch, *, is_range: bool) -> None:
        self.rows += batch.num_rows
        self.batches.append(batch)
        for row in _objects_of(batch):
            self._range += not is_range
            for name, value in row.items():
                found: dict[Path, bool] = {}
                self._count(name, value, found)
                for path, is_null in found.items():
                    values = self._values[name, path]
                    values.rows += 1
                    values.nulls += is_null

    def _count(self, name: str, row_value: Any, found: dict[Path, bool]) -> None:
        """Count a value and those in it; `found` gets the paths, and whether all their values are null."""
        is_variant_column = self._columns[name] is None
        # Variants can nest deeper than Python functions can call themselves.
        remaining: list[tuple[Path, Any]] = [((), row_value)]
        while remaining:
            path, value = remaining.pop()
            values = self._values.get((name, path))
            if values is None:
                if len(self._values) >= MAX_PATHS:
                    continue
                values = self._values[name, path] = _Values()
            found[path] = value is None and found.get(path, True)
            if value is None:
                continue
            kind = self._columns[name] or _type_of(value)
            values.types[kind] += 1
            if not isinstance(value, dict | list):
                values.count(kind, value, self._range)
            elif is_variant_column:
                steps = value.items() if isinstance(value, dict) else ((None, each) for each in value)
                remaining += reversed([((*path, step), each) for step, each in steps])

    def scalar_paths(self, name: str) -> Iterator[tuple[Path, Counter[str]]]:
        """Yield the paths of a Variant that have scalars, with the types of these."""
        for (column, path), values in self._values.items():
            if column == name and path and values.scalars:
                types = Counter[str]()
                for (kind, _), number in values.scalars.items():
                    types["number" if kind in NUMBERS else kind] += number
                yield path, types

    def summaries(
        self,
        rows: int | None,
        columns: Mapping[tuple[str, Path], str],
        reasons: Mapping[tuple[str, Path], str],
    ) -> Iterator[tuple[tuple[str, Path], PathSummary]]:
        """Yield the summary of each column and its paths; `rows` is the number of all rows."""
        order = {name: number for number, name in enumerate(self._columns)}
        ratio = 1 if not rows or not self.rows else rows / self.rows
        exact = SAMPLED if rows == self.rows else ()
        for (name, path), values in sorted(
            self._values.items(), key=lambda each: (order[each[0][0]], [step or "" for step in each[0][1]])
        ):
            total = sum(values.types.values())
            shares = {kind: number / total for kind, number in values.types.most_common()}
            scalars = values.scalars.total()
            distinct = round(distinct_values(len(values.scalars), values.once, scalars, ratio * scalars))
            sampled = self.rows or 1
            yield (
                (name, path),
                PathSummary(
                    path_text(name, path),
                    shares,
                    (values.rows - values.nulls) / sampled,
                    values.nulls / sampled,
                    distinct if values.scalars else None,
                    *values.ends(),
                    tuple(_text(value) for (_, value), _ in values.scalars.most_common(MAX_EXAMPLES)),
                    columns.get((name, path)),
                    reasons.get((name, path)),
                    exact=exact,
                ),
            )


def distinct_values(found: int, once: int, sampled: int, values: float) -> float:
    """Return the estimated number of distinct values among `values`.

    The sample has `sampled` of them, `found` distinct ones, and `once` that only one range of rows has.
    """
    ratio = math.sqrt(max(values / sampled, 1)) if sampled else 1
    return min(ratio * once + found - once, max(values, found))


def _objects_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as Python objects, with `Unrepresentable` for what Python cannot represent."""
    try:
        return rows_of(batch, "python")
    except CastError:
        pass
    if batch.num_rows > 1:
        return [row for at in range(batch.num_rows) for row in _objects_of(batch.slice(at, 1))]
    row: dict[str, Any] = {}
    for each, column in zip(batch.schema, batch.columns, strict=True):
        part = pa.record_batch([column], schema=pa.schema([each]))
        try:
            row |= rows_of(part, "python")[0]
        except CastError:
            is_whole = is_variant(each)
            row[each.name] = _of_variant(Variant(**column[0].as_py())) if is_whole else _of_column(column)
    return [row]


def _of_column(column: Any) -> Any:
    try:
        text = column.cast(pa.string())[0].as_py()
    except pa.ArrowException:
        # A struct or a list: its values are not counted.
        return {}
    return Unrepresentable("", text)


def _of_variant(variant: Variant) -> Any:
    try:
        return variant.to_python()
    except CastError:
        value = json.loads(variant.to_json())
    if not isinstance(value, dict | list):
        stored = pa.array([asdict(variant)], VARIANT_TYPE)
        return Unrepresentable(schema_of_variant(stored)[0].as_py().lower(), value)
    steps = list(value) if isinstance(value, dict) else range(len(value))
    parts = [_of_variant(part) for step in steps if (part := variant.get(normalize([step])))]
    return dict(zip(value, parts, strict=True)) if isinstance(value, dict) else parts


def _year_and_text(value: Any) -> tuple[int, str]:
    """Return the order of a date or a timestamp of any year."""
    year, rest = YEAR.findall(str(value))[0]
    return int(year), rest


def _type_of(value: Any) -> str:
    if isinstance(value, Unrepresentable):
        return value.type
    if isinstance(value, datetime):
        return "timestamp_ntz" if value.tzinfo is None else "timestamp"
    return TYPES[type(value)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return shorten(value.hex() if isinstance(value, bytes) else str(value), MAX_CHARACTERS)


MAX_FILES = 16
MAX_RANGES = 32
"""Adjacent rows are often alike, so that many ranges are better than few. Each range costs pages to read."""
MAX_BYTES = 64 << 20


def choose_files(snapshot: Snapshot) -> pa.Table:
    """Return up to 16 files of a table, evenly spaced."""
    number = min(snapshot.num_files, MAX_FILES)
    positions = [at * snapshot.num_files // number for at in range(number)]
    return snapshot.files.take(pa.array(positions, pa.int64()))


def read_ranges(
    snapshot: Snapshot, files: pa.Table, query: Query, limit: int
) -> Iterator[list[pa.RecordBatch]]:
    """Yield ranges of rows of some files of a table, with about `limit` rows in all."""
    for file in TableReader.of(snapshot).open_all(files_of(files)):
        for rows in _ranges(file, -(-limit // files.num_rows), MAX_RANGES // files.num_rows):
            yield list(_first(map(query.result, file.read(query.inputs, [rows], "error"))))


def _ranges(file: FileReader, limit: int, number: int) -> list[RowRange]:
    """Return ranges of a file, evenly spaced, with `limit` rows that are not deleted."""
    stored = sum(rows for rows, _ in file.native.row_groups)
    left = stored - (file.file.deletion_vector or {}).get("cardinality", 0)
    if left <= limit:
        return [(0, stored)]
    wanted, number = limit * stored // left, min(number, limit)
    parts = ((at * stored // number, at * wanted // number) for at in range(number + 1))
    return [(start, min(start + after - before, end)) for (start, before), (end, after) in pairwise(parts)]


def _first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches until they have their part of the bytes."""
    size = 0
    for batch in batches:
        yield batch
        size += batch.nbytes
        if size > MAX_BYTES // MAX_RANGES:
            return
