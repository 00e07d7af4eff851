"""Group consecutive items by their size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def pack_by_size(items: Iterable[T], size_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Yield runs of consecutive items whose sizes add up to at most `limit`.

    An item larger than `limit` is a run of its own.
    """
    run: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if run and total + size > limit:
            yield run
            run, total = [], 0
        run.append(item)
        total += size
    if run:
        yield run


def pack_until(items: Iterable[T], size_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Yield runs of consecutive items whose sizes add up to `limit` or more, and last the other items."""
    run: list[T] = []
    total = 0
    for item in items:
        run.append(item)
        total += size_of(item)
        if total >= limit:
            yield run
            run, total = [], 0
    if run:
        yield run
