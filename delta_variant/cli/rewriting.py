"""What a rewrite did, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from delta_variant.rewrite import RewriteResult

from .terminal import console, count, print_lines, size_text

__all__ = ["RewriteSummary"]


@dataclass(frozen=True)
class RewriteSummary:
    """A rewrite beside the name of its table."""

    table: str
    result: RewriteResult

    def print_json(self) -> None:
        """Print one JSON object."""
        result = self.result
        report = {
            "table": self.table,
            "version": result.version,
            "rows_deleted": result.rows_deleted,
            "rows_updated": result.rows_updated,
            "rows_inserted": result.rows_inserted,
            "rows_copied": result.rows_copied,
            "files_removed": result.files_removed,
            "files": [{"path": file.path, "rows": file.rows, "bytes": file.bytes} for file in result.files],
        }
        print(msgspec.json.encode(report).decode())

    def print_text(self) -> None:
        """Print sentences."""
        print_lines(console(), *self._sentences())

    def _sentences(self) -> Iterator[str]:
        result = self.result
        if result.version is None:
            yield f"{self.table}: no row is concerned, nothing was written"
            return
        numbers = {
            "deleted": result.rows_deleted,
            "updated": result.rows_updated,
            "inserted": result.rows_inserted,
            "copied": result.rows_copied,
        }
        done = [f"{count(number, 'row')} {verb}" for verb, number in numbers.items() if number]
        yield f"{self.table}: version {result.version}, {', '.join(done) or '0 rows'}"
        added, size = count(len(result.files), "file"), size_text(sum(file.bytes for file in result.files))
        yield f"{count(result.files_removed, 'file')} removed, {added} added, {size}"
