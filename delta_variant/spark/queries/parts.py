"""The parts of a query of Spark SQL, each with its position in the text, and replacements of them.

The text of a query is never generated: a caller replaces some parts and keeps the rest as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ..._text import quote
from ...errors import ExpressionError
from ...expressions.lexer import Cursor, GrammarError, parts_of_name
from ...expressions.literals import string_value
from ...expressions.tree import Expression

Span = tuple[int, int]
"""The first and the last character of a part of the text."""


def is_within(position: int, spans: Iterable[Span]) -> bool:
    return any(start <= position <= end for start, end in spans)


def splice(text: str, replacements: Mapping[Span, str], convert: Callable[[str], str] = str) -> str:
    """Return a text with other text at some of its spans, and the rest of it converted."""
    parts, position = [], 0
    for (start, end), other in sorted(replacements.items()):
        parts += [convert(text[position:start]), other]
        position = end + 1
    return "".join([*parts, convert(text[position:])])


class TableReference(msgspec.Struct, frozen=True):
    """A table that a query names.

    `parts` of a table in a catalog may include the current catalog and schema, which columns can name.
    `alias` is the name of its rows in the text if it has one, and `takes_alias` whether one can follow the
    name. Unless `is_plain`, the query needs all of its columns and rows: for samples and pivots, and where
    the parser does not see who reads it. The span includes VERSION AS OF and TIMESTAMP AS OF, if `version` or
    `timestamp` has their value; it `has_computed_version` if that is an expression.
    """

    parts: tuple[str, ...]
    span: Span
    alias: str | None
    is_plain: bool
    takes_alias: bool
    version: int | None = None
    timestamp: str | None = None
    has_computed_version: bool = False


class Item(msgspec.Struct, frozen=True):
    """An expression of a SELECT, or the columns that a star stands for.

    `names` are those of its columns in lower case. `expression` is a column, a path of a Variant or a cast of
    it, with the span of the item and its alias, and None for other expressions. A star has all columns of the
    sources `stars` without the names `excluded`.
    """

    names: tuple[str, ...] = ()
    expression: Expression | None = None
    span: Span = (0, -1)
    stars: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()


class Scope(msgspec.Struct):
    """The names that the expressions of one SELECT can use.

    `sources` has the index of the table reference by lower-case alias, or None for other sources, and
    `parent` the enclosing scope of a subquery. `stars` are the sources that need all of their columns for
    another reason than `items`, and `outputs` the names of its own columns, in lower case. The rows of
    sources in `optional` may be NULL because of an outer join. With `joins_columns`, a star has the columns
    of each source, one source after the other.

    `derived` has the scopes of common table expressions and subqueries among the sources: one, or the
    branches of a set operation. A scope `is_derived` if `derived` of other scopes has all of its uses. Its
    `items` can be replaced by others if the uses allow it and its set operation `passes_columns`, and are
    None if they cannot. With `passes_rows`, its result without the rows that a condition on one source leaves
    out is that of the source without them. `branches` are all scopes of its set operation, and `names` the
    columns that a list after the alias renames, at `names_span`. Several sources have a name in `repeated`.
    """

    parent: int | None
    sources: dict[str, int | None]
    stars: frozenset[str]
    outputs: frozenset[str]
    optional: frozenset[str]
    repeated: frozenset[str]
    is_plain: bool
    joins_columns: bool
    derived: dict[str, tuple[int, ...]]
    items: tuple[Item, ...] | None
    is_derived: bool
    passes_rows: bool
    passes_columns: bool = True
    branches: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    names_span: Span = (0, -1)


class Extract(msgspec.Struct, frozen=True):
    """A path of a Variant, or a cast of it: its text, and the expression with names as they are written.

    It `sees_outputs` in ORDER BY and HAVING, which prefer the columns of the result to those of the sources.
    """

    span: Span
    expression: Expression
    sees_outputs: bool


class Conjunct(msgspec.Struct, frozen=True):
    """A condition without which no row of `sources` is in the result of the scope."""

    expression: Expression
    sources: frozenset[str]


class QualifiedName(msgspec.Struct, frozen=True):
    """A column with a table before its name: its scope, and the start and the text of each of its parts."""

    scope: int | None
    starts: tuple[int, ...]
    parts: tuple[str, ...]


class Query(msgspec.Struct):
    """The parts of a query.

    `extracts` has the casts and paths at one position, outermost first, with their scope. `names` are the
    names of the whole text in lower case, by position. `qualified` are the columns whose names begin with a
    table, and `has_schemas` tells whether the name of one may begin with a catalog or a schema. `implicit`
    has the names that Spark gives to extracts without an alias, by the span of the extract, where a query
    uses them.
    """

    text: str
    tables: list[TableReference]
    scopes: list[Scope]
    extracts: list[tuple[int, list[Extract]]]
    conjuncts: list[tuple[int, Conjunct]]
    names: list[tuple[int, str]]
    qualified: list[QualifiedName]
    implicit: dict[Span, str]

    @property
    def has_schemas(self) -> bool:
        return any(len(each.parts) > 2 for each in self.qualified)


def field_name(reference: int) -> str:
    """Return the name of the DataFrame of a table reference."""
    return f"t{reference}"


def field(reference: int) -> str:
    """Return the text for the DataFrame of a table reference."""
    return f"{{{field_name(reference)}}}"


def replace_tables(query: Query, sources: Mapping[int, str], others: Mapping[Span, str]) -> str:
    """Return the text of a query for `spark.sql` with other sources in place of tables.

    `others` are further replacements by their span. Raises ExpressionError for a column that may be of two
    tables of one name, if other columns name one of these with its schema.
    """
    replacements, aliases, qualifiers = dict(others), dict[int, str](), dict[Span, str]()
    for number, source in sources.items():
        table, found = query.tables[number], [*_qualifiers(query, query.tables[number])]
        name = ".".join(table.parts) if found and _is_hidden(query, number) else table.parts[-1]
        if name != table.parts[-1]:
            aliases[number] = name
        replacements[table.span] = f"{source} AS {quote(name)}" if table.takes_alias else source
        for first, last, end in found:
            is_last = name == table.parts[-1]
            qualifiers[first, (last if is_last else end) - 1] = "" if is_last else f"{quote(name)}."
    longest = {first for first, _ in qualifiers}
    for span, text in _renamed_qualifiers(query, aliases):
        if span[0] not in longest:
            qualifiers[span] = text
    replacements |= {span: text for span, text in qualifiers.items() if not is_within(span[0], others)}
    return splice(query.text, replacements, escape)


def _renamed_qualifiers(query: Query, aliases: Mapping[int, str]) -> Iterator[tuple[Span, str]]:
    """Yield the replacements of the names, without a schema, of tables that get an alias with it."""
    names = {query.tables[number].parts[-1].lower() for number in aliases}
    for column in query.qualified:
        name = column.parts[0].lower()
        enclosing = (query.scopes[each] for each in _enclosing(query, column.scope))
        scope = next((each for each in enclosing if name in each.sources), None)
        if scope is None:
            continue
        # The columns of USING and of the left side of a semi-join are of one table.
        if name in scope.repeated & names and (scope.joins_columns or not column.parts[-1]):
            text = ".".join(part or "*" for part in column.parts)
            raise ExpressionError(
                f"{text} may be of several tables: write the schema of its table, or give the tables aliases"
            )
        reference = scope.sources[name]
        if reference is not None and reference in aliases:
            yield (column.starts[0], column.starts[1] - 1), f"{quote(aliases[reference])}."


def escape(text: str) -> str:
    """Return a text in which no brace begins a field."""
    return text.replace("{", "{{").replace("}", "}}")


def _is_hidden(query: Query, reference: int) -> bool:
    """Return whether another source has the last part of a table's name where columns name the table."""
    name = query.tables[reference].parts[-1].lower()
    own = [number for number, each in enumerate(query.scopes) if reference in each.sources.values()]
    others = [
        number
        for number, each in enumerate(query.scopes)
        if name in each.sources and each.sources[name] != reference
    ]
    if not own:
        return bool(others)
    return any(
        one in _enclosing(query, other) or other in _enclosing(query, one) for one in own for other in others
    )


