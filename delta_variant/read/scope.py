"""Bind SQL text to the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import pyarrow as pa

from ..expressions.bind import bind as bind_expression
from ..expressions.bind import bind_predicate
from ..expressions.char_padding import pad_chars
from ..expressions.names import NameScope
from ..expressions.parse import parse as parse_expression
from ..expressions.tree import Column, Expression, Name, is_whole, transform
from ..expressions.tree import inputs as expression_inputs
from ..protocol.schema.arrow import to_arrow
from ..protocol.schema.char_types import char_widths
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import VARIANT, FieldPath, StructType
from ..variant.moments import current_moment

METADATA = "_metadata"
NOT_SELECTED = f"a subquery in FROM has {METADATA} only if it selects it: {METADATA}.file_path as path"
"""Why a query does not find the column, and what to write."""

TYPE = pa.struct([("file_path", pa.string()), ("file_name", pa.string()), ("file_size", pa.int64())])
FILE_METADATA = Column("\0metadata", TYPE)
"""An input for the file of each row; no column of a table has the name."""

# What a URI of Java escapes. It keeps other characters that are not ASCII.
_ESCAPED = re.compile(r"[\x00-\x20\"#%<>?\[\\\]^`{|}\x7f]")


def file_metadata(uri: str, size: int | None, rows: int) -> Any:
    """Return the file at a path or URI for a number of rows, with the values of Spark's `_metadata`."""
    path = _ESCAPED.sub(lambda found: quote(found[0]), uri)
    values = (f"file:{path}" if path.startswith("/") else path, path.rpartition("/")[2], size)
    scalar: Any = pa.scalar(dict(zip(TYPE.names, values, strict=True)), TYPE)
    return pa.repeat(scalar, rows)


class Scope(NameScope, frozen=True, dict=True):
    """The columns of a table that SQL text can use."""

    chars: Mapping[str, Mapping[FieldPath, int]] = msgspec.field(default_factory=dict)
    """The characters to which columns are padded with spaces, by name and path within the column."""

    hidden: Mapping[str, pa.Field[Any]] = msgspec.field(default_factory=dict)
    """Columns that SQL text can name and that are not among all columns, by their names in lower case."""

    @classmethod
    def of(cls, table: TableConfiguration) -> Scope:
        """Return a scope with all columns of a table as they are stored, whose current moment is now."""
        return cls.of_columns(table.schema, table.timezone)

    @classmethod
    def of_columns(cls, columns: StructType, timezone: str) -> Scope:
        """Return a scope with some columns, whose current moment is now."""
        variants = tuple(field.name for field in columns.fields if field.type == VARIANT)
        return cls(to_arrow(columns), variants, timezone, current_moment())

    def timeless(self) -> Scope:
        """Return the scope without the current moment, so that expressions cannot depend on it."""
        return msgspec.structs.replace(self, moment=None)

    @classmethod
    def of_read(cls, table: TableConfiguration) -> Scope:
        """Return a scope with all columns as a read returns them: `char(n)` of Spark is padded."""
        stored = cls.of(table)
        widths = {field.name: char_widths(field) for field in table.schema.fields}
        chars = {name: paths for name, paths in widths.items() if paths}
        return msgspec.structs.replace(stored, chars=chars) if chars else stored

    def with_file_metadata(self) -> Scope:
        """Return the scope with the column `_metadata` of the file of a row, unless the table has one."""
        if super().fields(METADATA):
            return self
        column: pa.Field[Any] = pa.field(FILE_METADATA.name, FILE_METADATA.type)
        return msgspec.structs.replace(self, hidden={METADATA: column})

    def with_file_column(self) -> Scope:
        """Return the scope with `_metadata` as its last column for queries, unless the table has one.

        Its expressions are over a column of this name, which joins can rename: see `of_file`.
        """
        found = self.with_file_metadata()
        schema = self.schema.append(pa.field(METADATA, FILE_METADATA.type))
        return msgspec.structs.replace(found, schema=schema) if found.hidden else self

    def of_file(self, bound: Expression) -> Expression:
        """Return a bound expression with the input for the file of each row as the column `_metadata`."""
        own = Column(METADATA, FILE_METADATA.type) if self.hidden else None
        return transform(bound, lambda node: FILE_METADATA if node == own else None)

    def fields(
        self, name: str, parents: tuple[str, ...] = (), struct: Iterable[pa.Field[Any]] | None = None
    ) -> list[pa.Field[Any]]:
        """Return the columns with a name, or the fields of `struct`, as `NameScope` does."""
        found = super().fields(name, parents, struct)
        hidden = None if parents else self.hidden.get(name.lower())
        return found if found or hidden is None else [hidden]

    def whole_columns(self) -> Mapping[str, Expression]:
        return {name: self.of_file(self.bind(Name((name,)))) for name in self.schema.names}

    def variants_unread_by(self, expressions: Iterable[Expression]) -> frozenset[str]:
        """Return the Variant columns that no expression reads as a whole."""
        return self.variant_names - {each.column for each in expression_inputs(expressions) if is_whole(each)}

    def bind(self, parsed: Expression) -> Expression:
        """Return an expression bound to the columns; raises ExpressionError."""
        return pad_chars(bind_expression(parsed, self), self.chars)

    def predicate(self, text: str | None) -> Expression | None:
        """Return SQL text as a predicate bound to the columns; raises ExpressionError."""
        return None if text is None else self.condition(parse_expression(text))

    def condition(self, parsed: Expression) -> Expression:
        """Return an expression as a predicate bound to the columns; raises ExpressionError."""
        return pad_chars(bind_predicate(parsed, self), self.chars)
