"""Find the tables of a query of Spark SQL, and the expressions over one of them that a reader can evaluate.

The text of a query is never generated: each part has its position, so that a caller replaces some parts and
keeps the rest as it is. Names are resolved later, because that needs the columns of the tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ..errors import ExpressionError
from .sql import CAST_TOKENS, CLOSING, OPENING, PARSER_ERRORS, Dialect, convert_node, parse_expression
from .tree import Expression

__all__ = ["Conjunct", "Extract", "Item", "Query", "Scope", "TableReference", "parse_query"]

Span = tuple[int, int]
"""The first and the last character of a part of the text."""

END_OF_WHERE = frozenset(
    {
        *(TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW, TokenType.ORDER_BY),
        *(TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LIMIT),
        *(TokenType.OFFSET, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.SEMICOLON),
    }
)
END_OF_ON = END_OF_WHERE | {
    *(TokenType.WHERE, TokenType.JOIN, TokenType.INNER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL),
    *(TokenType.CROSS, TokenType.NATURAL, TokenType.SEMI, TokenType.ANTI, TokenType.COMMA),
    TokenType.LATERAL,
}
CLAUSES_OF_ROWS = ("with_", "hint", "expressions", "from_", "joins", "where")
"""The clauses of a SELECT whose rows do not depend on each other."""
CLAUSES_OF_COLUMNS = (*CLAUSES_OF_ROWS, "laterals", "windows", "order", "limit", "offset")
"""The clauses of a SELECT whose rows do not depend on its columns."""
CLAUSES_OF_SOURCES = ("expressions", "from_", "joins", "laterals", "where", "group")
"""The clauses of a SELECT whose names are those of its sources."""
CASTS = ("cast", "try_cast")
GETTERS = ("variant_get", "try_variant_get")


class TableReference(msgspec.Struct, frozen=True):
    """A table that a query names.

    `alias` is the name of its rows in the text if it has one, and `takes_alias` whether one can follow the
    name. Unless `is_plain`, the query needs all of its columns and rows: for samples, versions and pivots,
    and where this module does not see who reads it.
    """

    parts: tuple[str, ...]
    span: Span
    alias: str | None
    is_plain: bool
    takes_alias: bool


class Item(msgspec.Struct, frozen=True):
    """An expression of a SELECT, or the columns that a star stands for.

    `names` are those of its columns in lower case. `expression` is a column, a path of a Variant or a cast of
    it, with the span of the item and its alias, and None for other expressions. A star has all columns of the
    sources `stars` without the names `excluded`.
    """

    names: tuple[str, ...] = ()
    expression: Expression | None = None
    span: Span = (0, -1)
    stars: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()


class Scope(msgspec.Struct):
    """The names that the expressions of one SELECT can use.

    `sources` has the index of the table reference by lower-case alias, or None for other sources, and
    `parent` the enclosing scope of a subquery. `stars` are the sources that need all of their columns for
    another reason than `items`, and `outputs` the names of its own columns, in lower case. The rows of
    sources in `optional` may be NULL because of an outer join.

    `derived` has the scopes of common table expressions and subqueries among the sources. A scope
    `is_derived` if `derived` of other scopes has all of its uses. Its `items` can be replaced by others if
    the uses allow it, and are None if they cannot. With `passes_rows`, its result without the rows that a
    condition on one source leaves out is that of the source without them.
    """

    parent: int | None
    sources: dict[str, int | None]
    stars: frozenset[str]
    outputs: frozenset[str]
    optional: frozenset[str]
    is_plain: bool
    derived: dict[str, int]
    items: tuple[Item, ...] | None
    is_derived: bool
    passes_rows: bool


class Extract(msgspec.Struct, frozen=True):
    """A path of a Variant, or a cast of it: its text, and the expression with names as they are written.

    It `sees_outputs` in ORDER BY and HAVING, which prefer the columns of the result to those of the sources.
    """

    span: Span
    expression: Expression
    sees_outputs: bool


class Conjunct(msgspec.Struct, frozen=True):
    """A condition without which no row of `sources` is in the result of the scope."""

    expression: Expression
    sources: frozenset[str]


class Query(msgspec.Struct):
    """The parts of a query.

    `extracts` has the casts and paths at one place, outermost first, with their scope. `names` are the names
    of the whole text in lower case, by position. `qualifiers` are the names before columns that may begin
    with a catalog or a schema: the span of all but the last name, and all of them. `implicit` has the names
    that Spark gives to extracts without an alias, by the span of the extract, where a query uses them.
    """

    text: str
    tables: list[TableReference]
    scopes: list[Scope]
    extracts: list[tuple[int, list[Extract]]]
    conjuncts: list[tuple[int, Conjunct]]
    names: list[tuple[int, str]]
    qualifiers: list[tuple[Span, tuple[str, ...]]]
    implicit: dict[Span, str]


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
    if is_query and all(_is_at_its_place(each, text) for each in _identifiers(root)):
        return _Finder(text, root, tokens, parameters).query()
    return Query(text, [*_tables_of_tokens(tokens)], [], [], [], [], [], {})


def _tables_of_tokens(tokens: Sequence[Any]) -> Iterator[TableReference]:
    """Yield what the tokens of a query that cannot be parsed name as tables."""
    ctes = {
        tokens[number].text.lower()
        for number in range(len(tokens) - 2)
        if [each.token_type for each in tokens[number + 1 : number + 3]]
        == [TokenType.ALIAS, TokenType.L_PAREN]
    }
    for number, token in enumerate(tokens[:-1]):
        if token.token_type not in (TokenType.FROM, TokenType.JOIN, TokenType.TABLE):
            continue
        if tokens[number + 1].token_type in OPENING:
            continue
        last = number + 1
        while last + 2 < len(tokens) and tokens[last + 1].token_type is TokenType.DOT:
            last += 2
        parts = tuple(each.text for each in tokens[number + 1 : last + 1 : 2])
        following = tokens[last + 1].token_type if last + 1 < len(tokens) else None
        if following is TokenType.L_PAREN or (len(parts) == 1 and parts[0].lower() in ctes):
            continue
        has_alias = following in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
        takes_alias = not has_alias and token.token_type is not TokenType.TABLE
        span = tokens[number + 1].start, tokens[last].end
        yield TableReference(parts, span, None, is_plain=False, takes_alias=takes_alias)


def _identifiers(root: Any) -> Iterator[Any]:
    """Yield the identifiers outside of hints, whose text the parser reads separately."""
    for node in root.walk(prune=lambda node: isinstance(node, exp.Hint)):
        if isinstance(node, exp.Identifier):
            yield node


def _is_at_its_place(identifier: Any, text: str) -> bool:
    """Return whether an identifier of the text is where the parser says; others were made by the parser."""
    start = identifier.meta.get("start")
    if start is None:
        return not isinstance(identifier.parent, exp.Column | exp.Table)
    found = text[start : identifier.meta["end"] + 1]
    return bool(found.strip('`"').replace("``", "`") == identifier.this)


class _Finder:
    """Finds the parts of a parsed query."""

    def __init__(
        self, text: str, root: Any, tokens: Sequence[Any], parameters: Mapping[str, str] | Sequence[str]
    ) -> None:
        self._text = text
        self._root = root
        self._tokens = tokens
        self._parameters = parameters
        self._by_start = {token.start: number for number, token in enumerate(tokens)}
        self._closing = _matching_brackets(tokens)
        self._selects = list(root.find_all(exp.Select))
        self._numbers = {id(select): number for number, select in enumerate(self._selects)}
        self._tables: list[TableReference] = []
        self._index: dict[int, int] = {}
        self._subqueries: dict[int, int] = {}
        self._uses = [0] * len(self._selects)

    def query(self) -> Query:
        for table in self._root.find_all(exp.Table):
            if self._is_reference(table):
                self._index[id(table)] = len(self._tables)
                self._tables.append(self._reference(table))
        self._find_subqueries()
        scopes = [self._scope(select) for select in self._selects]
        for scope in scopes:
            for number in scope.derived.values():
                self._uses[number] -= 1
        # A function that takes a table names it as a column.
        has_tables = any(str(each.this).lower() == "table" for each in self._root.find_all(exp.Anonymous))
        for scope, uses in zip(scopes, self._uses, strict=True):
            scope.is_derived &= uses == 0 and not has_tables
        names = [
            (token.start, token.text.lower()) for token in self._tokens if self._text[token.start] != "'"
        ]
        extracts = [found for node in self._root.find_all(*EXTRACTS) if (found := self._extracts(node))]
        return Query(
            self._text,
            self._tables,
            scopes,
            extracts,
            [*self._conjuncts(scopes)],
            names,
            [*self._qualifiers()],
            dict(self._implicit_names()),
        )

    def _find_subqueries(self) -> None:
        """Find the SELECT of each common table expression and subquery that is used as a table."""
        for node in self._root.find_all(exp.Table, exp.Subquery):
            if isinstance(node, exp.Subquery):
                query: Any = node
            elif id(node) in self._index or len(node.parts) > 1:
                continue
            else:
                query = _visible_ctes(node).get(node.name.lower())
            number = None if query is None else self._numbers.get(id(query.this))
            if number is not None:
                self._uses[number] += 1
                alias = query.args.get("alias")
                if _is_plain_source(node) and not (alias is not None and alias.args.get("columns")):
                    self._subqueries[id(node)] = number

    def _is_reference(self, table: Any) -> bool:
        """Return whether a table is neither a function, nor a hint, nor a common table expression."""
        if not all(isinstance(part, exp.Identifier) for part in table.parts) or table.find_ancestor(exp.Hint):
            return False
        return len(table.parts) > 1 or table.name.lower() not in _visible_ctes(table)

    def _reference(self, table: Any) -> TableReference:
        alias = table.args.get("alias")
        return TableReference(
            tuple(part.this for part in table.parts),
            (table.parts[0].meta["start"], table.parts[-1].meta["end"]),
            None if alias is None or not alias.name else alias.name,
            _is_plain_source(table),
            not (alias or table.args.get("sample") or table.args.get("version")),
        )

    def _scope(self, select: Any) -> Scope:
        sources: dict[str, int | None] = {}
        derived: dict[str, int] = {}
        optional: set[str] = set()
        joins = select.args.get("joins") or []
        for join, source in _sources(select):
            name = source.alias_or_name.lower()
            side = "" if join is None else (join.side or "").upper()
            if side in ("RIGHT", "FULL"):
                optional |= sources.keys()
            if side in ("LEFT", "FULL"):
                optional.add(name)
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
        is_plain = not select.args.get("pivots") and not any(join.args.get("method") for join in joins)
        return Scope(
            self._parent(select),
            sources,
            frozenset(_stars(select, sources, with_items=items is None)),
            frozenset(name.lower() for each in select.expressions for name in _output_names(each)),
            frozenset(optional),
            is_plain,
            derived,
            items,
            self._uses[self._numbers[id(select)]] > 0,
            _has_only(select, CLAUSES_OF_ROWS) and not any(map(_is_over_rows, select.expressions)),
        )

    def _items(self, select: Any, sources: Mapping[str, int | None]) -> tuple[Item, ...] | None:
        """Return the columns of a SELECT, None if others cannot take their place."""
        order = select.args.get("order")
        by_number = order is not None and not all(each.find(exp.Column) for each in order.expressions)
        if by_number or not _has_only(select, CLAUSES_OF_COLUMNS):
            return None
        found = [self._item(each, sources) for each in select.expressions]
        return None if None in found else tuple(each for each in found if each is not None)

    def _item(self, node: Any, sources: Mapping[str, int | None]) -> Item | None:
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star):
            excluded = star.args.get("except_") or []
            is_simple = _has_only(star, ("except_",)) and all(len(each.parts) == 1 for each in excluded)
            stars = tuple(sources) if star is node else (node.table.lower(),)
            if not is_simple or not set(stars) <= sources.keys() or (star is not node and node.db):
                return None
            return Item(stars=stars, excluded=frozenset(each.name.lower() for each in excluded))
        names = tuple(name.lower() for name in _output_names(node))
        expression = node.this if isinstance(node, exp.Alias) else node
        span = self._column_span(expression)
        parsed = None if span is None else self._expression(expression, span)
        if parsed is None or span is None or len(names) != 1:
            return Item(names)
        return Item(
            names, parsed, (span[0], span[1] if expression is node else node.args["alias"].meta["end"])
        )

    def _column_span(self, node: Any) -> Span | None:
        """Return the span of a column, a path or a cast of it."""
        if isinstance(node, exp.Column):
            return node.parts[0].meta["start"], node.parts[-1].meta["end"]
        inner = node
        while type(inner) in (exp.Cast, exp.TryCast):
            inner = inner.this
        base = _base(inner)
        return None if base is None else self._span(node, base)

    def _implicit_names(self) -> Iterator[tuple[Span, str]]:
        for select in self._selects:
            if not _is_from_a_table(select):
                continue
            for item in select.expressions:
                if not isinstance(item, exp.Alias | exp.Column) and (span := self._column_span(item)):
                    yield from ((span, name) for name in _output_names(item))

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
        base, scope = _base(node), self._scope_of(node)
        if base is None or scope is None or _base(node.parent) is base:
            return None
        found = []
        sees_outputs = _sees_outputs(node)
        while node is not None:
            span = self._span(node, base)
            if span is None or (expression := self._expression(node, span)) is None:
                break
            found.append(Extract(span, expression, sees_outputs))
            parent = node.parent
            node = parent if type(parent) in (exp.Cast, exp.TryCast) and parent.this is node else None
        return (scope, found[::-1]) if found else None

    def _expression(self, node: Any, span: Span) -> Expression | None:
        """Return the expression at a span if that is what the whole query has there."""
        try:
            here, alone = convert_node(node), parse_expression(self._text[span[0] : span[1] + 1])
        except (ExpressionError, *PARSER_ERRORS):
            return None
        return here if here == alone else None

    def _span(self, node: Any, base: Any) -> Span | None:
        if isinstance(node, exp.JSONExtract):
            first, last = (self._by_start[base.parts[index].meta["start"]] for index in (0, -1))
            return self._between(first, self._end_of_path(last + 1))
        if isinstance(node, exp.Anonymous):
            return self._call(self._by_start[base.parts[0].meta["start"]] - 1, GETTERS)
        inner = self._span(node.this, base)
        if inner is None:
            return None
        first, last = self._by_start[inner[0]], self._token_ending_at(inner[1])
        if self._kind(last + 1) in CAST_TOKENS:
            return self._between(first, self._end_of_type(last + 2))
        return self._call(first - 1, CASTS)

    def _call(self, opening: int, names: Sequence[str]) -> Span | None:
        """Return the span of a call, by its opening parenthesis."""
        if self._kind(opening) is not TokenType.L_PAREN or opening < 1:
            return None
        if self._tokens[opening - 1].text.lower() not in names:
            return None
        return self._between(opening - 1, self._closing.get(opening))

    def _end_of_path(self, position: int) -> int | None:
        """Return the last token of the steps of a path that start at a position."""
        if self._kind(position) is not TokenType.COLON:
            return None
        while True:
            kind = self._kind(position)
            if kind is TokenType.L_BRACKET:
                position = self._closing.get(position, len(self._tokens)) + 1
            elif kind in (TokenType.COLON, TokenType.DOT):
                position += 1 if self._kind(position + 1) is TokenType.L_BRACKET else 2
            else:
                return position - 1

    def _end_of_type(self, position: int) -> int:
        end = position
        if self._kind(position + 1) is TokenType.L_PAREN:
            end = self._closing.get(position + 1, position)
        return end

    def _kind(self, position: int) -> Any:
        return self._tokens[position].token_type if 0 <= position < len(self._tokens) else None

    def _token_ending_at(self, end: int) -> int:
        return next(number for number, token in enumerate(self._tokens) if token.end == end)

    def _between(self, first: int, last: int | None) -> Span | None:
        if last is None or last >= len(self._tokens):
            return None
        return self._tokens[first].start, self._tokens[last].end

    def _conjuncts(self, scopes: Sequence[Scope]) -> Iterator[tuple[int, Conjunct]]:
        for number, select in enumerate(self._selects):
            scope = scopes[number]
            if not scope.is_plain:
                continue
            required = frozenset(scope.sources) - scope.optional
            where = select.args.get("where")
            conditions = [] if where is None else [(where.this, required)]
            conditions += _join_conditions(select)
            for condition, sources in conditions:
                yield from ((number, each) for each in self._parts(condition, sources, number))

    def _parts(self, condition: Any, sources: frozenset[str], scope: int) -> Iterator[Conjunct]:
        operands = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
        for operand in operands:
            columns = list(operand.find_all(exp.Column))
            if not sources or not columns or any(self._scope_of(each) != scope for each in columns):
                continue
            starts = [each.parts[0].meta.get("start", -1) for each in columns]
            span = self._clause_around(min(starts), max(starts))
            expression = None if span is None else self._condition(operand, span)
            if expression is not None:
                yield Conjunct(expression, sources)

    def _condition(self, operand: Any, span: Span) -> Expression | None:
        """Return a condition with the values of its parameters, if that is what the text has at its span."""
        marks = [*self._parameter_marks(span)]
        if any(value is None for _, value in marks):
            return None
        text, shift = self._text[span[0] : span[1] + 1], span[0]
        for (start, end), value in reversed(marks):
            text = f"{text[: start - shift]}{value}{text[end + 1 - shift :]}"
        values = iter([value for _, value in marks])
        try:
            here = operand.transform(lambda node: _replace_parameter(node, values)) if marks else operand
            converted, alone = convert_node(here), parse_expression(text)
        except (ExpressionError, StopIteration, *PARSER_ERRORS):
            return None
        return converted if converted == alone else None

    def _parameter_marks(self, span: Span) -> Iterator[tuple[Span, str | None]]:
        """Yield the span of each parameter, and the SQL text of its value if there is one."""
        parameters = self._parameters
        position = -1
        for number, token in enumerate(self._tokens):
            if token.token_type is TokenType.PLACEHOLDER:
                position += 1
                if span[0] <= token.start <= span[1]:
                    is_known = not isinstance(parameters, Mapping) and position < len(parameters)
                    yield (token.start, token.end), parameters[position] if is_known else None  # type: ignore[index]
            elif span[0] <= token.start <= span[1] and self._is_named_parameter(number):
                name = self._tokens[number + 1]
                known = parameters.get(name.text) if isinstance(parameters, Mapping) else None
                yield (token.start, name.end), known

    def _is_named_parameter(self, number: int) -> bool:
        """Return whether a token is the colon of `:name`, and not that of a path."""
        if self._kind(number) is not TokenType.COLON or self._kind(number + 1) is None:
            return False
        before = self._tokens[number - 1]
        follows_value = before.end + 1 == self._tokens[number].start and (
            before.token_type in (*CLOSING, TokenType.VAR, TokenType.IDENTIFIER) or before.text.isidentifier()
        )
        return not follows_value

    def _clause_around(self, first: int, last: int) -> Span | None:
        """Return the innermost operand of a WHERE or ON that contains two positions."""
        found = None
        for start, end in self._operands:
            if start <= first and last <= end and (found is None or start >= found[0]):
                found = (start, end)
        return found

    @property
    def _operands(self) -> list[Span]:
        if not hasattr(self, "_known_operands"):
            self._known_operands = [*self._find_operands()]
        return self._known_operands

    def _find_operands(self) -> Iterator[Span]:
        """Yield the operands of the conjunctions in WHERE and ON, as the tokens alone tell."""
        for number, token in enumerate(self._tokens):
            if token.token_type in (TokenType.WHERE, TokenType.ON):
                ends = END_OF_WHERE if token.token_type is TokenType.WHERE else END_OF_ON
                yield from self._split(number + 1, ends)

    def _split(self, position: int, ends: frozenset[Any]) -> Iterator[Span]:
        first, cases, betweens = position, 0, 0
        while (kind := self._kind(position)) is not None and kind not in CLOSING and kind not in ends:
            if kind in OPENING:
                position = self._closing.get(position, len(self._tokens))
            cases += (kind is TokenType.CASE) - (kind is TokenType.END)
            betweens += kind is TokenType.BETWEEN
            if kind is TokenType.AND and not cases:
                if betweens:
                    betweens -= 1
                else:
                    yield from self._nonempty(first, position - 1)
                    first = position + 1
            position += 1
        yield from self._nonempty(first, position - 1)

    def _nonempty(self, first: int, last: int) -> Iterator[Span]:
        if first <= last < len(self._tokens):
            yield self._tokens[first].start, self._tokens[last].end

    def _qualifiers(self) -> Iterator[tuple[Span, tuple[str, ...]]]:
        for column in self._root.find_all(exp.Column):
            if len(column.parts) > 2:
                start, end = (column.parts[index].meta["start"] for index in (0, -2))
                yield (start, end - 1), tuple(part.this for part in column.parts[:-1])


EXTRACTS = (exp.JSONExtract, exp.Anonymous)


def _base(node: Any) -> Any:
    """Return the column that paths and casts extract a value from, None for other expressions."""
    if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
        return node.this if isinstance(node.this, exp.Column) else _base(node.this)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in GETTERS and node.expressions:
        first = node.expressions[0]
        return first if isinstance(first, exp.Column) else None
    return None


def _sees_outputs(node: Any) -> bool:
    while not isinstance(node.parent, exp.Select):
        node = node.parent
    return node.arg_key not in CLAUSES_OF_SOURCES


def _replace_parameter(node: Any, values: Iterator[str | None]) -> Any:
    if not isinstance(node, exp.Placeholder):
        return node
    return sqlglot.parse_one(str(next(values)), read=Dialect)


def _matching_brackets(tokens: Sequence[Any]) -> dict[int, int]:
    found: dict[int, int] = {}
    open_brackets: list[int] = []
    for number, token in enumerate(tokens):
        if token.token_type in OPENING:
            open_brackets.append(number)
        elif token.token_type in CLOSING and open_brackets:
            found[open_brackets.pop()] = number
    return found


def _visible_ctes(table: Any) -> dict[str, Any]:
    """Return the common table expressions that a table's name can refer to, None for recursive ones."""
    found: dict[str, Any] = {}
    below, node = table, table.parent
    within: Any = None
    while node is not None:
        if isinstance(node, exp.CTE):
            within = node
        clause = node.args.get("with_")
        if clause is not None:
            ctes = clause.expressions
            is_inside = below is clause
            before = ctes.index(within) if is_inside and within in ctes else len(ctes)
            is_recursive = clause.args.get("recursive")
            if is_recursive:
                before = len(ctes)
            # Names of inner clauses hide those of outer ones.
            found = {each.alias.lower(): None if is_recursive else each for each in ctes[:before]} | found
        below, node = node, node.parent
    return found


