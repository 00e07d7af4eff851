"""`variant_get` on arrays, its types written in SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import ArgumentTypeError
from ..variant.moments import UTC, check_timezone
from ..variant.paths import parse_path
from ..variant.values import ArrowArray, extract
from .parse import parse_type

__all__ = ["try_variant_get", "variant_get"]


def variant_get(
    variants: ArrowArray,
    path: str,
    type: str | pa.DataType = "variant",  # noqa: A002 - SQL's word
    *,
    timezone: str = UTC,
) -> Any:
    """Return what lies at a path such as `$.user.id` of each Variant, cast by Spark's rules.

    `type` is SQL text (`bigint`, `decimal(10,2)`, `variant`) or an Arrow type; the result is an Arrow array
    of it. A missing path and a Variant null are null. Dates, and timestamps and text without time zone, are
    local times in `timezone` when they are cast to or from timestamps. Raises ValueError for an unknown time
    zone, CastError for a value that cannot be cast, which `try_variant_get` makes null, and ArgumentTypeError
    for variants that are not an array.
    """
    check_timezone(timezone)
    return extract(variants, parse_path(path), _arrow_type(type), strict=True, timezone=timezone)


def try_variant_get(
    variants: ArrowArray,
    path: str,
    type: str | pa.DataType = "variant",  # noqa: A002 - SQL's word
    *,
    timezone: str = UTC,
) -> Any:
    """Return what lies at a path of each Variant like `variant_get`, null where it cannot be cast."""
    check_timezone(timezone)
    return extract(variants, parse_path(path), _arrow_type(type), strict=False, timezone=timezone)


def _arrow_type(type_: str | pa.DataType) -> pa.DataType | None:
    if isinstance(type_, str):
        return parse_type(type_)
    if not isinstance(type_, pa.DataType):
        raise ArgumentTypeError(f"type: expected SQL text or an Arrow type, got {type_!r}")
    return type_
