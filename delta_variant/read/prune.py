"""Select the units (files, row groups, pages) that may contain a row that matches a predicate."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..expressions.cast import cast_values
from ..expressions.tree import Expression
from ..expressions.types import kind_of
from .predicate import AllOf, AnyOf, Comparison, Leaf, Membership, NullTest, PartitionTest, PruningPredicate


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of a leaf, one row for each unit; a null in `min` or `max` is an unknown bound.

    `all_null` is true if every value is known to be SQL NULL, `no_null` if every value is known not to be.
    """

    min: Array
    max: Array
    all_null: Array
    no_null: Array


def select_units(
    predicate: PruningPredicate,
    count: int,
    bounds: Mapping[Leaf, Bounds],
    partition: Callable[[Expression], Array] | None = None,
) -> Array:
    """Return a mask, without nulls, of the units among `count` that may contain a matching row.

    `partition` returns the units for which an expression over partition columns may be true. A leaf without
    bounds selects all units, as does a partition expression if `partition` is None.
    """
    return _Units(count, bounds, partition).select(predicate)


class _Units(msgspec.Struct, frozen=True):
    """Units with their bounds. A recursive closure would keep them in memory as a reference cycle."""

    count: int
    bounds: Mapping[Leaf, Bounds]
    partition: Callable[[Expression], Array] | None

    def select(self, part: PruningPredicate) -> Array:
        everything = pa.repeat(pa.scalar(True), self.count)
        match part:
            case AllOf(parts):
                return reduce(pc.and_, map(self.select, parts), everything)
            case AnyOf(parts):
                return reduce(pc.or_, map(self.select, parts), pc.invert(everything))
            case PartitionTest(expression) if self.partition is not None:
                return self.partition(expression)
            case NullTest() if part.leaf in self.bounds:
                known = self.bounds[part.leaf]
                return pc.invert(known.no_null if part.is_null else known.all_null)
            case Comparison() | Membership() if part.leaf in self.bounds:
                return _compared(part, self.bounds[part.leaf])
        return everything


def _compared(test: Comparison | Membership, bounds: Bounds) -> Array:
    value = test.values if isinstance(test, Membership) else test.value
    least, greatest = (
        _cast(each, (*test.casts, value.type), test.timezone) for each in (bounds.min, bounds.max)
    )
    compare = IS_IN[test.is_in] if isinstance(test, Membership) else POSSIBLE[test.operator]
    possible = compare(least, greatest, value)
    return pc.and_(pc.fill_null(possible, True), pc.invert(bounds.all_null))


def _cast(values: Array, types: Iterable[pa.DataType], timezone: str) -> Array:
    for arrow_type in types:
        values = cast_values(values, arrow_type, strict=False, timezone=timezone)
    return values


def _equal(least: Array, greatest: Array, value: Any) -> Array:
    return pc.and_kleene(pc.less_equal(least, value), pc.greater_equal(greatest, value))


def _not_equal(least: Array, greatest: Array, value: Any) -> Array:
    if kind_of(value.type) == "floating":
        # Bounds exclude NaN, which differs from every number.
        return pa.nulls(len(least), pa.bool_())
    return pc.or_kleene(pc.not_equal(least, value), pc.not_equal(greatest, value))


def _below(kernel: Callable[[Array, Any], Array]) -> Callable[[Array, Array, Any], Array]:
    return lambda least, greatest, value: kernel(least, value)


def _above(kernel: Callable[[Array, Any], Array]) -> Callable[[Array, Array, Any], Array]:
    def compare(least: Array, greatest: Array, value: Any) -> Array:
        # Bounds exclude NaN, which Spark orders above every number.
        return (
            pa.nulls(len(greatest), pa.bool_())
            if kind_of(value.type) == "floating"
            else kernel(greatest, value)
        )

    return compare


def _prefixed(least: Array, greatest: Array, value: Any) -> Array:
    length = len(value.as_py())
    begins = pc.utf8_slice_codeunits(least, 0, length)
    return pc.and_kleene(pc.less_equal(begins, value), pc.greater_equal(greatest, value))


def _contains(least: Array, greatest: Array, values: Array) -> Array:
    """Return whether a value lies between the bounds: fewer are less than `least` than up to `greatest`."""
    before = pc.fill_null(_count(values, least, bisect_left), 0)
    return pc.less(before, pc.fill_null(_count(values, greatest, bisect_right), len(values)))


def _excludes(least: Array, greatest: Array, values: Array) -> Array:
    """Return whether a value that is not among `values` may lie between the bounds."""
    if kind_of(values.type) == "floating":
        # Bounds exclude NaN, which differs from every number.
        return pa.nulls(len(least), pa.bool_())
    return pc.or_kleene(pc.not_equal(least, greatest), pc.invert(_contains(least, greatest, values)))


def _count(values: Array, bounds: Array, bisect: Callable[[list[Any], Any], int]) -> Array:
    """Return the position of each bound in the ascending `values`, null for an unknown bound."""
    if kind_of(values.type) == "decimal":
        # Arrow cannot search decimals.
        ascending = values.to_pylist()
        counts = [None if each is None else bisect(ascending, each) for each in bounds.to_pylist()]
        return pa.array(counts, pa.uint64())
    compute: Any = pc
    options = compute.SearchSortedOptions(side="left" if bisect is bisect_left else "right")
    return pc.call_function("search_sorted", [values, bounds], options)


IS_IN: dict[bool, Callable[[Array, Array, Array], Array]] = {True: _contains, False: _excludes}
POSSIBLE: dict[str, Callable[[Array, Array, Any], Array]] = {
    "=": _equal,
    "<>": _not_equal,
    "<": _below(pc.less),
    "<=": _below(pc.less_equal),
    ">": _above(pc.greater),
    ">=": _above(pc.greater_equal),
    "prefix": _prefixed,
}
