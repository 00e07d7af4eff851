"""Statements over the tables of `sql`, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from .._text import quote
from ..errors import CastError, ExpressionError
from ..expressions.cast import can_cast, cast_values
from ..expressions.types import type_name, type_of_text
from ..protocol.schema.arrow import from_arrow, to_arrow, to_arrow_type
from ..protocol.schema.conforming import conform
from ..protocol.types import DataType, PrimitiveType, StructField, StructType, sql_type
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
    timezone: str

    @property
    def names(self) -> Sequence[str]:
        return self.found.names

    @property
    def types(self) -> Sequence[DataType]:
        return [each.type for each in from_arrow(self.found.rows.schema).fields]

    @property
    def data(self) -> pa.Table:
        return self.found.named()

    def in_order(self, types: Sequence[DataType]) -> LocalRows:
        rows = self.found.rows
        for number, (old, new) in enumerate(zip(self.types, types, strict=True)):
            if new != old:
                column = StructType((StructField(rows.column_names[number], new),))
                batches = [conform(each, column) for each in rows.select([number]).to_batches()]
                schema = to_arrow(column)
                rows = rows.set_column(
                    number, schema.field(0), pa.Table.from_batches(batches, schema).column(0)
                )
        return self._replace(found=self.found._replace(rows=rows))

    def first(self, count: int) -> pa.Table:
        return self.found.rows.slice(0, count)

    def select(self, columns: Mapping[str, tuple[str, DataType]]) -> pa.Table:
        """Return the values of SQL text over the columns, which are named `c0`, `c1`…, with the types."""
        items = ", ".join(f"{_cast(text, kind)} as {quote(name)}" for name, (text, kind) in columns.items())
        rows = self.run(f"select {items} from rows", {"rows": self.found.rows}).named()
        for number, (name, (_, kind)) in enumerate(columns.items()):
            if not isinstance(kind, PrimitiveType):
                target = type_of_text(type_name(to_arrow_type(kind)), of_column=True)
                rows = rows.set_column(
                    number, name, _cast_parts(rows.column(number), target, name, self.timezone)
                )
        return rows


def _cast(text: str, kind: DataType) -> str:
    return f"cast({text} as {sql_type(kind)})" if isinstance(kind, PrimitiveType) else text


def _cast_parts(column: pa.ChunkedArray[Any], target: Any, name: str, timezone: str) -> pa.ChunkedArray[Any]:
    """Return nested values of the type of a column, also those whose type SQL cannot cast to."""
    if not can_cast(column.type, target):
        found = f"from {type_name(column.type)} to {type_name(target)}"
        raise ExpressionError(f"INSERT: cannot cast the values of {name!r} {found}", column=name)
    try:
        chunks = [cast_values(each, target, strict=True, timezone=timezone) for each in column.chunks]
    except pa.ArrowInvalid as error:
        raise CastError(f"INSERT: the values of {name!r}: {error}", column=name) from error
    return pa.chunked_array(chunks, target)


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
        return LocalRows(self.run(query, {}), self.run, self.timezone)
