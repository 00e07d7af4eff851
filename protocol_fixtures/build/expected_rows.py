"""Encode expected rows of any size as Variant bytes, by VariantEncoding.md and without `delta_variant`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from variant_bytes import value as scalar

Typed = Mapping[str, Any]


def encode(typed: Typed) -> tuple[bytes, bytes]:
    """Return metadata and value of a typed value. The dictionary is sorted."""
    names = sorted({name.encode() for name in _names(typed)})
    width = _width(max(sum(map(len, names)), len(names)))
    metadata = bytes([0x11 | (width - 1) << 6]) + _number(len(names), width) + _offsets(names, width)
    return metadata + b"".join(names), _value(
        typed, {name.decode(): place for place, name in enumerate(names)}
    )


def _names(typed: Typed) -> Iterator[str]:
    for name, field in typed.get("object", {}).items():
        yield name
        yield from _names(field)
    for element in typed.get("array", ()):
        yield from _names(element)


def _value(typed: Typed, ids: Mapping[str, int]) -> bytes:
    [(kind, payload)] = typed.items()
    if kind not in ("array", "object"):
        return scalar(dict(typed), [])
    fields = sorted(payload.items(), key=lambda field: ids[field[0]]) if kind == "object" else []
    parts = [_value(part, ids) for part in (payload if kind == "array" else dict(fields).values())]
    width, is_large = _width(sum(map(len, parts))), len(parts) > 255
    count = _number(len(parts), 4 if is_large else 1)
    if kind == "array":
        header = bytes([3 | (width - 1 | is_large << 2) << 2])
        return header + count + _offsets(parts, width) + b"".join(parts)
    id_width = _width(max((ids[name] for name, _ in fields), default=0))
    header = bytes([2 | (width - 1 | (id_width - 1) << 2 | is_large << 4) << 2])
    numbers = b"".join(_number(ids[name], id_width) for name, _ in fields)
    return header + count + numbers + _offsets(parts, width) + b"".join(parts)


def _width(largest: int) -> int:
    """Return the number of bytes that a number needs."""
    return max(1, (largest.bit_length() + 7) // 8)


def _number(number: int, width: int) -> bytes:
    return number.to_bytes(width, "little")


def _offsets(parts: list[bytes], width: int) -> bytes:
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    return b"".join(_number(end, width) for end in ends)
