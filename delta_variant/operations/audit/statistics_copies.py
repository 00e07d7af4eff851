"""Compare two copies of the statistics of one file, such as those of a commit and of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from ...data_file.reader import NativeFile
from ...errors import InvalidStatisticsError, SchemaError
from ...protocol import properties
from ...protocol.actions import Metadata
from ...protocol.schema.column_mapping import physical_schema
from ...protocol.schema.json_text import parse as parse_schema
from ...protocol.statistics import (
    FileStatistics,
    decode_or_empty,
    describe_bound,
    leaves_of,
    to_comparable,
    value_at,
)
from ...protocol.types import VARIANT, DataType, StructType, leaf_columns


def footer_differences(file: NativeFile) -> Iterator[tuple[str, str]]:
    """Yield column and sentence for each statistic of row groups and pages that excludes a value.

    Bloom filters are such statistics, too. Raises DataFileError for a page that cannot be decoded.
    """
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for path, row_group, page, what, stated, actual in file.check_footer():
        where = f"row group {row_group}" + ("" if page is None else f", page {page}")
        found.setdefault((".".join(path), what), []).append((where, stated, actual))
    for (name, member), places in found.items():
        what = "the Bloom filter" if member == "bloom_filter" else member
        where, stated, actual = places[0]
        more = f" (and {len(places) - 1:,} more)" if len(places) > 1 else ""
        yield name, f"{where}: {what} of {name} is {stated}, but the values have {actual}{more}"


Path: TypeAlias = tuple[str, ...]

SIDES = ("minValues", "maxValues")


def ordinary_columns(columns: StructType) -> Iterator[tuple[Path, DataType]]:
    """Yield the paths and types of the leaf columns outside of lists, maps and Variants."""
    for fields in leaf_columns(columns):
        if fields[-1].type != VARIANT:
            yield tuple(field.name for field in fields), fields[-1].type


def types_of_bounds(metadata: Metadata | None) -> dict[Path, DataType]:
    """Return the types of the bounds of ordinary columns by physical path, empty for an invalid schema."""
    if metadata is None:
        return {}
    try:
        mode = properties.get(metadata.configuration, properties.COLUMN_MAPPING_MODE)
        return dict(ordinary_columns(physical_schema(parse_schema(metadata.schema_string), mode)))
    except SchemaError:
        return {}


def differences_of_copies(text: str, other: str, types: Mapping[Path, DataType]) -> Iterator[str]:
    """Yield the statistics that differ. Each side can omit a statistic that it cannot represent."""
    if text == other:
        return
    one, another = decode_or_empty(text), decode_or_empty(other)
    if None not in (one.num_records, another.num_records) and one.num_records != another.num_records:
        yield "numRecords"
    for path, count in leaves_of(another.null_count):
        if value_at(one.null_count, path) not in (None, count):
            yield f"nullCount of {'.'.join(path)}"
    for side, texts, others in zip(SIDES, bounds_of(one), bounds_of(another), strict=True):
        for path, bound in leaves_of(others):
            stated = value_at(texts, path)
            if stated is not None and not _is_same(stated, bound, types.get(path)):
                yield f"{side} of {'.'.join(path)}"


def bounds_of(stats: FileStatistics) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return both sides of the bounds, in the order of SIDES."""
    return stats.min_values, stats.max_values


def _is_same(text: Any, other: Any, data_type: DataType | None) -> bool:
    """Return whether two bounds are equal. Without a `data_type` they are bounds of a Variant."""
    if data_type is None:
        return bool(text == other) or _variant_bounds(text) == _variant_bounds(other)
    values = to_comparable(text, data_type), to_comparable(other, data_type)
    return None in values or values[0] == values[1] or is_near(*values)


def _variant_bounds(text: Any) -> Any:
    try:
        return describe_bound(text).bounds if isinstance(text, str) else None
    except InvalidStatisticsError:
        return None


def is_near(stated: Any, actual: Any) -> bool:
    """Return whether two bounds are timestamps that truncation to milliseconds makes equal."""
    # Writers truncate timestamps to milliseconds, including those of maxValues.
    return isinstance(stated, datetime) and abs(stated - actual) <= timedelta(milliseconds=1)
