"""Dates, timestamps and time zones as the kernel computes with them, over the full range of all types.

Local times follow the rules of `java.time`, as in Spark: a local time that occurs twice is the earlier
instant, and one within a gap is moved forward by the length of the gap.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias

from .. import _native

__all__ = ["DATE_PARTS", "UTC", "DatePart", "check_timezone", "date_part", "instant_of"]

DatePart: TypeAlias = Literal["year", "month", "day", "hour"]
DATE_PARTS: tuple[DatePart, ...] = ("year", "month", "day", "hour")

UTC = "UTC"
EPOCH = datetime(1970, 1, 1)


def check_timezone(name: object) -> None:
    """Raise ValueError, which names it, for a time zone that Spark does not know.

    Known are regions of the IANA database (`Europe/Berlin`), offsets (`+02:00`, `UTC+2`) and the short names
    of Java (`PST`).
    """
    if not isinstance(name, str) or not _native.is_time_zone(name):
        raise ValueError(
            f"unknown time zone {name!r}: give a region like 'Europe/Berlin' or an offset like '+02:00'"
        )


def date_part(values: Any, part: DatePart, timezone: str = UTC) -> Any:
    """Return a part of each date or timestamp of an Arrow array, as int32; null stays null.

    The part of an instant is that of its local time in `timezone`. Arrow's own kernels return another year
    for years beyond 32767, whose dates they hold in 16 bits.
    """
    return _native.date_part(values, part, timezone)


def instant_of(local: datetime, zone: str) -> datetime:
    """Return the instant of a local time; raises OverflowError outside of the years 1 to 9999."""
    micros = _native.instant_of((local - EPOCH) // timedelta(microseconds=1), zone)
    # A year of four digits is far from the ends of 64 bits.
    assert micros is not None
    return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=timezone.utc)
