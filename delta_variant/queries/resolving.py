"""The columns of a part of a query by name, and what the names and calls in expressions stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec
import pyarrow as pa

from .._checks import list_names
from ..errors import ExpressionError
from ..expressions.bind import called_without_parentheses
from ..expressions.names import propose_name
from ..expressions.tree import (
    Call,
    Expression,
    Literal,
    Name,
    children,
    conjuncts,
    output_type,
    transform,
    walk,
)
from ..read.query import Query
from ..read.scope import METADATA, NOT_SELECTED, Scope
from .relations import Engine, Relation, Source
from .relations import Source as RowSource
from .syntax import AggregateCall, Marked, SortKey, Statement, Subquery, TableName, WindowCall, marked_number


class ViewColumn(NamedTuple):
    """A column that names can refer to; its value is an expression over the columns of a source.

    A hidden one is found by its qualifier only. Stars do not have `_metadata`, the file of a row.
    """

    qualifier: tuple[str, ...]
    name: str
    value: Expression
    is_hidden: bool = False
    in_stars: bool = True

    @property
    def is_in_star(self) -> bool:
        """Whether `*` without a qualifier has the column."""
        return self.in_stars and not self.is_hidden

    def has_qualifier(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name with this qualifier, which may be empty, can mean the column."""
        tail = [each.lower() for each in self.qualifier[-len(parts) :]]
        return tail == [each.lower() for each in parts] if parts else not self.is_hidden


class View(NamedTuple):
    """The columns of a part of a query, over the rows of a source for which a condition is true."""

    source: RowSource
    columns: tuple[ViewColumn, ...]
    where: Expression | None = None

    def bind(self, expression: Expression) -> Expression:
        """Return an expression over the columns of the source as a bound one."""
        return self.source.scope.bind(expression)

    @property
    def rows(self) -> Relation:
        return Relation(self.source, None if self.where is None else self.source.scope.condition(self.where))

    def select(self, condition: Expression | None) -> View:
        """Return the view of the rows for which another condition is true, too."""
        if condition is None:
            return self
        return self._replace(where=all_of([*conjuncts(self.where, condition)]))

    def named(self, alias: str | None, names: Sequence[str] = ()) -> View:
        """Return the view under a name, and its columns under others."""
        if names and len(names) != len(self.columns):
            raise ExpressionError(f"`{alias}`: expected {len(self.columns)} column names, got {len(names)}")
        qualifier = () if alias is None else (alias,)
        new = names or [each.name for each in self.columns]
        columns = (
            ViewColumn(qualifier, name, _derived(each.value))
            for name, each in zip(new, self.columns, strict=True)
        )
        return self._replace(columns=tuple(columns))

    def stored(self, source: Callable[[dict[str, Expression]], RowSource]) -> View:
        """Return the same columns over a source that has them, which gets their bound values by its names."""
        names = [f"{number}:{each.name}" for number, each in enumerate(self.columns)]
        columns = {name: self.bind(each.value) for name, each in zip(names, self.columns, strict=True)}
        new = (each._replace(value=Name((name,))) for name, each in zip(names, self.columns, strict=True))
        return View(source(columns), tuple(new))

    def find(self, parts: Sequence[str]) -> Expression | None:
        """Return the value of a name, None without such a column; raises ExpressionError if there are two."""
        for length in range(len(parts) - 1, -1, -1):
            found = self._matches(tuple(parts[:length]), parts[length])
            if len(found) > 1:
                raise ExpressionError(f"`{'.'.join(parts)}` matches {len(found)} columns: qualify it")
            if found:
                return _with_fields(found[0].value, parts[length + 1 :], parts)
        return None

    def find_from_subquery(self, parts: Sequence[str]) -> Expression | None:
        """Return the value of a name in a subquery. `_metadata` needs its table there.

        Without the table, it may be that of a derived table of the subquery in Spark.
        """
        columns = (each for each in self.columns if each.in_stars or each.name != parts[0].lower())
        return self._replace(columns=tuple(columns)).find(parts)

    def _matches(self, qualifier: tuple[str, ...], name: str) -> list[ViewColumn]:
        found = [
            each
            for each in self.columns
            if each.name.lower() == name.lower() and each.has_qualifier(qualifier)
        ]
        return [each for each in found if each.in_stars] or found

    def resolve(self, parts: Sequence[str]) -> Expression:
        """Return the value of a name; raises ExpressionError."""
        found = self.find(parts)
        name = Name(tuple(parts))
        if found is None and called_without_parentheses(name) is not None:
            return name
        if found is None:
            shown = [each for each in self.columns if each.is_in_star]
            names = list_names([".".join((*each.qualifier, each.name)) for each in shown]) or "none"
            in_subquery = METADATA in (part.lower() for part in parts)
            hint = f"; {NOT_SELECTED}" if in_subquery else self._proposal(parts, shown)
            raise ExpressionError(f"`{'.'.join(parts)}` does not exist; the columns are {names}{hint}")
        return found

    def _proposal(self, parts: Sequence[str], shown: Sequence[ViewColumn]) -> str:
        """Return a question for a name that is close, or for the path of the only Variant column."""
        known = self.source.scope.variant_names
        variants = [
            each.name for each in shown if isinstance(each.value, Name) and each.value.parts[-1] in known
        ]
        path = f"{variants[0]}:{parts[0]}" if len(parts) == len(variants) == 1 else None
        return propose_name(parts[-1], ".".join(parts), [each.name for each in shown], path)


