"""What happened to a table, for people and for scripts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from delta_variant.timeline import HistoryEntry

from .terminal import Heading, console, print_table

__all__ = ["print_history", "print_history_json"]

HEADINGS: tuple[Heading, ...] = (
    ("version", "right"),
    ("time", "left"),
    ("operation", "left"),
    ("parameters and metrics", "left"),
)


def print_history(entries: Sequence[HistoryEntry]) -> None:
    """Print one line for each commit."""
    rows = [
        (
            entry.version,
            entry.timestamp.isoformat(sep=" ", timespec="milliseconds"),
            entry.operation or "",
            ", ".join(f"{name}={_text(value)}" for name, value in _details(entry)),
        )
        for entry in entries
    ]
    print_table(console(), HEADINGS, rows)


def print_history_json(entries: Sequence[HistoryEntry]) -> None:
    """Print one JSON object for each commit: what it says of itself, its version and its time."""
    for entry in entries:
        told = {**entry.commit_info, "version": entry.version, "timestamp": entry.timestamp}
        print(msgspec.json.encode(told).decode())


def _details(entry: HistoryEntry) -> list[tuple[str, object]]:
    told = {**entry.parameters, **entry.metrics}
    return [(name, value) for name, value in told.items() if value not in (None, "", [], {})]


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
