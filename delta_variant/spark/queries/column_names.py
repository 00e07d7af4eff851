"""Resolve the names of a query to columns of its tables, through the SELECTs of derived tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import ExpressionError
from ...expressions.tree import Expression, Name, transform, walk
from ...read.scope import Scope as TableScope
from .parts import Item, Query, Scope, Span


@dataclass(frozen=True)
class Slot:
    """A column of the result of a SELECT: an item, or the column `name` of the `source` of a star."""

    item: int
    name: str
    source: str | None = None


@dataclass
class Group:
    """The slots at one position of the SELECTs that a set operation combines.

    A query needs all or none of them: `names` are those of the column, and `spans` its items.
    """

    names: frozenset[str]
    spans: list[Span]
    is_used: bool


class Layout:
    """The columns of the results of scopes, which others can replace where a query reads them by name."""

    def __init__(self, query: Query, names: Names) -> None:
        self._query = query
        self._names = names
        self._free: dict[int, bool] = {}
        self.consumers: dict[int, list[tuple[int, str]]] = {}
        for number, scope in enumerate(query.scopes):
            for alias, branches in scope.derived.items():
                for branch in branches:
                    self.consumers.setdefault(branch, []).append((number, alias))

    def _items(self, number: int) -> tuple[Item, ...]:
        return self._query.scopes[number].items or ()

    def is_free(self, number: int) -> bool:
        """Return whether the result of a scope may have other columns than the query gives it."""
        if number not in self._free:
            self._free[number] = self._can_be_free(number) and all(
                self.reads_by_name(*each) for each in self.consumers[number]
            )
        return self._free[number]

    def _can_be_free(self, number: int) -> bool:
        scope = self._query.scopes[number]
        branches = scope.branches if scope.is_derived and scope.passes_columns else ()
        if not branches or any(self._query.scopes[each].items is None for each in branches):
            return False
        if not self.is_by_position(number):
            return True
        is_known = self._names.columns_of(*self.consumers[number][0]) is not None
        return is_known and all(
            self._can_list(each, index) if item.stars else len(item.names) == 1
            for each in branches
            for index, item in enumerate(self._items(each))
        )

    def is_by_position(self, number: int) -> bool:
        """Return whether others than the scope name its columns: a set operation or a list of names."""
        scope = self._query.scopes[number]
        return len(scope.branches) > 1 or bool(scope.names)

    def is_combined(self, number: int) -> bool:
        """Return whether a scope is one of several in a set operation."""
        return len(self._query.scopes[number].branches) > 1

    def reads_by_name(self, number: int, source: str) -> bool:
        """Return whether a scope needs only the columns of a source that the query names."""
        scope = self._query.scopes[number]
        if not scope.is_plain or source in scope.stars:
            return False
        has_star = any(
            source in item.stars and not self.is_listed(number, index)
            for index, item in enumerate(self._items(number))
        )
        return not has_star or self.is_free(number)

    def is_listed(self, number: int, index: int) -> bool:
        """Return whether the text of a star becomes a list of its columns."""
        item = self._items(number)[index]
        if not item.stars:
            return False
        if self.is_by_position(number) and self.is_free(number):
            return True
        return bool(item.excluded) and self._can_list(number, index)

    def listed_stars(self, number: int) -> list[Span]:
        """Return the spans of the stars of a scope whose text becomes a list."""
        return [item.span for index, item in enumerate(self._items(number)) if self.is_listed(number, index)]

    def _can_list(self, number: int, index: int) -> bool:
        """Return whether the columns of a star are known, and can be named."""
        scope = self._query.scopes[number]
        sources = self._items(number)[index].stars
        if not scope.is_plain or not scope.joins_columns or ("" in sources and len(scope.sources) > 1):
            return False
        for source in sources:
            columns = self._names.columns_of(number, source)
            names = [column.name for column in columns or ()]
            if columns is None or len(set(names)) < len(names) or "" in names:
                return False
        return True

    def slots(self, number: int) -> Iterator[Slot]:
        """Yield the columns of the result of a scope, without those of stars that stay in the text."""
        for index, item in enumerate(self._items(number)):
            if not item.stars:
                yield Slot(index, next(iter(item.names), ""))
            elif self.is_listed(number, index):
                for source in item.stars:
                    for column in self._names.columns_of(number, source) or ():
                        if column.name not in item.excluded:
                            yield Slot(index, column.name, source)

    def groups(self, number: int) -> list[Group]:
        """Return the groups of the slots of a scope; they are equal for all scopes of a set operation."""
        scope = self._query.scopes[number]
        branches = scope.branches if self.is_by_position(number) and self.is_free(number) else (number,)
        columns = zip(*([*self.slots(each)] for each in branches), strict=True)
        found = []
        for position, slots in enumerate(columns):
            items = [self._items(each)[slot.item] for each, slot in zip(branches, slots, strict=True)]
            is_droppable = self.is_free(number) and all(
                item.stars or isinstance(item.expression, Name) for item in items
            )
            names = {slot.name for slot in slots} | {name for item in items for name in item.names}
            names |= {*scope.names[position : position + 1]}
            spans = [item.span for item in items if isinstance(item.expression, Name)]
            found.append(Group(frozenset(names - {""}), spans, not is_droppable))
        return found


Path = tuple[tuple[int, str], ...]
"""How rows of a table get into a scope: that scope and its source, those of the source, and so on."""


@dataclass(frozen=True)
class Origin:
    """An expression over the columns of one table, and the columns that it is of the scopes on its path.

    `steps` has the scope, the index of the item and the name of each of these columns.
    """

    reference: int
    path: Path
    expression: Expression
    steps: tuple[tuple[int, int, str], ...] = ()


Origins = tuple[Origin, ...]


@dataclass(frozen=True)
class Column:
    """A column of a source, or of the result of a SELECT, which has it from one of its `items`.

    `name` is in lower case, and empty if it is not known. It has an origin for each of the SELECTs that a
    set operation combines, and none if one of them is not known for certain.
    """

    name: str
    origins: Origins = ()
    item: int = 0


class Names:
    """The columns that the names of a query stand for. `tables` has them by table reference."""

    def __init__(self, query: Query, tables: Mapping[int, TableScope]) -> None:
        self._query = query
        self._tables = tables
        self._outputs: dict[int, list[Column] | None] = {}
        self._sources: dict[tuple[int, str], list[Column] | None] = {}

    def bind(self, origin: Origin) -> Expression | None:
        """Return the expression bound to the columns of its table, None if it cannot be evaluated there."""
        try:
            return self._tables[origin.reference].bind(origin.expression)
        except ExpressionError:
            return None

    def resolve(self, scope: int, expression: Expression, *, sees_outputs: bool) -> list[Origin]:
        """Return the origins of an expression, one for each path of all of its names.

        There are none if a name is not known for certain, or if names are of several tables.
        """
        columns = {
            name: self._resolve(scope, name.parts, sees_outputs=sees_outputs) for name in _names(expression)
        }
        by_path = [{each.path: each for each in origins} for origins in columns.values()]
        if not by_path or len({frozenset(each) for each in by_path}) > 1:
            return []
        found = []
        for path, first in by_path[0].items():
            here = dict(zip(columns, (each[path] for each in by_path), strict=True))
            steps = tuple(dict.fromkeys(step for each in here.values() for step in each.steps))
            found.append(Origin(first.reference, path, _substitute(expression, here), steps))
        return found

    def _resolve(self, scope: int | None, parts: tuple[str, ...], *, sees_outputs: bool) -> Origins:
        """Return the origins of a name, none if they are not known for certain."""
        while scope is not None:
            here = self._query.scopes[scope]
            parts = self._without_schema(here, parts)
            name = parts[0].lower()
            if len(parts) > 1 and name in here.sources:
                return self._fields(self.columns_of(scope, name) or [], parts[1:])
            sources = [self.columns_of(scope, each) for each in here.sources]
            if sees_outputs and (name in here.outputs or None in sources):
                return ()
            known = [column for each in sources for column in each or ()]
            if any(column.name == name for column in known):
                return self._fields(known, parts)
            if None in sources:
                return ()
            scope = here.parent
        return ()

    def _fields(self, columns: Sequence[Column], parts: tuple[str, ...]) -> Origins:
        """Return the origins of a column, or of a field of a struct column, none if several have the name."""
        found = [column for column in columns if column.name == parts[0].lower()]
        origins = found[0].origins if len(found) == 1 else ()
        if len(parts) > 1:
            if not all(isinstance(each.expression, Name) for each in origins):
                return ()
            origins = tuple(replace(each, expression=_field(each.expression, parts[1:])) for each in origins)
        return origins if len(origins) < 2 or self._have_one_type(origins) else ()

    def _have_one_type(self, origins: Sequence[Origin]) -> bool:
        """Return whether a set operation does not change the type of any of its columns."""
        bound: list[Any] = [self.bind(each) for each in origins]
        return None not in bound and len({(type(each), each.type) for each in bound}) == 1

    def _without_schema(self, scope: Scope, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return a name without the catalog and the schema of a table of the scope that has no alias."""
        tables = [self._query.tables[each] for each in scope.sources.values() if each is not None]
        for table in tables:
            for length in range(len(table.parts), 1, -1):
                names = [part.lower() for part in table.parts[-length:]]
                is_qualified = len(parts) > length and [part.lower() for part in parts[:length]] == names
                if table.alias is None and is_qualified:
                    return parts[length - 1 :]
        return parts

    def columns_of(self, number: int, source: str) -> list[Column] | None:
        """Return the columns of a source of a scope, None if they are not known."""
        key = number, source
        if key not in self._sources:
            self._sources[key] = self._find_columns(number, source)
        return self._sources[key]

    def _find_columns(self, number: int, source: str) -> list[Column] | None:
        scope, here = self._query.scopes[number], (number, source)
        reference = scope.sources[source]
        if reference is not None and reference in self._tables:
            names = self._tables[reference].schema.names
            return [Column(name.lower(), (Origin(reference, (here,), Name((name,))),)) for name in names]
        branches = [self.outputs_of(each) for each in scope.derived.get(source, ())]
        known = [each for each in branches if each is not None]
        if not known or len(known) < len(branches) or len({len(each) for each in known}) > 1:
            return None
        renamed = self._query.scopes[scope.derived[source][0]].names
        if len(known) > 1 or renamed:
            # An expression without a name may be several columns.
            is_certain = all(column.name for columns in known for column in columns)
            if not is_certain or len(renamed or known[0]) != len(known[0]):
                return None
        renamed = renamed or tuple(each.name for each in known[0])
        return [
            Column(name, _combine(here, [columns[position].origins for columns in known]))
            for position, name in enumerate(renamed)
        ]

    def outputs_of(self, number: int) -> list[Column] | None:
        """Return the columns of a SELECT, None if they are not known.

        Their number is not certain if the SELECT has expressions that may be several columns.
        """
        if number not in self._outputs:
            items = self._query.scopes[number].items
            columns = [self._outputs_of_item(number, *each) for each in enumerate(items or ())]
            known = [column for each in columns for column in each or ()]
            self._outputs[number] = None if items is None or None in columns else known
        return self._outputs[number]

    def _outputs_of_item(self, number: int, index: int, item: Item) -> list[Column] | None:
        if item.stars:
            sources = [self.columns_of(number, source) for source in item.stars]
            columns = [
                column for each in sources for column in each or () if column.name not in item.excluded
            ]
            return None if None in sources else [_step(column, number, index) for column in columns]
        origins = item.expression and self.resolve(number, item.expression, sees_outputs=False)
        return [_step(Column(name, tuple(origins or ())), number, index) for name in item.names or ("",)]


def _names(expression: Expression) -> list[Name]:
    return list(dict.fromkeys(node for node in walk(expression) if isinstance(node, Name)))


def _substitute(expression: Expression, origins: Mapping[Name, Origin]) -> Expression:
    return transform(expression, lambda node: origins[node].expression if isinstance(node, Name) else None)


def _field(column: Expression, parts: tuple[str, ...]) -> Name:
    assert isinstance(column, Name)
    return Name((*column.parts, *parts))


def _combine(here: tuple[int, str], branches: Sequence[Origins]) -> Origins:
    """Return the origins of a column of a source from those in its branches, none if a branch has none."""
    if not all(branches):
        return ()
    return tuple(replace(each, path=(here, *each.path)) for origins in branches for each in origins)


def _step(column: Column, number: int, index: int) -> Column:
    """Return a column of a source as a column of the SELECT that has it from an item."""
    origins = tuple(
        replace(each, steps=(*each.steps, (number, index, column.name))) for each in column.origins
    )
    return Column(column.name, origins, index)
