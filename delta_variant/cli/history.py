"""Print the results of `history`, `restore`, `vacuum` and `clean-up-log` as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import msgspec

from .._text import count, size_text
from ..log.commit_result import CommitResult
from ..operations.history import HistoryEntry
from ..operations.log_cleanup import LogCleanupResult
from ..operations.restore import RestoreResult
from ..operations.vacuum import VacuumResult
from .tables import Heading, Layout, print_table
from .terminal import console, print_json, print_lines

__all__ = [
    "print_history",
    "print_history_json",
    "print_log_cleanup",
    "print_log_cleanup_json",
    "print_restoration",
    "print_restoration_json",
    "print_vacuum",
    "print_vacuum_json",
]

HEADINGS: tuple[Heading, ...] = (
    ("version", "right"),
    ("time", "key"),
    ("operation", "left"),
    ("parameters and metrics", "left"),
)


def print_history(entries: Sequence[HistoryEntry], layout: Layout) -> None:
    """Print one line for each commit."""
    rows = [
        (
            entry.version,
            _time_text(entry.timestamp),
            entry.operation or "",
            ", ".join(f"{name}={_text(value)}" for name, value in _details(entry)),
        )
        for entry in entries
    ]
    print_table(console(), HEADINGS, rows, layout)


def _time_text(timestamp: datetime) -> str:
    """Return a time in UTC as `restore --timestamp` takes it: `2026-11-21 09:30:00.000Z`."""
    return timestamp.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def print_history_json(entries: Sequence[HistoryEntry]) -> None:
    """Print one JSON object for each commit: its `commitInfo`, version and timestamp."""
    for entry in entries:
        report = {**entry.commit_info, "version": entry.version, "timestamp": entry.timestamp}
        print_json(report)


def print_restoration(table: str, restoration: RestoreResult) -> None:
    """Print the result of a restore."""
    if restoration.version is None:
        print_lines(console(), f"{table}: already equal to version {restoration.restored}")
        return
    added, removed = count(restoration.files_added, "file"), count(restoration.files_removed, "file")
    print_lines(
        console(),
        f"{table}: version {restoration.version} restores version {restoration.restored}",
        f"{added} added, {size_text(restoration.bytes_added)}; "
        f"{removed} removed, {size_text(restoration.bytes_removed)}",
    )


def print_restoration_json(table: str, restoration: RestoreResult) -> None:
    """Print the same as one JSON object."""
    print_json({"table": table, **_report(restoration)})


def print_vacuum(table: str, result: VacuumResult) -> None:
    """Print how many files were deleted."""
    print_lines(console(), f"{table}: {count(len(result.files), 'file')} deleted, {size_text(result.bytes)}")


def print_log_cleanup(table: str, result: LogCleanupResult) -> None:
    """Print how many files of the log were deleted."""
    files = f"{count(len(result.files), 'file')} of the log deleted, {size_text(result.bytes)}"
    remaining = f"; the log begins at version {result.first_version}" if result.files else ""
    print_lines(console(), f"{table}: {files}{remaining}")


def print_log_cleanup_json(table: str, result: LogCleanupResult) -> None:
    """Print the same as one JSON object."""
    print_json({"table": table, **asdict(result)})


def print_vacuum_json(table: str, result: VacuumResult) -> None:
    """Print the same as one JSON object."""
    print_json({"table": table, **_report(result)})


def _report(result: CommitResult) -> dict[str, object]:
    """Return the attributes of a result without the metrics, which `history` prints."""
    return {name: value for name, value in asdict(result).items() if name != "metrics"}


def _details(entry: HistoryEntry) -> list[tuple[str, object]]:
    details = {**entry.parameters, **entry.metrics}
    return [(name, value) for name, value in details.items() if value not in (None, "", [], {})]


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
