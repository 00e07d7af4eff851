"""The order of sorted rows: by their keys, or along a curve through the space of the keys.

The curve is Hilbert's. It keeps close values of all keys closer together than the Z-order curve, which gave
`ZORDER BY` its name: points that follow each other are neighbors. A coordinate of a row is the number of the
range in which the value of a key is, so that all keys count alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array
from ...execution import Executor, NameFile
from ...expressions.tree import Expression, output_type
from ...log.snapshot import TableVersion
from ...read.file_reader import FileEntry, files_of
from ...storage.store import Store
from ...write.malformed import locate_malformed
from .layout import FileGroup, read_keys

RANGES = 1024
"""The greatest number of ranges of a key."""

RANGES_OF_FILE = 64
"""The ranges of a key for each new file: queries skip its row groups, too."""

ROWS_OF_RANGE = 16
"""The rows of a sample for each range."""

PLACE_BITS = 63
"""The bits of a place on the curve, and so the greatest number of keys."""

Rows: TypeAlias = list[Array]
"""The values of each key for some rows."""

Sampled: TypeAlias = tuple[int, int, FileEntry]
"""The number of a group, the distance between two sampled rows, and a file of the group."""


@dataclass(frozen=True)
class SortOrder:
    """The order of the rows of a group.

    `boundaries` are those between the ranges of each key for a curve, empty to sort by the keys.
    """

    keys: tuple[Expression, ...]
    boundaries: tuple[Array, ...] = ()

    @property
    def types(self) -> list[Any]:
        return [pa.int64()] if self.boundaries else [output_type(key) for key in self.keys]

    def values(self, keys: Rows) -> Rows:
        """Return the values by which rows are sorted, for the values of their keys."""
        if not self.boundaries:
            return keys
        bits = min(RANGES.bit_length() - 1, PLACE_BITS // len(keys))
        points = [_coordinates(*each, bits) for each in zip(keys, self.boundaries, strict=True)]
        return [places_on_curve(points, bits)]


def _coordinates(values: Array, boundaries: Array, bits: int) -> Array:
    """Return the numbers of the ranges of values, spread over all numbers of `bits` bits."""
    # A sort is stable, so that a boundary precedes the values that are equal. Nulls are last.
    order: Array = pc.sort_indices(pa.concat_arrays([boundaries, values]))
    is_boundary: Array = pc.less(order, pa.scalar(len(boundaries), order.type))
    passed: Array = pc.cumulative_sum(is_boundary.cast(pa.int64()))
    numbers = passed.take(pc.sort_indices(order)).slice(len(boundaries))
    return pc.divide(pc.multiply(numbers, (1 << bits) - 1), max(1, len(boundaries)))


def places_on_curve(points: Rows, bits: int) -> Array:
    """Return the places of points on a Hilbert curve, for coordinates of `bits` bits.

    The rotations and the Gray code are those of Skilling, "Programming the Hilbert curve", 2004.
    """
    axes, xor = list(points), pc.bit_wise_xor
    masks = [pa.scalar((1 << bit) - 1, pa.int64()) for bit in range(bits)]
    for bit in reversed(range(1, bits)):
        for number, axis in enumerate(axes):
            first, is_set = axes[0], _is_set(axis, bit)
            swapped = pc.bit_wise_and(xor(first, axis), masks[bit])
            axes[number] = xor(axis, pc.if_else(is_set, masks[0], swapped))
            axes[0] = xor(first, pc.if_else(is_set, masks[bit], swapped))
    for number in range(1, len(axes)):
        axes[number] = xor(axes[number], axes[number - 1])
    flips = [pc.if_else(_is_set(axes[-1], bit), masks[bit], masks[0]) for bit in range(1, bits)]
    apart = _bits_apart(bits, len(axes))
    places: Any = None
    for axis in axes:
        shares = apart.take(reduce(xor, flips, axis))
        places = shares if places is None else pc.bit_wise_or(pc.shift_left(places, 1), shares)
    return places


def _is_set(numbers: Array, bit: int) -> Array:
    mask = pa.scalar(1 << bit, pa.int64())
    return pc.equal(pc.bit_wise_and(numbers, mask), mask)


@cache
def _bits_apart(bits: int, keys: int) -> Array:
    """Return all numbers of `bits` bits, with zeros for the bits of other keys between their own."""
    numbers = (sum((number >> bit & 1) << bit * keys for bit in range(bits)) for number in range(1 << bits))
    return pa.array(numbers, pa.int64())


def orders_on_curve(
    version: TableVersion, groups: Sequence[FileGroup], keys: tuple[Expression, ...], executor: Executor
) -> list[SortOrder]:
    """Return the order of each group along a curve, with the boundaries of a sample of its rows."""
    ranges = [min(RANGES, RANGES_OF_FILE * group.files_estimated) for group in groups]
    items = (
        (number, max(1, group.rows // (ranges[number] * ROWS_OF_RANGE)), file)
        for number, group in enumerate(groups)
        for file in files_of(group.files)
    )
    shares = executor.split(items, lambda item: item[2].size or 0, total=sum(each.bytes for each in groups))
    tasks = (partial(_sample_some, version, keys, tuple(share)) for share in shares)
    samples = [[_no_rows(keys)] for _ in groups]
    for sampled in executor.run("sample sort keys", tasks):
        for number, rows in sampled:
            samples[number].append(rows)
    return [
        SortOrder(
            keys, tuple(_boundaries(pa.concat_arrays(parts), count) for parts in zip(*rows, strict=True))
        )
        for rows, count in zip(samples, ranges, strict=True)
    ]


def _sample_some(
    version: TableVersion,
    keys: tuple[Expression, ...],
    items: Sequence[Sampled],
    store: Store,
    name: NameFile,
) -> list[tuple[int, Rows]]:
    """Return the keys of some rows of each group, by its number."""
    version, sampled = replace(version, store=store), []
    for (number, step), some in groupby(items, key=itemgetter(0, 1)):
        files = [file for _, _, file in some]
        with locate_malformed(version, files):
            sampled.append((number, _every(step, read_keys(version, files, keys), _no_rows(keys))))
    return sampled


def _no_rows(keys: Sequence[Expression]) -> Rows:
    return [pa.array([], output_type(key)) for key in keys]


def _every(step: int, batches: Iterable[Rows], empty: Rows) -> Rows:
    """Return the rows at each multiple of `step`."""
    seen, chosen = 0, [empty]
    for keys in batches:
        rows = pa.array(range(-seen % step, len(keys[0]), step), pa.int64())
        chosen.append([values.take(rows) for values in keys])
        seen += len(keys[0])
    return [pa.concat_arrays(parts) for parts in zip(*chosen, strict=True)]


def _boundaries(sample: Array, ranges: int) -> Array:
    """Return the boundaries between ranges with as many rows of a sample, without those that are equal."""
    rows = [number * len(sample) // ranges for number in range(1, ranges)] if len(sample) else []
    order: Array = pc.sort_indices(sample)
    return pc.unique(sample.take(order.take(pa.array(rows, pa.int64()))))
