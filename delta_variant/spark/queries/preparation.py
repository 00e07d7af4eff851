"""Change a query before its names are resolved: views become their text, and no star has `_metadata`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ..._logging import get_logger
from ..._text import quote
from ...errors import DeltaVariantError, ExpressionError
from ...read.scope import METADATA, NOT_SELECTED
from ..versions import SPARK_ERRORS
from .parsing import parse_query
from .parts import Item, Query, Scope, Span, TableReference, splice
from .table_names import FORMATS, View

_LOGGER = get_logger(__name__)

IRRELEVANT = tuple(
    f"spark.sql.{name}"
    for name in (
        *("adaptive.", "artifact.", "catalog.", "catalogImplementation", "codegen.", "extensions"),
        *("execution.", "files.", "optimizer.", "parquet.", "shuffle.", "sources.", "streaming.", "ui."),
        "warehouse.",
    )
)
"""The beginnings of the names of settings that do not change the rows of a view."""


@dataclass
class ViewExpander:
    """Replaces views by their text where this has the columns, the names and the settings of the view.

    Spark does not tell the settings of temporary views, and reads them itself.
    """

    spark: SparkSession
    find: Callable[[tuple[str, ...]], str | View | None]
    analyze: Callable[[Query], StructType]

    @cached_property
    def _settings(self) -> dict[str, str]:
        return {each[0]: each[1] for each in self.spark.sql("SET").collect()}

    def expand(self, query: Query, parameters: Mapping[str, str] | Sequence[str]) -> Query:
        """Return a query without the views that can be replaced; `parameters` are those of `parse_query`."""
        found = {}
        for table in query.tables:
            view = self.find(table.parts)
            body = self._body(view, table.parts) if isinstance(view, View) and table.is_plain else None
            if body is not None:
                found[table.span] = f"({body}\n){_alias(table)}"
        return (parse_query(splice(query.text, found), parameters) if found else None) or query

    def _body(self, view: View, parts: Sequence[str]) -> str | None:
        """Return a query with the columns of a view, None if its text may have others, or reads no table."""
        inner = parse_query(view.text)
        if inner is None or not inner.scopes or inner.has_schemas or not self._has_settings_of(parts):
            return None
        names = {table.span: _qualified(table, view) for table in inner.tables}
        qualified = parse_query(splice(view.text, names))
        if qualified is None:
            return None
        query = self.expand(qualified, ())
        if not any(isinstance(self.find(table.parts), str) for table in query.tables):
            return None
        try:
            columns = self.analyze(query).fields
        except (AnalysisException, DeltaVariantError) as error:
            _LOGGER.debug("Spark reads the view %s: %s", ".".join(parts), error)
            return None
        if [each.dataType.simpleString() for each in columns] != [each for _, each in view.columns]:
            return None
        if [each.name for each in columns] == [name for name, _ in view.columns]:
            return query.text
        listed = ", ".join(quote(name) for name, _ in view.columns)
        return f"SELECT * FROM ({query.text}\n) AS renamed_view({listed})"

    def _has_settings_of(self, parts: Sequence[str]) -> bool:
        """Return whether the session has the settings with which a view was created."""
        name = ".".join(map(quote, parts))
        try:
            (row,) = self.spark.sql(f"DESCRIBE TABLE EXTENDED {name} AS JSON").collect()
        except SPARK_ERRORS:
            return False
        created = json.loads(row[0]).get("view_creation_spark_configuration", {})
        settings = self._settings
        changed = {
            key
            for key in created.keys() | settings.keys()
            if created.get(key) != settings.get(key)
            and key.startswith("spark.sql.")
            and not key.startswith(IRRELEVANT)
        }
        # A view keeps the values that modifiable settings of the session have when it is created.
        is_modifiable = self.spark.conf.isModifiable
        return not any(key in created or is_modifiable(key) for key in changed)


def _qualified(table: TableReference, view: View) -> str:
    """Return a table of the text of a view with the catalog and the schema that the view has for it."""
    is_location = len(table.parts) == 2 and table.parts[0].lower() in FORMATS
    above = {1: view.schema, 2: view.schema[:1]}.get(len(table.parts), ())
    parts = table.parts if is_location else (*above, *table.parts)
    return ".".join(map(quote, parts)) + _alias(table)


def _alias(table: TableReference) -> str:
    return f" AS {quote(table.parts[-1])}" if table.takes_alias else ""


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
