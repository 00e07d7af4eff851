"""The columns of a part of a query by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from .._checks import list_names
from ..errors import ExpressionError
from ..expressions.bind import called_without_parentheses
from ..expressions.names import propose_name
from ..expressions.tree import Call, Expression, Literal, Name, conjuncts
from ..read.scope import METADATA, NOT_SELECTED
from .relations import Relation
from .relations import Source as RowSource


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


def column_of(view: View) -> Expression:
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
