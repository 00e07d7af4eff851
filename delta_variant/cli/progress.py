"""The progress bar of a write, if standard error is a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from .terminal import console

__all__ = ["Intake"]


class Intake:
    """Counts the input of a write, and shows it in a progress bar."""

    def __init__(self) -> None:
        self.bytes = 0
        self.rows = 0
        self.started = time.monotonic()
        self._bar: Progress | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    @property
    def rows_per_second(self) -> float:
        """Return the average number of rows per second."""
        return self.rows / max(self.seconds, 1e-6)

    def update(self, bytes_read: int, rows: int) -> None:
        """Record the totals so far."""
        self.bytes, self.rows = bytes_read, rows
        if self._bar is not None:
            rate = f"{self.rows_per_second:,.0f} rows/s"
            self._bar.update(self._bar.task_ids[0], completed=bytes_read, rate=rate)

    @contextmanager
    def show(self, total_bytes: int | None) -> Iterator[None]:
        """Show a bar on standard error while the body runs, if that is a terminal."""
        err = console(stderr=True)
        if not err.is_terminal:
            yield
            return
        with Progress(*_columns(total_bytes), console=err, transient=True) as self._bar:
            self._bar.add_task("", total=total_bytes, rate="")
            yield
        self._bar = None


def _columns(total_bytes: int | None) -> list[ProgressColumn]:
    share = [BarColumn(), TaskProgressColumn()] if total_bytes is not None else [SpinnerColumn()]
    rates = [TransferSpeedColumn(), TextColumn("{task.fields[rate]}")]
    return [*share, DownloadColumn(), *rates, TimeElapsedColumn()]
