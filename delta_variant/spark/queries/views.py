"""Replace the permanent views of Spark in a query by their text, so that tasks read the tables below them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ..._logging import get_logger
from ..._text import quote
from ...errors import DeltaVariantError
from ..versions import SPARK_ERRORS
from .parsing import parse_query
from .parts import Query, TableReference, splice
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
        if inner is None or not inner.scopes or inner.qualifiers or not self._has_settings_of(parts):
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
