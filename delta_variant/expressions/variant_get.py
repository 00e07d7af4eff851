"""`variant_get` on arrays, with types written in SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import ArgumentTypeError
from ..variant.functions import matches_of
from ..variant.moments import UTC, check_timezone
from ..variant.paths import parse_pattern, split_pattern
from ..variant.values import ArrowArray, extract, to_arrow_array
from .parse import parse_type


def variant_get(
    variants: ArrowArray,
    path: str,
    type: str | pa.DataType = "variant",  # noqa: A002 - the name in SQL
    *,
    timezone: str = UTC,
) -> pa.Array[Any]:
    """Return the value at a path of each Variant, cast by Spark's rules.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.user.id`, `$.items[0]` or `$['first name']`. With a wildcard, as in
            `$.items[*].id`, the value is the array of all matches, null if `$.items` does not exist.
        type: The type of the result: a SQL type (`bigint`, `decimal(10,2)`, `variant`) or an Arrow type.
        timezone: The time zone of local times, for casts between timestamps and dates, text or timestamps
            without time zone: a region of the IANA database, or an offset such as `+02:00`.

    Returns:
        An Arrow array of the type, with a row per Variant. A missing path and a Variant null are null.

    Raises:
        CastError: A value cannot be cast; `try_variant_get` returns null for it.
        ExpressionError: The path or the type is invalid.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or another argument has the wrong type.
        ValueError: The time zone is unknown.

    Example:
        >>> from delta_variant import parse_json, variant_get
        >>> events = parse_json(['{"user": {"id": 7}}', '{"user": null}'])
        >>> variant_get(events, "$.user.id", "bigint").to_pylist()
        [7, None]
    """
    return _get(variants, path, type, timezone, strict=True)


def try_variant_get(
    variants: ArrowArray,
    path: str,
    type: str | pa.DataType = "variant",  # noqa: A002 - the name in SQL
    *,
    timezone: str = UTC,
) -> pa.Array[Any]:
    """Return the value at a path of each Variant like `variant_get`, with null for a value that cannot be
    cast.

    Args:
        variants: Variants as an array, shredded or not, or a chunked array.
        path: A path such as `$.user.id`, `$.items[0]` or `$['first name']`. With a wildcard, as in
            `$.items[*].id`, the value is the array of all matches, null if `$.items` does not exist.
        type: The type of the result: a SQL type (`bigint`, `decimal(10,2)`, `variant`) or an Arrow type.
        timezone: The time zone of local times, as in `variant_get`.

    Returns:
        An Arrow array of the type, with a row per Variant. A missing path, a Variant null and a value that
        cannot be cast are null.

    Raises:
        ExpressionError: The path or the type is invalid.
        MalformedVariantError: Bytes are not a Variant; `row` is the row.
        ArgumentTypeError: `variants` is not an array, or another argument has the wrong type.
        ValueError: The time zone is unknown.

    Example:
        >>> from delta_variant import parse_json, try_variant_get
        >>> try_variant_get(parse_json(['{"id": 7}', '{"id": "x"}']), "$.id", "bigint").to_pylist()
        [7, None]
    """
    return _get(variants, path, type, timezone, strict=False)


def _get(
    variants: ArrowArray, path: str, type_: str | pa.DataType, timezone: str, *, strict: bool
) -> pa.Array[Any]:
    check_timezone(timezone)
    steps, pattern = split_pattern(parse_pattern(path))
    variants = to_arrow_array(variants)
    target = _arrow_type(type_)
    if pattern:
        variants, steps = matches_of(extract(variants, steps, None, strict=strict), pattern), ()
    found: pa.Array[Any] = extract(variants, steps, target, strict=strict, timezone=timezone)
    return found


def _arrow_type(type_: str | pa.DataType) -> pa.DataType | None:
    if isinstance(type_, str):
        return parse_type(type_)
    if not isinstance(type_, pa.DataType):
        raise ArgumentTypeError(f"type: expected a SQL type or an Arrow type, got {type_!r}")
    return type_
