"""Plan a query: resolve its names, and arrange its clauses as sources of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import count
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.bind import called_without_parentheses
from ..expressions.coercion import common_type
from ..expressions.tree import (
    Call,
    Cast,
    Expression,
    Literal,
    Name,
    Path,
    conjuncts,
    describe,
    output_type,
    transform,
    walk,
)
from ..expressions.types import type_name
from ..read.query import Query
from ..read.scope import Scope
from .functions import AGGREGATES, bind_aggregate
from .joins import Joined, Side
from .relations import Engine, Key, StoredRows, of_schema
from .relations import Source as RowSource
from .sources import Combined, Exploded, GroupColumn, Grouped, Numbered, Sorted, WindowColumn
from .syntax import (
    AggregateCall,
    Body,
    Derived,
    Explode,
    Item,
    Join,
    JoinKind,
    Marked,
    Select,
    SetOperation,
    SortKey,
    Source,
    Statement,
    Subquery,
    TableName,
    Values,
    WindowCall,
    marked_number,
)
from .views import View, ViewColumn, all_of, column_of, ends_with

AGGREGATE, WINDOW = "\0aggregate", "\0window"


class Collected(NamedTuple):
    """The aggregates and the windows of a SELECT, each with its resolved arguments."""

    aggregates: list[AggregateCall]
    windows: list[WindowCall]


class Planner:
    """Plans a query over tables by name."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope,
        open_table: Callable[[TableName], RowSource],
        marked: Sequence[Marked],
    ) -> None:
        self.engine, self.scope, self.open_table, self.marked = engine, scope, open_table, marked

    def plan(self, statement: Statement, outer: Mapping[str, View] | None = None) -> View:
        """Return the view of a query; `outer` has the common table expressions around it."""
        tables = self.common_tables(statement, outer or {})
        if isinstance(statement.body, Select):
            return _SelectPlanner(self, statement, statement.body, tables).plan()
        view = self._body(statement.body, tables)
        order = [self._key_of_output(each, view) for each in statement.order]
        return self.sort(view, order, statement)

    def common_tables(self, statement: Statement, outer: Mapping[str, View]) -> Mapping[str, View]:
        """Return the common table expressions that a query can use, by name."""
        tables = dict(outer)
        for each in statement.tables:
            view = self.plan(each.statement, tables).named(None, each.columns)
            tables[(each.alias or "").lower()] = view
        return tables

    def _body(self, body: Body, tables: Mapping[str, View]) -> View:
        if isinstance(body, SetOperation):
            return self._combine(body, tables)
        if isinstance(body, Values):
            return self._constants(body)
        return self.plan(body if isinstance(body, Statement) else Statement((), body, (), None, 0), tables)

    def sort(
        self, view: View, order: Sequence[SortKey], statement: Statement, *, distinct: bool = False
    ) -> View:
        """Return the columns of a view in an order, and the first rows of it."""
        if not (order or distinct or statement.offset or statement.limit is not None):
            return view
        keys = [Key(view.bind(each.value), each.descending, each.nulls_first) for each in order]
        return self._stored(
            view,
            lambda columns: Sorted(
                self.engine, view.rows, columns, keys, (statement.limit, statement.offset), distinct=distinct
            ),
        )

    def _stored(self, view: View, source: Callable[[dict[str, Expression]], RowSource]) -> View:
        """Return the view of a source that has the columns of another one, which it gets bound."""
        names = [f"{number}:{each.name}" for number, each in enumerate(view.columns)]
        columns = {name: view.bind(each.value) for name, each in zip(names, view.columns, strict=True)}
        new = (each._replace(value=Name((name,))) for name, each in zip(names, view.columns, strict=True))
        return View(source(columns), tuple(new))

    def _key_of_output(self, key: SortKey, view: View) -> SortKey:
        number = _ordinal(key.value)
        if number is not None:
            return msgspec.structs.replace(key, value=_item(view.columns, number, "order by").value)
        return msgspec.structs.replace(key, value=self.resolve(key.value, view, {}))

    def _constants(self, values: Values) -> View:
        """Return the rows of VALUES, in memory."""
        nothing = self.source(None, {})
        rows = [[self.resolve(each, nothing) for each in row] for row in values.rows]
        if len({*map(len, rows)}) > 1:
            raise ExpressionError("values: expected rows of as many values")
        types = [[output_type(nothing.bind(each)) for each in column] for column in zip(*rows, strict=True)]
        targets = [_common_type("values", column) for column in types]
        batches: list[pa.RecordBatch] = []
        for row in rows:
            cells = (Cast(each, target, True) for each, target in zip(row, targets, strict=True))
            bound = {f"{number}": nothing.bind(each) for number, each in enumerate(cells)}
            batches.extend(nothing.rows.read(bound))
        scope = of_schema(batches[0].schema, self.scope)
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
        targets = [_united(operation.kind, *map(output_type, pair)) for pair in zip(*bound, strict=True)]
        sides = []
        for view in views:
            values = (
                each.value if target is None else Cast(each.value, target, True)
                for each, target in zip(view.columns, targets, strict=True)
            )
            columns = {f"{number}": view.bind(each) for number, each in enumerate(values)}
            sides.append((view.rows, columns))
        source = Combined(self.engine, sides, operation.kind, is_all=operation.is_all)
        new = (ViewColumn((), each.name, Name((f"{number}",))) for number, each in enumerate(left.columns))
        return View(source, tuple(new))

    def resolve(
        self, expression: Expression, view: View, outer: Mapping[str, View] | None = None
    ) -> Expression:
        """Return an expression without aggregates and windows over the columns of the source of a view."""
        return Resolver(self, view, outer or {}, None).resolve(expression)

    # FROM

    def source(self, source: Source | None, tables: Mapping[str, View]) -> View:
        """Return the view of a source in FROM."""
        match source:
            case None:
                batch = pa.record_batch([pa.nulls(1)], names=["\0"])
                empty = msgspec.structs.replace(self.scope, schema=pa.schema([]))
                return View(StoredRows(empty, lambda names: [batch]), ())
            case TableName():
                return self._table(source, tables)
            case Derived(statement, alias, names):
                return self.plan(statement, tables).named(alias, names)
            case Explode():
                return self._explode(source, tables)
            case Join():
                return self._join(source, tables)

    def _table(self, table: TableName, tables: Mapping[str, View]) -> View:
        known = tables.get(table.parts[0].lower()) if len(table.parts) == 1 else None
        if known is not None:
            if table.version is not None or table.timestamp is not None:
                raise ExpressionError(f"`{table.parts[0]}` is a query, which has no versions")
            return known.named(table.alias or table.parts[0])
        source = self.open_table(table)
        qualifier = (table.alias,) if table.alias else table.parts
        hidden = source.scope.hidden
        columns = (
            ViewColumn(qualifier, name, Name((name,)), in_stars=name not in hidden)
            for name in source.scope.schema.names
        )
        return View(source, tuple(columns))

    def _explode(self, explode: Explode, tables: Mapping[str, View]) -> View:
        view = self.source(explode.left, tables)
        name = _free_name(f"{explode.alias or 'parts'}", view.source.scope.schema.names)
        variants = view.bind(self.resolve(explode.argument, view, tables))
        source = Exploded(view.rows, name, variants, outer=explode.function == "variant_explode_outer")
        names = explode.columns or ("pos", "key", "value")
        if len(names) != 3:
            raise ExpressionError(f"`{explode.alias}`: expected 3 column names, got {len(names)}")
        qualifier = (explode.alias,) if explode.alias else ()
        parts = (
            ViewColumn(qualifier, new, Name((name, part)))
            for new, part in zip(names, ("pos", "key", "value"), strict=True)
        )
        return View(source, (*view.columns, *parts))

    def _join(self, join: Join, tables: Mapping[str, View]) -> View:
        views = [self.source(join.left, tables), self.source(join.right, tables)]
        _check_qualifiers(*(view.columns for view in views))
        shared: list[ViewColumn] = []

        def condition(left: View, right: View) -> list[Expression]:
            equal, found = _using(join, left.columns, right.columns)
            shared.extend(found)
            if join.on is not None:
                both = View(left.source, (*left.columns, *right.columns))
                equal.append(self.resolve(join.on, both, tables))
            return equal

        left, right = self._joined(join.kind, views[0], views[1], condition)
        used = {each.lower() for each in join.using}
        columns = left.columns if join.kind in ("semi", "anti") else (*left.columns, *right.columns)
        rest = (each._replace(is_hidden=each.is_hidden or each.name.lower() in used) for each in columns)
        return View(left.source, (*shared, *rest))

    def _joined(
        self,
        kind: JoinKind,
        left: View,
        right: View,
        condition: Callable[[View, View], list[Expression]],
    ) -> tuple[View, View]:
        """Return the columns of two views in a join of them."""
        # A value without a match is NULL, which an expression could replace.
        optional = {"left": {1}, "right": {0}, "full": {0, 1}}.get(kind, set())
        sides, columns = [], []
        taken: list[str] = []
        for number, side in enumerate((left, right)):
            view = self._without_values(side) if number in optional else side
            names = {}
            for column in view.source.scope.schema.names:
                names[column] = _free_name(column, taken)
                taken.append(names[column])
            sides.append(Side(view.rows, {new: old for old, new in names.items()}))
            columns.append(tuple(each._replace(value=_rename(each.value, names)) for each in view.columns))

        def on(scope: Scope) -> Expression | None:
            # The condition is over the columns of the join, which has no rows yet.
            empty = StoredRows(scope, lambda names: [])
            parts = condition(View(empty, columns[0]), View(empty, columns[1]))
            return scope.condition(all_of(parts)) if parts else None

        source = Joined(self.engine, kind, sides[0], sides[1], on)
        return View(source, columns[0]), View(source, columns[1])

    def matching(
        self, outer: View, subquery: Subquery, tables: Mapping[str, View], *, is_negated: bool
    ) -> View | None:
        """Return the rows of a view for which a subquery that refers to them has rows, or has none.

        None stands for a subquery that does not refer to them.
        """
        statement, body = subquery.statement, subquery.statement.body
        if not _is_simple(statement) or not isinstance(body, Select) or body.where is None:
            return None
        where, known = body.where, self.common_tables(statement, tables)
        inner = self.source(body.source, known)
        names = [node.parts for node in walk(where) if isinstance(node, Name) and marked_number(node) is None]
        if not any(
            inner.find(parts) is None and outer.find_from_subquery(parts) is not None for parts in names
        ):
            return None

        def condition(left: View, right: View) -> list[Expression]:
            return [Resolver(self, right, known, None, left.find_from_subquery).resolve(where)]

        return self._joined("anti" if is_negated else "semi", outer, inner, condition)[0]

    def _without_values(self, view: View) -> View:
        """Return a view whose columns are columns of its source, or paths in them."""
        if all(isinstance(_root(each.value), Name) for each in view.columns):
            return view
        return self._stored(view, lambda columns: Sorted(self.engine, view.rows, columns, ()))

    # Subqueries

    def constant(self, subquery: Subquery, tables: Mapping[str, View]) -> Expression:
        """Return the value of a subquery, or whether it has rows."""
        statement = subquery.statement
        if subquery.kind == "exists":
            rows = self.plan(statement, tables).rows
            found = sum(batch.num_rows for batch in rows.read({"one": Literal(pa.scalar(True))}, 1))
            return Literal(pa.scalar(found > 0))
        if subquery.kind == "in":
            raise ExpressionError("a subquery is not a list of arguments")
        arrow_type, values = self.values(subquery, tables)
        if len(values) > 1:
            raise ExpressionError("a subquery that is a value returns more than one row")
        return Literal(values[0] if len(values) else pa.scalar(None, arrow_type), is_cast=True)

    def values(self, subquery: Subquery, tables: Mapping[str, View]) -> tuple[Any, Any]:
        """Return the type and the values of a subquery."""
        view = self.plan(subquery.statement, tables)
        bound = view.bind(column_of(view))
        arrow_type = output_type(bound)
        if arrow_type is None:
            raise ExpressionError("a subquery returns a Variant: cast it")
        schema = Query.of_expressions({"value": bound}, None).schema
        return arrow_type, pa.Table.from_batches(view.rows.read({"value": bound}), schema).column(0)


