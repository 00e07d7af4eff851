"""Scan planning: prune files by log statistics, then row groups and pages by file statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, total
from .._logging import get_logger
from ..data_file.reader import RowRange, Units
from ..errors import MalformedLogError
from ..expressions.tree import Expression
from ..expressions.types import kind_of
from ..log.file_set import FileList, FileSet, Part, Piece, Summary, in_order
from ..log.file_tables import FILES_SCHEMA, shared_nulls
from ..log.snapshot import Snapshot
from ..protocol.statistics import counts_of, texts_at
from ..protocol.table_configuration import TableConfiguration
from .file_reader import FileReader
from .log_statistics import file_bounds, partition_test
from .predicate import Bounds, Leaf, PruningPredicate, pruning_predicate_of, select_units
from .predicate import leaves as predicate_leaves

_LOGGER = get_logger(__name__)


class FilePlan(msgspec.Struct, frozen=True):
    """The files that may contain matching rows, as rows of `Snapshot.files`, and what pruned the others.

    `num_files` and `num_bytes` are the number and the size in bytes of all files.
    """

    pruning_predicate: PruningPredicate
    files: pa.Table
    num_files: int
    num_bytes: int
    by_partition_values: int
    by_statistics: int
    by_variant_bounds: int
    bounded: dict[Leaf, int]
    """For each leaf of the pruning predicate, how many of all files have a bound for it."""

    @classmethod
    def whole(cls, files: pa.Table) -> FilePlan:
        return cls(None, files, files.num_rows, total(files["size"]), 0, 0, 0, {})

    @property
    def counts(self) -> dict[str, int]:
        """Return how many files are read and skipped, and their sizes, by the names of metrics."""
        files, size = self.files.num_rows, total(self.files["size"])
        return {
            "number of files read": files,
            "size of files read": size,
            "number of files skipped": self.num_files - files,
            "size of files skipped": self.num_bytes - size,
        }


class RowPlan(msgspec.Struct, frozen=True):
    """The ranges of rows of one file that may match, or None for all rows, and how much was pruned."""

    rows: Sequence[RowRange] | None
    row_groups: int = 0
    row_groups_read: int = 0
    pages: int = 0
    pages_read: int = 0


def plan_files(snapshot: Snapshot, predicate: Expression | None) -> FilePlan:
    """Return the files of a snapshot to read for a bound predicate."""
    return prune_files(snapshot.configuration, snapshot.file_set, predicate)


def prune_files(
    table: TableConfiguration, files: FileSet, predicate: Expression | None, *, with_bounds: bool = True
) -> FilePlan:
    """Return those of some files to read for a bound predicate.

    Unless `with_bounds`, files that are read from a large checkpoint for this plan have only the number of
    rows of their statistics. Bounds would be most of the memory of a plan that selects many files.
    """
    pruning_predicate = None
    if predicate is not None:
        pruning_predicate = pruning_predicate_of(predicate, table.partition_columns)
    if pruning_predicate is None:
        return FilePlan.whole(files.table if with_bounds else _all_files(files))
    pruned = _prune_all(table, files, pruning_predicate, with_bounds=with_bounds)
    left = [sum(each.left[stage] for each in pruned) for stage in range(len(pruned[0].left))]
    by_partition_values, by_statistics, by_bounds = (before - after for before, after in pairwise(left))
    bounded: Counter[Leaf] = Counter()
    for each in pruned:
        bounded.update(each.bounded)
    selected = pa.concat_tables([each.files for each in pruned])
    _LOGGER.info(
        "%s: reading %d of %d files; skipped %d by partition values, %d by statistics, %d by Variant bounds",
        table.uri,
        selected.num_rows,
        left[0],
        by_partition_values,
        by_statistics,
        by_bounds,
    )
    return FilePlan(
        pruning_predicate,
        selected,
        left[0],
        sum(each.num_bytes for each in pruned),
        by_partition_values,
        by_statistics,
        by_bounds,
        dict(bounded),
    )


class _Pruned(msgspec.Struct, frozen=True):
    """The selected ones of some files. `left` counts the files before and after each stage of pruning."""

    files: pa.Table
    num_bytes: int
    left: tuple[int, ...]
    bounded: Mapping[Leaf, int]


def _all_files(files: FileSet) -> pa.Table:
    """Return all files; those of a large checkpoint without bounds."""
    if files.listed is not None:
        # As in `_prune_all`.
        with suppress(MalformedLogError):
            return pa.concat_tables([*_without_bounds(files.listed)])
    return files.table


def _without_bounds(listed: FileList) -> Iterator[pa.Table]:
    def read(piece: Piece) -> list[pa.Table]:
        batches = listed.read(piece, FILES_SCHEMA.names)
        return [_remove_bounds(pa.Table.from_batches([batch])) for batch in batches]

    for tables in in_order(read, listed.pieces()):
        yield from tables
    yield pa.Table.from_batches(listed.added, FILES_SCHEMA)


def _prune_all(
    table: TableConfiguration, files: FileSet, pruning_predicate: PruningPredicate, *, with_bounds: bool
) -> list[_Pruned]:
    if files.listed is not None:
        # Otherwise the files are loaded from other files of the log, if they have the same actions.
        with suppress(MalformedLogError):
            return _prune_listed(table, files.listed, pruning_predicate, with_bounds=with_bounds)
    return [_prune(table, files.table, pruning_predicate)]


def _prune_listed(
    table: TableConfiguration, listed: FileList, pruning_predicate: PruningPredicate, *, with_bounds: bool
) -> list[_Pruned]:
    """Prune files while they are read; only those that are selected stay in memory."""
    columns = FILES_SCHEMA.names
    parts, skipped = _prune_parts(table, listed, pruning_predicate)

    def prune_piece(piece: Piece) -> list[_Pruned]:
        batches = listed.read(piece, columns)
        pieces = (pa.Table.from_batches([batch]) for batch in batches)
        return [_prune(table, files, pruning_predicate, with_bounds=with_bounds) for files in pieces]

    pieces = (piece for part in parts for piece in part.pieces())
    pruned = [each for part in in_order(prune_piece, pieces) for each in part]
    added = pa.Table.from_batches(listed.added, FILES_SCHEMA)
    return [*skipped, *pruned, _prune(table, added, pruning_predicate)]


def _prune_parts(
    table: TableConfiguration, listed: FileList, pruning_predicate: PruningPredicate
) -> tuple[list[Part], list[_Pruned]]:
    """Return the parts of a checkpoint that may have selected files, and what pruned the others.

    The files of a skipped part count as they were in the checkpoint.
    """
    summaries = [each.summary for each in listed.parts]
    stats = pa.table({"stats": pa.array([each and each.stats for each in summaries], pa.string())})
    bounds = file_bounds(table, stats, predicate_leaves(pruning_predicate))
    partition = _test_of_parts(table, summaries)
    selected = _select_by_stage(pruning_predicate, len(summaries), bounds, partition)
    stages = [each.to_pylist() for each in selected]
    bounded = {
        leaf: pc.or_(known.min.is_valid(), known.max.is_valid()).to_pylist() for leaf, known in bounds.items()
    }
    parts, skipped = [], []
    for number, (part, summary) in enumerate(zip(listed.parts, summaries, strict=True)):
        if summary is None or (summary.num_files and stages[-1][number]):
            parts.append(part)
            continue
        left = (True, *(stage[number] for stage in stages))
        counts = tuple(summary.num_files * is_left for is_left in left)
        known = {leaf: summary.num_files * has_bound[number] for leaf, has_bound in bounded.items()}
        skipped.append(_Pruned(FILES_SCHEMA.empty_table(), summary.num_bytes, counts, known))
    return parts, skipped


def _test_of_parts(
    table: TableConfiguration, summaries: Sequence[Summary | None]
) -> Callable[[Expression], pa.Array[Any]]:
    """Return a function from an expression over partition columns to a mask of the parts to select."""
    rows = [
        (number, list(values.items()))
        for number, summary in enumerate(summaries)
        for values in (() if summary is None else summary.partition_values or ())
    ]
    unknown = {number for number, each in enumerate(summaries) if each is None or not each.partition_values}
    paths = pa.nulls(len(rows), pa.string())
    values = pa.array([values for _, values in rows], FILES_SCHEMA.field("partition_values").type)
    test = partition_test(table, pa.table({"path": paths, "partition_values": values}))

    def select(expression: Expression) -> pa.Array[Any]:
        mask = test(expression).to_pylist()
        selected = unknown.union(
            number for (number, _), is_selected in zip(rows, mask, strict=True) if is_selected
        )
        return pa.array([number in selected for number in range(len(summaries))], pa.bool_())

    return select


def _prune(
    table: TableConfiguration,
    files: pa.Table,
    pruning_predicate: PruningPredicate,
    *,
    with_bounds: bool = True,
) -> _Pruned:
    bounds = file_bounds(table, files, predicate_leaves(pruning_predicate))
    stages = _select_by_stage(pruning_predicate, files.num_rows, bounds, partition_test(table, files))
    known_files = {
        leaf: total(pc.or_(known.min.is_valid(), known.max.is_valid())) for leaf, known in bounds.items()
    }
    left = (files.num_rows, *(total(selected) for selected in stages))
    selected = files.filter(stages[-1])
    if not with_bounds:
        selected = _remove_bounds(selected)
    return _Pruned(selected, total(files["size"]), left, known_files)


def _select_by_stage(
    pruning_predicate: PruningPredicate,
    count: int,
    bounds: Mapping[Leaf, Bounds],
    partition: Callable[[Expression], Array],
) -> list[Array]:
    """Return the units that are left after partition values, statistics of columns, and Variant bounds."""
    ordinary = {leaf: known for leaf, known in bounds.items() if leaf.path is None}
    return [select_units(pruning_predicate, count, known, partition) for known in ({}, ordinary, bounds)]


def _remove_bounds(files: pa.Table) -> pa.Table:
    """Return files with statistics that have only their number of rows, and with shared columns of nulls."""
    (numbers,) = texts_at(files["stats"], [(("numRecords",), "number")])
    parts: list[Any] = ['{"numRecords":', counts_of(numbers).cast(pa.string()), "}", ""]
    stats: Array = pc.binary_join_element_wise(*parts)
    columns = [pa.chunked_array([stats]) if name == "stats" else files[name] for name in files.column_names]
    shared = [
        pa.chunked_array([shared_nulls(each.type, len(each))]) if each.null_count == len(each) else each
        for each in columns
    ]
    return pa.table(shared, schema=files.schema)


def plan_rows(file: FileReader, pruning_predicate: PruningPredicate) -> RowPlan:
    """Return the rows of a file to read, pruned by row groups and then by pages."""
    # Files do not store columns of type void, and have no statistics of nested columns.
    needed = predicate_leaves(pruning_predicate)
    stated = (leaf for leaf in needed if kind_of(leaf.type) not in ("null", "nested"))
    leaves = sorted(stated, key=str)
    if not leaves:
        return RowPlan(None)
    groups = file.units(leaves)
    selected_groups = [
        index for index, selected in enumerate(_select(pruning_predicate, leaves, groups)) if selected
    ]
    pages = file.units(leaves, selected_groups) if selected_groups else Units((), [])
    selected_pages = _select(pruning_predicate, leaves, pages) if selected_groups else []
    rows = [rows for rows, selected in zip(pages.rows, selected_pages, strict=True) if selected]
    counts = len(groups.rows), len(selected_groups), len(pages.rows), len(rows)
    is_whole = len(selected_groups) == len(groups.rows) and len(rows) == len(pages.rows)
    return RowPlan(None if is_whole else _joined(rows), *counts)


def _select(pruning_predicate: PruningPredicate, leaves: Sequence[Leaf], units: Units) -> list[bool]:
    bounds = {leaf: Bounds(*known) for leaf, known in zip(leaves, units.known, strict=True)}
    mask: list[bool] = select_units(pruning_predicate, len(units.rows), bounds).to_pylist()
    return mask


def _joined(ranges: Sequence[RowRange]) -> list[RowRange]:
    """Return ranges in order, with adjacent ranges merged."""
    joined: list[RowRange] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
