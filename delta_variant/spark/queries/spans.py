"""The spans of the parts of a query in its text, as its tokens tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from .parts import Span, TableReference
from .syntax import CAST_TOKENS, CLOSING, GETTERS, OPENING

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

    def version_after(self, end: int) -> tuple[int, int | None, str | None] | None:
        """Return the end and the value of VERSION or TIMESTAMP AS OF after a table, None if not constant."""
        number = next(number for number, token in enumerate(self._tokens) if token.start > end)
        while self._tokens[number].text.lower() != "of":
            number += 1
        kind, value = self._tokens[number - 2].text.lower(), self._tokens[number + 1]
        if kind == "version" and value.text.isdecimal():
            return value.end, int(value.text), None
        if kind == "timestamp" and value.token_type is TokenType.STRING:
            return value.end, None, value.text
        return None

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
        following = tokens[last + 1].token_type if last + 1 < len(tokens) else None
        if following is TokenType.L_PAREN or (len(parts) == 1 and parts[0].lower() in ctes):
            continue
        has_alias = following in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
        takes_alias = not has_alias and token.token_type is not TokenType.TABLE
        span = tokens[number + 1].start, tokens[last].end
        yield TableReference(parts, span, None, is_plain=False, takes_alias=takes_alias)
