"""Print log messages on standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LogLines", "printing_log"]


class LogLines(logging.Handler):
    """A log handler that prints to standard error, escaped. Only warnings and errors omit their logger."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message and its exception."""
        error = record.exc_info[1] if record.exc_info else None
        reason = f": {error}" if error is not None else ""
        source = "delta-variant" if record.levelno >= logging.WARNING else record.name
        # Imported here, because most runs log nothing, and rich takes long to import.
        from .terminal import console, print_lines

        print_lines(console(stderr=True), f"{source}: {record.getMessage()}{reason}")


@contextmanager
def printing_log() -> Iterator[None]:
    """Print the messages that `delta_variant` logs while the body runs."""
    logger, lines = logging.getLogger("delta_variant"), LogLines()
    logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)
