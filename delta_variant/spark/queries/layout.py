"""Decide which SELECTs of a query may have other columns, so that extracted values pass and others do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...expressions.tree import Name
from .column_names import Names
from .parts import Item, Query, Span

__all__ = ["Group", "Layout", "Slot"]


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
