"""The SQL text that writers store in a table: constraints and generated columns, and the columns they read.

Text in double quotes is a string for Spark, and a name for deltalake, which quotes each name that has a
capital letter or a special character. A table does not say which of them wrote the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from ..errors import ExpressionError, SchemaError
from ..expressions.parse import parse
from ..expressions.tree import Expression, Name
from ..expressions.tree import transform as transform_expression
from ..protocol.properties import CONSTRAINT
from ..protocol.table_configuration import TableConfiguration
from ..protocol.types import GENERATION_EXPRESSION, INVARIANTS, FieldPath, StructType, fields_of, path_text

TOKEN = re.compile(
    r"""
    ' (?: [^'\\] | \\. | '' )* '  |  ` (?: [^`] | `` )* `  |  --[^\n]*  |  /\* .*? \*/
    |  (?: : | \[ ) \s* " (?: [^"\\] | \\. )* "
    |  (?P<part> \. \s* )? " (?P<quoted> (?: [^"\\] | \\. | "" )* ) "
    """,
    re.DOTALL | re.VERBOSE,
)


def parse_stored(text: str, columns: Collection[str]) -> Expression:
    """Return the expression in `text`, in which the name of a column in double quotes is this column.

    Steps of Variant paths stay text. Raises ExpressionError for text that cannot be parsed, or that has both
    a column and something else in double quotes.
    """
    quoted = list(_quoted(text))
    if not quoted:
        return parse(text)
    are_names = {is_part or name in columns for name, is_part in quoted}
    if are_names == {False}:
        return parse(text)
    if are_names != {True}:
        names = ", ".join(f'"{name}"' for name, _ in quoted)
        raise ExpressionError(
            f"text in double quotes is a name for deltalake and a string for Spark, and only some of {names} "
            "are columns: quote names with backquotes and strings with apostrophes"
        )
    return parse(TOKEN.sub(_with_backquotes, text))


def _quoted(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each text in double quotes, and whether it is a field of the name before it."""
    for token in TOKEN.finditer(text):
        if token["quoted"] is not None:
            yield token["quoted"].replace('""', '"'), token["part"] is not None


def _with_backquotes(token: re.Match[str]) -> str:
    if token["quoted"] is None:
        return token[0]
    name = token["quoted"].replace('""', '"').replace("`", "``")
    return f"{token['part'] or ''}`{name}`"


def check_constraints(configuration: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the SQL text of each CHECK constraint."""
    for key, text in configuration.items():
        if key.lower().startswith(CONSTRAINT):
            yield key[len(CONSTRAINT) :], text


def check_independent(table: TableConfiguration, path: FieldPath) -> None:
    """Raise SchemaError if a constraint or a generated column reads the column at `path` or a part of it.

    Delta on Spark does the same, because constraints store the SQL text with the column names in it.
    """
    readers = [what for what, text in _expressions(table, table.schema) if _reads(text, path, table)]
    if readers:
        raise SchemaError(
            f"cannot change the column {path_text(path)!r} because {', '.join(readers)} of {table.uri} "
            f"{'reads' if len(readers) == 1 else 'read'} it",
            table=table.uri,
            column=path_text(path),
        )


def check_read_columns_stay(table: TableConfiguration, columns: StructType) -> None:
    """Raise SchemaError if the new columns lack one that a constraint or one of their expressions reads."""
    names = {field.name.lower() for field in columns.fields}
    removed = [field.name for field in table.schema.fields if field.name.lower() not in names]
    for what, text in _expressions(table, columns):
        for name in removed:
            if _reads(text, (name,), table):
                raise SchemaError(
                    f"{what} of {table.uri} reads the column {name!r}, which the data does not have: add "
                    "it, or remove what reads it first",
                    table=table.uri,
                    column=name,
                )


def _expressions(table: TableConfiguration, columns: StructType) -> Iterator[tuple[str, str]]:
    """Yield the SQL text of the constraints of a table and of its columns, each with a description."""
    for name, text in check_constraints(table.properties):
        yield f"the CHECK constraint {name}", text
    for path, field in fields_of(columns):
        for key, what in ((GENERATION_EXPRESSION, "the generated column"), (INVARIANTS, "the invariant of")):
            if key in field.metadata:
                yield f"{what} {path_text(path)}", str(field.metadata[key])


def _reads(text: str, path: FieldPath, table: TableConfiguration) -> bool:
    try:
        names = _names(parse_stored(text, [field.name for field in table.schema.fields]))
    except ExpressionError:
        # If the expression cannot be parsed, assume that it reads every column whose name occurs in it.
        return re.search(rf"(?<!\w){re.escape(path[0])}(?!\w)", text, re.IGNORECASE) is not None
    pairs = (zip(name, path, strict=False) for name in names)
    return any(all(one.lower() == other.lower() for one, other in pair) for pair in pairs)


def _names(parsed: Expression) -> list[FieldPath]:
    names: list[FieldPath] = []

    def collect(part: Expression) -> None:
        if isinstance(part, Name):
            names.append(part.parts)

    transform_expression(parsed, collect)
    return names
