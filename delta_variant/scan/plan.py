"""What a read may leave out: files by what the log says of them, rows by what the files say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..data_file.reader import RowRange, Units
from ..expressions.tree import Expression
from ..log.snapshot import Snapshot, files_table
from ..protocol.actions import AddFile
from . import prune
from .predicate import Condition, Leaf, condition_of
from .predicate import leaves as predicate_leaves
from .prune import Bounds
from .reader import OpenFile
from .statistics import file_bounds, partition_test

__all__ = ["FilePlan", "RowPlan", "may_hold", "plan_files", "plan_rows"]


@dataclass(frozen=True)
class FilePlan:
    """The files that may hold a wanted row, rows of `Snapshot.files`, and what the others were skipped by."""

    condition: Condition
    files: pa.Table
    by_partition_values: int
    by_statistics: int
    by_variant_bounds: int
    bounded: dict[Leaf, int]
    """For each leaf of the condition, how many of all files have a bound of it."""


@dataclass(frozen=True)
class RowPlan:
    """The rows of one file that may be wanted: ranges, or None for all; and what was left out of how much."""

    rows: Sequence[RowRange] | None
    row_groups: int = 0
    row_groups_read: int = 0
    pages: int = 0
    pages_read: int = 0


def plan_files(snapshot: Snapshot, predicate: Expression | None) -> FilePlan:
    """Return the files that are to be read for a bound predicate."""
    files = snapshot.files
    condition = None
    if predicate is not None:
        condition = condition_of(predicate, snapshot.partition_columns)
    if condition is None:
        return FilePlan(None, files, 0, 0, 0, {})
    bounds = file_bounds(snapshot, predicate_leaves(condition))
    ordinary = {leaf: known for leaf, known in bounds.items() if leaf.path is None}
    partition = partition_test(snapshot)
    stages = [prune.kept(condition, files.num_rows, known, partition) for known in ({}, ordinary, bounds)]
    left = [files.num_rows, *(_count(kept) for kept in stages)]
    by_partition_values, by_statistics, by_bounds = (before - after for before, after in pairwise(left))
    known_files = {
        leaf: _count(pc.or_(known.min.is_valid(), known.max.is_valid())) for leaf, known in bounds.items()
    }
    kept = files.filter(stages[-1])
    return FilePlan(condition, kept, by_partition_values, by_statistics, by_bounds, known_files)


def may_hold(snapshot: Snapshot, predicate: Expression | None, adds: Sequence[AddFile]) -> bool:
    """Say whether files that others add to the table may hold a row that fulfils the predicate."""
    added = replace(snapshot, files=files_table(adds))
    return plan_files(added, predicate).files.num_rows > 0


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def plan_rows(file: OpenFile, condition: Condition) -> RowPlan:
    """Return the rows of a file that are to be read, by its row groups, and by the pages of those kept."""
    # Files have no values of a column without a type.
    typed = (leaf for leaf in predicate_leaves(condition) if not pa.types.is_null(leaf.type))
    leaves = sorted(typed, key=str)
    if not leaves:
        return RowPlan(None)
    groups = file.units(leaves)
    kept_groups = [index for index, kept in enumerate(_kept(condition, leaves, groups)) if kept]
    pages = file.units(leaves, kept_groups) if kept_groups else Units((), [])
    kept_pages = _kept(condition, leaves, pages) if kept_groups else []
    rows = [rows for rows, kept in zip(pages.rows, kept_pages, strict=True) if kept]
    counts = len(groups.rows), len(kept_groups), len(pages.rows), len(rows)
    is_whole = len(kept_groups) == len(groups.rows) and len(rows) == len(pages.rows)
    return RowPlan(None if is_whole else _joined(rows), *counts)


def _kept(condition: Condition, leaves: Sequence[Leaf], units: Units) -> list[bool]:
    bounds = {leaf: Bounds(*known) for leaf, known in zip(leaves, units.known, strict=True)}
    mask: list[bool] = prune.kept(condition, len(units.rows), bounds).to_pylist()
    return mask


def _joined(ranges: Sequence[RowRange]) -> list[RowRange]:
    """Return ranges in order, those that touch as one."""
    joined: list[RowRange] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
