"""Queries of tables, Arrow data and data frames in the SQL of Spark and Databricks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import msgspec
import pyarrow as pa

from .._checks import check_installed, check_mapping, list_names
from .._html import MAX_ROWS
from ..errors import ArgumentTypeError, CastError, ExpressionError, printable
from ..expressions.tree import Literal
from ..input.arrow_data import batches_of
from ..input.invalid_json import parse_json_columns
from ..log.snapshot import Snapshot
from ..protocol.schema.arrow import from_arrow, to_arrow
from ..protocol.types import StructType
from ..read.query import Query
from ..read.rows import load_readable
from ..read.scan import Rows
from ..read.scope import Scope
from ..variant.moments import UTC
from .parse import parse_statement
from .syntax import Marked, Statement, TableName

__all__ = ["QueryResult", "query_tables", "sql"]


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
    """Return the rows of a query in the SQL of Spark and Databricks; needs DuckDB, the extra `sql`.

    Expressions, casts and types are those of `read_table`, which are Spark's in ANSI mode. Scans read the
    columns and the Variant paths that the query needs, and skip files by its conditions. DuckDB joins,
    groups, sorts and numbers the rows. A construct or a function that would mean something else than in Spark
    is an error.

    Args:
        query: A SELECT with joins, GROUP BY, HAVING, windows, QUALIFY, ORDER BY, LIMIT, subqueries, common
            table expressions, UNION, INTERSECT, EXCEPT and `lateral variant_explode`. A table is a name
            from `tables` or a path in backquotes after `delta.`, and `version as of` or `timestamp as of`
            selects an earlier version.
        parameters: The values of `:name` in the query, as Python objects. None by default.
        timezone: The time zone of local times, such as `"Europe/Berlin"`. `"UTC"` by default.
        **tables: The tables by their names in the query: a path, a URI, a `Table`, a `Snapshot`, or rows as
            Arrow data, a data frame of pandas or Polars, or a list of dicts.

    Returns:
        A `QueryResult` with the rows, which can be converted as those of a `Scan`. A column without a name
        has the text of its expression as its name.

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
    literals = {name: _literal(name, value) for name, value in (parameters or {}).items()}
    statement, marked = parse_statement(query, literals)
    opened = _Tables(tables, Scope.of_columns(StructType(()), timezone), way)
    try:
        return _run(statement, marked, opened, is_careful=False)
    except CastError:
        # Usually no row fails, and casting while files are read is faster.
        return _run(statement, marked, opened, is_careful=True)
    except RecursionError:
        raise ExpressionError("the query is nested too deeply: split it") from None


def _run(statement: Statement, marked: list[Marked], tables: _Tables, *, is_careful: bool) -> QueryResult:
    # Imported here because DuckDB is an extra.
    from .planning import Planner
    from .relations import Engine

    view = Planner(Engine(is_careful=is_careful), tables.scope, tables.open, marked).plan(statement)
    outputs = view.outputs()
    schema = Query.of_expressions(outputs, None).schema
    return QueryResult(pa.Table.from_batches(view.rows.read(outputs), schema))


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


class _Tables:
    """The tables of a query by name, each opened once, so that all parts of the query see one version."""

    def __init__(self, tables: Mapping[str, Any], scope: Scope, way: str) -> None:
        self.tables = {name.lower(): table for name, table in tables.items()}
        self.names = list(tables)
        self.scope = scope
        self.way = way
        self._opened: dict[Any, Any] = {}

    def open(self, name: TableName) -> Any:
        """Return the source of the rows of a table; raises ExpressionError for an unknown name."""
        from .relations import StoredRows, TableSource

        key = (name.parts, name.version, name.timestamp)
        if key not in self._opened:
            location = self._find(name)
            is_table = isinstance(location, str | PathLike | Snapshot) or hasattr(location, "table_uri")
            if is_table:
                self._opened[key] = load_readable(location, name.version, name.timestamp)
            elif name.version is not None or name.timestamp is not None:
                raise ExpressionError(f"`{'.'.join(name.parts)}` is not a Delta table, which has versions")
            else:
                self._opened[key] = self._stored(name.parts[-1], location)
        found = self._opened[key]
        if isinstance(found, Snapshot):
            return TableSource(found.in_timezone(self.scope.timezone))
        scope, batches = found
        return StoredRows(scope, lambda names: batches)

    def _find(self, name: TableName) -> Any:
        if len(name.parts) == 2 and name.parts[0].lower() == "delta":
            return name.parts[1]
        found = self.tables.get(name.parts[0].lower()) if len(name.parts) == 1 else None
        if found is None:
            known = list_names(self.names, name.parts[-1])
            raise ExpressionError(
                f"unknown table `{'.'.join(name.parts)}`: {self.way}, or write its path as delta.`path`"
                f"{known and '; the tables are '}{known}"
            )
        return found

    def _stored(self, name: str, data: Any) -> tuple[Scope, list[pa.RecordBatch]]:
        schema, batches = batches_of(data, f"the table {name!r}")
        columns = from_arrow(schema)
        read = [parse_json_columns(batch, columns) for batch in batches]
        target = to_arrow(columns)
        table = pa.Table.from_batches(read) if read else target.empty_table()
        scope = msgspec.structs.replace(
            Scope.of_columns(columns, self.scope.timezone), moment=self.scope.moment
        )
        return scope, table.cast(target).to_batches()
