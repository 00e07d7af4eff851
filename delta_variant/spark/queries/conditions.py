"""Find the conditions of a query without which no row of a source is in the result of its SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from ...errors import ExpressionError
from ...expressions.parse import parse
from ...expressions.tree import Expression, Name, walk
from .parts import Conjunct, Scope, Span
from .spans import QueryTokens
from .syntax import join_conditions

__all__ = ["ConditionFinder"]


class ConditionFinder:
    """Finds the conditions in WHERE and ON. `scope_of` has the scope of a node."""

    def __init__(
        self,
        tokens: QueryTokens,
        scope_of: Callable[[Any], int | None],
        parameters: Mapping[str, str] | Sequence[str],
    ) -> None:
        self._tokens = tokens
        self._scope_of = scope_of
        self._parameters = parameters

    def find(self, number: int, select: Any, scope: Scope) -> Iterator[Conjunct]:
        """Yield the conditions of a SELECT, the scope of this number."""
        if not scope.is_plain:
            return
        required = frozenset(scope.sources) - scope.optional
        where = select.args.get("where")
        conditions = [] if where is None else [(where.this, required)]
        for condition, sources in [*conditions, *join_conditions(select)]:
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
        marks = [*self._tokens.parameters(span, self._parameters)]
        if any(value is None for _, value in marks):
            return None
        text, shift = self._tokens.text_at(span), span[0]
        for (start, end), value in reversed(marks):
            text = f"{text[: start - shift]}({value}){text[end + 1 - shift :]}"
        try:
            return parse(text)
        except ExpressionError:
            return None


def _names(expression: Expression) -> set[tuple[str, ...]]:
    return {each.parts for each in walk(expression) if isinstance(each, Name)}


def _name_of(column: Any) -> tuple[str, ...]:
    """Return the parts of a column, including the parts of nested struct fields."""
    parts = [part.this for part in column.parts]
    while isinstance(column.parent, exp.Dot):
        column = column.parent
        parts.append(column.expression.name)
    return tuple(parts)
