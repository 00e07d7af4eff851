"""The syntax of a query: the clauses of its tree, and where its parts are in the text by its tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from ...expressions.variant_calls import CONSTRUCTORS
from .parts import Span, TableReference

CAST_TOKENS = (TokenType.DCOLON, TokenType.QDCOLON)
OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
# What the functions of sqlglot raise for a call without the arguments that they need.
PARSER_ERRORS = (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class Dialect(Databricks):
    """Databricks SQL in which a doubled quote in a string literal is an escaped quote, as in Spark 4.

    Constructors are parsed as any function: sqlglot would pair the arguments, and drop the last one.
    """

    class Tokenizer(Databricks.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']

    class Parser(Databricks.Parser):  # type: ignore[misc,valid-type]
        FUNCTIONS = {
            name: parse
            for name, parse in Databricks.Parser.FUNCTIONS.items()
            if name.lower() not in {"struct", *CONSTRUCTORS} - {"array"}
        }


CLAUSES_OF_ROWS = ("with_", "hint", "expressions", "from_", "joins", "where")
"""The clauses of a SELECT whose rows do not depend on each other."""
CLAUSES_OF_COLUMNS = (*CLAUSES_OF_ROWS, "laterals", "windows", "order", "limit", "offset")
"""The clauses of a SELECT whose rows do not depend on its columns."""
CLAUSES_OF_SOURCES = ("expressions", "from_", "joins", "laterals", "where", "group")
"""The clauses of a SELECT whose names are those of its sources."""
GETTERS = ("variant_get", "try_variant_get")
EXTRACTS = (exp.JSONExtract, exp.Anonymous)


def base_of(node: Any) -> Any:
    """Return the column that paths and casts extract a value from, None for other expressions."""
    if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
        return node.this if isinstance(node.this, exp.Column) else base_of(node.this)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in GETTERS and node.expressions:
        first = node.expressions[0]
        return first if isinstance(first, exp.Column) else None
    return None


def sees_outputs(node: Any) -> bool:
    while not isinstance(node.parent, exp.Select):
        node = node.parent
    return node.arg_key not in CLAUSES_OF_SOURCES


def visible_ctes(table: Any) -> dict[str, Any]:
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


def is_plain_source(node: Any, *, is_versioned: bool = False) -> bool:
    """Return whether a table or a subquery is one of FROM, without a sample, a pivot and the like."""
    known = ("this", "db", "catalog", "alias", *(["version"] if is_versioned else []))
    is_source = isinstance(node.parent, exp.From | exp.Join) and isinstance(node.parent.parent, exp.Select)
    return is_source and has_only(node, known)


def branches_of(node: Any) -> tuple[list[Any], bool]:
    """Return the SELECTs of a query, and whether its set operations do not compare their rows.

    The list is empty if another clause uses the rows of them all.
    """
    if isinstance(node, exp.Select):
        return [node], True
    if type(node) in (exp.Subquery, exp.Paren) and has_only(node, ("this",)):
        return branches_of(node.this)
    if not isinstance(node, exp.SetOperation) or not has_only(
        node, ("this", "expression", "distinct", "with_")
    ):
        return [], False
    (left, is_left), (right, is_right) = branches_of(node.this), branches_of(node.expression)
    is_union = isinstance(node, exp.Union) and not node.args.get("distinct")
    return (left + right if left and right else []), is_union and is_left and is_right


def joins_columns(select: Any) -> bool:
    """Return whether a star has the columns of each source, one source after the other."""
    joins = select.args.get("joins") or []
    return not any(
        join.args.get("using") or join.args.get("method") or (join.kind or "").upper() in ("SEMI", "ANTI")
        for join in joins
    )


def is_from_a_table(select: Any) -> bool:
    """Return whether a SELECT is, or is a part of, a common table expression or a subquery in FROM."""
    node = select.parent
    while isinstance(node, exp.SetOperation) or type(node) is exp.Paren:
        node = node.parent
    return isinstance(node, exp.CTE) or (
        isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join)
    )


def has_only(node: Any, clauses: Collection[str]) -> bool:
    return not any(part for name, part in node.args.items() if name not in clauses)


def is_over_rows(node: Any) -> bool:
    """Return whether an expression of SELECT may depend on more than one row, or make several of one."""
    return any(node.find_all(exp.Window, exp.AggFunc, exp.UDTF))


class JoinedSource(NamedTuple):
    """A source of a SELECT, the condition of its join, and the sources whose rows have to meet this.

    Rows of the sources in `optional` may be NULL because of this join or one before.
    """

    name: str
    source: Any
    condition: Any
    required: frozenset[str]
    optional: frozenset[str]


def joined_sources(select: Any) -> Iterator[JoinedSource]:
    clause = select.args.get("from_")
    before = frozenset[str]()
    optional = frozenset[str]()
    if clause is not None:
        name = clause.this.alias_or_name.lower()
        yield JoinedSource(name, clause.this, None, before, optional)
        before |= {name}
    for join in select.args.get("joins") or []:
        name, side = join.this.alias_or_name.lower(), (join.side or "").upper()
        required = {
            "": (before | {name}) - optional,
            "LEFT": frozenset({name}),
            "RIGHT": before - optional,
        }.get(side, frozenset())
        if (join.kind or "").upper() in ("SEMI", "ANTI"):
            required = frozenset({name})
        # Two sources of one name cannot be told apart.
        condition = None if name in before else join.args.get("on")
        optional |= {"LEFT": {name}, "RIGHT": before, "FULL": before | {name}}.get(side, set())
        yield JoinedSource(name, join.this, condition, required, optional)
        before |= {name}


def whole_sources(select: Any, sources: Mapping[str, int | None], *, with_items: bool) -> Iterator[str]:
    """Yield the sources of which functions in a SELECT, and the SELECT `with_items`, read all columns."""
    for star in select.find_all(exp.Star):
        if isinstance(star.parent, exp.Count) or star.find_ancestor(exp.Select) is not select:
            continue
        item: Any = star.parent if isinstance(star.parent, exp.Column) else star
        if item.parent is select and (not with_items or isinstance(select.parent, exp.Exists)):
            continue
        if isinstance(star.parent, exp.Column) and star.parent.table:
            yield star.parent.table.lower()
        else:
            yield from sources


def output_names(node: Any) -> Iterator[str]:
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
        yield from output_names(node.this)


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
CASTS = ("cast", "try_cast")
OF_VERSION = ("version", "system_version")
OF_TIMESTAMP = ("timestamp", "system_time")


class QueryTokens:
    """The tokens of a query, by position."""

    def __init__(self, text: str, tokens: Sequence[Any]) -> None:
        self.text = text
        self._tokens = tokens
        self._by_start = {token.start: number for number, token in enumerate(tokens)}
        self._closing = _matching_brackets(tokens)

    def names(self) -> list[tuple[int, str]]:
        """Return the text of the tokens that are not strings, in lower case, by position."""
        return [(token.start, token.text.lower()) for token in self._tokens if self.text[token.start] != "'"]

    def text_at(self, span: Span) -> str:
        return self.text[span[0] : span[1] + 1]

    def star(self, node: Any) -> Span:
        """Return the span of a star, with its qualifier and the columns that it excludes."""
        star = node.this if isinstance(node, exp.Column) else node
        last = self._by_start[star.meta["start"]]
        if self._kind(last + 1) is TokenType.EXCEPT:
            last = self._closing.get(last + 2, last)
        start = star.meta["start"] if star is node else node.parts[0].meta["start"]
        return start, self._tokens[last].end

    def brackets_around(self, identifiers: Sequence[Any]) -> Span:
        opening = self._by_start[identifiers[0].meta["start"]] - 1
        return self._tokens[opening].start, self._tokens[self._closing[opening]].end

    def extract(self, node: Any, base: Any) -> Span | None:
        """Return the span of a path of a column or a cast of it, None if it is written in another way."""
        if isinstance(node, exp.JSONExtract):
            first, last = (self._by_start[base.parts[index].meta["start"]] for index in (0, -1))
            return self._between(first, self._end_of_path(last + 1))
        if isinstance(node, exp.Anonymous):
            return self._call(self._by_start[base.parts[0].meta["start"]] - 1, GETTERS)
        inner = self.extract(node.this, base)
        if inner is None:
            return None
        first = self._by_start[inner[0]]
        last = next(number for number, token in enumerate(self._tokens) if token.end == inner[1])
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

    def _between(self, first: int, last: int | None) -> Span | None:
        if last is None or last >= len(self._tokens):
            return None
        return self._tokens[first].start, self._tokens[last].end

    def parameters(
        self, span: Span, values: Mapping[str, str] | Sequence[str]
    ) -> Iterator[tuple[Span, str | None]]:
        """Yield the span of each parameter, and the SQL text of its value if there is one."""
        position = -1
        for number, token in enumerate(self._tokens):
            if token.token_type is TokenType.PLACEHOLDER:
                position += 1
                if span[0] <= token.start <= span[1]:
                    is_known = not isinstance(values, Mapping) and position < len(values)
                    yield (token.start, token.end), values[position] if is_known else None  # type: ignore[index]
            elif span[0] <= token.start <= span[1] and self._is_named_parameter(number):
                name = self._tokens[number + 1]
                known = values.get(name.text) if isinstance(values, Mapping) else None
                yield (token.start, name.end), known

    def version_after(self, end: int) -> TableVersion | None:
        """Return the version that follows the name of a table, None without one."""
        number = next((number for number, token in enumerate(self._tokens) if token.start > end), None)
        return None if number is None else version_at(self._tokens, number)

    def _is_named_parameter(self, number: int) -> bool:
        """Return whether a token is the colon of `:name`, and not that of a path."""
        if self._kind(number) is not TokenType.COLON or self._kind(number + 1) is None:
            return False
        before = self._tokens[number - 1]
        follows_value = before.end + 1 == self._tokens[number].start and (
            before.token_type in (*CLOSING, TokenType.VAR, TokenType.IDENTIFIER) or before.text.isidentifier()
        )
        return not follows_value

    def operand_around(self, first: int, last: int) -> Span | None:
        """Return the innermost operand of a WHERE or ON that contains two positions."""
        found = None
        for start, end in self._operands:
            if start <= first and last <= end and (found is None or start >= found[0]):
                found = (start, end)
        return found

    @cached_property
    def _operands(self) -> list[Span]:
        """The operands of the conjunctions in WHERE and ON, as the tokens alone tell."""
        ends = {TokenType.WHERE: END_OF_WHERE, TokenType.ON: END_OF_ON}
        return [
            span
            for number, token in enumerate(self._tokens)
            if token.token_type in ends
            for span in self._split(number + 1, ends[token.token_type])
        ]

    def _split(self, start: int, ends: frozenset[Any]) -> Iterator[Span]:
        """Yield the operands of a conjunction, or a disjunction as it is."""
        position, cases, betweens = start, 0, 0
        firsts, is_disjunction = [start], False
        while (kind := self._kind(position)) is not None and kind not in CLOSING and kind not in ends:
            if kind in OPENING:
                position = self._closing.get(position, len(self._tokens))
            cases += (kind is TokenType.CASE) - (kind is TokenType.END)
            if not cases:
                betweens += kind is TokenType.BETWEEN
                is_disjunction |= kind is TokenType.OR
                if kind is TokenType.AND and betweens:
                    betweens -= 1
                elif kind is TokenType.AND:
                    firsts.append(position + 1)
            position += 1
        if is_disjunction:
            firsts = [start]
        for first, following in zip(firsts, [*firsts[1:], position + 1], strict=True):
            if first <= following - 2 < len(self._tokens):
                yield self._tokens[first].start, self._tokens[following - 2].end


class TableVersion(NamedTuple):
    """VERSION AS OF or TIMESTAMP AS OF: its last character, and its value, unless that is an expression."""

    end: int
    version: int | None = None
    timestamp: str | None = None


def version_at(tokens: Sequence[Any], number: int) -> TableVersion | None:
    """Return the version of a table that begins with a token, None without one."""
    texts = [token.text.lower() for token in tokens[number : number + 6]]
    if texts[:1] == ["for"]:
        number, texts = number + 1, texts[1:]
    if texts[1:3] != ["as", "of"] or texts[0] not in (*OF_VERSION, *OF_TIMESTAMP) or len(texts) < 4:
        return None
    value, is_of_version = tokens[number + 3], texts[0] in OF_VERSION
    if is_of_version and value.text.isdecimal():
        return TableVersion(value.end, version=int(value.text))
    # The literal of a date is its text, too.
    if texts[3] in ("date", "timestamp") and len(texts) > 4:
        value = tokens[number + 4]
    if not is_of_version and value.token_type is TokenType.STRING:
        return TableVersion(value.end, timestamp=value.text)
    return TableVersion(value.end)


def _matching_brackets(tokens: Sequence[Any]) -> dict[int, int]:
    found: dict[int, int] = {}
    open_brackets: list[int] = []
    for number, token in enumerate(tokens):
        if token.token_type in OPENING:
            open_brackets.append(number)
        elif token.token_type in CLOSING and open_brackets:
            found[open_brackets.pop()] = number
    return found


def tables_of_tokens(tokens: Sequence[Any]) -> Iterator[TableReference]:
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
        end, version = tokens[last].end, version_at(tokens, last + 1)
        is_constant = version is not None and (version.version, version.timestamp) != (None, None)
        if version is not None and is_constant:
            end = version.end
            last = next(index for index, each in enumerate(tokens) if each.end == end)
        following = tokens[last + 1].token_type if last + 1 < len(tokens) else None
        if following is TokenType.L_PAREN or (len(parts) == 1 and parts[0].lower() in ctes):
            continue
        has_alias = following in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
        yield TableReference(
            parts,
            (tokens[number + 1].start, end),
            None,
            is_plain=False,
            takes_alias=not has_alias and token.token_type is not TokenType.TABLE,
            version=version.version if version else None,
            timestamp=version.timestamp if version else None,
            has_computed_version=version is not None and not is_constant,
        )
