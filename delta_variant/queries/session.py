"""Statements over the tables of `sql`, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from .._arrow import retype_array
from .._text import quote
from ..errors import ExpressionError
from ..protocol.types import ArrayType, DataType, MapType, PrimitiveType, StructType, sql_type
from ..storage.store import TableLocation

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
    """The rows of a query in a statement; see `Rows`."""

    found: NumberedRows
    run: RunQuery

    @property
    def names(self) -> Sequence[str]:
        return self.found.names

    @property
    def data(self) -> pa.Table:
        return self.found.named()

    def first(self, count: int) -> pa.Table:
        return self.found.rows.slice(0, count)

    def select(self, columns: Mapping[str, tuple[str, DataType]]) -> pa.Table:
        """Return the values of SQL text over the columns, which are named `c0`, `c1`…, with the types.

        The parts of nested values are not cast: they get the names of the fields, and have to fit.
        """
        items = ", ".join(f"{_cast(text, kind)} as {quote(name)}" for name, (text, kind) in columns.items())
        rows = self.run(f"select {items} from rows", {"rows": self.found.rows}).named()
        for number, (name, (_, kind)) in enumerate(columns.items()):
            column: Any = rows.column(number)
            arrow_type = _with_names(column.type, kind, name)
            chunks = [retype_array(chunk, arrow_type) for chunk in column.chunks]
            if arrow_type != column.type:
                rows = rows.set_column(number, name, pa.chunked_array(chunks, arrow_type))
        return rows


def _cast(text: str, kind: DataType) -> str:
    return f"cast({text} as {sql_type(kind)})" if isinstance(kind, PrimitiveType) else text


def _with_names(found: Any, kind: DataType, column: str) -> Any:
    """Return an Arrow type with the names of the fields in the type of a column, by position."""
    if isinstance(kind, PrimitiveType) or pa.types.is_null(found):
        return found

    def renamed(field: Any, kind: DataType, name: str | None = None) -> Any:
        return field.with_type(_with_names(field.type, kind, column)).with_name(name or field.name)

    if isinstance(kind, StructType) and pa.types.is_struct(found):
        if found.num_fields != len(kind.fields):
            expected = ", ".join(each.name for each in kind.fields)
            raise ExpressionError(
                f"INSERT: expected structs of {expected} in {column!r}, got {found.num_fields} fields",
                column=column,
            )
        fields = zip(found.fields, kind.fields, strict=True)
        return pa.struct([renamed(field, each.type, each.name) for field, each in fields])
    if isinstance(kind, ArrayType) and pa.types.is_list(found):
        return pa.list_(renamed(found.value_field, kind.element_type))
    if isinstance(kind, MapType) and pa.types.is_map(found):
        key: Any = renamed(found.key_field, kind.key_type)
        value: Any = renamed(found.item_field, kind.value_type)
        return pa.map_(key, value)
    return found


@dataclass(frozen=True)
class LocalSession:
    """The tables of a call of `sql`, by their names in lower case; see `Session`."""

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
        return tuple(name)

    def rows(self, query: str) -> LocalRows:
        return LocalRows(self.run(query, {}), self.run)
