"""Print the results of `delete`, `update` and `optimize` as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._text import count, path_text, size_text
from ..operations.optimize.layout import LeafPath
from ..operations.optimize.optimize import OptimizeResult
from ..write.rewrite_result import RewriteResult
from .terminal import console, print_json, print_lines

__all__ = ["RewriteSummary", "print_optimization", "print_optimization_json"]


@dataclass(frozen=True)
class RewriteSummary:
    """The result of a rewrite and the name of its table."""

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
        print_json(report)

    def print_text(self) -> None:
        """Print a summary."""
        print_lines(console(), *self._sentences())

    def _sentences(self) -> Iterator[str]:
        result = self.result
        if result.version is None:
            yield f"{self.table}: no row matches, nothing was written"
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


def print_optimization(table: str, result: OptimizeResult) -> None:
    """Print the result or the plan of an optimization."""
    out = console()
    if not result.groups:
        print_lines(out, f"{table}: nothing to do")
        return
    done = f"version {result.version}" if result.version is not None else "dry run"
    about = "" if result.files else "about "
    new = count(len(result.files), "file") if result.files else f"{len(result.groups)} or more"
    print_lines(
        out,
        f"{table}: {done}, {count(result.files_before, 'file')} to {new}",
        f"{size_text(result.bytes_before)} to {about}{size_text(result.bytes_after)}",
    )
    for name, leaves in _changed_paths(result).items():
        print_lines(out, *(f"{name} {path_text(each.column, each.path)} ({each.type})" for each in leaves))


def print_optimization_json(table: str, result: OptimizeResult) -> None:
    """Print the same as one JSON object."""
    report = {
        "table": table,
        "version": result.version,
        "files_before": result.files_before,
        "bytes_before": result.bytes_before,
        "bytes_after": result.bytes_after,
        "rows": sum(group.rows for group in result.groups),
        "files": [{"path": file.path, "rows": file.rows, "bytes": file.bytes} for file in result.files],
        **{
            name: [{"path": path_text(each.column, each.path), "type": each.type} for each in leaves]
            for name, leaves in _changed_paths(result).items()
        },
    }
    print_json(report)


def _changed_paths(result: OptimizeResult) -> dict[str, list[LeafPath]]:
    return {
        name: sorted({leaf for group in result.groups for leaf in getattr(group, name)}, key=str)
        for name in ("gained", "dropped")
    }
