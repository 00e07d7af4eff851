"""Plan a query: its SELECTs, VALUES and set operations, and the order of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import count
from typing import TypeVar

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
    conjuncts,
    describe,
    output_type,
    transform,
    walk,
)
from ..expressions.types import kind_of, type_name
from ..read.scope import Scope
from .from_clause import FromClause, common_tables
from .functions import AGGREGATES, GROUPING, bind_aggregate
from .relations import Engine, Source, StoredRows, of_schema
from .resolving import AGGREGATE, WINDOW, Collected, Context, Resolver, View, ViewColumn, has_collected
from .sources import Combined, GroupColumn, Grouped, Numbered, Sorted, WindowColumn
from .syntax import (
    ALL,
    AggregateCall,
    Body,
    Item,
    Marked,
    Select,
    SetOperation,
    SortKey,
    Statement,
    Subquery,
    TableName,
    Values,
    WindowCall,
    marked_number,
)

Lift = Callable[[Expression], Expression]
"""Returns an expression over some rows as one over other rows, such as their groups."""

Element = TypeVar("Element")


WIDENED = (("integer", "integer"), ("floating", "floating"), ("floating", "integer"))
"""The kinds of a column and of an item that hides it whose values stay equal with the casts of the column."""


class _SelectPlanner:
    """Plans one SELECT with its order and limit."""

    def __init__(
        self, context: Context, statement: Statement, select: Select, tables: Mapping[str, View]
    ) -> None:
        self.context, self.statement, self.select, self.tables = context, statement, select, tables
        self.collected = Collected([], [])
        self.items: list[tuple[Item, Expression]] = []
        self.hidden: list[tuple[Name, Expression, Expression]] = []
        """The names in HAVING of items that hide a column, and the values of both."""

    def plan(self) -> View:
        select, source = self.select, FromClause(self.context, self.tables)
        self.view = source.view(select.source)
        for condition in conjuncts(select.where):
            self.view = self._selected(condition, source)
        for item in select.items:
            self.items += self._expand(item)
        groups = self._groups()
        having = None if select.having is None else self._having(select.having, groups or ())
        qualify = None if select.qualify is None else self._qualify(select.qualify)
        if qualify is not None and not self.collected.windows:
            raise ExpressionError("qualify: expected a window function in SELECT or QUALIFY, got none")
        order = [self._key(each) for each in _keys_of(self.statement.order, len(self.items))]
        is_grouped = groups is not None or having is not None or bool(self.collected.aggregates)
        view, lift = self._group(groups or []) if is_grouped else (self.view, lambda value: value)
        view = view.select(None if having is None else lift(having))
        view, over = self._number(view, lift)
        self._check_hidden(view, over)
        view = view.select(None if qualify is None else over(qualify))
        columns = (ViewColumn((), item.name, over(value)) for item, value in self.items)
        view = view._replace(columns=tuple(columns))
        keys = [msgspec.structs.replace(each, value=over(each.value)) for each in order]
        if select.distinct:
            self._check_order_of_distinct(order)
        return sort(self.context.engine, view, keys, self.statement, distinct=select.distinct)

    def _selected(self, condition: Expression, source: FromClause) -> View:
        """Return the rows for which a condition of WHERE is true."""
        is_negated, operand = False, condition
        if isinstance(condition, Call) and condition.function == "not":
            is_negated, operand = True, condition.arguments[0]
        marked = self.context.marked_by(operand)
        if isinstance(marked, Subquery) and marked.kind == "exists":
            found = source.matching(self.view, marked, is_negated=is_negated)
            if found is not None:
                return found
        resolver = Resolver(self.context, self.view, self.tables)
        return self.view.select(resolver.resolve(condition, is_condition=True))

    # Names

    def _resolve(
        self,
        expression: Expression,
        *,
        prefers_aliases: Callable[[Sequence[str]], bool] = lambda parts: False,
        is_condition: bool = False,
    ) -> Expression:
        """Return an expression, and collect its aggregates and windows."""
        resolver = Resolver(
            self.context, self.view, self.tables, self.collected, self._alias, prefers_aliases=prefers_aliases
        )
        return resolver.resolve(expression, is_condition=is_condition)

    def _alias(self, parts: Sequence[str]) -> Expression | None:
        named = [
            value for item, value in self.items if [item.name.lower()] == [each.lower() for each in parts]
        ]
        if any(each != named[0] for each in named):
            raise ExpressionError(f"`{parts[0]}` matches {len(named)} items of SELECT: give them other names")
        return named[0] if named else None

    def _having(self, condition: Expression, groups: Sequence[Expression]) -> Expression:
        """Return a condition whose names are keys of groups, then items of SELECT, then other columns."""
        self.hidden = [each for each in self._in_both(condition) if each[1] not in groups]
        return self._resolve(
            condition, prefers_aliases=lambda parts: self._column(parts) not in groups, is_condition=True
        )

    def _column(self, parts: Sequence[str]) -> Expression | None:
        """Return the only column that a name can mean, None without one."""
        with suppress(ExpressionError):
            return self.view.find(parts)
        return None

    def _qualify(self, condition: Expression) -> Expression:
        """Return a condition whose names are items of SELECT or columns."""
        for name, _, _ in self._in_both(condition):
            raise _ambiguous(name)
        return self._resolve(condition, is_condition=True)

    def _in_both(self, condition: Expression) -> Iterator[tuple[Name, Expression, Expression]]:
        """Yield the names that are a column and another item, and the values of both."""
        for node in walk(condition):
            if isinstance(node, Name) and marked_number(node) is None:
                column, item = self._column(node.parts), self._alias(node.parts)
                if column is not None and item is not None and column != item:
                    yield node, column, item

    def _check_hidden(self, view: View, over: Lift) -> None:
        """Raise ExpressionError for an item that hides a column of another type: Spark casts it like that."""
        for name, column, item in self.hidden:
            old, new = output_type(self.view.bind(column)), output_type(view.bind(over(item)))
            kinds = tuple("variant" if each is None else kind_of(each) for each in (old, new))
            if old != new and kinds not in WIDENED:
                raise _ambiguous(name)

    def _expand(self, item: Item) -> Iterable[tuple[Item, Expression]]:
        if item.value is not None:
            return [(item, self._resolve(item.value))]
        columns = [each for each in self.view.columns if each.in_stars and each.has_qualifier(item.qualifier)]
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
            return [value for _, value in self.items if not has_collected(value)]
        return None if groups is None else list(map(self._group_key, groups))

    def _group_key(self, key: Expression) -> Expression:
        value = _by_number(key, [value for _, value in self.items], "group by")
        if value is None:
            value = Resolver(self.context, self.view, self.tables, None, self._alias).resolve(key)
        if has_collected(value):
            raise ExpressionError("group by: a key contains an aggregate or a window function")
        return value

    def _key(self, key: SortKey) -> SortKey:
        value = _by_number(key.value, [value for _, value in self.items], "order by")
        if value is None:
            value = self._resolve(key.value, prefers_aliases=lambda parts: True)
        return msgspec.structs.replace(key, value=value)

    def _check_order_of_distinct(self, order: Sequence[SortKey]) -> None:
        values = [value for _, value in self.items]
        if not all(each.value in values for each in order):
            raise ExpressionError("order by: with `select distinct`, a key is an item of SELECT")

    # Rows

    def _group(self, keys: Sequence[Expression]) -> tuple[View, Lift]:
        """Return the groups, and what lifts an expression over rows to one over groups."""
        view, sets = self.view, self.select.sets
        distinct, calls = list(dict.fromkeys(keys)), self.collected.aggregates
        for call in calls:
            _check_grouping(call, distinct, has_sets=sets is not None)
        names = _distinct_names([*map(describe, distinct), *map(_describe_call, calls)], ())
        named = dict(zip(names, distinct, strict=False))
        aggregates = dict(zip(names[len(named) :], calls, strict=True))
        source = Grouped(
            self.context.engine,
            view.rows,
            {name: view.bind(key) for name, key in named.items()},
            {name: self._aggregate(each, view, distinct) for name, each in aggregates.items()},
            None if sets is None else [[names[distinct.index(keys[at])] for at in each] for each in sets],
        )

        def change(node: Expression) -> Expression | None:
            keyed = (_of_key(node, name, key) for name, key in named.items())
            if (found := next((each for each in keyed if each is not None), None)) is not None:
                return found
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

    def _aggregate(self, call: AggregateCall, view: View, keys: Sequence[Expression]) -> GroupColumn:
        given = call.arguments or (keys if call.function == "grouping_id" else ())
        arguments = [view.bind(each) for each in given]
        bound = bind_aggregate(call, arguments, view.source.scope.timezone, is_window=False)
        where = None if call.where is None else view.source.scope.condition(call.where)
        order = tuple(msgspec.structs.replace(each, value=view.bind(each.value)) for each in call.order)
        if call.distinct and not {each.value for each in order} <= {bound.arguments[0]}:
            argument = describe(bound.arguments[0])
            raise ExpressionError(f"`{call.function}(distinct …)`: the key of WITHIN GROUP is `{argument}`")
        return GroupColumn(bound, where, order)

    def _number(self, view: View, lift: Lift) -> tuple[View, Lift]:
        """Return the rows with window functions, and what lifts an expression to one over them."""
        windows = self.collected.windows
        if not windows:
            return view, lift
        names = _distinct_names(
            [_describe_call(each.call) for each in windows], view.source.scope.schema.names
        )
        source = Numbered(
            self.context.engine,
            view.rows,
            {name: self._window(each, view, lift) for name, each in zip(names, windows, strict=True)},
        )

        def change(node: Expression) -> Expression | None:
            if isinstance(node, Name) and node.parts[0] == WINDOW:
                return Name((names[int(node.parts[1])],))
            return None

        return View(source, ()), lambda expression: transform(lift(expression), change)

    def _window(self, window: WindowCall, view: View, lift: Lift) -> WindowColumn:
        def bind(expression: Expression) -> Expression:
            return view.bind(lift(expression))

        call = window.call
        arguments = list(map(bind, call.arguments))
        bound = bind_aggregate(call, arguments, view.source.scope.timezone, is_window=True)
        if window.frame is not None and not bound.rule.frames:
            raise ExpressionError(f"`{call.function}` has no frame: remove `{window.frame}`")
        if not window.order and (call.function not in AGGREGATES or window.frame):
            raise ExpressionError(f"`{call.function}` over a window needs `order by`")
        return WindowColumn(
            bound,
            None if call.where is None else view.source.scope.condition(lift(call.where)),
            tuple(map(bind, window.partition)),
            tuple(msgspec.structs.replace(each, value=bind(each.value)) for each in window.order),
            window.frame,
        )


def _check_grouping(call: AggregateCall, keys: Sequence[Expression], *, has_sets: bool) -> None:
    if call.function not in GROUPING:
        return
    if not has_sets:
        raise ExpressionError(f"`{call.function}` needs ROLLUP, CUBE or GROUPING SETS in GROUP BY")
    if call.function == "grouping_id" and call.arguments not in ((), tuple(keys)):
        raise ExpressionError("`grouping_id` takes all keys of GROUP BY in their order, or none")
    for each in call.arguments:
        if each not in keys:
            raise ExpressionError(f"`{call.function}`: `{describe(each)}` is not a key of GROUP BY")


def _ambiguous(name: Name) -> ExpressionError:
    return ExpressionError(f"`{'.'.join(name.parts)}` is a column and an item of SELECT: rename the item")


def _of_key(node: Expression, name: str, key: Expression) -> Expression | None:
    """Return an expression that is a key of groups, or a field of one, by the name of the key."""
    if node == key and not isinstance(node, Literal):
        return Name((name,))
    if isinstance(node, Name) and isinstance(key, Name) and node.parts[: len(key.parts)] == key.parts:
        return Name((name, *node.parts[len(key.parts) :]))
    return None


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


def sort(
    engine: Engine, view: View, order: Sequence[SortKey], statement: Statement, *, distinct: bool = False
) -> View:
    """Return the columns of a view in an order, and the first rows of it."""
    if not (order or distinct or statement.offset or statement.limit is not None):
        return view
    keys = [msgspec.structs.replace(each, value=view.bind(each.value)) for each in order]
    span = statement.limit, statement.offset
    return view.stored(lambda columns: Sorted(engine, view.rows, columns, keys, span, distinct=distinct))


def _keys_of(order: Sequence[SortKey], items: int) -> Sequence[SortKey]:
    """Return the keys of an order, with the number of each item of SELECT in place of ALL."""
    if not order or order[0].value != ALL:
        return order
    return [msgspec.structs.replace(order[0], value=Literal(pa.scalar(item + 1))) for item in range(items)]


def _by_number(key: Expression, items: Sequence[Element], clause: str) -> Element | None:
    """Return the item of SELECT whose number is a key of a clause, None for other keys."""
    if not isinstance(key, Literal) or not pa.types.is_integer(key.value.type):
        return None
    number = int(key.value.as_py())
    if not 1 <= number <= len(items):
        raise ExpressionError(
            f"{clause}: expected the number of an item from 1 to {len(items)}, got {number}"
        )
    return items[number - 1]


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
            return _SelectPlanner(self.context, statement, statement.body, tables).plan()
        view = self._body(statement.body, tables)
        order = [self._key(each, view) for each in _keys_of(statement.order, len(view.columns))]
        return sort(self.context.engine, view, order, statement)

    def _body(self, body: Body, tables: Mapping[str, View]) -> View:
        if isinstance(body, SetOperation):
            return self._combine(body, tables)
        if isinstance(body, Values):
            return self._constants(body)
        return self.plan(body if isinstance(body, Statement) else Statement((), body, (), None, 0), tables)

    def _key(self, key: SortKey, view: View) -> SortKey:
        """Return a key of an order over the columns of a view."""
        column = _by_number(key.value, view.columns, "order by")
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