def _enclosing(query: Query, scope: int | None) -> Iterator[int]:
    while scope is not None:
        yield scope
        scope = query.scopes[scope].parent


def _qualifiers(query: Query, table: TableReference) -> Iterator[tuple[int, int, int]]:
    """Yield where columns name the table with its schema: where that begins, its last part, and the column.

    The longest name wins, as in Spark.
    """
    if table.alias is not None:
        return
    for column in query.qualified:
        for length in range(min(len(table.parts), len(column.parts) - 1), 1, -1):
            if _lower(column.parts[:length]) == _lower(table.parts[-length:]):
                yield column.starts[0], column.starts[length - 1], column.starts[length]
                break


def _lower(parts: Sequence[str]) -> list[str]:
    return [part.lower() for part in parts]


FUNCTION = "table_changes"
NAME = "table changes {}"


class Changes(NamedTuple):
    """A call of `table_changes`: the table, and the first and the last version, or their timestamps."""

    table: tuple[str, ...]
    start: int | str
    end: int | str | None


def name_changes(text: str) -> tuple[str, Mapping[str, Changes]]:
    """Return a query with a name in place of each call of `table_changes`, and the calls by name."""
    cursor, calls, names = Cursor(text), dict[str, Changes](), dict[Span, str]()
    try:
        while (token := cursor.token).kind != "end":
            if token.word != FUNCTION or cursor.following.text != "(":
                cursor.take()
                continue
            name = NAME.format(len(calls))
            calls[name] = _call(cursor)
            names[token.start, cursor.position - 1] = f"`{name}`"
    except GrammarError:
        # Spark has the error for a text that has no tokens, or for a call with other arguments.
        return text, {}
    return splice(text, names), calls


def _call(cursor: Cursor) -> Changes:
    cursor.take()
    cursor.expect("(")
    if cursor.token.kind != "string":
        cursor.fail("a string")
    table = parts_of_name(string_value(cursor.take()))
    cursor.expect(",")
    start = _version(cursor)
    end = _version(cursor) if cursor.accept(",") else None
    cursor.expect(")")
    return Changes(table, start, end)


def _version(cursor: Cursor) -> int | str:
    if cursor.token.kind == "string":
        return string_value(cursor.take())
    if not cursor.token.text.isdecimal():
        cursor.fail("a version or a timestamp")
    return int(cursor.take().text)
