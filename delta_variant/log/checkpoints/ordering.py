"""Order the files of a checkpoint so that few sidecars have those that a query needs.

The order is that of the column or path whose order separates the bounds of most columns and paths, after the
partition values. Files that are not in this order are distributed to temporary files by ranges of it, each of
which is sorted in memory.

A sidecar of the last checkpoint stays as it is (PROTOCOL.md, "V2 Spec Checkpoints") if all its files are
still in the table, and it has nothing else. Later files are sorted among themselves only, so that their
sidecars have wider bounds: all sidecars are written again once a quarter of the files is not in the order of
the last time. A table that grows pays for this a few times for each of its files.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ... import _native
from ..._arrow import Array
from ...protocol.actions import Sidecar
from ..file_set import FileList, Part, Summary, in_order
from ..file_tables import FILES_SCHEMA, FileKeys, drop_files
from ..snapshot import Snapshot
from .reading import SidecarPart
from .summaries import StatsLeaf, bounds_of, leaves_of, summarize

Files = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
"""Returns batches of all files, of which only some columns may be read. It is called twice."""

MAX_LEAVES = 4
"""How many columns and paths have bounds in a summary. Each costs seconds for ten million files."""

SAMPLED = pa.schema([FILES_SCHEMA.field(name) for name in ("stats", "partition_values")])
SAMPLED_FILES = 32_768
COMPARED_FILES = 512
GROUPS = 16
"""The groups of sampled files that stand for sidecars."""

LEAST_BOUNDED = 0.9
"""The share of files that have bounds of a column or path that is considered."""

LEAST_GAIN = 0.25
"""The share of groups that the bounds of a summarized column or path exclude on average."""

LEAST_IMPROVEMENT = 1.1
"""How much better than the order in the log another order must be."""

MAX_RANGES = 256
MAX_SORTED_FILES = 300_000
PARTITION, LEAST = "partition", "least"


@dataclass(frozen=True)
class Layout:
    """The order of files, None for that of the log, and the columns and paths that summaries have bounds of.

    `partitions` are the physical names of the partition columns. `sample` are some of the files.
    """

    partitions: Sequence[str]
    leaves: Sequence[StatsLeaf]
    order: _Order | None
    sample: _Sample

    @classmethod
    def of(cls, state: Snapshot, files: Files) -> Layout:
        partitions = list(state.configuration.stored_partition_columns)
        sample = _Sample()
        for batch in files(SAMPLED.names):
            sample.add(batch.select(SAMPLED.names))
        order, leaves = _choose(sample.table(COMPARED_FILES), partitions, state)
        return cls(partitions, leaves, order, sample)

    def summary(self, files: pa.Table, sidecar: str, size_in_bytes: int) -> Summary:
        return summarize(files, self.leaves, self.partitions, sidecar, size_in_bytes)

    def tables(self, files: Files, num_files: int) -> Iterator[pa.Table]:
        """Yield all files in order, in tables of at most `num_files`."""
        batches = files(FILES_SCHEMA.names)
        if self.order is None:
            yield from _tables(batches, num_files)
            return
        with tempfile.TemporaryDirectory(prefix="delta-variant-checkpoint-") as folder:
            yield from _sorted(batches, self.order, self.sample, Path(folder), num_files)


@dataclass(frozen=True)
class _Order:
    """An order by partition values, and then by the lower bound of a column or path."""

    partitions: Sequence[str]
    leaf: StatsLeaf | None

    def keys(self, files: pa.Table) -> pa.Table:
        """Return the columns by which files are ordered, with a row for each of them."""
        keys = {PARTITION: _partition_texts(files, self.partitions)} if self.partitions else {}
        if self.leaf is not None:
            bounds, _ = bounds_of(files["stats"], [self.leaf])
            keys[LEAST] = bounds[self.leaf].values[0]
        return pa.table(keys)


def _partition_texts(files: pa.Table, partitions: Sequence[str]) -> Array:
    columns = [pc.map_lookup(files["partition_values"], name, "first") for name in partitions]
    parts = [pc.coalesce(column.combine_chunks(), pa.scalar("")) for column in columns]
    return pc.binary_join_element_wise(*parts, "\0")


def _sorted_rows(keys: pa.Table) -> Array:
    """Return the positions of rows in ascending order."""
    return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])


@dataclass
class _Sample:
    """Files at regular distances, as many as a limit permits."""

    stride: int = 1
    _seen: int = 0
    _tables: list[pa.Table] = field(default_factory=lambda: [SAMPLED.empty_table()])
    _size: int = 0

    @property
    def num_files(self) -> int:
        """The number of files that were added."""
        return self._seen

    def add(self, batch: pa.RecordBatch) -> None:
        """Add files that follow those before."""
        rows = range(-self._seen % self.stride, batch.num_rows, self.stride)
        self._tables.append(pa.Table.from_batches([batch.take(pa.array(rows, pa.int64()))]))
        self._seen += batch.num_rows
        self._size += len(rows)
        while self._size > SAMPLED_FILES:
            self._tables = [self.table(self._size // 2)]
            self._size = self._tables[0].num_rows
            self.stride *= 2

    def table(self, limit: int) -> pa.Table:
        """Return at most about `limit` of the files, at regular distances."""
        table = pa.concat_tables(self._tables)
        step = max(1, -(-table.num_rows // max(1, limit)))
        return table.take(pa.array(range(0, table.num_rows, step), pa.int64()))


def _choose(
    files: pa.Table, partitions: Sequence[str], state: Snapshot
) -> tuple[_Order | None, list[StatsLeaf]]:
    """Return the best order of some files, None for the present one, and the leaves that it separates."""
    leaves = leaves_of(state, files["stats"])
    known: dict[StatsLeaf | None, list[tuple[Any, Any]]] = {}
    bounds, _ = bounds_of(files["stats"], leaves)
    for each, found in bounds.items():
        pairs = list(zip(*(values.to_pylist() for values in found.values), strict=True))
        if sum(None not in pair for pair in pairs) >= LEAST_BOUNDED * len(pairs):
            known[each] = pairs
    texts = _partition_texts(files, partitions).to_pylist() if partitions else [""] * files.num_rows
    if partitions:
        known[None] = [(text, text) for text in texts]
    present = range(files.num_rows)
    orders: dict[_Order | None, Sequence[int]] = {None: present}
    for leaf, pairs in known.items():
        keys = [(text, least is None, least) for text, (least, _) in zip(texts, pairs, strict=True)]
        orders[_Order(tuple(partitions), leaf)] = sorted(present, key=keys.__getitem__)
    gains = {
        order: {leaf: _gain([pairs[row] for row in rows]) for leaf, pairs in known.items()}
        for order, rows in orders.items()
    }
    # Most queries of a partitioned table are by partition: its values count as much as all other bounds.
    totals = {
        order: sum(gain.values()) + gain.get(None, 0) * max(0, len(known) - 2)
        for order, gain in gains.items()
    }
    best = max(totals, key=totals.__getitem__)
    if totals[best] < totals[None] * LEAST_IMPROVEMENT:
        best = None
    separated = sorted(((gain, number) for number, gain in enumerate(gains[best].values())), reverse=True)
    in_order = list(gains[best])
    chosen = [in_order[number] for gain, number in separated if gain >= LEAST_GAIN]
    return best, [leaf for leaf in chosen if leaf is not None][:MAX_LEAVES]


def _gain(pairs: Sequence[tuple[Any, Any]]) -> float:
    """Return the share of pairs of groups of files whose bounds do not overlap."""
    size = max(1, -(-len(pairs) // GROUPS))
    groups = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    ranges = [
        (min(least for least, _ in group), max(greatest for _, greatest in group))
        if all(None not in pair for pair in group)
        else None
        for group in groups
    ]
    apart = sum(
        1
        for one in ranges
        for other in ranges
        if one is not None and other is not None and (one[1] < other[0] or other[1] < one[0])
    )
    return apart / max(1, len(ranges) ** 2)


def _tables(batches: Iterable[pa.RecordBatch], num_files: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        while size + batch.num_rows >= num_files:
            held.append(batch.slice(0, num_files - size))
            batch = batch.slice(num_files - size)
            yield pa.Table.from_batches(held)
            held, size = [], 0
        if batch.num_rows:
            held.append(batch)
            size += batch.num_rows
    if held:
        yield pa.Table.from_batches(held)


def _sorted(
    batches: Iterable[pa.RecordBatch], order: _Order, sample: _Sample, folder: Path, num_files: int
) -> Iterator[pa.Table]:
    ranges = min(MAX_RANGES, max(1, sample.num_files // num_files))
    limits = _limits(order.keys(sample.table(SAMPLED_FILES)), ranges)
    paths = [folder / f"{number}.arrow" for number in range(limits.num_rows + 1)]
    _distribute(batches, order, limits, paths)
    for path in paths:
        if path.exists():
            yield from _sorted_file(path, order, num_files)
            os.unlink(path)


def _limits(keys: pa.Table, ranges: int) -> pa.Table:
    """Return the keys, without duplicates, that divide a sample into ranges of the same size."""
    rows = _sorted_rows(keys)
    chosen = [keys.num_rows * number // ranges for number in range(1, ranges)]
    limits = keys.take(rows.take(pa.array(chosen, pa.int64())))
    return limits.group_by(limits.column_names, use_threads=False).aggregate([])


def _distribute(
    batches: Iterable[pa.RecordBatch], order: _Order, limits: pa.Table, paths: Sequence[Path]
) -> None:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with ExitStack() as files:
        writers: dict[int, Any] = {}
        for batch in batches:
            keys = pa.concat_tables([limits, order.keys(pa.Table.from_batches([batch]))])
            rows = _sorted_rows(keys)
            is_limit: Array = pc.less(rows, pa.scalar(limits.num_rows, rows.type))
            of_files: Array = rows.filter(pc.invert(is_limit))
            in_order = batch.take(pc.subtract(of_files, pa.scalar(limits.num_rows, rows.type)))
            # The k-th limit follows the files of the ranges up to k, and k other limits.
            positions: Array = pc.indices_nonzero(is_limit)
            ends = [at - number for number, at in enumerate(positions.to_pylist())]
            for number, (start, end) in enumerate(zip([0, *ends], [*ends, batch.num_rows], strict=True)):
                if start == end:
                    continue
                if number not in writers:
                    sink = files.enter_context(pa.OSFile(str(paths[number]), "wb"))
                    opened = pa.ipc.new_stream(sink, batch.schema, options=options)
                    writers[number] = files.enter_context(opened)
                writers[number].write_batch(in_order.slice(start, end - start))


def _sorted_file(path: Path, order: _Order, num_files: int) -> Iterator[pa.Table]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
        held: list[pa.RecordBatch] = []
        for batch in reader:
            held.append(batch)
            if sum(each.num_rows for each in held) > MAX_SORTED_FILES:
                # Files without bounds, or with the same ones, are in one range.
                yield from _tables(chain(held, reader), num_files)
                return
    table = pa.Table.from_batches(held)
    keys = order.keys(table)
    table = table.take(_sorted_rows(keys))
    parts = -(-table.num_rows // num_files)
    size = -(-table.num_rows // parts)
    yield from (table.slice(start, size) for start in range(0, table.num_rows, size))


KEY_COLUMNS = ("path", "deletion_vector")

LEAST_ORDERED = 0.75
"""The share of files that are in sidecars of the last complete order."""


class Kept(msgspec.Struct, frozen=True):
    """Sidecars that stay as they are, with `num_files` files, and the files that are in none of them."""

    sidecars: Sequence[Sidecar]
    num_files: int
    others: FileList


class _Found(msgspec.Struct, frozen=True):
    """A part of the last checkpoint: how many of its files remain, and whether they are all that it has."""

    part: Part
    num_files: int
    is_unchanged: bool

    @property
    def is_ordered(self) -> bool:
        return self.is_unchanged and _is_ordered(self.part)


def keep_sidecars(
    files: FileList, safe: Collection[str], layout: _native.DataFile, sidecar_files: int
) -> Kept | None:
    """Return the sidecars that a checkpoint of some files keeps, None if all of them are written again.

    Only sidecars with the paths `safe` are kept. `layout` has the schema of new sidecars, which have up to
    `sidecar_files` files. Files of a sidecar that does not have half as many, and is not of the last complete
    order, are joined with those of later commits. Raises MalformedLogError.
    """
    if not any(map(_is_ordered, files.parts)):
        return None
    found = list(in_order(lambda part: _find(part, files.touched, safe, layout), files.parts))
    total = sum(each.num_files for each in found) + sum(batch.num_rows for batch in files.added)
    if sum(each.num_files for each in found if each.is_ordered) < LEAST_ORDERED * total:
        return None
    kept = [
        each
        for each in found
        if each.is_ordered or (each.is_unchanged and each.num_files * 2 >= sidecar_files)
    ]
    unchanged = {id(each.part) for each in kept}
    return Kept(
        [each.part.action for each in kept if isinstance(each.part, SidecarPart)],
        sum(each.num_files for each in kept),
        replace(files, parts=[part for part in files.parts if id(part) not in unchanged]),
    )


def _is_ordered(part: Part) -> bool:
    return part.summary is not None and part.summary.is_ordered


def _find(part: Part, touched: FileKeys, safe: Collection[str], layout: _native.DataFile) -> _Found:
    if not isinstance(part, SidecarPart) or part.path not in safe:
        batches = (batch for piece in part.pieces() for batch in piece.files(KEY_COLUMNS))
        return _Found(part, sum(_remaining(batches, touched)), is_unchanged=False)
    file = part.open()
    num_files = sum(_remaining(file.files(KEY_COLUMNS), touched))
    # Without a summary, plans would read the sidecar each time.
    is_unchanged = (
        part.summary is not None and file.data.num_rows == num_files > 0 and file.data.has_schema_of(layout)
    )
    return _Found(part, num_files, is_unchanged)


def _remaining(batches: Iterable[pa.RecordBatch], touched: FileKeys) -> Iterator[int]:
    drop = drop_files(touched)
    return (drop(batch).num_rows for batch in batches)