class Resolver:
    """Resolves the names of expressions to columns of a source, and takes out aggregates and windows."""

    def __init__(
        self,
        planner: Planner,
        view: View,
        tables: Mapping[str, View],
        collected: Collected | None,
        aliases: Callable[[Sequence[str]], Expression | None] = lambda parts: None,
        *,
        prefers_aliases: bool = False,
    ) -> None:
        self.planner, self.view, self.tables, self.collected = planner, view, tables, collected
        self.aliases, self.prefers_aliases = aliases, prefers_aliases

    def resolve(self, expression: Expression) -> Expression:
        """Return an expression over the columns of the source."""
        return transform(expression, self._change)

    def _change(self, node: Expression) -> Expression | None:
        number = marked_number(node)
        if number is not None:
            return self._marked(self.planner.marked[number])
        if isinstance(node, Name):
            return self._name(node.parts)
        if isinstance(node, Call) and node.function == "in":
            return self._in(node)
        return None

    def _name(self, parts: tuple[str, ...]) -> Expression:
        column = self.view.find(parts)
        alias = self.aliases(parts)
        if alias is None or (column is not None and not self.prefers_aliases):
            return self.view.resolve(parts) if column is None else column
        return alias

    def _marked(self, marked: Marked) -> Expression:
        if isinstance(marked, Subquery):
            return self.planner.constant(marked, self.tables)
        if self.collected is None:
            call = marked if isinstance(marked, AggregateCall) else marked.call
            raise ExpressionError(f"`{call.text}` is not allowed here: it needs the rows of a SELECT")
        if isinstance(marked, AggregateCall):
            inner = Resolver(self.planner, self.view, self.tables, None, self.aliases)
            return _collect(AGGREGATE, self.collected.aggregates, inner._call(marked))
        inner = Resolver(
            self.planner, self.view, self.tables, self.collected._replace(windows=[]), self.aliases
        )
        window = WindowCall(
            inner._call(marked.call),
            tuple(map(inner.resolve, marked.partition)),
            tuple(msgspec.structs.replace(each, value=inner.resolve(each.value)) for each in marked.order),
            marked.frame,
        )
        if inner.collected is not None and inner.collected.windows:
            raise ExpressionError(f"`{marked.call.text}`: a window in a window is not supported")
        return _collect(WINDOW, self.collected.windows, window)

    def _call(self, call: AggregateCall) -> AggregateCall:
        where = None if call.where is None else self.resolve(call.where)
        return msgspec.structs.replace(
            call, arguments=tuple(map(self.resolve, call.arguments)), where=where, text=""
        )

    def _in(self, call: Call) -> Expression | None:
        number = marked_number(call.arguments[1])
        marked = None if number is None else self.planner.marked[number]
        if not isinstance(marked, Subquery) or marked.kind != "in":
            return None
        value = self.resolve(call.arguments[0])
        _, values = self.planner.values(marked, self.tables)
        options = tuple(Literal(each, is_cast=True) for each in values.unique())
        return Call("in", (value, *options)) if options else Literal(pa.scalar(False))


