"""The tree of a query. Its expressions are those of `expressions.tree`, and marks.

A mark is a `Name` that no text can write. It stands for an aggregate, a window function or a subquery, whose
tree is in `Statement.marked` at the number in the mark.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ..expressions.tree import Expression, Name

MARK = "\0mark"
JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]


class SortKey(msgspec.Struct, frozen=True):
    """A key of an order."""

    value: Expression
    descending: bool
    nulls_first: bool


ALL = Name(("\0all",))
"""The value of the only key of ORDER BY ALL, which stands for all items of SELECT."""


class AggregateCall(msgspec.Struct, frozen=True):
    """An aggregate or a window function; `count(*)` has no arguments. `where` is its FILTER clause.

    `ignores_nulls` is IGNORE NULLS, and `order` has the keys of WITHIN GROUP.
    """

    function: str
    arguments: tuple[Expression, ...]
    distinct: bool
    where: Expression | None
    text: str = ""
    ignores_nulls: bool = False
    order: tuple[SortKey, ...] = ()


class WindowCall(msgspec.Struct, frozen=True):
    """A function over a window; the frame is SQL text of numbers and keywords."""

    call: AggregateCall
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: str | None


class Subquery(msgspec.Struct, frozen=True):
    """A query in an expression."""

    statement: Statement
    kind: Literal["value", "in", "exists"]


Marked: TypeAlias = AggregateCall | WindowCall | Subquery


class Item(msgspec.Struct, frozen=True):
    """An item of SELECT; without a value it is `*` or `qualifier.*`, without the excluded columns."""

    value: Expression | None
    name: str
    qualifier: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


class TableName(msgspec.Struct, frozen=True):
    """A table by its name; `changes` are the arguments of `table_changes` after it."""

    parts: tuple[str, ...]
    version: int | None
    timestamp: str | None
    alias: str | None
    changes: tuple[int | str | None, ...] = ()


class Derived(msgspec.Struct, frozen=True):
    """A query in FROM, or a common table expression."""

    statement: Statement
    alias: str | None
    columns: tuple[str, ...]


class Explode(msgspec.Struct, frozen=True):
    """The rows of `left` with the parts of a Variant of each."""

    left: Source
    function: str
    argument: Expression
    alias: str | None
    columns: tuple[str, ...]


class Join(msgspec.Struct, frozen=True):
    """A join of two sources. `using` has the names of its columns, and is None for NATURAL."""

    left: Source
    right: Source
    kind: JoinKind
    on: Expression | None
    using: tuple[str, ...] | None


Source: TypeAlias = TableName | Derived | Explode | Join


class Select(msgspec.Struct, frozen=True):
    """A SELECT; `groups` is None without GROUP BY.

    `sets` has the positions in `groups` of the keys of each grouping set; None for one set of all.
    """

    items: tuple[Item, ...]
    source: Source | None
    where: Expression | None
    groups: tuple[Expression, ...] | Literal["all"] | None
    sets: tuple[tuple[int, ...], ...] | None
    having: Expression | None
    qualify: Expression | None
    distinct: bool


class Values(msgspec.Struct, frozen=True):
    """The rows of VALUES, whose columns are named `col1`, `col2`…"""

    rows: tuple[tuple[Expression, ...], ...]


class SetOperation(msgspec.Struct, frozen=True):
    """The rows of one query combined with those of another."""

    kind: Literal["union", "intersect", "except"]
    is_all: bool
    left: Body
    right: Body


class Statement(msgspec.Struct, frozen=True):
    """A query with its common table expressions, its order and its limit."""

    tables: tuple[Derived, ...]
    body: Body
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int


Body: TypeAlias = Select | SetOperation | Statement | Values


def mark(number: int) -> Name:
    return Name((MARK, str(number)))


def marked_number(expression: Expression) -> int | None:
    """Return the number of the tree for which a mark stands, None for any other expression."""
    is_mark = isinstance(expression, Name) and expression.parts[0] == MARK
    return int(expression.parts[1]) if is_mark and isinstance(expression, Name) else None
