"""The statistics of a data file: the text of `AddFile.stats` (PROTOCOL.md, "Per-file Statistics").

Bounds of a Variant column are two Variant objects from normalized paths to least and greatest values, as z85.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from . import z85
from .errors import InvalidStatisticsError, InvalidZ85Error, MalformedVariantError
from .variant import Variant, from_concatenated

__all__ = ["FileStatistics", "decode", "decode_bound", "encode_bound", "from_report"]

Path: TypeAlias = tuple[str, ...]
Nested: TypeAlias = Mapping[str, Any]

PREFIX_CHARACTERS = 32
MAX_ASCII = "\x7f"
MAX_CHARACTER = "\U0010ffff"
"""What follows a shortened upper bound, so that it is greater than every text it stands for."""


@dataclass(frozen=True)
class FileStatistics:
    """What a file's AddFile says of its rows.

    `null_count`, `min_values` and `max_values` mirror the schema by physical names: a struct is a mapping.
    The bounds are JSON values; those of a Variant column are z85 text, which `decode_bound` reads.
    """

    num_records: int | None = None
    null_count: Nested = field(default_factory=dict)
    min_values: Nested = field(default_factory=dict)
    max_values: Nested = field(default_factory=dict)
    tight_bounds: bool | None = None

    def to_json(self) -> str:
        """Return the text of `AddFile.stats`."""
        entries = {
            "numRecords": self.num_records,
            "minValues": _digits(self.min_values),
            "maxValues": _digits(self.max_values),
            "nullCount": self.null_count,
            "tightBounds": self.tight_bounds,
        }
        present = {key: value for key, value in entries.items() if value is not None}
        return msgspec.json.encode(present).decode()


def _digits(value: Any) -> Any:
    """Return bounds with decimals as JSON numbers of all their digits."""
    if isinstance(value, Mapping):
        return {name: _digits(part) for name, part in value.items()}
    return msgspec.Raw(format(value, "f").encode()) if isinstance(value, Decimal) else value


def decode(text: str) -> FileStatistics:
    """Return the statistics in the text of `AddFile.stats`; raises InvalidStatisticsError."""
    try:
        entries = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidStatisticsError(f"the statistics are no JSON object: {error}") from error
    return FileStatistics(
        entries.get("numRecords"),
        entries.get("nullCount") or {},
        entries.get("minValues") or {},
        entries.get("maxValues") or {},
        entries.get("tightBounds"),
    )


def encode_bound(data: bytes) -> str:
    """Return `metadata‖value` as the z85 text of a statistics entry (requirements Z2)."""
    return z85.encode(data)


def decode_bound(text: str) -> Variant:
    """Return the Variant in a statistics entry, in either printed form (requirements Z3, Z5).

    Raises InvalidStatisticsError.
    """
    try:
        return from_concatenated(z85.decode(text))
    except (InvalidZ85Error, MalformedVariantError) as error:
        raise InvalidStatisticsError(f"{text!r} holds no Variant: {error}") from error


def from_report(
    num_records: int, columns: Sequence[Any], names: Sequence[str], indexed: Collection[Path] | None
) -> FileStatistics:
    """Return the statistics of a file from what the kernel reports of its columns.

    `indexed` are the leaf columns that have statistics, None for all.
    """
    null_count: dict[str, Any] = {}
    bounds: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name, column in zip(names, columns, strict=True):
        for path, nulls, least, greatest in _leaves(name, column):
            if indexed is not None and path not in indexed:
                continue
            _put(null_count, path, nulls)
            for side, value in zip(bounds, (least, greatest), strict=True):
                if value is not None:
                    _put(side, path, value)
    return FileStatistics(num_records, null_count, *bounds)


def _leaves(name: str, column: Any) -> list[tuple[Path, int, Any, Any]]:
    if isinstance(column, dict):
        least, greatest = column["bounds"] or (None, None)
        return [
            ((name,), column["nulls"], least and encode_bound(least), greatest and encode_bound(greatest))
        ]
    return [
        (tuple(path), nulls, _bound(least, _shorten_down), _bound(greatest, _shorten_up))
        for path, nulls, least, greatest in column
    ]


def _put(target: dict[str, Any], path: Path, value: Any) -> None:
    for step in path[:-1]:
        target = target.setdefault(step, {})
    target[path[-1]] = value


def _bound(row: Any, shorten: Callable[[str], str | None]) -> Any:
    """Return a bound, an array of one row, as the JSON value that Delta gives it."""
    if row is None:
        return None
    arrow_type = row.type
    if pa.types.is_timestamp(arrow_type):
        return _timestamp(row.cast(pa.timestamp("us", arrow_type.tz))[0].value, bool(arrow_type.tz))
    value = row[0].as_py()
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def _timestamp(micros: int, has_zone: bool) -> str | None:
    """Return a timestamp to the millisecond below, as the protocol wants it."""
    millis = micros // 1000
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds") + ("Z" if has_zone else "")


def _shorten_down(text: str) -> str:
    return text[:PREFIX_CHARACTERS]


def _shorten_up(text: str) -> str | None:
    if len(text) <= PREFIX_CHARACTERS:
        return text
    prefix, following = text[:PREFIX_CHARACTERS], text[PREFIX_CHARACTERS]
    if following < MAX_ASCII:
        return prefix + MAX_ASCII
    return prefix + MAX_CHARACTER if following < MAX_CHARACTER else None
