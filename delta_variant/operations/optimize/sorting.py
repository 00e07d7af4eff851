"""Sort the rows of a group by keys, or along a curve through their space, in a temporary folder.

The curve is Hilbert's. It keeps close values of all keys closer together than the Z-order curve, which gave
`ZORDER BY` its name: points that follow each other are neighbors. A coordinate of a row is the number of the
range in which the value of a key is, so that all keys count alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..._arrow import Array
from ..._packing import pack_by_size
from ..._progress import advance, begin
from ...execution import Executor, NameFile
from ...expressions.tree import Expression, output_type
from ...log.snapshot import TableVersion
from ...read.file_reader import FileEntry, files_of
from ...storage.store import Store
from ...write.rewrite import locate_malformed
from .layout import FileGroup, read_keys, read_rows

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


BATCH_ROWS = 32 << 10
BATCH_BYTES = 256 << 20
"""The size of the sorted rows that are assembled at a time, in bytes."""

SAMPLE_BYTES = 2 << 20
SAMPLE_ROWS = 16 << 10
"""The size of the sample of a new file. All of its rows are counted to infer how the file is shredded."""


@dataclass(frozen=True)
class SortedRun:
    """The rows of a new file: `order` has their numbers in `batches`, sorted."""

    batches: Sequence[pa.RecordBatch]
    order: Array

    @property
    def num_rows(self) -> int:
        return len(self.order)

    def rows(self) -> Iterator[pa.RecordBatch]:
        for first in range(0, self.num_rows, BATCH_ROWS):
            yield from _take(self.batches, self.order.slice(first, BATCH_ROWS))

    def sample(self) -> list[pa.RecordBatch]:
        """Return rows that are evenly spread over the file: rows that are alike follow each other."""
        size = sum(batch.nbytes for batch in self.batches)
        count = max(1, min(SAMPLE_ROWS, self.num_rows, self.num_rows * SAMPLE_BYTES // max(size, 1)))
        places = [number * self.num_rows // count for number in range(count)]
        return list(_take(self.batches, self.order.take(pa.array(places, pa.int64()))))


def sort_into_runs(version: TableVersion, group: FileGroup, order: SortOrder) -> Iterator[SortedRun]:
    """Yield the rows of each new file of a group. The keys of a file follow those of the previous one."""
    begin("sorting", files=len(group.paths), rows=group.rows)
    with TemporaryDirectory() as folder:
        paths = _spill(version, group, order, Path(folder), group.files_estimated)
        begin("rewriting", files=len(group.paths), rows=group.rows)
        for path in paths:
            yield _sort_file(path, len(order.types))


def _spill(version: TableVersion, group: FileGroup, order: SortOrder, folder: Path, count: int) -> list[Path]:
    """Partition rows by key range into `count` files, and return their paths in key order."""
    bucket_of = _assign_files(version, group, order, count)
    paths = [folder / f"{number}.arrow" for number in range(count)]
    writers: dict[int, Any] = {}
    first = 0
    with ExitStack() as stack:
        for batch, keys in read_rows(version, files_of(group.files), order.keys):
            values = order.values(keys)
            places = bucket_of.slice(first, batch.num_rows)
            first += batch.num_rows
            advance(rows=batch.num_rows)
            names = [*batch.schema.names, *_key_names(len(values))]
            whole = pa.record_batch([*batch.columns, *values], names=names)
            for number in pc.unique(places).to_pylist():
                if number not in writers:
                    options = pa.ipc.IpcWriteOptions(compression="zstd")
                    opened = pa.ipc.new_file(str(paths[number]), whole.schema, options=options)
                    writers[number] = stack.enter_context(opened)
                writers[number].write_batch(whole.filter(pc.equal(places, number)))
    return [path for path in paths if path.exists()]


def _assign_files(version: TableVersion, group: FileGroup, order: SortOrder, count: int) -> Array:
    """Return the number of the new file for each row of a group, in read order."""
    batches = (order.values(keys) for keys in read_keys(version, files_of(group.files), order.keys))
    names = _key_names(len(order.types))
    table = pa.Table.from_batches([pa.record_batch(values, names=names) for values in batches])
    rank = pc.sort_indices(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))
    return pc.divide(pc.multiply(rank.cast(pa.int64()), count), max(1, table.num_rows))


def _key_names(count: int) -> list[str]:
    return [f"\0key{number}" for number in range(count)]


def _sort_file(path: Path, keys: int) -> SortedRun:
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    names = _key_names(keys)
    order = pc.sort_indices(table.select(names), sort_keys=[(name, "ascending") for name in names])
    batches = [
        _concatenate(batches)
        for batches in pack_by_size(
            table.drop_columns(names).to_batches(), lambda batch: batch.nbytes, BATCH_BYTES
        )
    ]
    return SortedRun(batches, order)


def _concatenate(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _take(batches: Sequence[pa.RecordBatch], rows: Array) -> Iterator[pa.RecordBatch]:
    """Yield the rows with these numbers, counted over all batches, in their order.

    The rows are split into several batches if one would be too large: Arrow cannot take strings of more than
    2 GiB in total.
    """
    first, parts, places = 0, [], []
    for batch in batches:
        before_end: Array = pc.less(rows, pa.scalar(first + batch.num_rows))
        within: Array = pc.and_not(before_end, pc.less(rows, pa.scalar(first)))
        if within.true_count:
            parts.append(batch.take(pc.subtract(rows.filter(within), first)))
            places.append(pc.indices_nonzero(within))
        first += batch.num_rows
    if len(rows) > 1 and sum(part.nbytes for part in parts) > BATCH_BYTES:
        half = len(rows) // 2
        yield from _take(batches, rows.slice(0, half))
        yield from _take(batches, rows.slice(half))
    else:
        yield _concatenate(parts).take(pc.sort_indices(pa.concat_arrays(places)))
