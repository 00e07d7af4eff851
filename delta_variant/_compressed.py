"""Long sequences that are in memory as compressed pickles."""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from operator import eq
from typing import Any, TypeAlias, TypeVar, overload

import pyarrow as pa

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

BLOCK_ITEMS = 1000

Block: TypeAlias = tuple[int, int, bytes]
"""The number of items, the size of their pickle, and the pickle compressed."""


class CompressedSequence(Sequence[T_co]):
    """An immutable sequence that decodes its items on access, in blocks of up to `BLOCK_ITEMS`.

    The last block that an index used stays decoded.
    """

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self._ends = list(accumulate(count for count, _, _ in blocks))
        self._used: tuple[int, Sequence[T_co]] = -1, ()

    @classmethod
    def of(cls, items: Iterable[T]) -> CompressedSequence[T]:
        """Return a sequence of items, which must be picklable."""
        remaining, blocks = iter(items), list[Block]()
        while some := tuple(islice(remaining, BLOCK_ITEMS)):
            content = pickle.dumps(some)
            blocks.append((len(some), len(content), pa.compress(content, "zstd", asbytes=True)))
        return CompressedSequence(tuple(blocks))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[T_co]:
        for number in range(len(self.blocks)):
            yield from self._decode(number)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        positions = range(len(self))[index]
        if isinstance(positions, range):
            return tuple(map(self._item, positions))
        return self._item(positions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, CompressedSequence)):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __reduce__(self) -> Any:
        return CompressedSequence, (self.blocks,)

    def __repr__(self) -> str:
        return f"<{len(self)} compressed items>"

    def _item(self, position: int) -> T_co:
        number = bisect_right(self._ends, position)
        used, items = self._used
        if used != number:
            items = self._decode(number)
            self._used = number, items
        return items[position - self._ends[number]]

    def _decode(self, number: int) -> Sequence[T_co]:
        _, size, content = self.blocks[number]
        items: Sequence[T_co] = pickle.loads(pa.decompress(content, size, "zstd"))
        return items


def join(parts: Iterable[Sequence[T]]) -> Sequence[T]:
    """Return the items of all parts: a tuple, or a CompressedSequence if one of the parts is one."""
    parts = list(parts)
    if not any(isinstance(part, CompressedSequence) for part in parts):
        return tuple(item for part in parts for item in part)
    return CompressedSequence(tuple(block for part in parts for block in _compress(part).blocks))


def _compress(items: Sequence[T]) -> CompressedSequence[T]:
    return items if isinstance(items, CompressedSequence) else CompressedSequence.of(items)
