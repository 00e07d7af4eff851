"""Expressions over the target and the source of a merge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa

from ...errors import ExpressionError
from ...expressions.bind import bind as bind_expression
from ...expressions.bind import called_without_parentheses
from ...expressions.char_padding import pad_chars
from ...expressions.names import NameScope
from ...expressions.parse import parse as parse_expression
from ...expressions.tree import Column, Expression, Extraction, Field, Input, Name, output_type
from ...expressions.tree import inputs as expression_inputs
from ...expressions.tree import transform as transform_expression
from ...expressions.types import type_name
from ...read.scope import Scope

__all__ = ["Side", "Sides", "side_inputs", "unqualify"]

Side: TypeAlias = Literal["target", "source"]


@dataclass(frozen=True)
class Sides:
    """The tables of a merge and their aliases; `alias.` is optional if one table only has the column."""

    target_alias: str
    target: Scope
    source_alias: str
    source: Scope

    def bind(self, parsed: Expression) -> Expression:
        """Return an expression over both tables, whose inputs have their table as an attribute."""
        bound = bind_expression(transform_expression(parsed, self._qualified), self._tables)
        return pad_chars(transform_expression(bound, self._input), self.target.chars, "target")

    @cached_property
    def _tables(self) -> NameScope:
        """Return a scope with a struct for each table."""
        sides = ((self.target_alias, self.target), (self.source_alias, self.source))
        structs = [pa.field(alias, pa.struct(list(scope.schema))) for alias, scope in sides]
        return NameScope(pa.schema(structs), (), self.target.timezone, self.target.moment)

    def predicate(self, text: str) -> Expression:
        """Return SQL text as a predicate over both tables; raises ExpressionError."""
        bound = self.bind(parse_expression(text))
        bound_type = output_type(bound)
        if bound_type not in (pa.bool_(), pa.null()):
            raise ExpressionError(
                f"expected a boolean expression, got {text!r} of type {type_name(bound_type)}"
            )
        return bound

    def _qualified(self, part: Expression) -> Expression | None:
        if not isinstance(part, Name):
            return None
        first = part.parts[0].lower()
        if len(part.parts) > 1 and first in (self.target_alias.lower(), self.source_alias.lower()):
            return part
        owners = [
            alias
            for alias, scope in ((self.target_alias, self.target), (self.source_alias, self.source))
            if scope.fields(first)
        ]
        if len(owners) == 2:
            column = part.parts[0]
            message = (
                f"the column {column!r} is ambiguous because both tables have it: use {owners[0]}.{column}"
            )
            raise ExpressionError(message, column=column)
        call = None if owners else called_without_parentheses(part)
        return Name((*(owners or [self.target_alias]), *part.parts)) if call is None else call

    def _input(self, part: Expression) -> Expression | None:
        match part:
            case Field(Column(alias, _), name, arrow_type):
                return Column(name, arrow_type, self._side(alias))
            case Extraction(column=alias, fields=(name, *rest)):
                return msgspec.structs.replace(part, column=name, fields=tuple(rest), table=self._side(alias))
            case Column(alias, _):
                raise ExpressionError(f"expected a column, got the table {alias!r}: use {alias}.<column>")
        return None

    def _side(self, alias: str) -> Side:
        return "target" if alias == self.target_alias else "source"


def side_inputs(expressions: Iterable[Expression], side: Side) -> tuple[Input, ...]:
    """Return the inputs that expressions over both tables read from one of them."""
    return tuple(each for each in expression_inputs(expressions) if each.table == side)


def unqualify(part: Expression) -> Any:
    """Return an expression that reads one table as an expression over that table alone."""

    def change(inner: Expression) -> Expression | None:
        return msgspec.structs.replace(inner, table=None) if isinstance(inner, Column | Extraction) else None

    return transform_expression(part, change)