def _column_of(view: View) -> Expression:
    """Return the only column of a subquery."""
    if len(view.columns) != 1:
        raise ExpressionError(f"a subquery returns {len(view.columns)} columns: expected one")
    return view.columns[0].value


def _with_fields(value: Expression, fields: Sequence[str], parts: Sequence[str]) -> Expression:
    if not fields:
        return value
    if not isinstance(value, Name):
        raise ExpressionError(f"`{'.'.join(parts)}`: cannot read a field of an expression")
    return Name((*value.parts, *fields))


def _derived(value: Expression) -> Expression:
    # A constant of a subquery has the digits of its type, not those that were written.
    return msgspec.structs.replace(value, is_cast=True) if isinstance(value, Literal) else value


def all_of(conditions: Sequence[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions))


AGGREGATE, WINDOW = "\0aggregate", "\0window"
"""The first part of the names that stand for the aggregates and the windows of a SELECT, before a number."""


class Context(NamedTuple):
    """What the parts of a query share. `plan` returns the view of a query over tables by name."""

    engine: Engine
    scope: Scope
    open_table: Callable[[TableName], Source]
    marked: Sequence[Marked]
    plan: Callable[[Statement, Mapping[str, View]], View]
    outer: list[View]
    """The views of the queries around the subquery that is planned."""

    def tests(self, expression: Expression) -> bool:
        """Return whether an expression tests a value by the values of a subquery."""
        if not isinstance(expression, Call) or expression.function != "in":
            return False
        marked = self.marked_by(expression.arguments[1])
        return isinstance(marked, Subquery) and marked.kind == "in"

    def has_outer(self, parts: Sequence[str]) -> bool:
        """Return whether a query around the subquery that is planned has a column."""
        return any(each.find(parts) is not None for each in self.outer)

    def marked_by(self, expression: Expression) -> Marked | None:
        """Return the tree for which a mark stands, None for any other expression."""
        number = marked_number(expression)
        return None if number is None else self.marked[number]


class Collected(NamedTuple):
    """The aggregates and the windows of a SELECT, each with its resolved arguments."""

    aggregates: list[AggregateCall]
    windows: list[WindowCall]


