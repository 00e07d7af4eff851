"""Decode Variant bytes to typed values, strictly as VariantEncoding.md specifies.

This is the only Python code that decodes Variant bytes. The kit must not use our kernel to grade our kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from .typed_values import TypedValue

MAX_VALUES = 1_000_000
"""The limit of values, because values may share bytes and few bytes can encode exponentially many."""


class NotAVariantError(ValueError):
    """Bytes that VariantEncoding.md does not allow."""


def decode(metadata: bytes, value: bytes) -> TypedValue:
    """Return the value in `metadata` and `value`; raises NotAVariantError."""
    names, size = _names(metadata)
    if size != len(metadata):
        raise NotAVariantError(f"{len(metadata) - size} bytes follow the end of metadata")
    decoded, end = _decode(names, value, 0)
    if end != len(value):
        raise NotAVariantError(f"{len(value) - end} bytes follow the end of the value")
    return decoded


def decode_concatenated(data: bytes) -> TypedValue:
    """Return the value in `metadata‖value`, padded by up to three zero bytes (PROTOCOL.md, z85)."""
    names, size = _names(data)
    decoded, end = _decode(names, data, size)
    if len(data) - end > 3 or any(data[end:]):
        raise NotAVariantError(f"{len(data) - end} bytes follow the value: expected up to three zero bytes")
    return decoded


def _take(data: bytes, start: int, size: int) -> bytes:
    if start + size > len(data):
        raise NotAVariantError(f"expected bytes {start} to {start + size}, got only {len(data)} bytes")
    return data[start : start + size]


def _unsigned(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(_take(data, start, size), "little")


def _utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotAVariantError(f"invalid UTF-8 in a string: {error}") from error


def _names(data: bytes) -> tuple[list[str], int]:
    """Return the dictionary at the start of `data`, and where it ends."""
    header = _unsigned(data, 0, 1)
    if header & 0b1111 != 1:
        raise NotAVariantError(f"expected metadata of version 1, got {header & 0b1111}")
    width = (header >> 6) + 1
    count = _unsigned(data, 1, width)
    offsets = _offsets(data, 1 + width, count + 1, width)
    start = 1 + width * (count + 2)
    if offsets[0] != 0 or offsets != sorted(offsets):
        raise NotAVariantError("the offsets of metadata do not start at 0 or do not ascend")
    parts = [_take(data, start + offsets[i], offsets[i + 1] - offsets[i]) for i in range(count)]
    if header & 0b1_0000 and parts != sorted(set(parts)):
        raise NotAVariantError("metadata is marked as sorted, but its names are not sorted and unique")
    return [_utf8(part) for part in parts], start + offsets[-1]


def _offsets(data: bytes, start: int, count: int, width: int) -> list[int]:
    part = _take(data, start, count * width)
    return [int.from_bytes(part[i : i + width], "little") for i in range(0, len(part), width)]


@dataclass(frozen=True)
class _Members:
    """The members of an object, or the elements of an array if `names` is None."""

    names: tuple[str, ...] | None
    starts: tuple[int, ...]
    end: int


def _decode(names: list[str], data: bytes, start: int) -> tuple[TypedValue, int]:
    """Return the value that starts at `start`, and where it ends."""
    root: dict[str, object] = {}
    waiting: list[tuple[int, dict[str, object], int]] = [(start, root, len(data))]
    end, seen = -1, 0
    while waiting:
        at, slot, limit = waiting.pop()
        seen += 1
        if seen > MAX_VALUES:
            raise NotAVariantError(f"more than {MAX_VALUES:,} values")
        stop = at
        if _unsigned(data, at, 1) & 0b11 in (2, 3):
            members = _members(names, data, at)
            stop = members.end
            waiting += _open(members, slot)
        else:
            kind, payload, stop = _scalar(data, at)
            slot[kind] = payload
        if stop > limit:
            raise NotAVariantError(f"the value at byte {at} exceeds the value that contains it")
        end = stop if end < 0 else end
    return root, end


def _open(members: _Members, slot: dict[str, object]) -> Iterator[tuple[int, dict[str, object], int]]:
    """Store an object or array in `slot`; yield start, empty slot and limit of each member."""
    slots: list[dict[str, object]] = [{} for _ in members.starts]
    if members.names is None:
        slot["array"] = slots
    else:
        slot["object"] = dict(zip(members.names, slots, strict=True))
    yield from zip(members.starts, slots, [members.end] * len(slots), strict=True)


def _members(names: list[str], data: bytes, at: int) -> _Members:
    header = data[at] >> 2
    is_object = data[at] & 0b11 == 2
    offset_width = (header & 0b11) + 1
    id_width = (header >> 2 & 0b11) + 1 if is_object else 0
    is_large = header >> (4 if is_object else 2) & 1
    count_width = 4 if is_large else 1
    count = _unsigned(data, at + 1, count_width)
    ids_at = at + 1 + count_width
    offsets_at = ids_at + count * id_width
    offsets = _offsets(data, offsets_at, count + 1, offset_width)
    first = offsets_at + offset_width * (count + 1)
    end = first + offsets[-1]
    _take(data, first, offsets[-1])
    starts = tuple(first + offset for offset in offsets[:-1])
    if any(each >= end for each in starts):
        raise NotAVariantError(f"an offset at byte {at} points past the end of the values")
    fields = _field_names(names, _offsets(data, ids_at, count, id_width)) if is_object else None
    return _Members(fields, starts, end)


def _field_names(names: list[str], ids: list[int]) -> tuple[str, ...]:
    if any(each >= len(names) for each in ids):
        raise NotAVariantError(f"field id {max(ids)} is not in the dictionary of {len(names)} names")
    fields = tuple(names[each] for each in ids)
    if len(set(fields)) != len(fields):
        raise NotAVariantError("an object has a duplicate key")
    return fields


def _scalar(data: bytes, at: int) -> tuple[str, object, int]:
    """Return type and payload of the primitive or short string at `at`, and where it ends."""
    header, start = data[at] >> 2, at + 1
    if data[at] & 0b11 == 1:
        return "string", _utf8(_take(data, start, header)), start + header
    if header not in PRIMITIVES:
        raise NotAVariantError(f"unknown primitive type {header}")
    kind, size, read = PRIMITIVES[header]
    if size is None:
        size = _unsigned(data, start, 4)
        start += 4
    return kind, read(_take(data, start, size)), start + size


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _decimal(data: bytes) -> str:
    scale, unscaled = data[0], _signed(data[1:])
    if scale > 38:
        raise NotAVariantError(f"expected a decimal of scale 0 to 38, got {scale}")
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text


def _float(layout: str) -> Callable[[bytes], float | str]:
    def read(data: bytes) -> float | str:
        (number,) = struct.unpack(layout, data)
        if number != number:
            return "NaN"
        specials = {"inf": "Infinity", "-inf": "-Infinity", "-0.0": "-0.0"}
        return specials.get(repr(number), float(number))

    return read


def _time(data: bytes) -> int:
    micros = _signed(data)
    if not 0 <= micros < 86_400_000_000:
        raise NotAVariantError(f"expected a time of less than 24 hours, got {micros} microseconds")
    return micros


PRIMITIVES: Mapping[int, tuple[str, int | None, Callable[[bytes], object]]] = {
    0: ("null", 0, lambda data: None),
    1: ("boolean", 0, lambda data: True),
    2: ("boolean", 0, lambda data: False),
    3: ("int8", 1, _signed),
    4: ("int16", 2, _signed),
    5: ("int32", 4, _signed),
    6: ("int64", 8, _signed),
    7: ("double", 8, _float("<d")),
    8: ("decimal4", 5, _decimal),
    9: ("decimal8", 9, _decimal),
    10: ("decimal16", 17, _decimal),
    11: ("date", 4, _signed),
    12: ("timestamp", 8, _signed),
    13: ("timestamp_ntz", 8, _signed),
    14: ("float", 4, _float("<f")),
    15: ("binary", None, bytes.hex),
    16: ("string", None, _utf8),
    17: ("time", 8, _time),
    18: ("timestamp_nanos", 8, _signed),
    19: ("timestamp_ntz_nanos", 8, _signed),
    20: ("uuid", 16, lambda data: str(UUID(bytes=data))),
}
"""Type, size where it is fixed, and reader of each primitive type id."""
