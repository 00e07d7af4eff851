"""Say what a table or a JSON file has: its columns and paths, with their types, fill and values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa

from .._checks import to_integer
from .._html import html_table
from .._text import count, path_text, shorten
from ..errors import printable
from ..input.json_lines import JsonLines
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol.schema.arrow import variant_field
from ..protocol.types import VARIANT, sql_type
from ..read.file_reader import files_of
from ..read.query import Query
from ..read.rows import RowBatches, known_rows, load_readable, read_files
from ..read.shredded_columns import shredded_types
from ..storage.inputs import InputFile
from ..storage.store import TableLocation
from ..variant.objects import rows_of
from ..variant.values import parse_valid_json

__all__ = ["PathSummary", "Summary", "describe", "distinct_values"]

SAMPLE_ROWS = 10_000
SAMPLE_FILES = 16
MAX_PATHS = 10_000
MAX_EXAMPLES = 3
MAX_CHARACTERS = 40
NAN = float("nan")
"""The one key of all NaN, which do not equal each other."""
WIDTH = 80

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

SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), False),
        pa.field("types", pa.map_(pa.string(), pa.float64()), False),
        pa.field("filled", pa.float64(), False),
        pa.field("nulls", pa.float64(), False),
        pa.field("distinct", pa.int64()),
        pa.field("min", pa.string()),
        pa.field("max", pa.string()),
        pa.field("examples", pa.list_(pa.string()), False),
        pa.field("column", pa.string()),
    ]
)


@dataclass(frozen=True)
class PathSummary:
    """What a column, or a path of a Variant, has in the sampled rows.

    Attributes:
        path: The column, or the path as SQL text, such as `event:user.id`. `[]` stands for the elements of
            an array.
        types: The types of the values that are not null with their shares, the most frequent first.
        filled: The share of the rows that have a value.
        nulls: The share of the rows that have a null. The other rows lack the path.
        distinct: The number of distinct values in all rows, estimated if not all rows are in the sample. None
            for objects and arrays.
        min: The least value in the sample as text. None for objects and arrays.
        max: The greatest value in the sample as text. None for objects and arrays.
        examples: The most frequent values in the sample as text.
        column: The SQL type of the Parquet column that the path has in some of the sampled files, None
            without one, and for a column that is not a Variant.
    """

    path: str
    types: Mapping[str, float]
    filled: float
    nulls: float
    distinct: int | None
    min: str | None
    max: str | None
    examples: tuple[str, ...]
    column: str | None


@dataclass(frozen=True)
class Summary:
    """The columns and paths of a table or of JSON files. It is an Arrow stream, and prints as a table.

    Attributes:
        source: The location of the table, or the first file.
        version: The version of the table, None for files.
        rows: The number of rows, None if it is not known without reading them.
        sampled_rows: The number of rows in the sample.
        invalid: The number of values in the sample that are not JSON.
        paths: The columns, each followed by its paths.

    Example:
        >>> import delta_variant as dv
        >>> rows = [{"event": {"n": 1}}, {"event": {"n": "x"}}, {"event": {}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"])
        >>> summary = dv.describe("clicks")
        >>> {each.path: dict(each.types) for each in summary.paths}
        {'event': {'object': 1.0}, 'event:n': {'bigint': 0.5, 'string': 0.5}}
    """

    source: str
    version: int | None
    rows: int | None
    sampled_rows: int
    invalid: int
    paths: tuple[PathSummary, ...]

    def to_table(self) -> pa.Table:
        """Return the paths as an Arrow table.

        Returns:
            A row for each path, with the attributes of `PathSummary` as columns: `types` is
            `map<string, double>`, `examples` is `list<string>`.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.describe("clicks").to_table().select(["path", "filled", "max"]).to_pylist()
            [{'path': 'id', 'filled': 1.0, 'max': '2'}]
        """
        rows = [{**asdict(each), "types": list(each.types.items())} for each in self.paths]
        return pa.Table.from_pylist(rows, SCHEMA)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the paths as a stream of the Arrow PyCapsule interface."""
        table: Any = self.to_table()
        return table.__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        return "\n".join([self.title, *_aligned([HEADINGS, *self.cells()])])

    def _repr_html_(self) -> str:
        return html_table(self.title, HEADINGS, self.cells())

    def cells(self) -> list[tuple[str, ...]]:
        """Return the cells of the printed table: path, types, filled, distinct, column and values.

        Example:
            >>> import delta_variant as dv
            >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
            >>> dv.describe("clicks").cells()
            [('id', 'bigint', '100 %', '2', '', '1 to 2')]
        """
        return [_cells(each) for each in self.paths]

    @property
    def title(self) -> str:
        """Return the source with its number of rows."""
        where = self.source if self.version is None else f"{self.source}, version {self.version}"
        rows = count(self.sampled_rows, "row") if self.rows is None else count(self.rows, "row")
        sample = "" if self.rows in (None, self.sampled_rows) else f", {self.sampled_rows:,} of them sampled"
        invalid = f", {count(self.invalid, 'value')} not JSON" if self.invalid else ""
        return printable(f"{where}: {rows}{sample}{invalid}")


HEADINGS = ("path", "types", "filled", "distinct", "column", "values")
EMPTY = '""'
CAPS = (36, 24)
"""The greatest widths of paths and types, in characters."""


def _cells(each: PathSummary) -> tuple[str, ...]:
    types = (name if share == 1 else f"{name} {_percent(share)}" for name, share in each.types.items())
    distinct = "" if each.distinct is None else f"{each.distinct:,}"
    ends = dict.fromkeys(end or EMPTY for end in (each.min, each.max) if end is not None)
    column = "" if each.column is None else "yes"
    return each.path, ", ".join(types) or "null", _percent(each.filled), distinct, column, " to ".join(ends)


def _percent(share: float) -> str:
    if share in (0, 1):
        return "100 %" if share else "0"
    return f"{100 * min(max(share, 0.001), 0.999):.1f} %"


def _aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines with their cells in columns; the last cell has what remains of the width."""
    texts = [[printable(cell) for cell in line] for line in lines]
    widths = [max(map(len, cells)) for cells in zip(*texts, strict=True)][:-1]
    widths[: len(CAPS)] = map(min, widths, CAPS)
    for *cells, last in texts:
        line = "".join(f"{shorten(cell, width):{width}}  " for cell, width in zip(cells, widths, strict=True))
        yield f"{line}{shorten(last, max(WIDTH - len(line), 12))}".rstrip()


def describe(
    source: TableLocation | Snapshot | JsonLines,
    *,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Summary:
    """Return what a table or JSON files have: each column and path with its types, fill and values.

    The figures are those of a sample: the first rows of up to 16 files, evenly spaced in the table, or the
    first values of JSON files. The number of distinct values in all rows is estimated (Charikar et al.,
    "Towards Estimation Error Guarantees for Distinct Values", 2000).

    Args:
        source: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`, or the result of
            `read_json`, which need not be in a table yet.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string, as in `read_table`. None by default.
        sample_rows: The number of rows in the sample, 10,000 by default.

    Returns:
        A `Summary`: an Arrow stream, which pyarrow, Polars and DuckDB read, and a table in a terminal and in
        a notebook.

    Raises:
        TableNotFoundError: There is no table at this location.
        VersionNotFoundError: The log does not have the version or the timestamp.
        UnsupportedFeatureError: This version cannot read the table.
        DataFileError: A file cannot be read.
        CastError: Python cannot represent a value, such as a date after the year 9999.
        ValueError: `sample_rows` is less than 1.

    Example:
        >>> import delta_variant as dv
        >>> rows = [{"event": {"n": 1}}, {"event": {"n": 2}}, {"event": {"n": None}}]
        >>> _ = dv.write_table("clicks", rows, variant_columns=["event"])
        >>> print(dv.describe("clicks").paths[1].types, dv.describe("clicks").paths[1].max)
        {'bigint': 1.0} 2
    """
    limit = to_integer("sample_rows", sample_rows, 1)
    if isinstance(source, JsonLines):
        return _describe_json(source, limit)
    snapshot = load_readable(source, version, timestamp)
    number = min(SAMPLE_FILES, snapshot.num_files)
    chosen = [snapshot.files.slice(index * snapshot.num_files // number, 1) for index in range(number)]
    files = pa.concat_tables(chosen) if chosen else snapshot.files
    variants = {each.name for each in snapshot.schema.fields if each.type == VARIANT}
    names = {each.name: sql_type(each.type) for each in snapshot.schema.fields}
    sample = _Sample({name: None if name in variants else names[name] for name in names})
    query = Query.of(snapshot.configuration, None, None)
    for file in chosen:
        batches = read_files(snapshot, query, files_of(file), None)
        sample.add_first(batches, -(-limit // number))
    columns: dict[tuple[str, Path], str] = {}
    for (column, path), name in (shredded_types(snapshot, files) if variants else {}).items():
        # Variants within structs are values of their column.
        if len(column) == 1:
            columns[column[0], path] = name
    rows = known_rows(snapshot)
    return Summary(
        snapshot.uri, snapshot.version, rows, sample.rows, 0, tuple(sample.summaries(rows, columns))
    )


def _describe_json(source: JsonLines, limit: int) -> Summary:
    sample, invalid = _Sample({source.column: None}), 0
    name = next((each.name for each in source.sources if isinstance(each, InputFile)), "an open file")
    for batch, _ in source.batches():
        text = batch.column(0).slice(0, limit - sample.rows)
        variants, wrong = parse_valid_json(
            text, floats=source.json.floats, duplicate_keys=source.json.duplicate_keys
        )
        invalid += len(wrong)
        kept = variants.filter(variants.is_valid())
        sample.add(pa.record_batch([kept], schema=pa.schema([variant_field(source.column)])))
        if sample.rows + invalid >= limit:
            return Summary(name, None, None, sample.rows, invalid, tuple(sample.summaries(None, {})))
    return Summary(name, None, sample.rows, sample.rows, invalid, tuple(sample.summaries(sample.rows, {})))


@dataclass
class _Values:
    """The values of a path: the rows that have it, and its types and scalars with their counts."""

    rows: int = 0
    nulls: int = 0
    types: Counter[str] = field(default_factory=Counter)
    scalars: Counter[tuple[str, Any]] = field(default_factory=Counter)

    def ends(self) -> tuple[str | None, str | None]:
        """Return the least and the greatest of the values of the most frequent type, or of all numbers."""
        if not self.scalars:
            return None, None
        (frequent, _), _ = self.scalars.most_common(1)[0]
        kinds = NUMBERS if frequent in NUMBERS else {frequent}
        # NaN has no order.
        values = [value for (kind, value), _ in self.scalars.items() if kind in kinds and value == value]
        return (_text(min(values)), _text(max(values))) if values else (None, None)


class _Sample:
    """The values of the columns and paths in some rows. Columns that are not Variants have a SQL type."""

    def __init__(self, columns: Mapping[str, str | None]) -> None:
        self.rows = 0
        self._columns = columns
        self._values: dict[tuple[str, Path], _Values] = {(name, ()): _Values() for name in columns}

    def add_first(self, batches: RowBatches, limit: int) -> None:
        """Add the first rows of batches."""
        with closing(batches):
            for batch in batches:
                self.add(batch.slice(0, limit))
                limit -= batch.num_rows
                if limit <= 0:
                    return

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""
        self.rows += batch.num_rows
        for row in rows_of(batch, "python"):
            for name, value in row.items():
                found: dict[Path, bool] = {}
                self._walk(name, (), value, found)
                for path, is_null in found.items():
                    values = self._values[name, path]
                    values.rows += 1
                    values.nulls += is_null

    def _walk(self, name: str, path: Path, value: Any, found: dict[Path, bool]) -> None:
        """Count a value and those below it; `found` gets the paths, and whether all their values are null."""
        values = self._values.get((name, path))
        if values is None:
            if len(self._values) >= MAX_PATHS:
                return
            values = self._values[name, path] = _Values()
        found[path] = value is None and found.get(path, True)
        if value is None:
            return
        kind = self._columns[name] or _type_of(value)
        values.types[kind] += 1
        if self._columns[name] is None and isinstance(value, dict):
            for key, member in value.items():
                self._walk(name, (*path, key), member, found)
        elif self._columns[name] is None and isinstance(value, list):
            for element in value:
                self._walk(name, (*path, None), element, found)
        elif not isinstance(value, dict | list):
            values.scalars[kind, NAN if value != value else value] += 1

    def summaries(self, rows: int | None, columns: Mapping[tuple[str, Path], str]) -> Iterator[PathSummary]:
        """Yield the summary of each column and its paths; `rows` is the number of all rows."""
        order = {name: number for number, name in enumerate(self._columns)}
        ratio = 1 if not rows or not self.rows else rows / self.rows
        for (name, path), values in sorted(
            self._values.items(), key=lambda each: (order[each[0][0]], [step or "" for step in each[0][1]])
        ):
            total = sum(values.types.values())
            shares = {kind: number / total for kind, number in values.types.most_common()}
            distinct = round(distinct_values(values.scalars, ratio * sum(values.scalars.values())))
            sampled = self.rows or 1
            yield PathSummary(
                path_text(name, path),
                shares,
                (values.rows - values.nulls) / sampled,
                values.nulls / sampled,
                distinct if values.scalars else None,
                *values.ends(),
                tuple(_text(value) for (_, value), _ in values.scalars.most_common(MAX_EXAMPLES)),
                columns.get((name, path)),
            )


def distinct_values(scalars: Mapping[Any, int], values: float) -> float:
    """Return the estimated number of distinct values among `values`, from the counts of a sample."""
    sampled = sum(scalars.values())
    if not sampled:
        return 0
    once = sum(count == 1 for count in scalars.values())
    ratio = math.sqrt(max(values / sampled, 1))
    return min(ratio * once + len(scalars) - once, max(values, len(scalars)))


def _type_of(value: Any) -> str:
    if isinstance(value, datetime):
        return "timestamp_ntz" if value.tzinfo is None else "timestamp"
    return TYPES[type(value)]


def _text(value: Any) -> str:
    return shorten(value.hex() if isinstance(value, bytes) else str(value), MAX_CHARACTERS)
