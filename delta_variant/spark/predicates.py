"""A batch reader that accepts filters, which PySpark 4.1 and newer push into a data source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from .columns import quote
from .sources import BatchSource

__all__ = ["FilteringBatchSource", "filters_to_sql"]

OPERATORS: dict[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "<=>",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


class FilteringBatchSource(BatchSource):
    """A BatchSource that accepts pushed filters; needs `spark.sql.python.filterPushdown.enabled`."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Skip files by the filters, and return them all, so that Spark evaluates them again."""
        self._reader = replace(self._reader, where=filters_to_sql(filters, self._reader.where))
        return filters


def filters_to_sql(filters: Iterable[Filter], where: str | None = None) -> str | None:
    """Return the conjunction of `where` and the filters that SQL text can express, or None if it is empty."""
    texts = [text for text in map(_text, filters) if text is not None]
    parts = [*([] if where is None else [where]), *texts]
    return " and ".join(f"({part})" for part in parts) or None


def _text(each: Any) -> str | None:
    kind = type(each)
    if kind not in (*OPERATORS, In, IsNull, IsNotNull):
        return None
    column = ".".join(map(quote, each.attribute))
    if kind in (IsNull, IsNotNull):
        return f"{column} is {'not ' if kind is IsNotNull else ''}null"
    values = [_literal(value) for value in (each.value if kind is In else [each.value])]
    if None in values:
        return None
    return (
        f"{column} in ({', '.join(map(str, values))})"
        if kind is In
        else f"{column} {OPERATORS[kind]} {values[0]}"
    )


def _literal(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        # SQL parses a number with an exponent as a double, and comparisons would round.
        return format(value, "f")
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"date'{value.isoformat()}'"
    return None
