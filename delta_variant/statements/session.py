"""What a statement needs of the session that it runs in: one process, or Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
import pyarrow as pa

from .._text import quote
from ..errors import ExpressionError
from ..expressions.lexer import Cursor
from ..expressions.literals import literal_text
from ..expressions.types import type_name
from ..protocol.types import DataType
from ..storage.store import TableLocation

NO_ROWS = pa.table({})


class Rows(Protocol):
    """The rows of a query."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""

    @property
    def types(self) -> Sequence[DataType]:
        """The types of the columns."""

    @property
    def data(self) -> Any:
        """The rows as the data of a write or the source of a merge."""

    def in_order(self, types: Sequence[DataType]) -> Rows:
        """Return the rows with other types of the columns: the fields of structs are in another order."""

    def first(self, count: int) -> pa.Table:
        """Return at most a number of rows; the names of the columns are free."""

    def select(self, columns: Mapping[str, tuple[str, DataType]]) -> Any:
        """Return data to write: the values of SQL text over the columns, which are named `c0`, `c1`…

        They are cast to the types: the fields of structs by their positions, as Delta does.
        """


class Session(Protocol):
    """Finds tables, and runs the queries of statements."""

    @property
    def timezone(self) -> str:
        """The time zone of local times."""

    @property
    def is_dynamic(self) -> bool:
        """Whether INSERT OVERWRITE replaces only the partitions that the rows belong to."""

    def find(self, name: Sequence[str]) -> TableLocation | None:
        """Return the location of a table, None if it is not known."""

    def place(self, name: Sequence[str], location: Callable[[], str | None]) -> TableLocation | None:
        """Return where a table is created; `location` returns that of the statement. None as in `find`."""

    def full_name(self, name: Sequence[str]) -> tuple[str, ...]:
        """Return the name of a table with its catalog and schema, as far as the session has these."""

    def rows(self, query: str) -> Rows:
        """Return the rows of the text of a query."""


Statement: TypeAlias = Callable[[TableLocation, Session], pa.Table]
"""A parsed statement: it runs on its table, and returns the rows that Delta on Spark returns."""


class Target(msgspec.Struct, frozen=True):
    """The table of a statement, and its alias if it has one."""

    name: tuple[str, ...]
    alias: str | None = None

    def qualifiers(self, full_name: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the names by which columns can name the table, in lower case, the longest first."""
        names = [(self.alias,)] if self.alias else [full_name[first:] for first in range(len(full_name))]
        return [tuple(part.lower() for part in name) for name in names]


class Text(msgspec.Struct, frozen=True):
    """The SQL text of an expression, and where the names of columns begin in it.

    `queries` are subqueries, and where their values belong in the text.
    """

    text: str
    names: tuple[int, ...] = ()
    queries: tuple[tuple[int, str], ...] = ()

    def with_values(self, session: Session) -> Text:
        text = self
        for start, query in reversed(self.queries):
            value = _scalar_text(session.rows(query).first(2))
            names = tuple(name if name < start else name + len(value) for name in text.names)
            text = Text(text.text[:start] + value + text.text[start:], names)
        return text

    def qualified(
        self, tables: Sequence[tuple[Sequence[tuple[str, ...]], str]], has_column: Callable[[str], bool]
    ) -> str:
        """Return the text with other qualifiers: each of the first becomes the second, "" for none.

        A name such as `t.a` is a field of a struct if there is no column `a`.
        """
        text = self.text
        for start in reversed(self.names):
            parts, ends = _parts(text, start)
            for qualifiers, new in tables:
                length = next((len(each) for each in qualifiers if each == parts[: len(each)]), 0)
                if 0 < length < len(parts) and has_column(parts[length]):
                    text = f"{text[:start]}{new and quote(new) + '.'}{text[ends[length - 1] + 1 :].lstrip()}"
                    break
        return text


def _parts(text: str, start: int) -> tuple[tuple[str, ...], list[int]]:
    """Return the parts of a name, in lower case, and the ends of each."""
    cursor = Cursor(text)
    cursor.position = start
    parts, ends = [cursor.take_name().lower()], [cursor.position]
    while cursor.accept("."):
        parts.append(cursor.take_name().lower())
        ends.append(cursor.position)
    return tuple(parts), ends


def _scalar_text(rows: pa.Table) -> str:
    """Return the value of a subquery as SQL text of the same type: of one column, NULL without rows.

    Raises ExpressionError for more columns or rows, and for a type that has no literals.
    """
    if rows.num_columns != 1 or rows.num_rows > 1:
        raise ExpressionError(
            f"a subquery in SET: expected one value, got {rows.num_columns} columns and "
            f"{'more than one row' if rows.num_rows > 1 else 'one row'}: use an aggregate or LIMIT 1"
        )
    kind = rows.schema.field(0).type
    value: Any = rows.column(0)[0].as_py() if rows.num_rows else None
    is_local = isinstance(value, dt.datetime) and value.tzinfo is None
    text = f"timestamp_ntz'{value.isoformat(' ')}'" if is_local else literal_text(value)
    if text is None or pa.types.is_nested(kind):
        raise ExpressionError(
            f"a subquery in SET returned {type_name(kind)}: use MERGE INTO … USING (query) for such values"
        )
    return text if pa.types.is_null(kind) else f"cast({text} as {type_name(kind)})"