def _collect(kind: str, known: list[Any], tree: Any) -> Name:
    if tree not in known:
        known.append(tree)
    return Name((kind, str(known.index(tree))))


class _SelectPlanner:
    """Plans one SELECT with its order and limit."""

    def __init__(
        self, planner: Planner, statement: Statement, select: Select, tables: Mapping[str, View]
    ) -> None:
        self.planner, self.statement, self.select, self.tables = planner, statement, select, tables
        self.collected = Collected([], [])
        self.items: list[tuple[Item, Expression]] = []

    def plan(self) -> View:
        """Return the view of the result."""
        select = self.select
        self.view = self.planner.source(select.source, self.tables)
        for condition in conjuncts(select.where):
            self.view = self._selected(condition)
        for item in select.items:
            self.items += self._expand(item)
        groups = self._groups()
        having = None if select.having is None else self._after_items(select.having)
        qualify = None if select.qualify is None else self._after_items(select.qualify)
        order = [self._key(each) for each in self.statement.order]
        is_grouped = groups is not None or having is not None or bool(self.collected.aggregates)
        view, lift = self._group(groups or []) if is_grouped else (self.view, _same)
        view = view.select(None if having is None else lift(having))
        view, over = self._number(view, lift)
        view = view.select(None if qualify is None else over(qualify))
        columns = (ViewColumn((), item.name, over(value)) for item, value in self.items)
        view = view._replace(columns=tuple(columns))
        keys = [msgspec.structs.replace(each, value=over(each.value)) for each in order]
        if select.distinct:
            self._check_order_of_distinct(order)
        return self.planner.sort(view, keys, self.statement, distinct=select.distinct)

    def _selected(self, condition: Expression) -> View:
        """Return the rows for which a condition of WHERE is true."""
        is_negated = isinstance(condition, Call) and condition.function == "not"
        operand = condition.arguments[0] if is_negated and isinstance(condition, Call) else condition
        number = marked_number(operand)
        marked = None if number is None else self.planner.marked[number]
        if isinstance(marked, Subquery) and marked.kind == "exists":
            found = self.planner.matching(self.view, marked, self.tables, is_negated=is_negated)
            if found is not None:
                return found
        return self.view.select(self.planner.resolve(condition, self.view, self.tables))

    # Names

    def _resolver(self, **options: Any) -> Resolver:
        return Resolver(self.planner, self.view, self.tables, self.collected, self._alias, **options)

    def _alias(self, parts: Sequence[str]) -> Expression | None:
        named = [
            value for item, value in self.items if [item.name.lower()] == [each.lower() for each in parts]
        ]
        if any(each != named[0] for each in named):
            raise ExpressionError(f"`{parts[0]}` matches {len(named)} items of SELECT: give them other names")
        return named[0] if named else None

    def _after_items(self, expression: Expression) -> Expression:
        """Return a condition whose names are items of SELECT or columns."""
        for node in walk(expression):
            if isinstance(node, Name) and marked_number(node) is None:
                column, alias = self.view.find(node.parts), self._alias(node.parts)
                if column is not None and alias is not None and column != alias:
                    raise ExpressionError(
                        f"`{'.'.join(node.parts)}` is a column and an item of SELECT: rename the item"
                    )
        return self._resolver().resolve(expression)

    def _expand(self, item: Item) -> Iterable[tuple[Item, Expression]]:
        if item.value is not None:
            return [(item, self._resolver().resolve(item.value))]
        columns = [
            each
            for each in self.view.columns
            if each.in_stars
            and (not each.is_hidden if not item.qualifier else ends_with(each.qualifier, item.qualifier))
        ]
        excluded = {name.lower() for name in item.excluded}
        unknown = excluded - {each.name.lower() for each in columns}
        if not columns or unknown:
            subject = sorted(unknown)[0] if unknown else ".".join((*item.qualifier, "*"))
            raise ExpressionError(f"`{subject}` matches no column")
        kept = [each for each in columns if each.name.lower() not in excluded]
        return [(Item(None, each.name), each.value) for each in kept]

    def _groups(self) -> list[Expression] | None:
        groups = self.select.groups
        if groups == "all":
            return [value for _, value in self.items if not _has_collected(value)]
        return None if groups is None else list(map(self._group_key, groups))

    def _group_key(self, key: Expression) -> Expression:
        number = _ordinal(key)
        if number is not None:
            value: Expression = _item(self.items, number, "group by")[1]
        else:
            value = Resolver(self.planner, self.view, self.tables, None, self._alias).resolve(key)
        if _has_collected(value):
            raise ExpressionError("group by: a key contains an aggregate or a window function")
        return value

    def _key(self, key: SortKey) -> SortKey:
        number = _ordinal(key.value)
        if number is not None:
            return msgspec.structs.replace(key, value=_item(self.items, number, "order by")[1])
        return msgspec.structs.replace(key, value=self._resolver(prefers_aliases=True).resolve(key.value))

    def _check_order_of_distinct(self, order: Sequence[SortKey]) -> None:
        values = [value for _, value in self.items]
        if not all(each.value in values for each in order):
            raise ExpressionError("order by: with `select distinct`, a key is an item of SELECT")

    # Rows

    def _group(self, keys: Sequence[Expression]) -> tuple[View, Callable[[Expression], Expression]]:
        """Return the groups, and what lifts an expression over rows to one over groups."""
        view = self.view
        distinct, calls = list(dict.fromkeys(keys)), self.collected.aggregates
        names = _distinct_names([*map(describe, distinct), *map(_describe_call, calls)], ())
        named = dict(zip(names, distinct, strict=False))
        aggregates = dict(zip(names[len(named) :], calls, strict=True))
        source = Grouped(
            self.planner.engine,
            view.rows,
            {name: view.bind(key) for name, key in named.items()},
            {name: self._aggregate(each, view) for name, each in aggregates.items()},
        )

        def change(node: Expression) -> Expression | None:
            for name, key in named.items():
                if node == key and not isinstance(node, Literal):
                    return Name((name,))
                if (
                    isinstance(node, Name)
                    and isinstance(key, Name)
                    and node.parts[: len(key.parts)] == key.parts
                ):
                    return Name((name, *node.parts[len(key.parts) :]))
            if not isinstance(node, Name) or node.parts[0] == WINDOW:
                return None
            if node.parts[0] == AGGREGATE:
                return Name((names[len(named) + int(node.parts[1])],))
            if called_without_parentheses(node) is not None and view.find(node.parts) is None:
                return None
            column = node.parts[-1]
            raise ExpressionError(
                f"`{column}` is not in GROUP BY: add it, or aggregate it as in any_value({column})"
            )

        return View(source, ()), lambda expression: transform(expression, change)

    def _aggregate(self, call: AggregateCall, view: View) -> GroupColumn:
        arguments = [view.bind(each) for each in call.arguments]
        bound = bind_aggregate(
            call.function, arguments, call.distinct, view.source.scope.timezone, is_window=False
        )
        return GroupColumn(bound, None if call.where is None else view.source.scope.condition(call.where))

    def _number(
        self, view: View, lift: Callable[[Expression], Expression]
    ) -> tuple[View, Callable[[Expression], Expression]]:
        """Return the rows with window functions, and what lifts an expression to one over them."""
        windows = self.collected.windows
        if not windows:
            return view, lift
        names = _distinct_names(
            [_describe_call(each.call) for each in windows], view.source.scope.schema.names
        )
        source = Numbered(
            self.planner.engine,
            view.rows,
            {name: self._window(each, view, lift) for name, each in zip(names, windows, strict=True)},
        )

        def change(node: Expression) -> Expression | None:
            is_window = isinstance(node, Name) and node.parts[0] == WINDOW
            return Name((names[int(node.parts[1])],)) if is_window and isinstance(node, Name) else None

        return View(source, ()), lambda expression: transform(lift(expression), change)

    def _window(
        self, window: WindowCall, view: View, lift: Callable[[Expression], Expression]
    ) -> WindowColumn:
        def bind(expression: Expression) -> Expression:
            return view.bind(lift(expression))

        call = window.call
        bound = bind_aggregate(
            call.function,
            list(map(bind, call.arguments)),
            call.distinct,
            view.source.scope.timezone,
            is_window=True,
        )
        if window.frame is not None and not bound.rule.frames:
            raise ExpressionError(f"`{call.function}` has no frame: remove `{window.frame}`")
        if not window.order and (call.function not in AGGREGATES or window.frame):
            raise ExpressionError(f"`{call.function}` over a window needs `order by`")
        return WindowColumn(
            bound,
            None if call.where is None else view.source.scope.condition(lift(call.where)),
            tuple(map(bind, window.partition)),
            tuple(Key(bind(each.value), each.descending, each.nulls_first) for each in window.order),
            window.frame,
        )


