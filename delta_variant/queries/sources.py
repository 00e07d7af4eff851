"""The sources of rows in a query. Each evaluates expressions over its columns, and computes rows by DuckDB.

DuckDB sees typed columns only: it joins, groups, sorts and numbers rows. No expression of a query reaches it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from os import getpid
from typing import Any, NamedTuple
from typing import Literal as OneOf

import duckdb
import msgspec
import pyarrow as pa

from .._arrow import retype_array
from ..errors import CastError, DeltaVariantError, ExpressionError
from ..expressions.char_padding import padded_column
from ..expressions.evaluate import inputs_of, without_cast
from ..expressions.tree import (
    Call,
    Expression,
    Extraction,
    Input,
    Literal,
    conjunction,
    conjuncts,
    describe,
    input_name,
    inputs,
    output_type,
    transform,
)
from ..expressions.tree import Column as ColumnInput
from ..expressions.types import kind_of
from ..log.snapshot import Snapshot
from ..protocol.schema.arrow import variant_field
from ..read.query import Query
from ..read.scan import Scan
from ..read.scan_rows import TableRows
from ..read.scope import Scope
from ..variant.functions import variant_explode, variant_explode_outer
from ..variant.objects import is_variant
from .functions import Aggregate
from .syntax import JoinKind

__all__ = [
    "Engine",
    "Exploded",
    "Grouped",
    "Joined",
    "Key",
    "Numbered",
    "Relation",
    "Source",
    "StoredRows",
    "TableSource",
    "WindowColumn",
    "compute",
]

Batches = Iterator[pa.RecordBatch]
ROWS = "\0rows"
PARTS = pa.struct([pa.field("pos", pa.int32()), pa.field("key", pa.string()), variant_field("value")])
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
OPERATORS = {"=": "=", "<>": "<>", "<=>": "is not distinct from", **{each: each for each in SWAPPED}}


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Return an empty database of a process: to create one takes longer than many queries."""
    return duckdb.connect()


class Engine:
    """Runs queries of DuckDB. `is_careful` evaluates no cast for a row that a later condition may exclude."""

    def __init__(self, *, is_careful: bool = False) -> None:
        self.is_careful = is_careful
        self._failure: BaseException | None = None

    def run(self, sql: str, **relations: tuple[pa.Schema, Iterable[pa.RecordBatch]]) -> pa.Table:
        """Return the rows of a query of DuckDB over batches by name."""
        # Threads of a database do not survive a fork.
        cursor = _database(getpid()).cursor()
        try:
            for name, (schema, batches) in relations.items():
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
        return _head(map(query.result, self.rows(query.inputs)), limit)

    @abstractmethod
    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield all rows with some inputs of expressions, each under its `input_name`."""


def _head(batches: Batches, limit: int | None) -> Batches:
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
        """Yield the values of bound expressions."""
        return self.source.read(outputs, self.where, limit)


def compute(relation: Relation, outputs: Mapping[str, Expression]) -> tuple[pa.Schema, Batches]:
    """Return the schema and the values of expressions, which have at least one column."""
    wanted = dict(outputs) or {"one": Literal(pa.scalar(True))}
    return Query.of_expressions(wanted, None).schema, relation.read(wanted)


class TableSource(Source):
    """A version of a Delta table."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.scope = Scope.of_read(snapshot.configuration)

    def read(
        self, outputs: Mapping[str, Expression], predicate: Expression | None, limit: int | None = None
    ) -> Batches:
        """Yield the values of expressions; files and pages without matching rows are skipped."""
        query = Query.of_expressions(outputs, predicate)
        return Scan(TableRows.of(self.snapshot, query, "error"), limit).to_batches()

    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield all rows; see `Source.rows`."""
        return self.read({input_name(each): each for each in wanted}, None)


class StoredRows(Source):
    """Rows in memory, or those that a function computes when they are needed, from some of its columns."""

    def __init__(self, scope: Scope, load: Callable[[Collection[str]], Iterable[pa.RecordBatch]]) -> None:
        self.scope = scope
        self.load = load

    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield all rows; see `Source.rows`."""
        names = {each.name if isinstance(each, ColumnInput) else each.column for each in wanted}
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


