"""Plan a query: its SELECTs, VALUES and set operations, and the order of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.coercion import common_type
from ..expressions.tree import Cast, Name, output_type
from ..expressions.types import type_name
from ..read.scope import Scope
from .from_clause import FromClause, common_tables
from .relations import Engine, Source, StoredRows, of_schema
from .resolving import Context, Resolver
from .selects import SelectPlanner, by_number, keys_of, sort
from .sources import Combined
from .syntax import Body, Marked, Select, SetOperation, SortKey, Statement, TableName, Values
from .views import View, ViewColumn


class Planner:
    """Plans a query over tables by name."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope,
        open_table: Callable[[TableName], Source],
        marked: Sequence[Marked],
    ) -> None:
        self.context = Context(engine, scope, open_table, marked, self.plan, [])

    def plan(self, statement: Statement, outer: Mapping[str, View]) -> View:
        """Return the view of a query; `outer` has the common table expressions around it."""
        tables = common_tables(self.context, statement, outer)
        if isinstance(statement.body, Select):
            return SelectPlanner(self.context, statement, statement.body, tables).plan()
        view = self._body(statement.body, tables)
        order = [self._key(each, view) for each in keys_of(statement.order, len(view.columns))]
        return sort(self.context.engine, view, order, statement)

    def _body(self, body: Body, tables: Mapping[str, View]) -> View:
        if isinstance(body, SetOperation):
            return self._combine(body, tables)
        if isinstance(body, Values):
            return self._constants(body)
        return self.plan(body if isinstance(body, Statement) else Statement((), body, (), None, 0), tables)

    def _key(self, key: SortKey, view: View) -> SortKey:
        """Return a key of an order over the columns of a view."""
        column = by_number(key.value, view.columns, "order by")
        value = Resolver(self.context, view, {}).resolve(key.value) if column is None else column.value
        return msgspec.structs.replace(key, value=value)

    def _constants(self, values: Values) -> View:
        """Return the rows of VALUES, in memory."""
        nothing = FromClause(self.context, {}).view(None)
        resolver = Resolver(self.context, nothing, {})
        rows = [[resolver.resolve(each) for each in row] for row in values.rows]
        if len({*map(len, rows)}) > 1:
            raise ExpressionError("values: expected rows of as many values")
        types = [[output_type(nothing.bind(each)) for each in column] for column in zip(*rows, strict=True)]
        targets = [_common_type("values", column) for column in types]
        batches: list[pa.RecordBatch] = []
        for row in rows:
            cells = (Cast(each, target, True) for each, target in zip(row, targets, strict=True))
            bound = {f"{number}": nothing.bind(each) for number, each in enumerate(cells)}
            batches.extend(nothing.rows.read(bound))
        scope = of_schema(batches[0].schema, self.context.scope)
        names = [f"{number}" for number in range(len(targets))]
        columns = (ViewColumn((), f"col{int(name) + 1}", Name((name,))) for name in names)
        return View(StoredRows(scope, lambda names: batches), tuple(columns))

    def _combine(self, operation: SetOperation, tables: Mapping[str, View]) -> View:
        views = [self._body(operation.left, tables), self._body(operation.right, tables)]
        left, right = views
        if len(left.columns) != len(right.columns):
            raise ExpressionError(
                f"{operation.kind}: expected queries of as many columns, got {len(left.columns)} and "
                f"{len(right.columns)}"
            )
        bound = [[view.bind(each.value) for each in view.columns] for view in views]
        pairs = zip(*bound, strict=True)
        targets = [_common_type(operation.kind, [output_type(each) for each in pair]) for pair in pairs]
        sides = []
        for view in views:
            pairs_of_view = zip(view.columns, targets, strict=True)
            values = (Cast(each.value, target, True) for each, target in pairs_of_view)
            columns = {f"{number}": view.bind(each) for number, each in enumerate(values)}
            sides.append((view.rows, columns))
        source = Combined(self.context.engine, sides, operation.kind, is_all=operation.is_all)
        new = (ViewColumn((), each.name, Name((f"{number}",))) for number, each in enumerate(left.columns))
        return View(source, tuple(new))


def _common_type(kind: str, types: Sequence[pa.DataType | None]) -> pa.DataType | None:
    """Return the type of the values of a column, None for Variants; NULL is of every type."""
    known = [each for each in types if each is None or not pa.types.is_null(each)]
    return reduce(partial(_united, kind), known) if known else pa.null()


def _united(kind: str, left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:
    if left is None and right is None:
        return None
    # VALUES does not cast text, as in Spark.
    is_rejected = kind == "values" and pa.string() in (left, right) and left != right
    if left is not None and right is not None and not is_rejected:
        found = common_type(left, right)
        if found is not None and not pa.types.is_decimal256(found):
            return found
    raise ExpressionError(
        f"{kind}: cannot combine a column of type {type_name(left)} with one of type {type_name(right)}: "
        "cast one of them"
    )
