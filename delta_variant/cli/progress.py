"""When a command shows the progress of its operation, and what a write took in."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from .._progress import advance, begin
from .._progress_bar import Meter, show_bar, show_lines
from .terminal import console, print_lines


@contextmanager
def showing_progress(*, if_redirected: bool = False) -> Iterator[Meter]:
    """Observe the operations in the block, and show their progress: a bar, or lines without a terminal.

    `if_redirected=True` shows nothing while standard output is a terminal, because the results appear there.
    """
    err = console(stderr=True)
    is_quiet = not logging.getLogger("delta_variant").isEnabledFor(logging.WARNING)
    is_hidden = is_quiet or (if_redirected and console().is_terminal)
    if is_hidden or err.is_terminal:
        showing = show_bar(None if is_hidden else err)
    else:
        showing = show_lines(partial(print_lines, err))
    with showing as meter:
        yield meter


class Intake:
    """Counts the input of a write."""

    def __init__(self) -> None:
        self.bytes = 0
        self.rows = 0
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def begin(self, size: int | None) -> None:
        """Show the counts of JSON input of `size` bytes; Parquet and CSV report their progress themselves."""
        begin("writing", bytes_=size)

    def update(self, bytes_read: int, rows: int) -> None:
        """Record the totals so far."""
        advance(bytes_=bytes_read - self.bytes, rows=rows - self.rows)
        self.bytes, self.rows = bytes_read, rows
