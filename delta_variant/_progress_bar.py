"""The progress bar of operations, in a terminal or a notebook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from ._progress import observe
from ._text import count, size_text

LINE_SECONDS = 10.0
"""The seconds between the lines in a log without a terminal."""

NARROW = 100
"""A terminal with fewer characters has a shorter bar."""


@dataclass
class Meter:
    """Counts the work of a phase of an operation, and shows the counts in a bar or in lines, if any."""

    bar: Progress | None = None
    is_narrow: bool = False
    print_line: Callable[[str], None] | None = None
    phase: str = ""
    files: int = 0
    bytes: int = 0
    rows: int = 0
    total_files: int | None = None
    total_bytes: int | None = None
    total_rows: int | None = None
    started: float = field(default_factory=time.monotonic)
    printed: float = field(default_factory=time.monotonic)

    def begin(self, phase: str, files: int | None, bytes_: int | None, rows: int | None) -> None:
        """Start another phase with its own bar."""
        self.phase = phase
        self.files = self.bytes = self.rows = 0
        self.total_files, self.total_bytes, self.total_rows = files, bytes_, rows
        self.started = time.monotonic()
        if self.bar is not None:
            for task in self.bar.task_ids:
                self.bar.remove_task(task)
            self.bar.add_task(phase, total=self._measure()[1], done="")
            self._show()

    def advance(self, files: int, bytes_: int, rows: int) -> None:
        self.files += files
        self.bytes += bytes_
        self.rows += rows
        self._show()

    def _measure(self) -> tuple[int, int | None]:
        """Return the work done and its total, in the finest unit whose total is known."""
        counts = (self.rows, self.total_rows), (self.bytes, self.total_bytes), (self.files, self.total_files)
        # An empty total would be shown as done.
        return next(((done, total) for done, total in counts if total), (0, None))

    def _show(self) -> None:
        if self.bar is not None and self.bar.task_ids:
            self.bar.update(self.bar.task_ids[0], completed=self._measure()[0], done=self.text())
        if self.print_line is not None and time.monotonic() - self.printed >= LINE_SECONDS:
            self.printed = time.monotonic()
            self.print_line(f"{self.phase}: {self.text()}")

    def text(self) -> str:
        """Return the counts with their totals and rates: `3/12 files  40.1 of 99.0 MB, 8.1 MB/s`.

        A narrow terminal has two counts and one rate: files or bytes, and rows. The percentage says the rest.
        """
        seconds = max(time.monotonic() - self.started, 1e-6)
        has_files = bool(self.files or self.total_files)
        has_bytes = bool(self.bytes or self.total_bytes) and not (self.is_narrow and has_files and self.rows)
        parts = [self._files_text()] if has_files else []
        if has_bytes:
            parts.append(f"{self._bytes_text()}, {size_text(self.bytes / seconds)}/s")
        if self.rows:
            rate = "" if self.is_narrow and has_bytes else f", {self.rows / seconds:,.0f}/s"
            parts.append(f"{count(self.rows, 'row')}{rate}")
        return "  ".join(parts)

    def _files_text(self) -> str:
        if self.total_files is None:
            return count(self.files, "file")
        return f"{self.files:,}/{count(self.total_files, 'file')}"

    def _bytes_text(self) -> str:
        total = f" of {size_text(self.total_bytes)}" if self.total_bytes and not self.is_narrow else ""
        return f"{size_text(self.bytes)}{total}"


@contextmanager
def progress() -> Iterator[None]:
    """Show a bar on standard error while operations in the block run: files, bytes, rows and the time left.

    All operations that read or write data files, or many files of the log, have one. The bar disappears with
    the block, and nothing is shown where standard error is not a terminal. A notebook needs `ipywidgets`.

    Example:
        >>> import delta_variant as dv
        >>> events = dv.Table("events")
        >>> with dv.progress():
        ...     _ = events.append([{"id": 1}, {"id": 2}])
        ...     _ = events.optimize()
    """
    console = Console(stderr=True)
    with show_bar(console if console.is_terminal or console.is_jupyter else None):
        yield


@contextmanager
def show_lines(print_line: Callable[[str], None]) -> Iterator[Meter]:
    """Observe the operations in the block, and print a line with their counts now and then."""
    with observe(meter := Meter(print_line=print_line)):
        yield meter


@contextmanager
def show_bar(console: Console | None) -> Iterator[Meter]:
    """Observe the operations in the block, and show a bar on a console, if any."""
    if console is None:
        with observe(meter := Meter()):
            yield meter
        return
    # A transient bar is removed at the end and after an interrupt.
    with Progress(*_columns(console.width), console=console, transient=True) as bar:
        meter = Meter(bar, console.width < NARROW)
        with observe(meter):
            yield meter


def _columns(width: int) -> list[ProgressColumn]:
    return [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=6 if width < NARROW else 30),
        TaskProgressColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(compact=True),
    ]
