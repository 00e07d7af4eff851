"""The statistics of the log that the footer of a file of a view proves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..data_file.reader import NativeFile
from ..protocol.statistics import FileStatistics, from_report


class Leaf(NamedTuple):
    """A leaf column of a file: its position, its path, which is empty in lists and maps, and its type."""

    position: int
    path: tuple[str, ...]
    type: Any


def leaves_of(schema: pa.Schema) -> list[Leaf]:
    leaves = (leaf for field in schema for leaf in _walk(field, ()))
    return [Leaf(position, *leaf) for position, leaf in enumerate(leaves)]


def _walk(field: pa.Field[Any], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    path, arrow_type = (*parents, field.name), field.type
    if not pa.types.is_nested(arrow_type):
        yield path, arrow_type
    for number in range(arrow_type.num_fields):
        for found, leaf in _walk(arrow_type.field(number), path):
            yield (found if pa.types.is_struct(arrow_type) else ()), leaf


class _Report(NamedTuple):
    """The statistics of a leaf, as the kernel reports them."""

    path: tuple[str, ...]
    nulls: int
    min: pa.Array[Any] | None
    max: pa.Array[Any] | None


def footer_statistics(file: NativeFile, leaves: Sequence[Leaf]) -> FileStatistics:
    """Return the statistics of some leaves, without those that the footer lacks.

    The footer of a view has no bounds of floats that a NaN exceeds. Delta has none of booleans and bytes.
    """
    _, bounds = file.units([(list(leaf.path), None, leaf.type) for leaf in leaves])
    found = []
    for leaf, (least, greatest, all_null, _) in zip(leaves, bounds, strict=True):
        nulls = [count for count, _ in file.null_counts(leaf.position) if count is not None]
        if len(nulls) < len(file.row_groups):
            continue
        ends = (_extreme(least, all_null, pc.min), _extreme(greatest, all_null, pc.max))
        found.append(_Report(leaf.path, sum(nulls), *(ends if _has_bounds(leaf.type) else (None, None))))
    return from_report(file.num_rows, [found], [""], None)


def _has_bounds(arrow_type: Any) -> bool:
    return not (pa.types.is_boolean(arrow_type) or pa.types.is_binary(arrow_type))


def _extreme(bounds: Any, all_null: Any, pick: Callable[[Any], Any]) -> Any:
    """Return the least or the greatest bound of row groups, None if that of one with values is unknown."""
    if len(bounds) == 1:
        # Calls of Arrow take longer than all else for a small file.
        return None if bounds.null_count else bounds
    known = bounds.filter(pc.invert(all_null))
    return None if not len(known) or known.null_count else pa.repeat(pick(known), 1)
