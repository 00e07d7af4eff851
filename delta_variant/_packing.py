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


def pack_evenly(
    items: Iterable[T], size_of: Callable[[T], int], total: int, parts: int, limit: int
) -> Iterator[list[T]]:
    """Yield at most `parts` runs of consecutive items, of similar sizes, or more if those exceed `limit`.

    `total` is the size of all items. Runs that are filled up to an equal share, as by `pack_by_size`, often
    leave a rest for one more run.
    """
    if total > parts * limit:
        yield from pack_by_size(items, size_of, limit)
        return
    run: list[T] = []
    last = before = 0
    for item in items:
        size = size_of(item)
        # An item belongs to the share that has its middle.
        share = min((2 * before + size) * parts // max(2 * total, 1), parts - 1)
        if run and share != last:
            yield run
            run = []
        run.append(item)
        last, before = share, before + size
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
