"""Statements over the tables of `sql`, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from .._text import quote
from ..errors import ExpressionError
from ..storage.store import TableLocation

__all__ = ["LocalSession", "NumberedRows"]

RunQuery: TypeAlias = "Callable[[str, Mapping[str, Any]], NumberedRows]"
"""Returns the rows of a query over tables by name, which are added to those of the session."""


class NumberedRows(NamedTuple):
    """The rows of a query, whose columns are named `c0`, `c1`…, and their names in the query."""

    names: Sequence[str]
    rows: pa.Table

    def named(self) -> pa.Table:
        """Return the rows with their names; raises ExpressionError for two columns of one name."""
        for number, name in enumerate(self.names):
            if name in self.names[:number]:
                raise ExpressionError(
                    f"two columns are named {name!r}: write `expression as name` for one of them", column=name
                )
        return self.rows.rename_columns(list(self.names))


class LocalRows(NamedTuple):
    """The rows of a query in a statement."""

    found: NumberedRows
    run: RunQuery

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        return self.found.names

    @property
    def data(self) -> pa.Table:
        """The rows, with their names."""
        return self.found.named()

    def select(self, columns: Mapping[str, str]) -> pa.Table:
        """Return the values of SQL text over the columns, which are named `c0`, `c1`…"""
        items = ", ".join(f"{text} as {quote(name)}" for name, text in columns.items())
        return self.run(f"select {items} from rows", {"rows": self.found.rows}).named()


@dataclass(frozen=True)
class LocalSession:
    """The tables of a call of `sql`, by their names in lower case."""

    tables: Mapping[str, Any]
    timezone: str
    run: RunQuery
    is_dynamic = False

    def find(self, name: Sequence[str]) -> TableLocation | None:
        """Return the location of a table, None for another name; raises ExpressionError for rows."""
        if len(name) == 2 and name[0].lower() == "delta":
            return name[1]
        found = self.tables.get(name[0].lower()) if len(name) == 1 else None
        if found is None or isinstance(found, str | PathLike) or hasattr(found, "table_uri"):
            return found
        raise ExpressionError(f"cannot change `{name[0]}`: expected a table, got {type(found).__name__}")

    def place(self, name: Sequence[str], location: Callable[[], str | None]) -> TableLocation | None:
        """Return where a table is created: at LOCATION, or as for a table that exists."""
        return location() or self.find(name)

    def full_name(self, name: Sequence[str]) -> tuple[str, ...]:
        """Return the name of a table."""
        return tuple(name)

    def rows(self, query: str) -> LocalRows:
        """Return the rows of a query."""
        return LocalRows(self.run(query, {}), self.run)