def _describe_call(call: AggregateCall) -> str:
    arguments = map(describe, call.arguments) if call.arguments or call.function != "count" else "*"
    return f"{call.function}({', '.join(arguments)})"


def _distinct_names(texts: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return the texts as names, with a number where another one is equal in any case."""
    known, names = {each.lower() for each in taken}, []
    for text in texts:
        numbers = count(2)
        name = text
        while name.lower() in known:
            name = f"{text} {next(numbers)}"
        known.add(name.lower())
        names.append(name)
    return names


def _same(expression: Expression) -> Expression:
    return expression


def _has_collected(expression: Expression) -> bool:
    return any(isinstance(node, Name) and node.parts[0] in (AGGREGATE, WINDOW) for node in walk(expression))


def _ordinal(expression: Expression) -> int | None:
    is_integer = isinstance(expression, Literal) and pa.types.is_integer(expression.value.type)
    return int(expression.value.as_py()) if is_integer and isinstance(expression, Literal) else None


def _item(items: Sequence[Any], number: int, clause: str) -> Any:
    if not 1 <= number <= len(items):
        raise ExpressionError(
            f"{clause}: expected the number of an item from 1 to {len(items)}, got {number}"
        )
    return items[number - 1]


def _common_type(kind: str, types: Sequence[pa.DataType | None]) -> pa.DataType | None:
    """Return the type of a column of constants, None for Variants; NULL is of every type."""
    known = [each for each in types if each is None or not pa.types.is_null(each)]
    return reduce(partial(_united, kind), known) if known else pa.null()


def _united(kind: str, left: pa.DataType | None, right: pa.DataType | None) -> pa.DataType | None:
    """Return the type of a column of a set operation, None if both sides are Variants."""
    if left is None and right is None:
        return None
    if left is not None and right is not None:
        types = [each for each in (left, right) if not pa.types.is_null(each)]
        found = (types[0] if len(types) == 1 else common_type(left, right)) if types else pa.null()
        if found is not None and not pa.types.is_decimal256(found):
            return found
    raise ExpressionError(
        f"{kind}: cannot combine a column of type {type_name(left)} with one of type {type_name(right)}"
    )


def _free_name(name: str, taken: Iterable[str]) -> str:
    known = {each.lower() for each in taken}
    while name.lower() in known:
        name += "'"
    return name


def _rename(value: Expression, names: Mapping[str, str]) -> Expression:
    def change(node: Expression) -> Expression | None:
        is_column = isinstance(node, Name) and node.parts[0] in names
        return Name((names[node.parts[0]], *node.parts[1:])) if is_column and isinstance(node, Name) else None

    return transform(value, change)


def _root(value: Expression) -> Expression:
    return _root(value.operand) if isinstance(value, Path) else value


def _using(
    join: Join, left: Sequence[ViewColumn], right: Sequence[ViewColumn]
) -> tuple[list[Expression], list[ViewColumn]]:
    """Return the conditions of USING, and its columns in the result."""
    condition: list[Expression] = []
    shared = []
    for name in join.using:
        one, other = (_only(side, name) for side in (left, right))
        condition.append(Call("=", (one.value, other.value)))
        values = {"right": other.value, "full": Call("coalesce", (one.value, other.value))}
        shared.append(ViewColumn((), one.name, values.get(join.kind, one.value)))
    return condition, shared


def _is_simple(statement: Statement) -> bool:
    """Return whether a query has rows exactly if its WHERE selects some."""
    body = statement.body
    if not isinstance(body, Select) or statement.offset or statement.limit == 0:
        return False
    clauses = (body.groups, body.having, body.qualify)
    values = (each.value for each in body.items if each.value is not None)
    has_marks = any(marked_number(node) is not None for value in values for node in walk(value))
    return not has_marks and all(each is None for each in clauses)


def _only(columns: Sequence[ViewColumn], name: str) -> ViewColumn:
    found = [each for each in columns if each.name.lower() == name.lower() and not each.is_hidden]
    if len(found) != 1:
        raise ExpressionError(f"using: `{name}` matches {len(found)} columns of one side")
    return found[0]


def _check_qualifiers(left: Sequence[ViewColumn], right: Sequence[ViewColumn]) -> None:
    names = {tuple(part.lower() for part in each.qualifier) for each in left if each.qualifier}
    for each in right:
        if tuple(part.lower() for part in each.qualifier) in names:
            raise ExpressionError(f"two tables are named `{'.'.join(each.qualifier)}`: give one an alias")