class Resolver:
    """Resolves the names of expressions to columns of a view, and takes out aggregates and windows.

    Without `collected`, these are errors. `aliases` returns the value of another name than that of a column,
    and `prefers_aliases` whether such a value hides the columns of the same name.
    """

    def __init__(
        self,
        context: Context,
        view: View,
        tables: Mapping[str, View],
        collected: Collected | None = None,
        aliases: Callable[[Sequence[str]], Expression | None] = lambda parts: None,
        *,
        prefers_aliases: Callable[[Sequence[str]], bool] = lambda parts: False,
    ) -> None:
        self.context, self.view, self.tables, self.collected = context, view, tables, collected
        self.aliases, self.prefers_aliases = aliases, prefers_aliases

    def resolve(self, expression: Expression, *, is_condition: bool = False) -> Expression:
        """Return an expression over the columns of the source of the view."""
        if any(map(self.context.tests, walk(expression))):
            expression = _without_null_tests(self.context, expression, is_condition=is_condition)
        return transform(expression, self._change)

    def _change(self, node: Expression) -> Expression | None:
        marked = self.context.marked_by(node)
        if marked is not None:
            return self._marked(marked)
        if isinstance(node, Name):
            return self._name(node.parts)
        if isinstance(node, Call) and node.function == "in":
            return self._in(node)
        return None

    def _name(self, parts: tuple[str, ...]) -> Expression:
        alias = self.aliases(parts)
        if alias is not None and self.prefers_aliases(parts):
            return alias
        column = self.view.find(parts)
        if column is not None or alias is not None:
            return cast(Expression, alias if column is None else column)
        if self.context.has_outer(parts):
            raise ExpressionError(
                f"`{'.'.join(parts)}` is a column of the query around a subquery. Only `exists (…)` and "
                "`not exists (…)`, as conditions of WHERE, can refer to it: write a join"
            )
        return self.view.resolve(parts)

    def _marked(self, marked: Marked) -> Expression:
        if isinstance(marked, Subquery):
            return self._constant(marked)
        if self.collected is None:
            call = marked if isinstance(marked, AggregateCall) else marked.call
            raise ExpressionError(f"`{call.text}` is not allowed here: it needs the rows of a SELECT")
        if isinstance(marked, AggregateCall):
            inner = Resolver(self.context, self.view, self.tables, None, self.aliases)
            return _collect(AGGREGATE, self.collected.aggregates, inner._call(marked))
        return _collect(WINDOW, self.collected.windows, self._window(marked, self.collected))

    def _window(self, window: WindowCall, collected: Collected) -> WindowCall:
        """Return a window with resolved expressions, which may have aggregates."""
        nested = Collected(collected.aggregates, [])
        inner = Resolver(self.context, self.view, self.tables, nested, self.aliases)
        resolved = WindowCall(
            inner._call(window.call),
            tuple(map(inner.resolve, window.partition)),
            inner._keys(window.order),
            window.frame,
        )
        if nested.windows:
            raise ExpressionError(f"`{window.call.text}`: a window in a window is not supported")
        return resolved

    def _call(self, call: AggregateCall) -> AggregateCall:
        where = None if call.where is None else self.resolve(call.where, is_condition=True)
        arguments = tuple(map(self.resolve, call.arguments))
        order = self._keys(call.order)
        return msgspec.structs.replace(call, arguments=arguments, where=where, text="", order=order)

    def _keys(self, order: Sequence[SortKey]) -> tuple[SortKey, ...]:
        return tuple(msgspec.structs.replace(each, value=self.resolve(each.value)) for each in order)

    # Subqueries

    def _in(self, call: Call) -> Expression | None:
        """Return a test of a value by the values of a subquery, None for a list of expressions."""
        if not self.context.tests(call):
            return None
        value = self.resolve(call.arguments[0])
        _, values = self._values(cast(Subquery, self.context.marked_by(call.arguments[1])))
        options = tuple(Literal(each, is_cast=True) for each in values.unique())
        return Call("in", (value, *options)) if options else Literal(pa.scalar(False))

    def _constant(self, subquery: Subquery) -> Expression:
        """Return the value of a subquery, or whether it has rows."""
        if subquery.kind == "exists":
            rows = self._plan(subquery).rows
            found = sum(batch.num_rows for batch in rows.read({"one": Literal(pa.scalar(True))}, 1))
            return Literal(pa.scalar(found > 0))
        if subquery.kind == "in":
            raise ExpressionError("a subquery is not a list of arguments")
        arrow_type, values = self._values(subquery)
        if len(values) > 1:
            raise ExpressionError("a subquery that is a value returns more than one row")
        return Literal(values[0] if len(values) else pa.scalar(None, arrow_type), is_cast=True)

    def _plan(self, subquery: Subquery) -> View:
        self.context.outer.append(self.view)
        try:
            return self.context.plan(subquery.statement, self.tables)
        finally:
            self.context.outer.pop()

    def _values(self, subquery: Subquery) -> tuple[Any, Any]:
        """Return the type and the values of a subquery."""
        view = self._plan(subquery)
        bound = view.bind(_column_of(view))
        arrow_type = output_type(bound)
        if arrow_type is None:
            raise ExpressionError("a subquery returns a Variant: cast it")
        schema = Query.of_expressions({"value": bound}, None).schema
        return arrow_type, pa.Table.from_batches(view.rows.read({"value": bound}), schema).column(0)


def _without_null_tests(
    context: Context, node: Expression, *, is_condition: bool = False, is_negated: bool = False
) -> Expression:
    """Return an expression whose tests by subqueries are FALSE instead of NULL, also after NOT.

    Spark replaces the subquery by a join, in which no match is FALSE. Conditions select the same rows.
    """
    constants = [each.value.as_py() for each in children(node) if isinstance(each, Literal)]
    is_equal = isinstance(node, Call) and node.function == "=" and constants in ([True], [False])
    if isinstance(node, Call) and (is_equal or node.function in ("and", "or", "not")):
        change = partial(
            _without_null_tests,
            context,
            is_condition=is_condition,
            is_negated=is_negated != (node.function == "not" or (is_equal and not constants[0])),
        )
        return Call(node.function, tuple(map(change, node.arguments)))
    if context.tests(node):
        return node if is_condition else Call("coalesce", (node, Literal(pa.scalar(is_negated))))
    return transform(node, lambda part: None if part is node else _without_null_tests(context, part))


def _collect(kind: str, known: list[Any], tree: Any) -> Name:
    if tree not in known:
        known.append(tree)
    return Name((kind, str(known.index(tree))))


def has_collected(expression: Expression) -> bool:
    """Return whether a resolved expression has an aggregate or a window."""
    return any(isinstance(node, Name) and node.parts[0] in (AGGREGATE, WINDOW) for node in walk(expression))
