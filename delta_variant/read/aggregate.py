"""Aggregate a table: from the log where its statistics are exact, and by reading files where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._arrow import Array
from .._options import OnConflict
from ..errors import ExpressionError, printable
from ..expressions.parse import parse_aggregates
from ..expressions.tree import Aggregate, describe, output_type
from ..expressions.types import kind_of, type_name
from ..log.snapshot import Snapshot
from ..log.timestamps import Timestamp
from ..protocol.table_configuration import TableConfiguration
from ..storage.store import TableLocation
from ..variant.moments import UTC
from ..variant.objects import rows_of
from .file_aggregates import Known, bounds_only, known_of
from .query import Query
from .rows import load_readable
from .scope import Scope
from .table_rows import TableRows

__all__ = ["Aggregation", "aggregate"]


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

    def __str__(self) -> str:
        values = self.table.cast(pa.schema([(name, pa.string()) for name in self.table.schema.names]))
        lines = {**values.to_pylist()[0], "files": f"{self.files_read:,} of {self.files:,} read"}
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
    timezone: str = UTC,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, str] | None = None,
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
        timezone: The time zone of local times, as in `read_table`. `"UTC"` by default.
        on_conflict: What to do if `value` and `typed_value` of a shredded Variant contradict each other, as
            in `read_table`. `"error"` by default.
        storage_options: Options of the object store, with the keys of deltalake. None by default.

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
    snapshot = load_readable(table, version, storage_options, timestamp).in_timezone(timezone)
    scope = Scope.of_read(snapshot.configuration)
    bound = {name: _bind(each, scope) for name, each in parse_aggregates(aggregates).items()}
    if not bound:
        raise ExpressionError("aggregates: expected at least one aggregate")
    arguments = {name: each.argument for name, each in bound.items() if each.argument is not None}
    query = Query.of_expressions(arguments, scope.predicate(where))
    rows = TableRows.of(snapshot, query, on_conflict, with_bounds=True)
    return _Aggregating(bound, rows).run()


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
        know: Callable[[TableConfiguration, pa.Table, Aggregate], Known] = known_of
        if files is None:
            files, know = self.rows.plan.files, bounds_only
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
            self.extremes[name] = _extreme(self.aggregates[name].function, parts)
        elif is_result:
            self.counts[name] += int(pc.sum(values).as_py() or 0)
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

    def _search(self, name: str, known: Known, files: pa.Table) -> None:
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
        best = self.extremes[name]
        if not len(best):
            return len(bounds)
        kernel = "less" if self.aggregates[name].function == "min" else "greater"
        return int(pc.sum(pc.call_function(kernel, [bounds, best[0]])).as_py() or 0)

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


def _groups(known: Mapping[str, Known], count: int) -> Iterator[tuple[list[str], list[int]]]:
    """Yield aggregates and the files that have to be read for exactly these."""
    unread = [pc.and_(pc.invert(each.is_exact), each.bounds.is_null()).to_pylist() for each in known.values()]
    groups: dict[tuple[bool, ...], list[int]] = {}
    for position, signature in enumerate(zip(*unread, strict=True)):
        groups.setdefault(signature, []).append(position)
    for signature, positions in groups.items():
        if names := [name for name, is_unread in zip(known, signature, strict=True) if is_unread]:
            yield names, positions


def _extreme(function: str, values: Array) -> Array:
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
