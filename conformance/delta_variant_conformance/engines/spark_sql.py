"""Names, types and queries in Spark's SQL, which this library and Sail have as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine import Query
from ..typed_values import decimal_of

TYPES: Mapping[str, str] = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
    "string": "string",
}


def quote(name: str) -> str:
    """Return a column's name as a quoted SQL identifier."""
    return f"`{name.replace('`', '``')}`"


def projection(query: Query) -> str:
    """Return the expression of the path, cast to the type of the query."""
    column = quote(query.column)
    if not query.path:
        return column
    path = "$" + "".join(f'["{name}"]' for name in query.path)
    kind = query.type if decimal_of(query.type) else TYPES[query.type]
    return f"variant_get({column}, '{path}', '{kind}')"


def condition(query: Query) -> str:
    """Return the condition of a query whose `where` is set."""
    operator, *literal = query.where
    return " ".join([projection(query), operator, *(_literal(query.type, each) for each in literal)])


def _literal(kind: str, value: Any) -> str:
    if kind in ("date", "timestamp"):
        return f"{kind} '{value}'"
    if kind == "binary":
        return f"X'{value}'"
    return "'" + value.replace("'", "\\'") + "'" if isinstance(value, str) else str(value)
