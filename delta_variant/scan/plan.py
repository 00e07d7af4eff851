"""Scan planning: prune files by log statistics, then row groups and pages by file statistics."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..data_file.reader import RowRange, Units
from ..expressions.tree import Expression
from ..log.snapshot import Snapshot, files_table
from ..protocol.actions import AddFile
from . import prune
from .predicate import Leaf, PruningPredicate, pruning_predicate_of
from .predicate import leaves as predicate_leaves
from .prune import Bounds
from .reader import FileReader
from .statistics import file_bounds, partition_test

__all__ = ["FilePlan", "RowPlan", "may_contain_matches", "plan_files", "plan_rows"]

_LOGGER = logging.getLogger(__name__)


class FilePlan(msgspec.Struct, frozen=True):
    """The files that may contain matching rows, as rows of `Snapshot.files`, and what pruned the others."""

    pruning_predicate: PruningPredicate
    files: pa.Table
    by_partition_values: int
    by_statistics: int
    by_variant_bounds: int
    bounded: dict[Leaf, int]
    """For each leaf of the pruning predicate, how many of all files have a bound for it."""


class RowPlan(msgspec.Struct, frozen=True):
    """The ranges of rows of one file that may match, or None for all rows, and how much was pruned."""

    rows: Sequence[RowRange] | None
    row_groups: int = 0
    row_groups_read: int = 0
    pages: int = 0
    pages_read: int = 0


def plan_files(snapshot: Snapshot, predicate: Expression | None) -> FilePlan:
    """Return the files to read for a bound predicate."""
    files = snapshot.files
    pruning_predicate = None
    if predicate is not None:
        pruning_predicate = pruning_predicate_of(predicate, snapshot.partition_columns)
    if pruning_predicate is None:
        return FilePlan(None, files, 0, 0, 0, {})
    bounds = file_bounds(snapshot, predicate_leaves(pruning_predicate))
    ordinary = {leaf: known for leaf, known in bounds.items() if leaf.path is None}
    partition = partition_test(snapshot)
    stages = [
        prune.select_units(pruning_predicate, files.num_rows, known, partition)
        for known in ({}, ordinary, bounds)
    ]
    left = [files.num_rows, *(_count(selected) for selected in stages)]
    by_partition_values, by_statistics, by_bounds = (before - after for before, after in pairwise(left))
    known_files = {
        leaf: _count(pc.or_(known.min.is_valid(), known.max.is_valid())) for leaf, known in bounds.items()
    }
    selected = files.filter(stages[-1])
    _LOGGER.info(
        "%s: reading %d of %d files; skipped %d by partition values, %d by statistics, %d by Variant bounds",
        snapshot.uri,
        selected.num_rows,
        files.num_rows,
        by_partition_values,
        by_statistics,
        by_bounds,
    )
    return FilePlan(pruning_predicate, selected, by_partition_values, by_statistics, by_bounds, known_files)


def may_contain_matches(snapshot: Snapshot, predicate: Expression | None, adds: Sequence[AddFile]) -> bool:
    """Return whether files that concurrent commits add may contain a row that matches the predicate."""
    added = replace(snapshot, files=files_table(adds))
    return plan_files(added, predicate).files.num_rows > 0


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def plan_rows(file: FileReader, pruning_predicate: PruningPredicate) -> RowPlan:
    """Return the rows of a file to read, pruned by row groups and then by pages."""
    # Files do not store columns of type void.
    typed = (leaf for leaf in predicate_leaves(pruning_predicate) if not pa.types.is_null(leaf.type))
    leaves = sorted(typed, key=str)
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
    mask: list[bool] = prune.select_units(pruning_predicate, len(units.rows), bounds).to_pylist()
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
