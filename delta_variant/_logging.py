"""Loggers whose messages say in which context they are logged, such as a micro-batch of a stream."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CONTEXT: ContextVar[str] = ContextVar("the context of messages", default="")


@contextmanager
def log_context(context: str) -> Iterator[None]:
    """Begin the messages that this thread logs in the block with a text and a colon."""
    token = _CONTEXT.set(context)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def get_logger(name: str) -> logging.Logger:
    logger = logging.getLogger(name)
    logger.addFilter(_add_context)
    return logger


def _add_context(record: logging.LogRecord) -> bool:
    if context := _CONTEXT.get():
        # Only a message with arguments is formatted.
        record.msg = f"{context.replace('%', '%%') if record.args else context}: {record.msg}"
    return True
