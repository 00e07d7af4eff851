"""What the log says about the aggregates of each file: exact values, and bounds of the others."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from ..errors import CastError, ExpressionError, MalformedLogError, UnsupportedFeatureError
from ..expressions.tree import Aggregate, Expression, Extraction, Field, is_whole, output_type
from ..expressions.types import kind_of
from ..protocol.table_configuration import TableConfiguration
from .log_statistics import (
    EXACT_UNITS,
    are_tight,
    file_bounds,
    is_of_partitions,
    null_counts,
    partition_values,
    row_counts,
)
from .predicate import Leaf, leaf_of

__all__ = ["Known", "bounds_only", "known_of"]

EXACT_KINDS = frozenset({"integer", "decimal", "date"})
"""Kinds of values whose bounds are values of the file.

Strings are cut off, timestamps are rounded, and bounds of floats ignore NaN.
"""


class Known(msgspec.Struct, frozen=True):
    """An aggregate of each file, one row for each file.

    `values` are exact where `is_exact`; a null is an extreme of no values. `bounds` are not within the values
    of a file, null if unknown. Only extremes have bounds.
    """

    values: Array
    is_exact: Array
    bounds: Array

    @classmethod
    def unknown(cls, count: int, arrow_type: pa.DataType) -> Known:
        """Return what is known without statistics."""
        nulls: Array = pa.nulls(count, arrow_type)  # type: ignore[call-overload]
        return cls(nulls, pa.repeat(pa.scalar(False), count), nulls)


def known_of(table: TableConfiguration, files: pa.Table, aggregate: Aggregate) -> Known:
    """Return what the log says about an aggregate of all rows of each of some files."""
    rows = row_counts(files)
    argument = aggregate.argument
    if argument is None:
        return Known(rows, rows.is_valid(), pa.nulls(len(rows), pa.int64()))
    constant = _of_partitions(table, files, aggregate, rows)
    if constant is not None:
        return constant
    if aggregate.function == "count":
        return _count(table, files, argument, rows)
    return _extreme(table, files, aggregate)


def bounds_only(table: TableConfiguration, files: pa.Table, aggregate: Aggregate) -> Known:
    """Return what the log says about an aggregate of some rows of each of some files."""
    if aggregate.function == "count" or aggregate.argument is None:
        return Known.unknown(files.num_rows, pa.int64())
    known = _extreme(table, files, aggregate)
    return msgspec.structs.replace(known, is_exact=pa.repeat(pa.scalar(False), files.num_rows))


def _of_partitions(
    table: TableConfiguration, files: pa.Table, aggregate: Aggregate, rows: Array
) -> Known | None:
    """Return an aggregate of an expression that has one value in each file, None for any other."""
    argument = aggregate.argument
    assert argument is not None
    if output_type(argument) is None or not is_of_partitions(table, argument):
        return None
    try:
        values = partition_values(table, files, argument)
    except (CastError, ExpressionError, MalformedLogError, UnsupportedFeatureError):
        # The read reports the error, with the file.
        return None
    bounds = pa.nulls(len(rows), values.type)
    if aggregate.function == "count":
        counts = pc.if_else(values.is_valid(), rows, pa.scalar(0, pa.int64()))
        return Known(counts, rows.is_valid(), pa.nulls(len(rows), pa.int64()))
    has_rows = pc.greater(rows, pa.scalar(0, pa.int64()))
    return Known(pc.if_else(has_rows, values, pa.scalar(None, values.type)), rows.is_valid(), bounds)


def _count(table: TableConfiguration, files: pa.Table, argument: Expression, rows: Array) -> Known:
    found = Known.unknown(files.num_rows, pa.int64())
    names = _names(argument)
    if names is None:
        return found
    nulls = null_counts(table, files, names)
    all_null: Array = pc.equal(nulls, _physical_rows(files, rows))
    all_null = pc.fill_null(all_null, False)
    if isinstance(argument, Extraction) and not is_whole(argument):
        # A path is null where the Variant is. Otherwise its values are not counted.
        return Known(pc.if_else(all_null, pa.scalar(0, pa.int64()), None), all_null, found.bounds)
    # Writers differ in the null counts of nested fields: they count rows, or values of the parent.
    is_nested = isinstance(argument, Field)
    is_counted = pc.and_(are_tight(files), pa.scalar(not is_nested))
    zero: Any = pa.scalar(0, pa.int64())
    counts: Array = pc.if_else(pc.equal(nulls, zero), rows, None)
    counts = pc.if_else(is_counted, pc.subtract(rows, nulls), counts)
    counts = pc.if_else(all_null, zero, counts)
    is_count: Array = pc.greater_equal(counts, zero)
    return Known(counts, pc.fill_null(is_count, False), found.bounds)


def _names(argument: Expression) -> tuple[str, ...] | None:
    """Return the column with the null count of an expression."""
    if isinstance(argument, Extraction):
        return None if argument.as_json else (argument.column, *argument.fields)
    leaf = leaf_of(argument)
    return None if leaf is None else leaf.names


def _physical_rows(files: pa.Table, rows: Array) -> Array:
    """Return the number of rows of each file with those that a deletion vector removes."""
    deleted: Array = pc.struct_field(files["deletion_vector"].combine_chunks(), "cardinality")
    return pc.add(rows, pc.fill_null(deleted, 0).cast(pa.int64()))


def _extreme(table: TableConfiguration, files: pa.Table, aggregate: Aggregate) -> Known:
    argument = aggregate.argument
    assert argument is not None
    arrow_type = output_type(argument)
    assert arrow_type is not None
    unknown = Known.unknown(files.num_rows, arrow_type)
    leaf = leaf_of(argument)
    known = {} if leaf is None else file_bounds(table, files, [leaf])
    if leaf is None or leaf not in known:
        return unknown
    bounds = known[leaf]
    outer = bounds.min if aggregate.function == "min" else bounds.max
    kind = kind_of(arrow_type)
    if kind == "floating" and aggregate.function == "max":
        # NaN is greater than the bound.
        outer = unknown.bounds
    if outer.type != arrow_type:
        return unknown
    is_exact = bounds.all_null
    if kind in EXACT_KINDS:
        is_exact = pc.or_(is_exact, pc.and_(_is_attained(table, files, leaf), _is_unrounded(outer)))
    values = pc.if_else(bounds.all_null, pa.scalar(None, arrow_type), outer)
    return Known(values, is_exact, outer)


def _is_attained(table: TableConfiguration, files: pa.Table, leaf: Leaf) -> Array:
    """Return whether a bound of each file is one of its values: it is tight, and not all values are null."""
    rows = row_counts(files)
    nulls = null_counts(table, files, leaf.names)
    has_values: Array = pc.less(nulls, _physical_rows(files, rows))
    return pc.and_(are_tight(files), pc.fill_null(has_values, False))


def _is_unrounded(bounds: Array) -> Array:
    """Return whether bounds are known, and decimals have so few digits that no writer rounds them."""
    if not pa.types.is_decimal(bounds.type):
        return bounds.is_valid()
    limit = pa.scalar(Decimal(EXACT_UNITS).scaleb(-bounds.type.scale), pa.decimal128(38, bounds.type.scale))
    is_short: Array = pc.less(pc.abs(bounds), limit)
    return pc.fill_null(is_short, False)
