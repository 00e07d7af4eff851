"""Rows of a query and their expressions, and queries of DuckDB over them.

DuckDB sees typed columns only: it joins, groups, sorts and numbers rows. No expression of a query reaches it,
but for those of `DirectRows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from os import getpid
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from .._arrow import retype_array
from ..errors import CastError, DeltaVariantError, ExpressionError
from ..expressions.char_padding import padded_column
from ..expressions.evaluate import inputs_of, without_cast
from ..expressions.tree import Expression, Input, Literal, describe, input_column, input_name, output_type
from ..expressions.types import kind_of
from ..log.snapshot import Snapshot
from ..read.query import DICTIONARY, Query, is_text_path
from ..read.scan import Scan
from ..read.scan_rows import TableRows
from ..read.scope import Scope
from ..variant.objects import is_variant
from ..views.duckdb import text_of
from .direct import DirectRows
from .functions import CONSTANT, Aggregate
from .syntax import SortKey

Batches = Iterator[pa.RecordBatch]
ROWS = "\0rows"


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Return an empty database of a process: to create one takes longer than many queries."""
    return duckdb.connect()


class Engine:
    """Runs queries of DuckDB. `is_careful` evaluates no cast for a row that a later condition may exclude."""

    def __init__(self, *, is_careful: bool = False) -> None:
        self.is_careful = is_careful
        self._failure: BaseException | None = None

    def run(self, sql: str, **relations: Computed) -> pa.Table:
        """Return the rows of a query of DuckDB over relations by name."""
        direct = {name: each.direct() for name, each in relations.items()}
        if any(direct.values()):
            # A value for which DuckDB has an error may have none in Spark, or another one.
            with suppress(DeltaVariantError):
                return self._run(sql, {name: direct[name] or each for name, each in relations.items()})
        return self._run(sql, relations)

    def _run(self, sql: str, relations: Mapping[str, Computed | DirectRows]) -> pa.Table:
        # Threads of a database do not survive a fork.
        cursor = _database(getpid()).cursor()
        try:
            for name, relation in relations.items():
                if isinstance(relation, DirectRows):
                    cursor.execute(f"create temp view {name} as {relation.sql(cursor)}")
                    continue
                schema, batches = relation.schema, relation.batches()
                plain = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])
                rows = pa.RecordBatchReader.from_batches(plain, self._guarded(batches, plain))
                cursor.register(name, rows)
            found: pa.Table = cursor.sql(sql).to_arrow_table()
            return found
        except (duckdb.Error, pa.ArrowException) as error:
            # DuckDB replaces an error of the rows by one of its own.
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure from None
            if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
                raise CastError(f"a result does not fit its type: {error}") from error
            raise DeltaVariantError(f"DuckDB cannot run this query: {error}") from error
        finally:
            cursor.close()

    def as_read(self, wanted: Sequence[Input]) -> Sequence[Input]:
        """Return inputs as a source reads them: a strict cast may be left to the evaluation."""
        return list(dict.fromkeys(map(without_cast, wanted) if self.is_careful else wanted))

    def _guarded(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Batches:
        try:
            for batch in batches:
                yield batch.cast(schema)
        except BaseException as failure:
            self._failure = failure
            raise


def _plain_type(arrow_type: Any) -> Any:
    """Return a type without the metadata of its fields, by which DuckDB would convert Variants."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in arrow_type])
    if pa.types.is_list(arrow_type):
        return pa.list_(_plain_type(arrow_type.value_type))
    if pa.types.is_map(arrow_type):
        return pa.map_(_plain_type(arrow_type.key_type), _plain_type(arrow_type.item_type))
    return arrow_type


class Source(ABC):
    """Rows with the columns of a scope, which are read as an expression needs them."""

    scope: Scope

    def read(
        self, outputs: Mapping[str, Expression], predicate: Expression | None, limit: int | None = None
    ) -> Batches:
        """Yield the values of bound expressions, for the rows for which the predicate is true."""
        query = Query.of_expressions(outputs, predicate)
        return head_of(map(query.result, self.rows(query.inputs)), limit)

    @abstractmethod
    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield all rows with some inputs of expressions, each under its `input_name`."""


def head_of(batches: Batches, limit: int | None) -> Batches:
    """Yield the first rows, all without a limit."""
    for batch in batches:
        yield batch if limit is None else batch.slice(0, limit)
        if limit is not None:
            limit -= min(limit, batch.num_rows)
            if not limit:
                return


class Relation(NamedTuple):
    """A source and the rows of it that a condition selects, bound to its columns."""

    source: Source
    where: Expression | None

    def read(self, outputs: Mapping[str, Expression], limit: int | None = None) -> Batches:
        return self.source.read(outputs, self.where, limit)


class Computed(NamedTuple):
    """The values of expressions that DuckDB gets, or reads itself from files."""

    schema: pa.Schema
    batches: Callable[[], Batches]
    direct: Callable[[], DirectRows | None]


def compute(relation: Relation, outputs: Mapping[str, Expression]) -> Computed:
    """Return the values of expressions for DuckDB, which have at least one column."""
    wanted = dict(outputs) or {"one": Literal(pa.scalar(True))}
    if isinstance(relation.source, TableSource):
        return relation.source.compute(wanted, relation.where)
    schema = Query.of_expressions(wanted, None).schema
    return Computed(schema, lambda: relation.read(wanted), lambda: None)


class TableSource(Source):
    """A version of a Delta table."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.scope = Scope.of_read(snapshot.configuration).with_file_column()

    def read(
        self, outputs: Mapping[str, Expression], predicate: Expression | None, limit: int | None = None
    ) -> Batches:
        """Yield the values of expressions; files and pages without matching rows are skipped."""
        return Scan(self._select(outputs, predicate), limit).to_batches()

    def compute(self, outputs: Mapping[str, Expression], predicate: Expression | None) -> Computed:
        """Return the values of expressions for DuckDB.

        The text at paths is dictionaries, by which DuckDB groups and joins faster.
        """
        texts = {name: DICTIONARY for name, each in outputs.items() if is_text_path(each)}
        plain = self._select(outputs, predicate)
        rows = plain.with_text_types(texts)
        return Computed(rows.schema, Scan(rows, None).to_batches, lambda: DirectRows.of(self.snapshot, plain))

    def _select(self, outputs: Mapping[str, Expression], predicate: Expression | None) -> TableRows:
        of_file = self.scope.of_file
        read = {name: of_file(each) for name, each in outputs.items()}
        query = Query.of_expressions(read, None if predicate is None else of_file(predicate))
        return TableRows.of(self.snapshot, query, "error")

    def rows(self, wanted: Sequence[Input]) -> Batches:
        return self.read({input_name(each): each for each in wanted}, None)


class StoredRows(Source):
    """Rows in memory, or those that a function computes when they are needed, from some of its columns."""

    def __init__(self, scope: Scope, load: Callable[[Collection[str]], Iterable[pa.RecordBatch]]) -> None:
        self.scope = scope
        self.load = load

    def rows(self, wanted: Sequence[Input]) -> Batches:
        names = set(map(input_column, wanted))
        # The evaluation casts, after rows are excluded.
        uncast = list(dict.fromkeys(map(without_cast, wanted)))
        return (inputs_of(batch, uncast) for batch in self.load(names))


def scope_of(columns: Mapping[str, Expression], scope: Scope) -> Scope:
    """Return a scope with a column for each bound expression over another scope."""
    schema = Query.of_expressions(columns, None).schema
    chars = {
        name: scope.chars[column]
        for name, each in columns.items()
        if (column := padded_column(each)) is not None and column in scope.chars
    }
    return of_schema(schema, scope, chars)


def of_schema(schema: pa.Schema, like: Scope, chars: Mapping[str, Any] | None = None) -> Scope:
    """Return a scope with the columns of a schema, and the time zone and moment of another one."""
    variants = tuple(field.name for field in schema if is_variant(field))
    return Scope(schema, variants, like.timezone, like.moment, chars or {})


def order_by(names: Sequence[str], keys: Sequence[SortKey]) -> str:
    if not keys:
        return ""
    parts = (
        f"{name} {'desc' if key.descending else 'asc'} nulls {'first' if key.nulls_first else 'last'}"
        for name, key in zip(names, keys, strict=True)
    )
    return f"order by {', '.join(parts)}"


def check_keys(keys: Iterable[Expression], clause: str) -> None:
    """Raise ExpressionError for a key that Spark cannot compare, or that DuckDB compares in another way."""
    for key in keys:
        arrow_type = output_type(key)
        if arrow_type is None or kind_of(arrow_type) == "nested" or pa.types.is_decimal256(arrow_type):
            kind = "a Variant" if arrow_type is None else f"of type {arrow_type}"
            raise ExpressionError(f"{clause}: `{describe(key)}` is {kind}, which cannot be compared: cast it")


def select_list(selected: Mapping[str, Sequence[str]]) -> str:
    """Return the items of SELECT, at least one."""
    return ", ".join(part for parts in selected.values() for part in parts) or "1"


class Columns:
    """Columns that DuckDB gets, each under a short name: those that are equal are one."""

    def __init__(self, prefix: str) -> None:
        self.values: dict[str, Expression] = {}
        self._prefix = prefix
        self._numbers = count()

    def add(self, value: Expression) -> str:
        """Return the name of a column."""
        for name, known in self.values.items():
            if known == value:
                return name
        name = f"{self._prefix}{next(self._numbers)}"
        self.values[name] = value
        return name

    def key(self, value: Expression) -> str:
        """Return the SQL of a column by which rows are compared: -0.0 is 0.0."""
        name = self.add(value)
        arrow_type = output_type(value)
        return f"{name} + 0" if arrow_type is not None and kind_of(arrow_type) == "floating" else name

    def argument(self, value: Expression, parameter: str) -> str:
        """Return the SQL of an argument: a name, or a constant where DuckDB requires one."""
        if parameter not in CONSTANT or not isinstance(value, Literal):
            return self.add(value)
        constant = value.value.as_py()
        return text_of(constant) if isinstance(constant, str) else str(constant)

    def keys(self, call: Aggregate) -> list[str]:
        """Return the SQL of the arguments of a function, which are keys of groups."""
        return list(map(self.key, call.arguments))

    def arguments(self, call: Aggregate) -> list[str]:
        """Return the SQL of the arguments of a function."""
        pairs = zip(call.arguments, call.rule.parameters, strict=False)
        return [self.argument(value, parameter) for value, parameter in pairs]


def finish(
    found: pa.Table, selected: Mapping[str, Sequence[str]], calls: Mapping[str, Aggregate], schema: pa.Schema
) -> Batches:
    """Yield the columns of DuckDB under their names and with their types."""
    fields = [schema.field(name) for name in selected]
    for batch in found.to_batches():
        columns, arrays = iter(batch.columns), []
        for field in fields:
            values: Any = next(columns)
            finish = calls[field.name].finish if field.name in calls else None
            if finish is not None:
                values = finish(values, next(columns), field.type)
            arrays.append(typed(values, field.type))
        rows = [] if arrays else [pa.nulls(batch.num_rows)]
        yield pa.record_batch(arrays or rows, schema=pa.schema(fields or [pa.field(ROWS, pa.null())]))


def typed(array: Any, arrow_type: Any) -> Any:
    """Return values with another type: of nested ones, only names, metadata and nullability differ."""
    if array.type == arrow_type:
        return array
    return retype_array(array, arrow_type) if pa.types.is_nested(arrow_type) else array.cast(arrow_type)
