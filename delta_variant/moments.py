"""Dates and timestamps as the kernel computes with them, over the full range of both types."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from . import _native

__all__ = ["DATE_PARTS", "DatePart", "date_part"]

DatePart: TypeAlias = Literal["year", "month", "day", "hour"]
DATE_PARTS: tuple[DatePart, ...] = ("year", "month", "day", "hour")


def date_part(values: Any, part: DatePart) -> Any:
    """Return a part of each date or timestamp of an Arrow array, as int32; null stays null.

    Arrow's own kernels return another year for years beyond 32767, whose dates they hold in 16 bits.
    """
    return _native.date_part(values, part)
