"""Whether the statistics of a file say what its data says; what they leave out on purpose is no fault."""

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
    """Yield why statistics are not right, a phrase each; none when they are.

    `computed` are those of the data with every path of Variants, `columns` the leaf columns that should have
    statistics. A path of a Variant may be left out, for writers choose how many they keep; a column may not.
    What is `stored` in the file may have statistics, though the table dropped it.
    """
    if stated.num_records != computed.num_records:
        yield f"numRecords is {stated.num_records}, and not {computed.num_records}"
    known = {path for path, _ in _leaves(computed)} | set(columns)
    for path, member in _leaves(stated):
        if path not in known and _type_in(stored, path) is None:
            yield f"{member} has {'.'.join(path)}, which is no column"
    for path, data_type in columns.items():
        name = ".".join(path)
        if value_at(stated.null_count, path) != value_at(computed.null_count, path):
            yield f"nullCount of {name} is not that of the data"
        sides = [(value_at(said, path), value_at(found, path)) for said, found in _sides(stated, computed)]
        if data_type == VARIANT:
            yield from _variant_reasons(name, sides)
        else:
            yield from _ordinary_reasons(name, type_of_bounds(data_type, _type_in(stored, path)), sides)


def _type_in(columns: Any, path: Path) -> pa.DataType | None:
    """Return the type of a column of a schema, or of a field in its structs; None where there is none."""
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
    for side, (said, found) in zip(SIDES, sides, strict=True):
        if found is not None and said is None:
            # A long text may have no short greatest value.
            if side == SIDES[0] or not isinstance(found, str):
                yield f"{side} has nothing for {name}"
        elif said is not None and not _is_same(said, found, data_type, side):
            yield f"{side} of {name} is {said!r}, and not {found!r}"


def _is_same(said: Any, found: Any, data_type: DataType, side: str) -> bool:
    stated, actual = to_comparable(said, data_type), to_comparable(found, data_type)
    if stated is None or actual is None:
        return stated is actual is None and found is None
    if isinstance(stated, datetime):
        # Writers cut to the millisecond below, or keep the microseconds.
        return bool(abs(stated - actual) < timedelta(milliseconds=1))
    is_text = isinstance(stated, str)
    return bool(stated == actual) or (is_text and is_shortened(said, found, is_upper=side == SIDES[1]))


def _variant_reasons(name: str, sides: list[tuple[Any, Any]]) -> Iterator[str]:
    found = [_decode_bounds(entry) for _, entry in sides]
    if all(said is None for said, _ in sides):
        if any(found):
            yield f"there are no bounds of {name}"
        return
    said_bounds = []
    for side, (said, _) in zip(SIDES, sides, strict=True):
        why = _defect(said)
        if why is not None:
            yield f"{side} of {name} {why}"
        said_bounds.append(_decode_bounds(said))
    for key in dict.fromkeys(key for bounds in said_bounds for key in bounds):
        pairs = zip(SIDES, said_bounds, found, strict=True)
        if not all(_are_equal(said.get(key), actual.get(key), side) for side, said, actual in pairs):
            yield f"the bounds of {name} at {key} are not those of the data"


def _decode_bounds(entry: Any) -> Mapping[str, Bound]:
    try:
        found = describe_bound(entry) if isinstance(entry, str) else None
    except InvalidStatisticsError:
        return {}
    return (found and found.bounds) or {}


def _defect(entry: Any) -> str | None:
    """Return why an entry is no text as Delta's writers print it (Z2), None when it is one or absent."""
    if entry is None:
        return None
    if not isinstance(entry, str):
        return "is no text"
    try:
        found: BoundText = describe_bound(entry)
    except InvalidStatisticsError:
        return "cannot be decoded"
    if found.bounds is None:
        return "is no object"
    if found.is_value_first or found.is_cut or len(found.rest) > 3 or any(found.rest):
        return "is printed in another form than Delta's"
    return None


def _are_equal(said: Bound | None, actual: Bound | None, side: str) -> bool:
    if said is None or actual is None:
        return said is actual
    if (said.type, said.scale, said.text) == (actual.type, actual.scale, actual.text):
        return True
    is_text = said.type == actual.type == "string"
    return is_text and is_shortened(said.text, actual.text, is_upper=side == SIDES[1])
