"""Rules of bounds that are compared with the values of the file: the kernel computes no exact bounds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from math import inf
from typing import Any

import pyarrow as pa

from ...protocol.statistics import FileStatistics, to_comparable, type_of_bounds, value_at
from ...protocol.types import PrimitiveType
from .findings import Violation
from .statistics_copies import SIDES, bounds_of
from .subjects import FileSubject

FLOAT, DOUBLE = PrimitiveType("float"), PrimitiveType("double")
NAN = (1, 0.0)
"""Spark orders NaN after all numbers."""
NOT_FINITE = {"-Infinity": (0, -inf), "Infinity": (0, inf), "NaN": NAN}
"""The bounds that Spark writes as text, in their order."""


def outside_exact_bounds(subject: FileSubject) -> Iterator[Violation]:
    """Check bounds that the kernel does not compute exactly by the values in the file.

    The data has NaN, infinities, years of five digits or Booleans, or the bound has microseconds.
    """
    computed = subject.computed
    if not isinstance(computed, FileStatistics):
        return
    for path, data_type in subject.ordinary_columns:
        of_bounds = type_of_bounds(data_type, subject.column(path))
        for side, recorded, found in zip(SIDES, bounds_of(subject.stats), bounds_of(computed), strict=True):
            text = value_at(recorded, path)
            stated = to_comparable(text, of_bounds)
            has_microseconds = isinstance(stated, datetime) and stated.microsecond % 1000 != 0
            is_exact = value_at(found, path) is not None and not has_microseconds
            if is_exact or stated is None or not _is_of_type(stated, subject.column(path)):
                continue
            extremes = subject.extremes(path)
            extreme = extremes["max" if side == SIDES[1] else "min"]
            if extreme.is_valid and _excludes(stated, extreme, is_upper=side == SIDES[1]):
                name = ".".join(path)
                value = extreme.cast(pa.string()).as_py()
                sentence = f"{side} of {name} is {text}, which does not cover {value} in the data"
                yield Violation(sentence, column=name)


def nan_above_bound(subject: FileSubject) -> Iterator[Violation]:
    """Check for NaN above an upper bound: it is the greatest value for Spark."""
    computed = subject.computed
    if not isinstance(computed, FileStatistics):
        return
    for path, data_type in subject.ordinary_columns:
        stated = value_at(subject.stats.max_values, path)
        # The kernel computes no bounds of a column with NaN.
        is_suspect = stated is not None and value_at(computed.max_values, path) is None
        if not is_suspect or data_type not in (FLOAT, DOUBLE) or to_comparable(stated, data_type) is None:
            continue
        if not subject.lacks(path) and subject.has_nan(path):
            name = ".".join(path)
            sentence = f"maxValues of {name} is {stated}, but a row has NaN, which Spark orders after it"
            yield Violation(sentence, column=name)


def _is_of_type(stated: Any, arrow_type: Any) -> bool:
    """Return whether a bound has the type of a column whose exact bounds JSON may not be able to state."""
    if arrow_type is None:
        return False
    if isinstance(stated, date):
        is_timestamp = isinstance(stated, datetime)
        return bool((pa.types.is_timestamp if is_timestamp else pa.types.is_date32)(arrow_type))
    if isinstance(stated, bool):
        return bool(pa.types.is_boolean(arrow_type))
    return isinstance(stated, float) and bool(pa.types.is_floating(arrow_type))


def _excludes(stated: Any, extreme: Any, *, is_upper: bool) -> bool:
    """Return whether a bound does not cover an extreme, an Arrow scalar whose value Python may not have."""
    margin = 0
    if isinstance(stated, date):
        # Upper bounds of timestamps are rounded down to milliseconds, and readers add one.
        margin = 1000 if isinstance(stated, datetime) else 0
        stated, found = pa.scalar(stated, extreme.type).value, extreme.value
    else:
        found = extreme.as_py()
    return bool(stated + margin < found if is_upper else stated > found)


def not_finite(subject: FileSubject, what: str, *, is_outside: bool) -> Iterator[Violation]:
    """Check bounds that are NaN or infinite, which only readers of Spark use."""
    if not isinstance(subject.computed, FileStatistics):
        return
    for path, data_type in subject.ordinary_columns:
        for side, recorded in zip(SIDES, bounds_of(subject.stats), strict=True):
            stated = value_at(recorded, path)
            if data_type not in (FLOAT, DOUBLE) or not isinstance(stated, str) or stated not in NOT_FINITE:
                continue
            is_upper = side == SIDES[1]
            actual = _extreme(subject, path, is_upper=is_upper)
            if actual is None or actual == NOT_FINITE[stated]:
                continue
            if (NOT_FINITE[stated] < actual) is (is_upper is is_outside):
                name, value = ".".join(path), "NaN" if actual == NAN else actual[1]
                yield Violation(
                    f"{side} of {name} is {stated}, which {what} {value} in the data", column=name
                )


def _extreme(subject: FileSubject, path: tuple[str, ...], *, is_upper: bool) -> tuple[int, float] | None:
    """Return the least or the greatest value of a column by its place in the order, None without a value."""
    if subject.lacks(path):
        return None
    extreme = subject.extremes(path)["max" if is_upper else "min"]
    if (is_upper or not extreme.is_valid) and subject.has_nan(path):
        return NAN
    return (0, extreme.as_py()) if extreme.is_valid else None
