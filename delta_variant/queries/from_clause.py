"""Plan FROM: the tables, queries and joins whose columns the expressions of a SELECT can name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from ..errors import ExpressionError
from ..expressions.tree import Call, Expression, Name, Path, transform, walk
from ..read.scope import Scope
from .relations import StoredRows
from .resolving import Context, Resolver, View, ViewColumn, all_of
from .sources import Exploded, Joined, Side, Sorted
from .syntax import (
    Derived,
    Explode,
    Join,
    JoinKind,
    Select,
    Source,
    Statement,
    Subquery,
    TableName,
    marked_number,
)

PARTS = ("pos", "key", "value")
"""The columns of `variant_explode`."""

OPTIONAL_SIDES = {"left": {1}, "right": {0}, "full": {0, 1}}
"""The sides of a join whose columns are NULL without a match."""

Condition = Callable[[View, View], list[Expression]]
"""Returns the conditions of a join over the columns of its sides."""


def common_tables(context: Context, statement: Statement, outer: Mapping[str, View]) -> Mapping[str, View]:
    """Return the common table expressions that a query can use, by name."""
    tables = dict(outer)
    for each in statement.tables:
        view = context.plan(each.statement, tables).named(None, each.columns)
        tables[(each.alias or "").lower()] = view
    return tables


class FromClause:
    """Plans the sources of a SELECT over common table expressions by name."""

    def __init__(self, context: Context, tables: Mapping[str, View]) -> None:
        self.context, self.tables = context, tables

    def view(self, source: Source | None) -> View:
        """Return the view of a source, or of one row without columns."""
        match source:
            case None:
                batch = pa.record_batch([pa.nulls(1)], names=["\0"])
                empty = msgspec.structs.replace(self.context.scope, schema=pa.schema([]))
                return View(StoredRows(empty, lambda names: [batch]), ())
            case TableName():
                return self._table(source)
            case Derived(statement, alias, names):
                return self.context.plan(statement, self.tables).named(alias, names)
            case Explode():
                return self._explode(source)
            case Join():
                return self._join(source)

    def _table(self, table: TableName) -> View:
        known = self.tables.get(table.parts[0].lower()) if len(table.parts) == 1 else None
        if known is not None:
            if table.version is not None or table.timestamp is not None:
                raise ExpressionError(f"`{table.parts[0]}` is a query, which has no versions")
            return known.named(table.alias or table.parts[0])
        source = self.context.open_table(table)
        qualifier = (table.alias,) if table.alias else table.parts
        hidden = source.scope.hidden
        columns = (
            ViewColumn(qualifier, name, Name((name,)), in_stars=name not in hidden)
            for name in source.scope.schema.names
        )
        return View(source, tuple(columns))

    def _explode(self, explode: Explode) -> View:
        view = self.view(explode.left)
        name = _free_name(explode.alias or "parts", view.source.scope.schema.names)
        variants = view.bind(Resolver(self.context, view, self.tables).resolve(explode.argument))
        source = Exploded(view.rows, name, variants, outer=explode.function == "variant_explode_outer")
        names = explode.columns or PARTS
        if len(names) != len(PARTS):
            raise ExpressionError(f"`{explode.alias}`: expected {len(PARTS)} column names, got {len(names)}")
        qualifier = (explode.alias,) if explode.alias else ()
        parts = (
            ViewColumn(qualifier, new, Name((name, part))) for new, part in zip(names, PARTS, strict=True)
        )
        return View(source, (*view.columns, *parts))

    def _join(self, join: Join) -> View:
        views = [self.view(join.left), self.view(join.right)]
        _check_qualifiers(*(view.columns for view in views))
        shared: list[ViewColumn] = []

        def condition(left: View, right: View) -> list[Expression]:
            equal, found = _using(join, left.columns, right.columns)
            shared.extend(found)
            if join.on is not None:
                both = View(left.source, (*left.columns, *right.columns))
                resolver = Resolver(self.context, both, self.tables)
                equal.append(resolver.resolve(join.on, is_condition=True))
            return equal

        left, right = self._joined(join.kind, views[0], views[1], condition)
        used = {each.name.lower() for each in shared}
        columns = left.columns if join.kind in ("semi", "anti") else (*left.columns, *right.columns)
        rest = (each._replace(is_hidden=each.is_hidden or each.name.lower() in used) for each in columns)
        return View(left.source, (*shared, *rest))

    def _joined(self, kind: JoinKind, left: View, right: View, condition: Condition) -> tuple[View, View]:
        """Return the columns of two views in a join of them."""
        sides, columns = [], []
        taken: list[str] = []
        for number, side in enumerate((left, right)):
            # A value without a match is NULL, which an expression could replace.
            view = self._without_values(side) if number in OPTIONAL_SIDES.get(kind, ()) else side
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

        source = Joined(self.context.engine, kind, sides[0], sides[1], on)
        return View(source, columns[0]), View(source, columns[1])

    def matching(self, outer: View, subquery: Subquery, *, is_negated: bool) -> View | None:
        """Return the rows of a view for which a subquery that refers to them has rows, or has none.

        None stands for a subquery that does not refer to them.
        """
        statement, body = subquery.statement, subquery.statement.body
        if not _is_simple(statement) or not isinstance(body, Select) or body.where is None:
            return None
        where, known = body.where, common_tables(self.context, statement, self.tables)
        inner = FromClause(self.context, known).view(body.source)
        names = [node.parts for node in walk(where) if isinstance(node, Name) and marked_number(node) is None]
        if not any(
            inner.find(parts) is None and outer.find_from_subquery(parts) is not None for parts in names
        ):
            return None

        def condition(left: View, right: View) -> list[Expression]:
            resolver = Resolver(self.context, right, known, None, left.find_from_subquery)
            return [resolver.resolve(where, is_condition=True)]

        return self._joined("anti" if is_negated else "semi", outer, inner, condition)[0]

    def _without_values(self, view: View) -> View:
        """Return a view whose columns are columns of its source, or paths in them."""
        if all(isinstance(_root(each.value), Name) for each in view.columns):
            return view
        return view.stored(lambda columns: Sorted(self.context.engine, view.rows, columns, ()))


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
    """Return the conditions of USING or NATURAL, and its columns in the result."""
    condition: list[Expression] = []
    shared = []
    using = join.using
    if using is None:
        names = {each.name.lower() for each in right if each.is_in_star}
        using = tuple(each.name for each in left if each.is_in_star and each.name.lower() in names)
    for name in using:
        one, other = (_only(side, name) for side in (left, right))
        condition.append(Call("=", (one.value, other.value)))
        both = one._replace(value=Call("coalesce", (one.value, other.value)))
        found = {"right": other, "full": both}.get(join.kind, one)
        shared.append(ViewColumn((), found.name, found.value))
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
