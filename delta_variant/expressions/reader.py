"""The base class of the grammar: read values, lists of arguments and calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NoReturn

from .calls import find_function
from .lexer import Cursor, Token
from .tree import Expression

OPENING = frozenset({"(", "-", "+", "!", "~"})
PARTS_OF_CASE = frozenset({"when", "then", "else", "end"})


class Reader(Cursor, ABC):
    """A parser of the expressions in a text; its methods raise GrammarError."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.end_of_path = -1
        self.last_step = ""

    @abstractmethod
    def expression(self) -> Expression:
        """Return the expression at the position."""

    @abstractmethod
    def value(self) -> Expression:
        """Return the expression at the position, without tests and connectives."""

    @abstractmethod
    def named(self) -> tuple[Expression, str | None]:
        """Return an expression and its alias, None if it has none."""

    def arguments(self, read: Callable[[], Expression]) -> list[Expression]:
        """Return the list of values in parentheses at the position; it may be empty."""
        self.expect("(")
        self.reject_query()
        if self.accept(")"):
            return []
        if self.is_next("distinct", "all") and self.begins_value(self.following):
            self.fail("an expression")
        found = self.take_list(read)
        self.expect(")")
        return list(found)

    def call(self, function: str, arguments: Sequence[Expression], token: Token) -> Expression:
        """Return the call of a function that the text has as an operator or a form at a token."""
        return find_function(function, token.start).call(arguments, token.start)

    def reject_query(self) -> None:
        """Raise GrammarError for a subquery."""
        if self.is_next("select", "with") and self.following.kind != "symbol":
            self.fail("an expression", "subqueries need `dv.sql`, and parentheses of their own")

    def begins_value(self, token: Token) -> bool:
        """Return whether a value can begin with a token."""
        if token.kind == "symbol":
            return token.text in OPENING
        return token.kind not in ("end", "unknown") and token.word not in PARTS_OF_CASE

    def fail(self, expected: str, remedy: str = "") -> NoReturn:
        """Raise GrammarError for the token at the position; a word after a path may belong to its name."""
        if self.position == self.end_of_path and self.token.kind == "word":
            name = f"{self.last_step} {self.token.text}"
            remedy = f"quote a name with spaces: ['{name}']; the alias of a path needs `as`"
        super().fail(expected, remedy)
