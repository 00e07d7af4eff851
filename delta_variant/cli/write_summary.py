"""Print the result of a write as text or JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._text import count, fill, path_text, size_text
from ..expressions.types import type_name
from ..write.commit import WriteResult
from .progress import Intake
from .tables import Heading, print_table
from .terminal import console, print_hint, print_json, print_lines

__all__ = ["WriteSummary"]

MAX_SHOWN_PATHS = 24
HEADINGS: tuple[Heading, ...] = (
    ("shredded path", "key"),
    ("type", "left"),
    ("typed_value", "right"),
    ("value", "right"),
)


@dataclass(frozen=True)
class PathFill:
    """A shredded path in all files of a write: the number of values in `typed_value` and in `value`."""

    column: str
    path: tuple[str | None, ...]
    type: str
    typed: int
    values: int


@dataclass(frozen=True)
class WriteSummary:
    """The result of a write and the counts of its input."""

    table: str
    result: WriteResult
    intake: Intake
    rejects: str | None

    @property
    def bytes_out(self) -> int:
        """Return the size of all written files in bytes."""
        return sum(file.bytes for file in self.result.files)

    @property
    def residual_rows(self) -> int:
        """Return the number of residual rows in files of their own."""
        return sum(file.rows for file in self.result.files if file.is_residual)

    def print_json(self) -> None:
        """Print one JSON object."""
        report = {
            "table": self.table,
            "version": self.result.version,
            "rows": self.result.rows,
            "residual_rows": self.residual_rows,
            "invalid": self.result.invalid,
            "rows_deleted": self.result.rows_deleted,
            "rows_copied": self.result.rows_copied,
            "rejects": self.rejects,
            "seconds": round(self.intake.seconds, 3),
            "bytes_in": self.intake.bytes,
            "bytes_out": self.bytes_out,
            "files": [
                {"path": file.path, "rows": file.rows, "bytes": file.bytes} for file in self.result.files
            ],
            "shredded": list(_fills(self.result)),
        }
        print_json(report)

    def print_text(self) -> None:
        """Print a summary and a table of the shredded paths."""
        out = console()
        print_lines(out, *self._sentences())
        fills = sorted(_fills(self.result), key=lambda each: -each.typed)
        if not fills:
            return
        print_lines(out, "")
        print_table(out, HEADINGS, (self._cells(each) for each in fills[:MAX_SHOWN_PATHS]))
        if len(fills) > MAX_SHOWN_PATHS:
            more = len(fills) - MAX_SHOWN_PATHS
            hint = f"and {more} more: delta-variant inspect {self.table} lists all paths"
            print_hint(hint)

    def _sentences(self) -> Iterator[str]:
        result, intake = self.result, self.intake
        if result.version is None:
            yield f"{self.table}: nothing was written"
            return
        rows, files = count(result.rows, "row"), count(len(result.files), "file")
        yield f"{self.table}: version {result.version}, {rows} in {files}"
        sizes = f"{size_text(intake.bytes)} in, {size_text(self.bytes_out)} out"
        yield f"{sizes}, {intake.seconds:.1f} s, {result.rows / max(intake.seconds, 1e-6):,.0f} rows/s"
        if self.residual_rows:
            own = count(sum(file.is_residual for file in result.files), "file")
            yield f"{count(self.residual_rows, 'residual row')} separated into {own}"
        if result.rows_deleted or result.rows_copied:
            copied = f", {count(result.rows_copied, 'row')} copied" if result.rows_copied else ""
            yield f"{count(result.rows_deleted, 'row')} replaced{copied}"
        if result.invalid:
            fate = f"rejected: see {self.rejects}" if self.rejects else "stored as NULL"
            yield f"{count(result.invalid, 'invalid value')} {fate}"

    def _cells(self, each: PathFill) -> tuple[str, ...]:
        rows = self.result.rows
        filled = (fill(each.typed, rows, each.path), fill(each.values, rows, each.path))
        return path_text(each.column, each.path), each.type, *filled


def _fills(result: WriteResult) -> Iterator[PathFill]:
    """Yield the shredded paths of all files, once for each type of a path."""
    counts: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    for file in result.files:
        for column, paths in file.variants.items():
            for each in paths:
                total = counts[column, each.path, type_name(each.type)]
                total[0] += each.typed
                total[1] += each.values
    for (column, path, name), (typed, values) in counts.items():
        yield PathFill(column, path, name, typed, values)
