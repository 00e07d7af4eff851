"""Aggregate a table: from the log where its statistics are exact, and by reading files where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array, total
from .._html import html_table
from .._options import OnConflict
from .._text import count
from ..errors import ExpressionError, printable
from ..execution import timezone_of
from ..expressions.parse import parse_aggregates
from ..expressions.tree import Aggregate, Expression, Extraction, Field, describe, is_whole, output_type
from ..expressions.types import kind_of, type_name
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import TableLocation
from ..variant.objects import rows_of
from .log_statistics import (
    EXACT_UNITS,
    UNEVALUABLE,
    are_tight,
    file_bounds,
    is_of_partitions,
    null_counts,
    partition_values,
    row_counts,
)
from .predicate import Leaf, leaf_of
from .query import Query
from .rows import load_readable
from .scan_rows import TableRows
from .scope import Scope


@dataclass(frozen=True)
class Aggregation:
    """The aggregates of a table, and how many files were read for them.

    Attributes:
        table: The aggregates as an Arrow table with one row.
        files: The number of files in the table.
        files_read: The number of files read. The log has the answer for the others, or excludes them.

    Example:
        >>> import delta_variant as dv
        >>> _ = dv.write_table("clicks", [{"id": 1}, {"id": 2}])
        >>> print(dv.aggregate("clicks", ["max(id)"]))
        max(id)  2
        files    0 of 1 read
    """

    table: pa.Table
    files: int
    files_read: int

    @property
    def values(self) -> dict[str, Any]:
        """Return the aggregates as Python objects, by name.

        Raises:
            CastError: Python cannot represent a value, such as a date after the year 9999; `table` has it.
        """
        return rows_of(self.table.to_batches()[0], "bytes")[0]

    def _repr_html_(self) -> str:
        read = f"{self.files_read:,} of {count(self.files, 'file')} read"
        return html_table(read, self.table.schema.names, [list(self._texts().values())])

    def _texts(self) -> dict[str, str | None]:
        texts: dict[str, str | None]
        [texts] = self.table.cast(
            pa.schema([(name, pa.string()) for name in self.table.schema.names])
        ).to_pylist()
        return texts

    def __str__(self) -> str:
        lines = {**self._texts(), "files": f"{self.files_read:,} of {self.files:,} read"}
        width = max(map(len, lines))
        return "\n".join(
            printable(f"{name:{width}}  {'null' if text is None else text}") for name, text in lines.items()
        )


def aggregate(
    table: TableLocation | Snapshot,
    aggregates: Mapping[str, str] | Sequence[str],
    where: str | None = None,
    *,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    timezone: str | None = None,
    on_conflict: OnConflict = "error",
) -> Aggregation:
    """Return counts and extremes of the rows of a table.

    `count(*)`, and `count`, `min` and `max` of columns and Variant paths come from the statistics in the log
    of each file where these are exact: integers, dates, and decimals of fewer than 15 digits, in a file
    without deleted rows, if `where` is None or tests partition columns only. For other extremes, files whose
    bounds exclude them are not read. Of the remaining files, only the columns of the aggregates and of
    `where` are read.

    Args:
        table: A path, a URI, a `Table`, a `Snapshot` or a `deltalake.DeltaTable`.
        aggregates: `count(*)`, `count(expression)`, `min(expression)` and `max(expression)` over columns and
            Variant paths: a mapping from output names to aggregates, or a sequence of aggregates. `count`
            counts values that are not NULL; `min` and `max` ignore NULL and are NULL without values. NaN is
            the greatest number.
        where: An SQL predicate. Only rows for which it is true are aggregated. None, the default, selects
            all.
        version: The version to read. None, the default, reads the latest version.
        timestamp: A timezone-aware datetime or an ISO 8601 string; reads the latest version committed at that
            time or earlier. Excludes `version`. None by default.
        timezone: The time zone of local times, as in `read_table`. None, the default, is that of the
            engine of a `Table`, `"UTC"` without one.
        on_conflict: What to do if `value` and `typed_value` of a shredded Variant contradict each other, as
            in `read_table`. `"error"` by default.

    Returns:
        An `Aggregation`.

    Raises:
        TableNotFoundError: There is no table at this location.
        VersionNotFoundError: The log does not have the version or the timestamp.
        ExpressionError: An aggregate or `where` cannot be parsed or bound to the table.
        UnsupportedFeatureError: This version cannot read the table.
        ProtocolError: Protocol, metadata and schema of the table contradict each other.
        SchemaError: This version cannot read the schema of the table.
        ValueError: The time zone is unknown, or arguments exclude each other.
        DataFileError: A file cannot be read.
        MalformedVariantError: A Variant is invalid.
        ConflictingValueError: See `on_conflict`.
        CastError: A value cannot be cast.

    Example:
        >>> import delta_variant as dv
        >>> rows = [{"event": {"price": 3}}, {"event": {"price": 8}}]
        >>> _ = dv.write_table("sales", rows, variant_columns=["event"])
        >>> aggregates = {"n": "count(*)", "highest": "max(event:price::bigint)"}
        >>> dv.aggregate("sales", aggregates, where="event:price::bigint < 5").values
        {'n': 1, 'highest': 3}
    """
    snapshot = load_readable(table, version, timestamp).in_timezone(timezone_of(table, timezone))
    scope = Scope.of_read(snapshot.configuration)
    bound = {name: _bind(each, scope) for name, each in parse_aggregates(aggregates).items()}
    if not bound:
        raise ExpressionError("aggregates: expected at least one aggregate")
    arguments = {name: each.argument for name, each in bound.items() if each.argument is not None}
    query = Query.of_expressions(arguments, scope.predicate(where))
    rows = TableRows.of(snapshot, query, on_conflict, with_bounds=True)
    return _Aggregating(bound, rows).run()


def known_aggregates(snapshot: Snapshot, aggregates: Mapping[str, str]) -> dict[str, pa.Scalar[Any]]:
    """Return those of the aggregates of all rows that the log proves, so that no file is read."""
    scope = Scope.of_read(snapshot.configuration)
    found: dict[str, pa.Scalar[Any]] = {}
    for name, parsed in parse_aggregates(aggregates).items():
        bound = _bind(parsed, scope)
        known = _known_of(snapshot.configuration, snapshot.files, bound)
        if not pc.all(known.is_exact, min_count=0).as_py():
            continue
        if bound.function == "count":
            found[name] = pa.scalar(total(known.values))
        else:
            best = _extreme_of_parts(bound.function, known.values)
            found[name] = best[0] if len(best) else pa.scalar(None, best.type)
    return found


def _bind(parsed: Aggregate, scope: Scope) -> Aggregate:
    if parsed.argument is None:
        return parsed
    argument = scope.bind(parsed.argument)
    arrow_type = output_type(argument)
    if parsed.function != "count" and (arrow_type is None or kind_of(arrow_type) == "nested"):
        raise ExpressionError(
            f"`{parsed.function}`: expected values that can be compared, got `{describe(argument)}` of type "
            f"{type_name(arrow_type)}; cast it"
        )
    return Aggregate(parsed.function, argument)


@dataclass
class _Aggregating:
    """Aggregates of rows, and what was found so far."""

    aggregates: Mapping[str, Aggregate]
    rows: TableRows
    counts: dict[str, int] = field(default_factory=dict)
    extremes: dict[str, Array] = field(default_factory=dict)
    """The extreme so far, as an array of at most one value."""
    paths: set[str] = field(default_factory=set)

    def run(self) -> Aggregation:
        for name, each in self.aggregates.items():
            if each.function == "count":
                self.counts[name] = 0
            else:
                self.extremes[name] = pa.array([], _type_of(each))
        files = self.rows.whole_files()
        know: Callable[[TableConfiguration, pa.Table, Aggregate], _Known] = _known_of
        if files is None:
            files, know = self.rows.plan.files, _bounds_only
        table = self.rows.table.configuration
        known = {name: know(table, files, each) for name, each in self.aggregates.items()}
        for name, found in known.items():
            self._add(name, found.values.filter(found.is_exact), is_result=True)
        for names, rows in _groups(known, files.num_rows):
            self._read(names, files.take(rows))
        for name in self.extremes:
            self._search(name, known[name], files)
        return Aggregation(self._table(), self.rows.files.num_files, len(self.paths))

    def _add(self, name: str, values: Array, *, is_result: bool = False) -> None:
        """Add values of rows, or results of files."""
        if name in self.extremes:
            parts = pa.concat_arrays([self.extremes[name], values.cast(self.extremes[name].type)])
            self.extremes[name] = _extreme_of_parts(self.aggregates[name].function, parts)
        elif is_result:
            self.counts[name] += total(values)
        else:
            self.counts[name] += len(values) - values.null_count

    def _read(self, names: Sequence[str], files: pa.Table) -> None:
        self.paths.update(map(str, files["path"].to_pylist()))
        for batch in self.rows.read(names, files):
            for name in names:
                if self.aggregates[name].argument is None:
                    self.counts[name] += batch.num_rows
                else:
                    self._add(name, batch.column(name))

    def _search(self, name: str, known: _Known, files: pa.Table) -> None:
        """Read files from the one with the most extreme bound, until no bound exceeds what was found.

        Each step reads twice as many files as the one before, so that many files are read concurrently.
        """
        unread = pc.and_(pc.invert(known.is_exact), known.bounds.is_valid())
        positions, bounds = pc.indices_nonzero(unread), known.bounds.filter(unread)
        order: Any = "ascending" if self.aggregates[name].function == "min" else "descending"
        sorted_ = pc.call_function("array_sort_indices", [bounds], pc.ArraySortOptions(order))
        positions, bounds = positions.take(sorted_), bounds.take(sorted_)
        start, count = 0, 1
        while start < len(bounds):
            wanted = self._exceeding(name, bounds.slice(start, count))
            if not wanted:
                return
            self._read([name], files.take(positions.slice(start, wanted)))
            start, count = start + count, count * 2

    def _exceeding(self, name: str, bounds: Array) -> int:
        """Return how many of the sorted bounds exceed the extreme so far."""
        best, is_least = self.extremes[name], self.aggregates[name].function == "min"
        is_nan = kind_of(best.type) == "floating" and len(best) and pc.is_nan(best[0]).as_py()
        if not len(best) or (is_least and is_nan):
            return len(bounds)
        kernel = "less" if is_least else "greater"
        return total(pc.call_function(kernel, [bounds, best[0]]))

    def _table(self) -> pa.Table:
        columns = {}
        for name in self.aggregates:
            if name in self.counts:
                columns[name] = pa.array([self.counts[name]], pa.int64())
            else:
                best = self.extremes[name]
                columns[name] = best if len(best) else pa.nulls(1, best.type)
        return pa.table(columns)


def _type_of(each: Aggregate) -> pa.DataType | None:
    return pa.int64() if each.argument is None else output_type(each.argument)


def _groups(known: Mapping[str, _Known], count: int) -> Iterator[tuple[list[str], list[int]]]:
    """Yield aggregates and the files that have to be read for exactly these."""
    unread = [pc.and_(pc.invert(each.is_exact), each.bounds.is_null()).to_pylist() for each in known.values()]
    groups: dict[tuple[bool, ...], list[int]] = {}
    for position, signature in enumerate(zip(*unread, strict=True)):
        groups.setdefault(signature, []).append(position)
    for signature, positions in groups.items():
        if names := [name for name, is_unread in zip(known, signature, strict=True) if is_unread]:
            yield names, positions


def _extreme_of_parts(function: str, values: Array) -> Array:
    """Return the extreme of values as an array of at most one value; NaN is the greatest number."""
    values = values.drop_null()
    if kind_of(values.type) == "floating" and len(values):
        is_nan = pc.is_nan(values)
        numbers = values.filter(pc.invert(is_nan))
        if len(numbers) < len(values) and (function == "max" or not len(numbers)):
            return values.filter(is_nan)[:1]
        values = numbers
    if not len(values):
        return values
    return pa.repeat(pc.call_function(function, [values]), 1)


EXACT_KINDS = frozenset({"integer", "decimal", "date"})
"""Kinds of values whose bounds are values of the file.

