"""Comparison of the statistics of a file with its data. Statistics can omit optional parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from ...errors import InvalidStatisticsError
from ...protocol.statistics import (
    Bound,
    BoundText,
    FileStatistics,
    describe_bound,
    is_shortened,
    leaves_of,
    to_comparable,
    type_of_bounds,
    value_at,
)
from ...protocol.types import VARIANT, DataType

__all__ = ["Path", "reasons_to_repair"]

Path: TypeAlias = tuple[str, ...]

SIDES = ("minValues", "maxValues")


def reasons_to_repair(
    stated: FileStatistics,
    computed: FileStatistics,
    columns: Mapping[Path, DataType],
    stored: pa.Schema,
) -> Iterator[str]:
    """Yield the differences between recorded and computed statistics, a phrase each.

    `computed` has every path of Variants, and `columns` are the leaf columns that must have statistics. A
    path of a Variant can be missing, because writers limit the number of paths; a column cannot. A column of
    the file, in the schema `stored`, can have statistics after the table dropped it.
    """
    if stated.num_records != computed.num_records:
        yield f"numRecords is {stated.num_records}, expected {computed.num_records}"
    known = {path for path, _ in _leaves(computed)} | set(columns)
    for path, member in _leaves(stated):
        if path not in known and _type_in(stored, path) is None:
            yield f"{member} has {'.'.join(path)}, which is not a column"
    for path, data_type in columns.items():
        name = ".".join(path)
        if value_at(stated.null_count, path) != value_at(computed.null_count, path):
            yield f"nullCount of {name} differs from the data"
        sides = [(value_at(old, path), value_at(new, path)) for old, new in _sides(stated, computed)]
        if data_type == VARIANT:
            yield from _variant_reasons(name, sides)
        else:
            yield from _ordinary_reasons(name, type_of_bounds(data_type, _type_in(stored, path)), sides)


def _type_in(columns: Any, path: Path) -> pa.DataType | None:
    """Return the type of a column or a nested field of a schema, None without one."""
    found: pa.DataType | None = None
    for step in path:
        is_group = isinstance(columns, pa.Schema) or pa.types.is_struct(columns)
        index = columns.get_field_index(step) if is_group else -1
        if index < 0:
            return None
        columns = found = columns.field(index).type
    return found


def _sides(
    stated: FileStatistics, computed: FileStatistics
) -> tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]:
    return (stated.min_values, computed.min_values), (stated.max_values, computed.max_values)


def _leaves(statistics: FileStatistics) -> Iterator[tuple[Path, str]]:
    members = (statistics.null_count, statistics.min_values, statistics.max_values)
    for name, values in zip(("nullCount", *SIDES), members, strict=True):
        yield from ((path, name) for path, _ in leaves_of(values))


def _ordinary_reasons(name: str, data_type: DataType, sides: list[tuple[Any, Any]]) -> Iterator[str]:
    for side, (stated, found) in zip(SIDES, sides, strict=True):
        if found is not None and stated is None:
            # A long string can lack the upper bound: a truncated one must still be greater than the string.
            if side == SIDES[0] or not isinstance(found, str):
                yield f"{side} has no value for {name}"
        elif stated is not None and not _is_same(stated, found, data_type, side):
            yield f"{side} of {name} is {stated!r}, expected {found!r}"


def _is_same(recorded: Any, found: Any, data_type: DataType, side: str) -> bool:
    stated, actual = to_comparable(recorded, data_type), to_comparable(found, data_type)
    if stated is None or actual is None:
        return stated is actual is None and found is None
    if isinstance(stated, datetime):
        # Writers truncate to milliseconds or keep microseconds.
        return bool(abs(stated - actual) < timedelta(milliseconds=1))
    is_text = isinstance(stated, str)
    return bool(stated == actual) or (is_text and is_shortened(recorded, found, is_upper=side == SIDES[1]))


def _variant_reasons(name: str, sides: list[tuple[Any, Any]]) -> Iterator[str]:
    found = [_decode_bounds(entry) for _, entry in sides]
    if all(stated is None for stated, _ in sides):
        if any(found):
            yield f"{name} has no bounds"
        return
    stated_bounds = []
    for side, (stated, _) in zip(SIDES, sides, strict=True):
        defect = _defect(stated)
        if defect is not None:
            yield f"{side} of {name} {defect}"
        stated_bounds.append(_decode_bounds(stated))
    for key in dict.fromkeys(key for bounds in stated_bounds for key in bounds):
        pairs = zip(SIDES, stated_bounds, found, strict=True)
        if not all(_are_equal(stated.get(key), actual.get(key), side) for side, stated, actual in pairs):
            yield f"the bounds of {name} at {key} differ from the data"


def _decode_bounds(entry: Any) -> Mapping[str, Bound]:
    try:
        found = describe_bound(entry) if isinstance(entry, str) else None
    except InvalidStatisticsError:
        return {}
    return (found and found.bounds) or {}


def _defect(entry: Any) -> str | None:
    """Return why a bound is not in the form of Delta's writers, None if it is or is missing."""
    if entry is None:
        return None
    if not isinstance(entry, str):
        return "is not a string"
    try:
        found: BoundText = describe_bound(entry)
    except InvalidStatisticsError:
        return "cannot be decoded"
    if found.bounds is None:
        return "is not an object"
    if found.is_value_first or found.is_cut or len(found.rest) > 3 or any(found.rest):
        return "is not in the form of Delta's writers"
    return None


def _are_equal(stated: Bound | None, actual: Bound | None, side: str) -> bool:
    if stated is None or actual is None:
        return stated is actual
    if (stated.type, stated.scale, stated.text) == (actual.type, actual.scale, actual.text):
        return True
    is_text = stated.type == actual.type == "string"
    return is_text and is_shortened(stated.text, actual.text, is_upper=side == SIDES[1])