class Key(NamedTuple):
    """A key of an order."""

    value: Expression
    descending: bool
    nulls_first: bool


def _order(names: Sequence[str], keys: Sequence[Key]) -> str:
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


def _list(selected: Mapping[str, Sequence[str]]) -> str:
    """Return the items of SELECT, at least one."""
    return ", ".join(part for parts in selected.values() for part in parts) or "1"


class _Columns:
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
        is_constant = parameter in ("integer", "fraction") and isinstance(value, Literal)
        return str(value.value.as_py()) if is_constant and isinstance(value, Literal) else self.add(value)

    def arguments(self, call: Aggregate) -> list[str]:
        """Return the SQL of the arguments of a function."""
        pairs = zip(call.arguments, call.rule.parameters, strict=False)
        return [self.argument(value, parameter) for value, parameter in pairs]


class GroupColumn(NamedTuple):
    """An aggregate of the rows of a group for which `where` is true."""

    call: Aggregate
    where: Expression | None


class Grouped(StoredRows):
    """The groups of rows with equal keys, with aggregates; without keys, one group of all rows."""

    def __init__(
        self,
        engine: Engine,
        rows: Relation,
        keys: Mapping[str, Expression],
        aggregates: Mapping[str, GroupColumn],
    ) -> None:
        check_keys(keys.values(), "group by")
        self.engine, self.child, self.keys, self.aggregates = engine, rows, keys, aggregates
        of_keys = scope_of(keys, rows.source.scope)
        fields = [*of_keys.schema, *(pa.field(name, each.call.type) for name, each in aggregates.items())]
        super().__init__(of_schema(pa.schema(fields), of_keys, of_keys.chars), self._load)

    def _load(self, names: Collection[str]) -> Iterable[pa.RecordBatch]:
        columns = _Columns("c")
        selected = {name: [columns.key(key)] for name, key in self.keys.items()}
        groups = [str(number) for number, _ in enumerate(selected, 1)]
        used = {name: each for name, each in self.aggregates.items() if name in names}
        for name, each in used.items():
            where = None if each.where is None else columns.add(each.where)
            selected[name] = each.call.columns(columns.arguments(each.call), where, "")
        text = f"select {_list(selected) if selected else 'count(*)'} from r"
        if groups:
            text += f" group by {', '.join(groups)}"
        found = self.engine.run(text, r=compute(self.child, columns.values))
        return _finish(found, selected, {name: each.call for name, each in used.items()}, self.scope.schema)


