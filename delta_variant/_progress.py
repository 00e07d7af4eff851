"""Progress of operations: they report to an observer, and do not know who observes.

An operation reports from the thread that called it, because the observer is a context variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Observer(Protocol):
    """Receives the progress of the operations in a block of `observe`."""

    def begin(self, phase: str, files: int | None, bytes_: int | None, rows: int | None) -> None:
        """Begin a phase, such as `"reading"`, with the totals of its files, their bytes and rows if known."""

    def advance(self, files: int, bytes_: int, rows: int) -> None:
        """Add to what is done in the phase."""


_OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Send the progress of operations in the block to an observer."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def is_observed() -> bool:
    """Return whether totals are of use, which take time to find."""
    return _OBSERVER.get() is not None


def begin(
    phase: str, *, files: int | None = None, bytes_: int | None = None, rows: int | None = None
) -> None:
    """Report that a phase begins, with the totals that are known."""
    if (observer := _OBSERVER.get()) is not None:
        observer.begin(phase, files, bytes_, rows)


def advance(*, files: int = 0, bytes_: int = 0, rows: int = 0) -> None:
    """Report what was done since the last report."""
    if (observer := _OBSERVER.get()) is not None:
        observer.advance(files, bytes_, rows)
