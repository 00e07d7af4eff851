"""Print the result of a migration as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._text import count, size_text
from ..operations.legacy.migration import MigratedFile, Migration
from .tables import Heading, print_table
from .terminal import console, print_hint, print_json, print_lines

__all__ = ["MigrationSummary"]

MAX_SHOWN_FILES = 24
HEADINGS: tuple[Heading, ...] = (
    ("file", "left"),
    ("columns", "left"),
    ("rows", "right"),
    ("before", "right"),
    ("after", "right"),
)


@dataclass(frozen=True)
class MigrationSummary:
    """The result of a migration with its source and target."""

    source: str
    target: str
    result: Migration

    def print_json(self) -> None:
        """Print one JSON object."""
        files = self.result.files
        report = {
            "source": self.source,
            "target": self.target,
            "rows": sum(file.rows for file in files),
            "bytes_before": sum(file.bytes_before for file in files),
            "bytes": sum(file.bytes for file in files),
            "files": [
                {
                    "path": file.path,
                    "columns": file.columns,
                    "rows": file.rows,
                    "bytes_before": file.bytes_before,
                    "bytes": file.bytes,
                }
                for file in files
            ],
            "others": self.result.others,
        }
        print_json(report)

    def print_text(self) -> None:
        """Print a summary and a table of the files."""
        out = console()
        files = self.result.files
        print_lines(out, *self._sentences(), "")
        print_table(out, HEADINGS, map(_cells, files[:MAX_SHOWN_FILES]))
        if len(files) > MAX_SHOWN_FILES:
            print_hint(f"and {len(files) - MAX_SHOWN_FILES} more: --json lists all")

    def _sentences(self) -> Iterator[str]:
        files = self.result.files
        migrated = [file for file in files if file.columns]
        rows = count(sum(file.rows for file in migrated), "row")
        yield f"{self.target}: {count(len(migrated), 'file')} with {rows} in the current layout"
        if len(migrated) < len(files):
            yield f"{count(len(files) - len(migrated), 'file')} had no column in the older layout: copied"
        if self.result.others:
            yield f"{count(len(self.result.others), 'file')} in {self.source} not .parquet: not copied"


def _cells(file: MigratedFile) -> tuple[str, ...]:
    sizes = (size_text(file.bytes_before), size_text(file.bytes))
    return file.path, ", ".join(file.columns) or "copied", f"{file.rows:,}", *sizes