def _finish(
    found: pa.Table,
    selected: Mapping[str, Sequence[str]],
    calls: Mapping[str, Aggregate],
    schema: pa.Schema,
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
            arrays.append(_typed(values, field.type))
        rows = [] if arrays else [pa.nulls(batch.num_rows)]
        yield pa.record_batch(arrays or rows, schema=pa.schema(fields or [pa.field(ROWS, pa.null())]))


def _typed(array: Any, arrow_type: Any) -> Any:
    """Return values with another type: of nested ones, only names, metadata and nullability differ."""
    if array.type == arrow_type:
        return array
    return retype_array(array, arrow_type) if pa.types.is_nested(arrow_type) else array.cast(arrow_type)


class WindowColumn(NamedTuple):
    """A function over the rows of a window."""

    call: Aggregate
    where: Expression | None
    partition: tuple[Expression, ...]
    order: tuple[Key, ...]
    frame: str | None


class Numbered(Source):
    """Rows with the values of window functions in addition."""

    def __init__(self, engine: Engine, rows: Relation, windows: Mapping[str, WindowColumn]) -> None:
        for each in windows.values():
            check_keys((*each.partition, *(key.value for key in each.order)), "over")
        self.engine, self.child, self.windows = engine, rows, windows
        known = rows.source.scope
        fields = [*known.schema, *(pa.field(name, each.call.type) for name, each in windows.items())]
        self.scope = msgspec.structs.replace(known, schema=pa.schema(fields))

    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield all rows; see `Source.rows`."""
        columns, selected, calls = _Columns("c"), {}, {}
        read = self.engine.as_read(wanted)
        for each in read:
            name = input_name(each)
            window = self.windows.get(name) if isinstance(each, ColumnInput) else None
            if window is not None:
                calls[name] = window.call
            selected[name] = [columns.add(each)] if window is None else self._sql(window, columns)
        found = self.engine.run(f"select {_list(selected)} from r", r=compute(self.child, columns.values))
        schema = Query.of_expressions({input_name(each): each for each in read}, None).schema
        return _finish(found, selected, calls, schema)

    def _sql(self, window: WindowColumn, columns: _Columns) -> list[str]:
        where = None if window.where is None else columns.add(window.where)
        partition = [columns.key(each) for each in window.partition]
        order = _order([columns.key(each.value) for each in window.order], window.order)
        by = f"partition by {', '.join(partition)}" if partition else ""
        over = f" over ({' '.join(each for each in (by, order, window.frame) if each)})"
        return window.call.columns(columns.arguments(window.call), where, over)


class Sorted(StoredRows):
    """The values of expressions: distinct or not, in an order, and some of them."""

    def __init__(
        self,
        engine: Engine,
        rows: Relation,
        columns: Mapping[str, Expression],
        order: Sequence[Key],
        bounds: tuple[int | None, int] = (None, 0),
        *,
        distinct: bool = False,
    ) -> None:
        check_keys((key.value for key in order), "order by")
        if distinct:
            check_keys(columns.values(), "distinct")
        self.engine, self.child, self.columns, self.order = engine, rows, columns, order
        self.limit, self.offset = bounds
        self.distinct = distinct
        super().__init__(scope_of(columns, rows.source.scope), self._load)

    def _load(self, names: Collection[str]) -> Iterable[pa.RecordBatch]:
        wanted = {name: each for name, each in self.columns.items() if self.distinct or name in names}
        if not self.distinct and not self.order:
            return self._some(wanted)
        columns = _Columns("c")
        add = columns.key if self.distinct else columns.add
        selected = {name: [add(each)] for name, each in wanted.items()}
        keys = [columns.key(each.value) for each in self.order]
        distinct = "distinct " if self.distinct else ""
        text = f"select {distinct}{_list(selected)} from r {_order(keys, self.order)}"
        if self.limit is not None:
            text += f" limit {self.limit}"
        if self.offset:
            text += f" offset {self.offset}"
        found = self.engine.run(text, r=compute(self.child, columns.values))
        return _finish(found, selected, {}, self.scope.schema)

    def _some(self, wanted: Mapping[str, Expression]) -> Iterator[pa.RecordBatch]:
        """Yield rows in any order, and read no more than needed."""
        skipped, limit = self.offset, self.limit
        for batch in self.child.read(
            dict(wanted) or {ROWS: Literal(pa.scalar(True))}, None if limit is None else limit + skipped
        ):
            yield batch.slice(skipped)
            skipped -= min(skipped, batch.num_rows)


class Combined(StoredRows):
    """The rows of two relations: a union, an intersection or a difference."""

    def __init__(
        self,
        engine: Engine,
        sides: Sequence[tuple[Relation, Mapping[str, Expression]]],
        kind: OneOf["union", "intersect", "except"],
        *,
        is_all: bool,
    ) -> None:
        if not is_all:
            for _, columns in sides:
                check_keys(columns.values(), kind)
        self.engine, self.sides, self.kind, self.is_all = engine, sides, kind, is_all
        relation, columns = sides[0]
        super().__init__(scope_of(columns, relation.source.scope), self._load)

    def _load(self, names: Collection[str]) -> Iterable[pa.RecordBatch]:
        schema = self.scope.schema
        if self.is_all:
            return self._all(names)
        selected, relations = {}, {}
        for number, (relation, outputs) in enumerate(self.sides):
            columns = _Columns("c")
            keys = [columns.key(each) for each in outputs.values()]
            selected[f"s{number}"] = f"select {', '.join(keys)} from s{number}"
            relations[f"s{number}"] = compute(relation, columns.values)
        found = self.engine.run(f" {self.kind} ".join(selected.values()), **relations)
        return _finish(found, {name: [name] for name in schema.names}, {}, schema)

    def _all(self, names: Collection[str]) -> Iterator[pa.RecordBatch]:
        fields = [field for field in self.scope.schema if field.name in names]
        schema = pa.schema(fields or [pa.field(ROWS, pa.bool_())])
        for relation, outputs in self.sides:
            by_position = dict(zip(self.scope.schema.names, outputs.values(), strict=True))
            wanted = {field.name: by_position[field.name] for field in fields}
            for batch in relation.read(wanted or {ROWS: Literal(pa.scalar(True))}):
                arrays = [_typed(batch.column(field.name), field.type) for field in schema]
                yield pa.record_batch(arrays, schema=schema)


class Exploded(Source):
    """The rows of a relation with the parts of a Variant of each, as a column of structs."""

    def __init__(self, rows: Relation, name: str, variants: Expression, *, outer: bool) -> None:
        if output_type(variants) is not None:
            raise ExpressionError(f"lateral: expected a Variant, got `{describe(variants)}`")
        self.child, self.name, self.variants = rows, name, variants
        self.explode = variant_explode_outer if outer else variant_explode
        known = rows.source.scope
        self.scope = msgspec.structs.replace(known, schema=known.schema.append(pa.field(name, PARTS)))

    def read(
        self, outputs: Mapping[str, Expression], predicate: Expression | None, limit: int | None = None
    ) -> Batches:
        """Yield the values of expressions; conditions without the parts select rows first."""
        parts = [each for each in conjuncts(predicate) if any(map(self._is_of_parts, inputs([each])))]
        before = [each for each in conjuncts(predicate) if each not in parts]
        if not before:
            return super().read(outputs, predicate, limit)
        child = Relation(self.child.source, conjunction(self.child.where, *before))
        narrowed = Exploded(child, self.name, self.variants, outer=self.explode is variant_explode_outer)
        return narrowed.read(outputs, conjunction(*parts), limit)

    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield all rows; see `Source.rows`."""
        uncast = list(dict.fromkeys(map(without_cast, wanted)))
        of_parts = [each for each in uncast if self._is_of_parts(each)]
        passed = {input_name(each): each for each in uncast if each not in of_parts}
        for batch in self.child.read({**passed, ROWS: self.variants}):
            found = self.explode(batch.column(ROWS)).combine_chunks()
            columns = [found[field.name].combine_chunks() for field in PARTS]
            structs = pa.StructArray.from_arrays(columns, fields=list(PARTS))
            read = inputs_of(pa.record_batch([structs], names=[self.name]), of_parts)
            rows = batch.take(found["row"].combine_chunks())
            for each in of_parts:
                rows = rows.append_column(input_name(each), read.column(input_name(each)))
            yield rows

    def _is_of_parts(self, source: Input) -> bool:
        return (source.name if isinstance(source, ColumnInput) else source.column) == self.name


class Side(NamedTuple):
    """A side of a join: its rows, and its columns by their names in the join."""

    rows: Relation
    names: Mapping[str, str]


class Joined(Source):
    """The rows of two relations for which a condition is true. A column has a name of its own in the join."""

    def __init__(
        self,
        engine: Engine,
        kind: JoinKind,
        left: Side,
        right: Side,
        on: Callable[[Scope], Expression | None],
    ) -> None:
        self.engine, self.kind, self.sides = engine, kind, (left, right)
        schema, variants, chars = [], [], {}
        for side in self.sides:
            scope = side.rows.source.scope
            for name, stored in side.names.items():
                schema.append(scope.schema.field(stored).with_name(name).with_nullable(True))
                variants += [name] if stored in scope.variant_names else []
                chars.update({name: scope.chars[stored]} if stored in scope.chars else {})
        known = left.rows.source.scope
        self.scope = Scope(pa.schema(schema), tuple(variants), known.timezone, known.moment, chars)
        self.on = on(self.scope)

    def read(
        self, outputs: Mapping[str, Expression], predicate: Expression | None, limit: int | None = None
    ) -> Batches:
        """Yield the values of expressions; conditions on the rows of one side select them first."""
        plan = _JoinPlan(self, predicate)
        query = Query.of_expressions(outputs, conjunction(*plan.after))
        return _head(map(query.result, plan.rows(query.inputs)), limit)

    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield all rows; see `Source.rows`."""
        return _JoinPlan(self, None).rows(wanted)

    def sides_of(self, expression: Expression) -> set[int]:
        """Return the sides whose columns an expression reads."""
        names = (each.name if isinstance(each, ColumnInput) else each.column for each in inputs([expression]))
        return {0 if name in self.sides[0].names else 1 for name in names}

    def of_side(self, side: int, expression: Expression) -> Expression:
        """Return an expression over the columns of one side."""
        names = self.sides[side].names

        def change(node: Expression) -> Expression | None:
            if isinstance(node, ColumnInput):
                return msgspec.structs.replace(node, name=names[node.name])
            if isinstance(node, Extraction):
                return msgspec.structs.replace(node, column=names[node.column])
            return None

        return transform(expression, change)


class _JoinPlan:
    """The conditions of a join by where they apply: to rows of a side, to pairs in DuckDB, or to its rows."""

    def __init__(self, join: Joined, predicate: Expression | None) -> None:
        self.join = join
        self.columns = (_Columns("l"), _Columns("r"))
        self.before: tuple[list[Expression], list[Expression]] = ([], [])
        self.pairs: list[str] = []
        self.after: list[Expression] = []
        for each in conjuncts(join.on):
            self._place(each)
        for each in conjuncts(predicate):
            self._select(each)

    @property
    def kept(self) -> set[int]:
        """The sides whose rows a join keeps without a match."""
        return {"left": {0}, "anti": {0}, "right": {1}, "full": {0, 1}}.get(self.join.kind, set())

    def _select(self, condition: Expression) -> None:
        """Place a condition on the rows of the join."""
        if self.join.engine.is_careful:
            self.after.append(condition)
        elif self.join.kind == "inner":
            self._place(condition)
        else:
            (side,) = sides if len(sides := self.join.sides_of(condition)) == 1 else (None,)
            # Rows of the other side are NULL without a match.
            is_before = side is not None and self.kept | {side} == {side} and self.join.kind != "full"
            is_before = is_before and (side in self.kept or self.join.kind == "semi")
            if is_before and side is not None:
                self.before[side].append(self.join.of_side(side, condition))
            else:
                self.after.append(condition)

    def _place(self, condition: Expression) -> None:
        """Place a condition on pairs of rows."""
        sides = self.join.sides_of(condition)
        if len(sides) < 2:
            side = next(iter(sides), 0)
            of_side = self.join.of_side(side, condition)
            if side in self.kept:
                self.pairs.append(self.columns[side].add(of_side))
            else:
                self.before[side].append(of_side)
        elif (pair := self._comparison(condition)) is not None:
            self.pairs.append(pair)
        elif self.join.kind == "inner":
            self.after.append(condition)
        else:
            raise ExpressionError(
                f"on: `{describe(condition)}` is not supported in a {self.join.kind} join, whose conditions "
                "are on one table or compare an expression of one with an expression of the other"
            )

    def _comparison(self, condition: Expression) -> str | None:
        if not isinstance(condition, Call) or condition.function not in OPERATORS:
            return None
        left, right = condition.arguments
        sides = [self.join.sides_of(left), self.join.sides_of(right)]
        if sides == [{1}, {0}]:
            left, right = right, left
            function = SWAPPED.get(condition.function, condition.function)
        elif sides == [{0}, {1}]:
            function = condition.function
        else:
            return None
        return f"{self._column(0, left)} {OPERATORS[function]} {self._column(1, right)}"

    def _column(self, side: int, expression: Expression) -> str:
        return self.columns[side].add(self.join.of_side(side, expression))

    def rows(self, wanted: Sequence[Input]) -> Batches:
        """Yield the rows of the join with some inputs of expressions, each under its `input_name`."""
        join, selected = self.join, {}
        read = join.engine.as_read(wanted)
        for each in read:
            (number,) = join.sides_of(each)
            selected[input_name(each)] = [self._column(number, each)]
        text = f"select {_list(selected)} from l {join.kind} join r on {' and '.join(self.pairs) or 'true'}"
        relations = {}
        for name, side, before, columns in zip("lr", join.sides, self.before, self.columns, strict=True):
            rows = Relation(side.rows.source, conjunction(side.rows.where, *before))
            relations[name] = compute(rows, columns.values)
        found = join.engine.run(text, **relations)
        schema = Query.of_expressions({input_name(each): each for each in read}, None).schema
        return _finish(found, selected, {}, schema)
