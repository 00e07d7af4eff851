"""Find the tables of a query of Spark SQL, and the expressions over one of them that a reader can evaluate.

Names are resolved later, because that needs the columns of the tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ..._text import quote
from ...errors import ExpressionError
from ...expressions.literals import literal_text
from ...expressions.parse import parse, parse_stages
from ...expressions.tree import Expression, Name, Path, walk
from .parts import Conjunct, Extract, Item, QualifiedName, Query, Scope, Span, TableReference, splice
from .syntax import (
    CLAUSES_OF_COLUMNS,
    CLAUSES_OF_ROWS,
    EXTRACTS,
    PARSER_ERRORS,
    Dialect,
    QueryTokens,
    base_of,
    branches_of,
    has_only,
    is_from_a_table,
    is_over_rows,
    is_plain_source,
    joined_sources,
    joins_columns,
    output_names,
    sees_outputs,
    tables_of_tokens,
    visible_ctes,
    whole_sources,
)

SEPARATOR = re.compile(r"[.\[]")
"""Characters that begin a step in the text of a path."""


def _names(expression: Expression) -> set[tuple[str, ...]]:
    return {each.parts for each in walk(expression) if isinstance(each, Name)}


def _has_other_steps(expression: Expression, text: str) -> bool:
    """Return whether Spark takes a step in backquotes of a path for several: without these, `a.b` is two."""
    steps = (step for each in walk(expression) if isinstance(each, Path) for step in each.path)
    return any(isinstance(step, str) and SEPARATOR.search(step) and quote(step) in text for step in steps)


def _name_of(column: Any) -> tuple[str, ...]:
    """Return the parts of a column, including the parts of nested struct fields."""
    parts = [part.this for part in column.parts]
    while isinstance(column.parent, exp.Dot):
        column = column.parent
        parts.append(column.expression.name)
    return tuple(parts)


def parse_query(text: str, parameters: Mapping[str, str] | Sequence[str] = ()) -> Query | None:
    """Return the parts of a query, or only its tables if it cannot be parsed. None for another statement.

    Args:
        text: The query, in the Databricks dialect.
        parameters: SQL text of the values of its parameters, by name or by position.
    """
    try:
        tokens = Dialect().tokenize(text)
    except PARSER_ERRORS:
        return None
    begin = next((token for token in tokens if token.token_type is not TokenType.L_PAREN), None)
    if begin is None or begin.text.lower() not in ("select", "with", "from", "table"):
        return None
    root: Any = None
    try:
        root = sqlglot.parse_one(text, read=Dialect)
    except (RecursionError, *PARSER_ERRORS):
        pass
    if isinstance(root, exp.Insert):
        return None
    # Pipes become common table expressions that the text does not have.
    is_query = isinstance(root, exp.Select | exp.SetOperation | exp.Subquery) and "|>" not in text
    if is_query and all(_is_at_its_place(each, text) for each in _written(root)):
        return _Finder(text, root, tokens, parameters).query()
    return Query(text, [*tables_of_tokens(tokens)], [], [], [], [], [], {})


def literals_of(args: Any) -> dict[str, str] | list[str]:
    """Return the SQL text of parameters, without those that have none."""
    if isinstance(args, Mapping):
        texts = {name: literal_text(value) for name, value in args.items()}
        return {name: text for name, text in texts.items() if text is not None}
    found = [literal_text(value) for value in args or []]
    # Without one, the positions of the others would change.
    return [] if None in found else [str(each) for each in found]


def with_values(text: str, parameters: Mapping[str, str] | Sequence[str]) -> str | None:
    """Return a text with the values of its parameters in their place, None unless all are known."""
    if not parameters:
        return None
    try:
        found = dict(QueryTokens(text, Dialect().tokenize(text)).parameters((0, len(text)), parameters))
    except PARSER_ERRORS:
        return None
    values = {span: value for span, value in found.items() if value is not None}
    return splice(text, values) if len(values) == len(found) else None


def _written(root: Any) -> Iterator[Any]:
    """Yield the identifiers and stars outside of hints, whose text the parser reads separately."""
    for node in root.walk(prune=lambda node: isinstance(node, exp.Hint)):
        if isinstance(node, exp.Identifier | exp.Star):
            yield node


def _is_at_its_place(node: Any, text: str) -> bool:
    """Return whether a name or a star is where the parser says; others were made by the parser."""
    start = node.meta.get("start")
    if start is None:
        return not isinstance(node.parent, exp.Column | exp.Table)
    found = text[start : node.meta["end"] + 1]
    if isinstance(node, exp.Star):
        return found == "*"
    return bool(found.strip('`"').replace("``", "`") == node.this)


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


class _Result(msgspec.Struct, frozen=True):
    """The result of a common table expression or a subquery, as the scopes of its SELECTs have it."""

    branches: tuple[int, ...]
    passes_columns: bool
    names: tuple[str, ...]
    names_span: Span


class _Finder:
    """Finds the parts of a parsed query."""

    def __init__(
        self, text: str, root: Any, tokens: Sequence[Any], parameters: Mapping[str, str] | Sequence[str]
    ) -> None:
        self._root = root
        self._tokens = QueryTokens(text, tokens)
        self._parameters = parameters
        self._selects = list(root.find_all(exp.Select))
        self._numbers = {id(select): number for number, select in enumerate(self._selects)}
        self._tables: list[TableReference] = []
        self._index: dict[int, int] = {}
        self._results: dict[int, _Result] = {}
        self._subqueries: dict[int, tuple[int, ...]] = {}
        self._uses = [0] * len(self._selects)

    def query(self) -> Query:
        for table in self._root.find_all(exp.Table):
            if self._is_reference(table):
                self._index[id(table)] = len(self._tables)
                self._tables.append(self._reference(table))
        self._find_subqueries()
        scopes = [self._scope(select) for select in self._selects]
        for scope in scopes:
            for branches in scope.derived.values():
                for number in branches:
                    self._uses[number] -= 1
        # A function that takes a table names it as a column.
        has_tables = any(str(each.this).lower() == "table" for each in self._root.find_all(exp.Anonymous))
        for scope, uses in zip(scopes, self._uses, strict=True):
            scope.is_derived &= uses == 0 and not has_tables
        extracts = [found for node in self._root.find_all(*EXTRACTS) if (found := self._extracts(node))]
        conjuncts = [
            (number, each)
            for number, select in enumerate(self._selects)
            for each in self._conjuncts(number, select, scopes[number])
        ]
        return Query(
            self._tokens.text,
            self._tables,
            scopes,
            extracts,
            conjuncts,
            self._tokens.names(),
            [*self._qualified()],
            dict(self._implicit_names()),
        )

    def _conjuncts(self, number: int, select: Any, scope: Scope) -> Iterator[Conjunct]:
        """Yield the conditions in WHERE and ON of a SELECT, the scope of this number."""
        if not scope.is_plain:
            return
        required = frozenset(scope.sources) - scope.optional
        where = select.args.get("where")
        conditions = [] if where is None else [(where.this, required)]
        conditions += [(each.condition, each.required) for each in joined_sources(select)]
        for condition, sources in conditions:
            if condition is not None:
                yield from self._parts(condition, sources, number)

    def _parts(self, condition: Any, sources: frozenset[str], scope: int) -> Iterator[Conjunct]:
        operands = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
        for operand in operands:
            columns = list(operand.find_all(exp.Column))
            if not sources or not columns or any(self._scope_of(each) != scope for each in columns):
                continue
            starts = [each.parts[0].meta.get("start", -1) for each in columns]
            span = self._tokens.operand_around(min(starts), max(starts))
            expression = None if span is None else self._condition(span)
            # The tokens alone have the span: all of its names must be those of the operand.
            if expression is not None and _names(expression) == set(map(_name_of, columns)):
                yield Conjunct(expression, sources)

    def _condition(self, span: Span) -> Expression | None:
        """Return the condition at a span, with the values of its parameters."""
        marks, first = [*self._tokens.parameters(span, self._parameters)], span[0]
        if any(value is None for _, value in marks):
            return None
        values = {(start - first, end - first): f"({value})" for (start, end), value in marks}
        try:
            found = parse(splice(self._tokens.text_at(span), values))
        except ExpressionError:
            return None
        return None if _has_other_steps(found, self._tokens.text_at(span)) else found

    def _find_subqueries(self) -> None:
        """Find the SELECTs of each common table expression and subquery that is used as a table."""
        for node in self._root.find_all(exp.Table, exp.Subquery):
            if isinstance(node.parent, exp.SetOperation | exp.CTE | exp.Subquery | exp.Paren):
                # Only parentheses around a part of a query.
                continue
            if isinstance(node, exp.Subquery):
                query: Any = node
            elif id(node) in self._index or len(node.parts) > 1:
                continue
            else:
                query = visible_ctes(node).get(node.name.lower())
            result = None if query is None else self._result(query)
            if result is not None:
                for number in result.branches:
                    self._uses[number] += 1
                    self._results[number] = result
                alias = node.args.get("alias")
                is_renamed = query is not node and alias is not None and alias.args.get("columns")
                if is_plain_source(node) and not is_renamed:
                    self._subqueries[id(node)] = result.branches

    def _result(self, query: Any) -> _Result | None:
        """Return what is known of the result of a common table expression or a subquery."""
        selects, passes_columns = branches_of(query.this)
        if not selects:
            return None
        alias = query.args.get("alias")
        names = [] if alias is None else alias.args.get("columns") or []
        return _Result(
            tuple(self._numbers[id(each)] for each in selects),
            passes_columns,
            tuple(each.name.lower() for each in names),
            self._tokens.brackets_around(names) if names else (0, -1),
        )

    def _is_reference(self, table: Any) -> bool:
        """Return whether a table is neither a function, nor a hint, nor a common table expression."""
        if not all(isinstance(part, exp.Identifier) for part in table.parts) or table.find_ancestor(exp.Hint):
            return False
        return len(table.parts) > 1 or table.name.lower() not in visible_ctes(table)

    def _reference(self, table: Any) -> TableReference:
        alias = table.args.get("alias")
        start, end = table.parts[0].meta["start"], table.parts[-1].meta["end"]
        version = self._tokens.version_after(end) if table.args.get("version") else None
        is_constant = version is not None and (version.version, version.timestamp) != (None, None)
        return TableReference(
            tuple(part.this for part in table.parts),
            (start, version.end if version is not None and is_constant else end),
            None if alias is None or not alias.name else alias.name,
            is_plain_source(table, is_versioned=is_constant)
            and not (alias is not None and alias.args.get("columns")),
            not (alias or table.args.get("sample") or (table.args.get("version") and not is_constant)),
            version.version if version else None,
            version.timestamp if version else None,
            bool(table.args.get("version")) and not is_constant,
        )

    def _scope(self, select: Any) -> Scope:
        sources: dict[str, int | None] = {}
        derived: dict[str, tuple[int, ...]] = {}
        joined = [*joined_sources(select)]
        for name, source, *_ in joined:
            if id(source) in self._subqueries and name not in sources:
                derived[name] = self._subqueries[id(source)]
            else:
                derived.pop(name, None)
            # Two sources of one name cannot be told apart.
            sources[name] = None if name in sources else self._index.get(id(source))
        for lateral in select.args.get("laterals") or []:
            sources[lateral.alias_or_name.lower()] = None
            derived.pop(lateral.alias_or_name.lower(), None)
        items = None if isinstance(select.parent, exp.Exists) else self._items(select, sources)
        joins = select.args.get("joins") or []
        is_plain = not select.args.get("pivots") and not any(join.args.get("method") for join in joins)
        result = self._results.get(self._numbers[id(select)])
        return Scope(
            self._parent(select),
            sources,
            frozenset(whole_sources(select, sources, with_items=items is None)),
            frozenset(name.lower() for each in select.expressions for name in output_names(each)),
            joined[-1].optional if joined else frozenset(),
            frozenset(_repeated(name for name, *_ in joined)),
            is_plain,
            joins_columns(select),
            derived,
            items,
            result is not None,
            has_only(select, CLAUSES_OF_ROWS) and not any(map(is_over_rows, select.expressions)),
            *((result.passes_columns, result.branches, result.names, result.names_span) if result else ()),
        )

    def _items(self, select: Any, sources: Mapping[str, int | None]) -> tuple[Item, ...] | None:
        """Return the columns of a SELECT, None if others cannot take their place."""
        order = select.args.get("order")
        by_number = order is not None and not all(each.find(exp.Column) for each in order.expressions)
        if by_number or not has_only(select, CLAUSES_OF_COLUMNS):
            return None
        found = [self._item(each, sources) for each in select.expressions]
        return None if None in found else tuple(each for each in found if each is not None)

    def _item(self, node: Any, sources: Mapping[str, int | None]) -> Item | None:
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star):
            excluded = star.args.get("except_") or []
            is_simple = has_only(star, ("except_",)) and all(len(each.parts) == 1 for each in excluded)
            stars = tuple(sources) if star is node else (node.table.lower(),)
            if not is_simple or not set(stars) <= sources.keys() or (star is not node and node.db):
                return None
            names = frozenset(each.name.lower() for each in excluded)
            return Item(span=self._tokens.star(node), stars=stars, excluded=names)
        outputs = tuple(name.lower() for name in output_names(node))
        expression = node.this if isinstance(node, exp.Alias) else node
        span = self._column_span(expression)
        parsed = None if span is None else self._expression(span)
        if parsed is None or span is None or len(outputs) != 1:
            return Item(outputs)
        return Item(
            outputs, parsed, (span[0], span[1] if expression is node else node.args["alias"].meta["end"])
        )

    def _column_span(self, node: Any) -> Span | None:
        """Return the span of a column, a path or a cast of it."""
        if isinstance(node, exp.Column):
            return node.parts[0].meta["start"], node.parts[-1].meta["end"]
        inner = node
        while type(inner) in (exp.Cast, exp.TryCast):
            inner = inner.this
        base = base_of(inner)
        return None if base is None else self._tokens.extract(node, base)

    def _implicit_names(self) -> Iterator[tuple[Span, str]]:
        for select in self._selects:
            if not is_from_a_table(select):
                continue
            for item in select.expressions:
                if not isinstance(item, exp.Alias | exp.Column) and (span := self._column_span(item)):
                    yield from ((span, name) for name in output_names(item))

    def _parent(self, select: Any) -> int | None:
        """Return the scope whose names a subquery can use. A derived table of FROM has none but LATERAL."""
        node = select.parent
        while node is not None and not isinstance(node, exp.Select):
            if isinstance(node, exp.CTE):
                return None
            node = node.parent
        return None if node is None else self._numbers[id(node)]

    def _scope_of(self, node: Any) -> int | None:
        """Return the scope of an expression, None for those of set operations and of subqueries."""
        while node is not None and not isinstance(node, exp.Select | exp.SetOperation | exp.Subquery):
            node = node.parent
        return self._numbers[id(node)] if isinstance(node, exp.Select) else None

    def _extracts(self, node: Any) -> tuple[int, list[Extract]] | None:
        base, scope = base_of(node), self._scope_of(node)
        if base is None or scope is None or base_of(node.parent) is base:
            return None
        found = []
        is_late = sees_outputs(node)
        while node is not None:
            span = self._tokens.extract(node, base)
            if span is None or (expression := self._expression(span)) is None:
                break
            found.append(Extract(span, expression, is_late))
            parent = node.parent
            node = parent if type(parent) in (exp.Cast, exp.TryCast) and parent.this is node else None
        return (scope, found[::-1]) if found else None

    def _expression(self, span: Span) -> Expression | None:
        """Return the expression at a span if the text has a value that ends there."""
        stages = parse_stages(self._tokens.text, span[0])
        found = next((expression for end, expression in stages if end == span[1] + 1), None)
        return None if found is None or _has_other_steps(found, self._tokens.text_at(span)) else found

    def _qualified(self) -> Iterator[QualifiedName]:
        for column in self._root.find_all(exp.Column):
            if len(column.parts) > 1:
                starts = tuple(part.meta["start"] for part in column.parts)
                parts = tuple("" if part.is_star else part.this for part in column.parts)
                yield QualifiedName(self._scope_of(column), starts, parts)
