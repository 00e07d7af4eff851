"""The parts that statements have in common: names, expressions, properties and queries."""

from __future__ import annotations

from collections.abc import Mapping

from ..expressions.grammar import Grammar
from ..expressions.lexer import GrammarError, Token
from ..expressions.literals import string_value
from ..expressions.parse import parse
from ..expressions.tree import Expression, Name
from .session import Text

DEFAULT = Text("default")
"""The value DEFAULT of a column."""
NESTED = ("struct", "array", "map")
"""The types whose parts are in angle brackets."""


class StatementGrammar(Grammar):
    """A parser of a statement; its methods raise GrammarError. `parameters` are the SQL texts of values."""

    def __init__(self, text: str, parameters: Mapping[str, str]) -> None:
        super().__init__(text)
        self._parameters = parameters
        self._names: list[int] = []
        self._values: list[tuple[int, int, str]] = []
        self._queries: list[tuple[int, int]] = []
        self.takes_queries = False
        """Whether a value can be a subquery."""

    def accept_words(self, words: str) -> bool:
        """Return whether these words come next, and move past them if so; those in brackets are optional."""
        start = self.position
        for group in words.split("["):
            optional, _, required = group.rpartition("]")
            if optional:
                self.accept_words(optional)
            for word in required.split():
                if not self.accept(word):
                    self.position = start
                    return False
        return True

    def expect_words(self, words: str) -> None:
        for word in words.split():
            self.expect(word)

    def alias(self, *ends: str) -> str | None:
        """Return the alias at the position, None if one of these words or the end is there."""
        is_named = self.accept("as") or (self.token.kind != "end" and not self.is_next(*ends))
        return self.take_name() if is_named else None

    def text_after(self, word: str) -> Text | None:
        """Return the SQL text of the expression after a word, None without the word."""
        return self.expression_text() if self.accept(word) else None

    def expression_text(self) -> Text:
        """Return the SQL text of an expression, with the values of its parameters, without subqueries."""
        start = self.token.start
        self._names, self._values, self._queries = [], [], []
        self.expression()
        edits = {
            *((name, name, "") for name in self._names),
            *((first, end, "") for first, end in self._queries),
            *self._values,
        }
        found, starts, queries, position = "", list[int](), list[tuple[int, str]](), start
        for first, end, value in sorted(edits):
            found += self.text[position:first] + value
            if first == end:
                starts.append(len(found))
            elif not value:
                queries.append((len(found), self.text[first:end]))
            position = end
        return Text(found + self.text[position : self.position], tuple(starts), tuple(queries))

    def value_or_default(self) -> Text:
        """Return the SQL text of a value, or the word DEFAULT that stands alone."""
        ends = self.following.kind == "end" or self.following.text in (",", ")")
        if self.is_next("default") and (ends or self.following.word in ("where", "when")):
            self.take()
            return DEFAULT
        return self.expression_text()

    def string(self) -> str:
        if self.token.kind != "string":
            self.fail("a string")
        return string_value(self.take())

    def number(self) -> str:
        if self.token.kind != "number" or not self.token.text.isdecimal():
            self.fail("an integer from 0")
        return self.take().text

    def property_key(self) -> str:
        return self.string() if self.token.kind == "string" else ".".join(self.take_qualified_name())

    def properties(self) -> Mapping[str, str]:
        """Return the table properties in parentheses at the position."""
        return dict(self.enclosed_list(self._property))

    def _property(self) -> tuple[str, str]:
        key = self.property_key()
        self.accept("=")
        if self.token.kind not in ("string", "number", "word"):
            self.fail("a value")
        is_string = self.token.kind == "string"
        return key, self.string() if is_string else self.take().text

    def enclosed_texts(self) -> tuple[str, ...]:
        """Return the texts between the commas of a list in parentheses."""
        return self.enclosed(self.texts)

    def texts(self) -> tuple[str, ...]:
        """Return the texts between the commas of a list that ends before a parenthesis or at the end."""
        return self.take_list(self._until_comma)

    def _until_comma(self) -> str:
        start = self.token.start
        while self.token.kind != "end" and not self.is_next(",", ")"):
            self._skip()
        return self.text[start : self.position].strip()

    def _skip(self) -> None:
        """Move past a token, or past all to the closing bracket."""
        if self.token.kind == "end":
            self.fail("`)`")
        token = self.take()
        closing = {"(": ")", "[": "]"}.get(token.text if token.kind == "symbol" else "")
        if token.word in NESTED and self.accept("<"):
            closing = ">"
        while closing is not None and not self.accept(closing):
            self._skip()

    def enclosed_query(self) -> str:
        self.expect("(")
        start = self.token.start
        while not self.is_next(")"):
            self._skip()
        query = self.text[start : self.position]
        self.expect(")")
        return query

    def rest(self) -> str:
        start = self.token.start
        while self.token.kind != "end":
            self.take()
        return self.text[start:]

    # What follows extends the grammar of expressions.

    def _begins_query(self) -> bool:
        return self.is_next("select", "with", "values") and self.begins_value(self.following)

    def reject_query(self) -> None:
        """Raise GrammarError for a subquery."""
        if self._begins_query():
            self.fail("an expression", "use MERGE INTO … USING (query): conditions take no subqueries")

    def _enclosed(self) -> Expression:
        if not self.takes_queries or not self._begins_query():
            return super()._enclosed()
        start = self.token.start
        while not self.is_next(")"):
            self._skip()
        self._queries.append((start, self.position))
        self.expect(")")
        return parse("null")

    def _called(self) -> Expression:
        if self.is_next("exists"):
            start = self.position
            self.take()
            self.take()
            self.reject_query()
            self.position = start
        return super()._called()

    def _value(self, token: Token) -> Expression:
        if self.accept(":"):
            return self._parameter(token)
        value = super()._value(token)
        # A name in parentheses was added before: `token` is the parenthesis.
        if isinstance(value, Name) and token.kind != "symbol":
            self._names.append(token.start)
        return value

    def _parameter(self, token: Token) -> Expression:
        name = self.take_name()
        text = self._parameters.get(name)
        if text is None:
            raise GrammarError(token.start, f"the parameter `{name}` has no value", "pass it in `parameters`")
        self._values.append((token.start, self.position, text))
        return parse(text)
