"""Let a query name `_metadata`, which is a column of its DataFrames: no star of the text may have it."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from ..._text import quote
from ...errors import ExpressionError
from ...read.scope import METADATA, NOT_SELECTED
from .parsing import parse_query
from .parts import Item, Query, Scope, Span, splice


def has_file_metadata(query: Query) -> bool:
    """Return whether a query names `_metadata`; raises ExpressionError for `input_file_name()`."""
    for position, name in query.names:
        if name == "input_file_name" and query.text[position + len(name) :].lstrip().startswith("("):
            raise ExpressionError(
                "input_file_name() does not know the files that Python reads: use _metadata.file_path"
            )
    return any(name == METADATA for _, name in query.names)


def without_file_metadata(query: Query, tables: AbstractSet[int]) -> Query:
    """Return a query whose stars do not have the column `_metadata` of tables, by their reference.

    Raises ExpressionError if the text cannot exclude it.
    """
    known = set[int | None]()
    replacements: dict[Span, str] = {}
    for scope in query.scopes:
        own = {alias for alias, number in scope.sources.items() if number in tables}
        known.update(scope.sources[alias] for alias in own)
        _check(query, scope, own)
        replacements |= dict(_stars(query, scope, own))
    if not tables <= known or not all(query.tables[each].is_plain for each in tables):
        raise _unsupported("a sample, names for the columns of a table, or two tables of one name")
    return parse_query(splice(query.text, replacements)) or query


def _check(query: Query, scope: Scope, own: AbstractSet[str]) -> None:
    """Raise ExpressionError if the text of a SELECT would have another meaning with the column."""
    if own and not scope.is_plain:
        raise _unsupported("a natural join or PIVOT")
    if own & scope.stars:
        raise _unsupported("a star and DISTINCT, GROUP BY, ORDER BY 1 or the like: name the columns")
    # In Spark, a subquery over a derived table may find the column there.
    if scope.parent is not None and None in scope.sources.values() and _is_unqualified(query):
        raise _unsupported(f"a subquery over a derived table: qualify it, as in t.{METADATA}")


def _is_unqualified(query: Query) -> bool:
    begins = (query.text[:position] for position, name in query.names if name == METADATA)
    return not all(begin.rstrip().endswith(".") for begin in begins)


def _stars(query: Query, scope: Scope, own: AbstractSet[str]) -> Iterator[tuple[Span, str]]:
    """Yield the text in place of each star of a SELECT that would have `_metadata`."""
    for item in scope.items or ():
        if not own.isdisjoint(item.stars):
            yield item.span, _star(query.text[item.span[0] : item.span[1] + 1], item, scope, own)


def _star(text: str, item: Item, scope: Scope, own: AbstractSet[str]) -> str:
    if len(item.stars) == 1:
        return f"{text[:-1]}, {METADATA})" if item.excluded else f"{text} EXCEPT ({METADATA})"
    if item.excluded or not scope.joins_columns or "" in item.stars:
        raise _unsupported("a star over a join with USING, SEMI, ANTI or EXCEPT: name the columns")
    parts = (f"{quote(each)}.*{f' EXCEPT ({METADATA})' if each in own else ''}" for each in item.stars)
    return ", ".join(parts)


def check_file_metadata(query: Query, error: str) -> None:
    """Raise ExpressionError if Spark's error is that it does not find `_metadata`."""
    name = error.partition("with name ")[2].partition(" cannot be resolved")[0]
    if f"`{METADATA}`" in name and has_file_metadata(query):
        raise ExpressionError(f"{name} does not exist; {NOT_SELECTED}")


def _unsupported(form: str) -> ExpressionError:
    return ExpressionError(f"{METADATA} is not supported in a query with {form}")