Strings are cut off, timestamps are rounded, and bounds of floats ignore NaN.
"""


class _Known(msgspec.Struct, frozen=True):
    """An aggregate of each file, one row for each file.

    `values` are exact where `is_exact`; a null is an extreme of no values. `bounds` are not within the values
    of a file, null if unknown. Only extremes have bounds.
    """

    values: Array
    is_exact: Array
    bounds: Array

    @classmethod
    def unknown(cls, count: int, arrow_type: pa.DataType) -> _Known:
        """Return what is known without statistics."""
        nulls: Array = pa.nulls(count, arrow_type)  # type: ignore[call-overload]
        return cls(nulls, pa.repeat(pa.scalar(False), count), nulls)


def _known_of(table: TableConfiguration, files: pa.Table, aggregate: Aggregate) -> _Known:
    """Return what the log says about an aggregate of all rows of each of some files."""
    rows = row_counts(files)
    argument = aggregate.argument
    if argument is None:
        return _Known(rows, rows.is_valid(), pa.nulls(len(rows), pa.int64()))
    constant = _of_partitions(table, files, aggregate, rows)
    if constant is not None:
        return constant
    if aggregate.function == "count":
        return _count(table, files, argument, rows)
    return _extreme(table, files, aggregate)


def _bounds_only(table: TableConfiguration, files: pa.Table, aggregate: Aggregate) -> _Known:
    """Return what the log says about an aggregate of some rows of each of some files."""
    if aggregate.function == "count" or aggregate.argument is None:
        return _Known.unknown(files.num_rows, pa.int64())
    known = _extreme(table, files, aggregate)
    return msgspec.structs.replace(known, is_exact=pa.repeat(pa.scalar(False), files.num_rows))


def _of_partitions(
    table: TableConfiguration, files: pa.Table, aggregate: Aggregate, rows: Array
) -> _Known | None:
    """Return an aggregate of an expression that has one value in each file, None for any other."""
    argument = aggregate.argument
    assert argument is not None
    if output_type(argument) is None or not is_of_partitions(table, argument):
        return None
    try:
        values = partition_values(table, files, argument)
    except UNEVALUABLE:
        return None
    bounds = pa.nulls(len(rows), values.type)
    if aggregate.function == "count":
        counts = pc.if_else(values.is_valid(), rows, pa.scalar(0, pa.int64()))
        return _Known(counts, rows.is_valid(), pa.nulls(len(rows), pa.int64()))
    has_rows = pc.greater(rows, pa.scalar(0, pa.int64()))
    return _Known(pc.if_else(has_rows, values, pa.scalar(None, values.type)), rows.is_valid(), bounds)


def _count(table: TableConfiguration, files: pa.Table, argument: Expression, rows: Array) -> _Known:
    found = _Known.unknown(files.num_rows, pa.int64())
    names = _names(argument)
    if names is None:
        return found
    nulls = null_counts(table, files, names)
    all_null: Array = pc.equal(nulls, _physical_rows(files, rows))
    all_null = pc.fill_null(all_null, False)
    if isinstance(argument, Extraction) and not is_whole(argument):
        # A path is null where the Variant is. Otherwise its values are not counted.
        return _Known(pc.if_else(all_null, pa.scalar(0, pa.int64()), None), all_null, found.bounds)
    # Writers differ in the null counts of nested fields: they count rows, or values of the parent.
    is_nested = isinstance(argument, Field)
    is_counted = pc.and_(are_tight(files), pa.scalar(not is_nested))
    zero: Any = pa.scalar(0, pa.int64())
    counts: Array = pc.if_else(pc.equal(nulls, zero), rows, None)
    counts = pc.if_else(is_counted, pc.subtract(rows, nulls), counts)
    counts = pc.if_else(all_null, zero, counts)
    is_count: Array = pc.greater_equal(counts, zero)
    return _Known(counts, pc.fill_null(is_count, False), found.bounds)


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


def _extreme(table: TableConfiguration, files: pa.Table, aggregate: Aggregate) -> _Known:
    argument = aggregate.argument
    assert argument is not None
    arrow_type = output_type(argument)
    assert arrow_type is not None
    unknown = _Known.unknown(files.num_rows, arrow_type)
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
    return _Known(values, is_exact, outer)


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
