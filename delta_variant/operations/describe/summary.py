"""What a table or a JSON file has, path by path, as an object that is an Arrow stream and prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import nlargest
from typing import Any

import pyarrow as pa

from ..._html import html_table
from ..._text import count, rows_text, shorten
from ...errors import printable

WIDTH = 80
MAX_PRINTED = 200
"""The greatest number of paths that are printed."""

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
        pa.field("reason", pa.string()),
        pa.field("change", pa.string()),
        pa.field("exact", pa.list_(pa.string()), False),
        pa.field("deciles", pa.list_(pa.string()), False),
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
        distinct: The number of distinct values in all rows, estimated unless `exact` names it. None for
            objects and arrays.
        min: The least value as text. None for objects and arrays.
        max: The greatest value as text. None for objects and arrays.
        examples: The most frequent values in the sample as text.
        column: The SQL type of the Parquet column that the path has in some of the sampled files, None
            without one, and for a column that is not a Variant.
        reason: Why a path with values has no Parquet column: `"not shredded"`, `"in an array"`, `"too deep"`,
            `"too many"` paths, `"mixed types"`, `"too rare"`, or `"small file"`, whose size
            allows few columns. None for all others.
        change: `"new"`, `"changed"` if the path had other types, or `"vanished"` since the version that
            `since` selects. None if there is no change, and without `since`.
        exact: The names of the attributes that hold for all rows of the table. The others are of the sample.
        deciles: The nine values between the tenths of all values in their order as text, after `analyze`.
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
    reason: str | None = None
    change: str | None = None
    exact: tuple[str, ...] = ()
    deciles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """The columns and paths of a table or of JSON files. It is an Arrow stream, and prints as a table.

    Attributes:
        source: The location of the table, or the first file.
        version: The version of the table, None for files.
        rows: The number of rows, None if it is not known without reading them.
        sampled_rows: The number of rows in the sample.
        invalid: The number of values in the sample that are not JSON.
        since: The earlier version that `change` compares with, None without one.
        paths: The columns, each followed by its paths.
        deleted_rows: The number of rows that deletion vectors delete. The data files still have them, and
            `rows` does not count them.

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
    since: int | None = None
    deleted_rows: int = 0

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
        title, cells = self._printed()
        return "\n".join([title, *_aligned([HEADINGS, *cells])])

    def _repr_html_(self) -> str:
        title, cells = self._printed()
        return html_table(title, HEADINGS, cells)

    def _printed(self) -> tuple[str, list[tuple[str, ...]]]:
        """Return a title and cells of few paths: of too many, those that changed or are in most rows."""
        if len(self.paths) <= MAX_PRINTED:
            return self.title, self.cells()
        first = nlargest(MAX_PRINTED, self.paths, lambda each: (each.change is not None, each.filled))
        kept = {each.path for each in first}
        note = f"{MAX_PRINTED} of {len(self.paths):,} paths; to_table() has all"
        return f"{self.title}; {note}", [_cells(each) for each in self.paths if each.path in kept]

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
        rows = rows_text(self.sampled_rows if self.rows is None else self.rows, self.deleted_rows)
        sampled = f"{self.sampled_rows:,} of them" if self.rows is not None else "these first rows"
        sampled += " and sketches of all" if any(each.deciles for each in self.paths) else ""
        sample = "" if self.rows == self.sampled_rows else f", ~ estimated from {sampled}"
        invalid = f", {count(self.invalid, 'value')} not JSON" if self.invalid else ""
        changes = Counter(each.change for each in self.paths if each.change is not None)
        drift = ", ".join(f"{number:,} {change}" for change, number in changes.items()) or "no change"
        since = "" if self.since is None else f"; paths since version {self.since}: {drift}"
        return printable(f"{where}: {rows}{sample}{invalid}{since}")


HEADINGS = ("path", "types", "filled", "distinct", "column", "values")
EMPTY = '""'
"""The empty string among values."""
CAPS = (36, 24)
"""The greatest widths of paths and types, in characters."""


def _cells(each: PathSummary) -> tuple[str, ...]:
    def about(name: str, text: str) -> str:
        return text if not text or name in each.exact else f"~{text}"

    types = (name if share == 1 else f"{name} {_percent(share)}" for name, share in each.types.items())
    path = each.path if each.change is None else f"{each.path} ({each.change})"
    distinct = "" if each.distinct is None else f"{each.distinct:,}"
    ends = dict.fromkeys(end or EMPTY for end in (each.min, each.max) if end is not None)
    column = each.reason or ("" if each.column is None else "yes")
    return (
        path,
        ", ".join(types) or "null",
        about("filled", _percent(each.filled)),
        about("distinct", distinct),
        column,
        about("min", " to ".join(ends)),
    )


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
