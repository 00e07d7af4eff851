"""Queries and statements over tables, Arrow data and data frames, in the SQL of Spark and Databricks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from .._checks import check_installed, check_mapping, list_names
from .._html import MAX_ROWS
from .._text import quote
from ..errors import ArgumentTypeError, CastError, ExpressionError, printable
from ..expressions.cast import can_cast, cast_values
from ..expressions.literals import literal_text
from ..expressions.tree import Literal
from ..expressions.types import type_name, type_of_text
from ..input.arrow_data import batches_of
from ..input.invalid_json import parse_json_columns
from ..log.snapshot import Snapshot
from ..log.timestamps import to_instant
from ..operations.changes import read_changes
from ..protocol.schema.arrow import from_arrow, to_arrow, to_arrow_type
from ..protocol.schema.conforming import conform
from ..protocol.types import DataType, PrimitiveType, StructField, StructType, sql_type
from ..read.query import Query
from ..read.rows import load_readable
from ..read.scan import Rows
from ..read.scope import Scope
from ..statements.parse import ParsedStatement, find_statement
from ..storage.store import TableLocation
from ..variant.moments import UTC
from .parse import parse_statement
from .syntax import Marked, Statement, TableName


class QueryResult(Rows):
    """The rows of a query, in memory. `sql` returns it.

    DuckDB, Polars, pandas and pyarrow take it directly, because it has `__arrow_c_stream__`.

    Example:
        >>> import delta_variant as dv
        >>> result = dv.sql("select 1 + 1 as two")
        >>> result.to_pylist()
        [{'two': 2}]
        >>> result
        <QueryResult of 1 row: two int>
    """

    def __init__(self, table: pa.Table) -> None:
        """Create the result of a query."""
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows, in which Variant columns are marked as extension types."""
        return self._table.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows as an iterator over Arrow batches.

        Returns:
            An iterator over `pyarrow.RecordBatch`.

        Example:
            >>> import delta_variant as dv
            >>> [batch.num_rows for batch in dv.sql("select 1 as one").to_batches()]
            [1]
        """
        return iter(self._table.to_batches())

    def __len__(self) -> int:
        return self._table.num_rows

    def __repr__(self) -> str:
        rows = f"{len(self):,} row{'' if len(self) == 1 else 's'}"
        return printable(f"<QueryResult of {rows}: {', '.join(self._headings())}>")

    def _repr_html_(self) -> str | None:
        try:
            rows = QueryResult(self._table.slice(0, MAX_ROWS)).to_pylist(variants="json")
        except CastError:
            return None
        return self._table_of(rows)


def sql(
    query: str, parameters: Mapping[str, Any] | None = None, *, timezone: str = UTC, **tables: Any
) -> QueryResult:
    """Run a query or a statement in the SQL of Spark and Databricks; needs DuckDB, the extra `sql`.

    Statements are the operations of this package, with the meaning and the results that they have in Delta on
    Spark. VACUUM deletes files, unless it ends with DRY RUN. Expressions, casts and types are those of
    `read_table`, which are Spark's in ANSI mode. Scans read the columns and the Variant paths that a query
    needs, and skip files by its conditions. DuckDB joins, groups, sorts and numbers the rows. A construct or
    a function that would mean something else than in Spark is an error.

    Args:
        query: A SELECT with joins, GROUP BY, HAVING, windows, QUALIFY, ORDER BY, LIMIT, subqueries, common
            table expressions, UNION, INTERSECT, EXCEPT and `lateral variant_explode`; VALUES; or a statement:
            INSERT, UPDATE, DELETE, MERGE, CREATE TABLE, CONVERT TO DELTA, ALTER TABLE, OPTIMIZE, REORG,
            VACUUM, RESTORE, DESCRIBE, DESCRIBE HISTORY, DESCRIBE DETAIL or SHOW TBLPROPERTIES. A table is a
            name from `tables` or a path in backquotes after `delta.`, and `version as of` or `timestamp as
            of` selects an earlier version.
        parameters: The values of `:name` in the query, as Python objects. None by default.
        timezone: The time zone of local times, such as `"Europe/Berlin"`. `"UTC"` by default.
        **tables: The tables by their names in the query: a path, a URI, a `Table`, a `Snapshot`, or rows as
            Arrow data, a data frame of pandas or Polars, or a list of dicts.

    Returns:
        A `QueryResult` with the rows, which can be converted as those of a `Scan`. A column without a name
        has the text of its expression as its name. A statement returns the rows that it returns on Spark,
        such as `num_affected_rows`.

    Raises:
        ExpressionError: The query cannot be parsed, or has a construct, a function or a name that is not
            supported or does not exist.
        CastError: A value cannot be cast or computed, as in Spark.
        TableNotFoundError: There is no table at a location.
        VersionNotFoundError: A table does not have a version or a timestamp.
        ModuleNotFoundError: DuckDB is not installed.
        DeltaVariantError: A table cannot be read; see `read_table`.

    Example:
        >>> import delta_variant as dv
        >>> rows = [{"event": {"type": "buy", "price": 3}}, {"event": {"type": "buy", "price": 4}}]
        >>> _ = dv.write_table("shop", rows, variant_columns=["event"])
        >>> text = "select event:type::string as type, sum(event:price::int) as total from shop group by all"
        >>> dv.sql(text, shop="shop").to_pylist()
        [{'type': 'buy', 'total': 7}]
        >>> dv.sql("select count(*) as n from shop where event:price::int > :n", {"n": 3}, shop="shop")
        <QueryResult of 1 row: n bigint>
        >>> dv.sql("delete from shop where event:price::int > 3", shop="shop").to_pylist()
        [{'num_affected_rows': 1}]
    """
    return query_tables(query, parameters, timezone, tables)


def query_tables(
    query: str,
    parameters: Mapping[str, Any] | None,
    timezone: str,
    tables: Mapping[str, Any],
    way: str = "pass it as an argument",
) -> QueryResult:
    """Return the rows of a query; see `sql`. `way` tells how the caller names a table that is missing."""
    check_installed("duckdb", "delta_variant[sql]")
    check_mapping("names to values", "parameters", {} if parameters is None else parameters)
    call = _Call(dict(parameters or {}), timezone, tables, way)
    texts = ((name, literal_text(value)) for name, value in call.parameters.items())
    if statement := find_statement(query, {name: text for name, text in texts if text is not None}):
        return _run_statement(statement, call)
    return QueryResult(_rows(query, call).named())


class _Call(NamedTuple):
    """The arguments of `sql`, but for the text."""

    parameters: Mapping[str, Any]
    timezone: str
    tables: Mapping[str, Any]
    way: str


def _run_statement(statement: ParsedStatement, call: _Call) -> QueryResult:
    def run(query: str, added: Mapping[str, Any]) -> _NumberedRows:
        return _rows(query, call._replace(tables={**call.tables, **added}))

    known = {name.lower(): table for name, table in call.tables.items()}
    session = _LocalSession(known, call.timezone, run)
    location = statement.locate(session)
    if location is None:
        raise _unknown_table(statement.table, call)
    return QueryResult(statement.run(location, session))


def _rows(query: str, call: _Call) -> _NumberedRows:
    literals = {name: _literal(name, value) for name, value in call.parameters.items()}
    statement, marked = parse_statement(query, literals)
    opened = _Tables(call)
    try:
        return _run(statement, marked, opened, is_careful=False)
    except CastError:
        # Usually no row fails, and casting while files are read is faster.
        return _run(statement, marked, opened, is_careful=True)
    except RecursionError:
        raise ExpressionError("the query is nested too deeply: split it") from None


def _run(statement: Statement, marked: list[Marked], tables: _Tables, *, is_careful: bool) -> _NumberedRows:
    # Imported here because DuckDB is an extra.
    from .planning import Planner
    from .relations import Engine

    view = Planner(Engine(is_careful=is_careful), tables.scope, tables.open, marked).plan(statement, {})
    outputs = {f"c{number}": view.bind(each.value) for number, each in enumerate(view.columns)}
    schema = Query.of_expressions(outputs, None).schema
    rows = pa.Table.from_batches(view.rows.read(outputs), schema)
    return _NumberedRows([each.name for each in view.columns], rows)


def _literal(name: str, value: Any) -> Literal:
    """Return a parameter as a constant of the type that Spark gives to a Python object."""
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        raise ArgumentTypeError(f"parameter {name!r}: expected a datetime with a time zone, got {value!r}")
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    try:
        if is_integer and -(2**31) <= value < 2**31:
            return Literal(pa.scalar(value, pa.int32()))
        found = pa.scalar(value)
        return Literal(found.cast(pa.timestamp("us", UTC)) if isinstance(value, dt.datetime) else found)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise ArgumentTypeError(f"parameter {name!r}: expected a constant, got {value!r}") from error


def _unknown_table(name: Sequence[str], call: _Call) -> ExpressionError:
    known = list_names(call.tables, name[-1])
    return ExpressionError(
        f"unknown table `{'.'.join(name)}`: {call.way}, or write its path as delta.`path`"
        f"{known and '; the tables are '}{known}"
    )


class _Tables:
    """The tables of a query by name, each opened once, so that all parts of the query see one version."""

    def __init__(self, call: _Call) -> None:
        self.call = call
        self.tables = {name.lower(): table for name, table in call.tables.items()}
        self.scope = Scope.of_columns(StructType(()), call.timezone)
        self._opened: dict[Any, Any] = {}

    def open(self, name: TableName) -> Any:
        """Return the source of the rows of a table; raises ExpressionError for an unknown name."""
        from .relations import StoredRows, TableSource

        key = (name.parts, name.version, name.timestamp, name.changes)
        if key not in self._opened:
            location = self._find(name)
            is_table = isinstance(location, str | PathLike | Snapshot) or hasattr(location, "table_uri")
            if is_table and name.changes:
                self._opened[key] = self._changes(location, *name.changes)
            elif is_table:
                self._opened[key] = load_readable(location, name.version, name.timestamp)
            elif name.version is not None or name.timestamp is not None or name.changes:
                raise ExpressionError(f"`{'.'.join(name.parts)}` is not a Delta table, which has versions")
            else:
                self._opened[key] = self._stored(name.parts[-1], location)
        found = self._opened[key]
        if isinstance(found, Snapshot):
            return TableSource(found.in_timezone(self.scope.timezone))
        scope, batches = found
        return StoredRows(scope, lambda names: batches)

    def _changes(self, location: Any, start: Any, end: Any = None) -> tuple[Scope, Iterable[pa.RecordBatch]]:
        first, last = (
            to_instant(each, self.scope.timezone) if isinstance(each, str) else each for each in (start, end)
        )
        scan = read_changes(location, start=first, end=last, timezone=self.scope.timezone)
        return self._scope_of(from_arrow(scan.schema)), list(scan.to_batches())

    def _find(self, name: TableName) -> Any:
        if len(name.parts) == 2 and name.parts[0].lower() == "delta":
            return name.parts[1]
        found = self.tables.get(name.parts[0].lower()) if len(name.parts) == 1 else None
        if found is None:
            raise _unknown_table(name.parts, self.call)
        return found

    def _stored(self, name: str, data: Any) -> tuple[Scope, list[pa.RecordBatch]]:
        schema, batches = batches_of(data, f"the table {name!r}")
        columns = from_arrow(schema)
        read = [conform(parse_json_columns(batch, columns), columns) for batch in batches]
        return self._scope_of(columns), read

    def _scope_of(self, columns: StructType) -> Scope:
        """Return the scope of stored rows, which has the moment of the query."""
        scope = Scope.of_columns(columns, self.scope.timezone)
        return msgspec.structs.replace(scope, moment=self.scope.moment)


RunQuery: TypeAlias = "Callable[[str, Mapping[str, Any]], _NumberedRows]"
"""Returns the rows of a query over tables by name, which are added to those of the session."""


class _NumberedRows(NamedTuple):
    """The rows of a query, whose columns are named `c0`, `c1`…, and their names in the query."""

    names: Sequence[str]
    rows: pa.Table

    def named(self) -> pa.Table:
        """Return the rows with their names; raises ExpressionError for two columns of one name."""
        for number, name in enumerate(self.names):
            if name in self.names[:number]:
                raise ExpressionError(
                    f"two columns are named {name!r}: write `expression as name` for one of them", column=name
                )
        return self.rows.rename_columns(list(self.names))


class _LocalRows(NamedTuple):
    """The rows of a query in a statement; see `Rows`."""

    found: _NumberedRows
    run: RunQuery
    timezone: str

    @property
    def names(self) -> Sequence[str]:
        return self.found.names

    @property
    def types(self) -> Sequence[DataType]:
        return [each.type for each in from_arrow(self.found.rows.schema).fields]

    @property
    def data(self) -> pa.Table:
        return self.found.named()

    def in_order(self, types: Sequence[DataType]) -> _LocalRows:
        rows = self.found.rows
        for number, (old, new) in enumerate(zip(self.types, types, strict=True)):
            if new != old:
                column = StructType((StructField(rows.column_names[number], new),))
                batches = [conform(each, column) for each in rows.select([number]).to_batches()]
                schema = to_arrow(column)
                rows = rows.set_column(
                    number, schema.field(0), pa.Table.from_batches(batches, schema).column(0)
                )
        return self._replace(found=self.found._replace(rows=rows))

    def first(self, count: int) -> pa.Table:
        return self.found.rows.slice(0, count)

    def select(self, columns: Mapping[str, tuple[str, DataType]]) -> pa.Table:
        """Return the values of SQL text over the columns, which are named `c0`, `c1`…, with the types."""
        items = ", ".join(f"{_cast(text, kind)} as {quote(name)}" for name, (text, kind) in columns.items())
        rows = self.run(f"select {items} from rows", {"rows": self.found.rows}).named()
        for number, (name, (_, kind)) in enumerate(columns.items()):
            if not isinstance(kind, PrimitiveType):
                target = type_of_text(type_name(to_arrow_type(kind)), of_column=True)
                rows = rows.set_column(
                    number, name, _cast_parts(rows.column(number), target, name, self.timezone)
                )
        return rows


def _cast(text: str, kind: DataType) -> str:
    return f"cast({text} as {sql_type(kind)})" if isinstance(kind, PrimitiveType) else text


def _cast_parts(column: pa.ChunkedArray[Any], target: Any, name: str, timezone: str) -> pa.ChunkedArray[Any]:
    """Return nested values of the type of a column, also those whose type SQL cannot cast to."""
    if not can_cast(column.type, target):
        found = f"from {type_name(column.type)} to {type_name(target)}"
        raise ExpressionError(f"INSERT: cannot cast the values of {name!r} {found}", column=name)
    try:
        chunks = [cast_values(each, target, strict=True, timezone=timezone) for each in column.chunks]
    except pa.ArrowInvalid as error:
        raise CastError(f"INSERT: the values of {name!r}: {error}", column=name) from error
    return pa.chunked_array(chunks, target)


@dataclass(frozen=True)
class _LocalSession:
    """The tables of a call of `sql`, by their names in lower case; see `Session`."""

    tables: Mapping[str, Any]
    timezone: str
    run: RunQuery
    is_dynamic = False

    def find(self, name: Sequence[str]) -> TableLocation | None:
        """Return the location of a table, None for another name; raises ExpressionError for rows."""
        if len(name) == 2 and name[0].lower() == "delta":
            return name[1]
        found = self.tables.get(name[0].lower()) if len(name) == 1 else None
        if found is None or isinstance(found, str | PathLike) or hasattr(found, "table_uri"):
            return found
        raise ExpressionError(f"cannot change `{name[0]}`: expected a table, got {type(found).__name__}")

    def place(self, name: Sequence[str], location: Callable[[], str | None]) -> TableLocation | None:
        """Return where a table is created: at LOCATION, or as for a table that exists."""
        return location() or self.find(name)

    def full_name(self, name: Sequence[str]) -> tuple[str, ...]:
        return tuple(name)

    def rows(self, query: str) -> _LocalRows:
        return _LocalRows(self.run(query, {}), self.run, self.timezone)
