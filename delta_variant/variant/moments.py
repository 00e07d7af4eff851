"""Dates, timestamps, time zones and scalar functions, of the kernel, over the full range of all types.

Local times follow the rules of `java.time`, as in Spark: a local time that occurs twice is the earlier
instant, and one within a gap moves forward by the length of the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias

from .. import _native
from .._checks import is_unicode

DatePart: TypeAlias = Literal[
    "year",
    "quarter",
    "month",
    "weekofyear",
    "day",
    "dayofyear",
    "dayofweek",
    "weekday",
    "hour",
    "minute",
    "second",
]

UTC = "UTC"
EPOCH = datetime(1970, 1, 1)


def check_timezone(name: object) -> None:
    """Raise ValueError for a time zone that Spark does not accept.

    Spark accepts regions of the IANA database (`Europe/Berlin`), offsets (`+02:00`, `UTC+2`) and the short
    names of Java (`PST`).
    """
    if not isinstance(name, str) or not is_unicode(name) or not _native.is_time_zone(name):
        raise ValueError(
            f"unknown time zone {name!r}: pass a region like 'Europe/Berlin' or an offset like '+02:00'"
        )


def date_part(values: Any, part: DatePart, timezone: str) -> Any:
    """Return a part of each date or timestamp of an Arrow array, as int32; null stays null.

    The part of an instant is that of its local time in `timezone`. Arrow's own kernels return wrong years
    after 32767, because they store years in 16 bits.
    """
    return _native.date_part(values, part, timezone)


def current_moment() -> datetime:
    """Return the current time. An operation uses one for all of its expressions."""
    return datetime.now(timezone.utc)


def instant_of(local: datetime, zone: str) -> datetime:
    """Return the instant of a local time; raises OverflowError outside the years 1 to 9999."""
    micros = _native.instant_of((local - EPOCH) // timedelta(microseconds=1), zone)
    # The kernel returns None for an overflow of 64 bits, which a year of four digits cannot cause.
    assert micros is not None
    return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=timezone.utc)


def apply_function(name: str, columns: Sequence[Any], rows: int, timezone: str = UTC) -> Any:
    """Return a function of Arrow arrays of `rows` rows, or of one row, which stands for all.

    Raises CastError for a value that has no result, and SchemaError for arguments that are not supported.
    """
    return _native.apply_function(name, list(columns), rows, timezone)