def _is_plain_source(node: Any) -> bool:
    """Return whether a table or a subquery is one of FROM, without a sample, a pivot and the like."""
    alias = node.args.get("alias")
    known = ("this", "db", "catalog", "alias")
    is_source = isinstance(node.parent, exp.From | exp.Join) and isinstance(node.parent.parent, exp.Select)
    return is_source and _has_only(node, known) and not (alias is not None and alias.args.get("columns"))


def _is_from_a_table(select: Any) -> bool:
    """Return whether a SELECT is, or is a part of, a common table expression or a subquery in FROM."""
    node = select.parent
    while isinstance(node, exp.SetOperation) or type(node) is exp.Paren:
        node = node.parent
    return isinstance(node, exp.CTE) or (
        isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join)
    )


def _has_only(node: Any, clauses: Collection[str]) -> bool:
    return not any(part for name, part in node.args.items() if name not in clauses)


def _is_over_rows(node: Any) -> bool:
    """Return whether an expression of SELECT may depend on more than one row, or make several of one."""
    return any(node.find_all(exp.Window, exp.AggFunc, exp.UDTF))


def _sources(select: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the sources of a SELECT, each with its join."""
    clause = select.args.get("from_")
    if clause is not None:
        yield None, clause.this
    for join in select.args.get("joins") or []:
        yield join, join.this


def _join_conditions(select: Any) -> Iterator[tuple[Any, frozenset[str]]]:
    """Yield the condition of each join, with the sources whose rows have to meet it."""
    before: set[str] = set()
    optional: set[str] = set()
    for join, source in _sources(select):
        name = source.alias_or_name.lower()
        side = "" if join is None else (join.side or "").upper()
        kind = "" if join is None else (join.kind or "").upper()
        condition = None if join is None else join.args.get("on")
        required = {
            "": frozenset({*before, name}) - optional,
            "LEFT": frozenset({name}),
            "RIGHT": frozenset(before) - optional,
        }.get(side, frozenset())
        if kind in ("SEMI", "ANTI"):
            required = frozenset({name})
        if condition is not None and name not in before:
            yield condition, required
        if side in ("RIGHT", "FULL"):
            optional |= before
        if side in ("LEFT", "FULL"):
            optional.add(name)
        before.add(name)


def _stars(select: Any, sources: Mapping[str, int | None], *, with_items: bool) -> Iterator[str]:
    """Yield the sources of which functions in a SELECT, and the SELECT `with_items`, read all columns."""
    for star in select.find_all(exp.Star):
        if isinstance(star.parent, exp.Count) or star.find_ancestor(exp.Select) is not select:
            continue
        is_item = star.parent is select or star.parent.parent is select
        if is_item and (not with_items or isinstance(select.parent, exp.Exists)):
            continue
        if isinstance(star.parent, exp.Column) and star.parent.table:
            yield star.parent.table.lower()
        else:
            yield from sources


def _output_names(node: Any) -> Iterator[str]:
    """Yield the names that a column of a SELECT may get: its alias, or the last name in it."""
    if isinstance(node, exp.Alias | exp.Aliases):
        yield from ([node.alias] if isinstance(node, exp.Alias) else [each.name for each in node.aliases])
        return
    node = node.unnest()
    if isinstance(node, exp.JSONExtract):
        keys = [step.this for step in node.expression.expressions if isinstance(step, exp.JSONPathKey)]
        yield from keys[-1:]
    elif isinstance(node, exp.Column):
        yield node.name
    elif isinstance(node, exp.Cast | exp.TryCast):
        yield from _output_names(node.this)
