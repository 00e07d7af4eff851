"""The rows of deletion vectors, read by PROTOCOL.md, Deletion Vector Format, without `delta_variant`."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

MAGIC = 1681511377
WITHOUT_RUNS, WITH_RUNS = 12346, 12347
"""The cookies of a bitmap by RoaringFormatSpec."""

MOST_IN_ARRAY, BITMAP_BYTES, UUID_CHARACTERS = 4096, 8192, 20

Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def deleted_rows(table: Path, descriptor: Mapping[str, Any] | None) -> frozenset[int]:
    """Return the rows, counted from 0, that the descriptor of a file's deletion vector deletes."""
    if descriptor is None:
        return frozenset()
    text = descriptor["pathOrInlineDv"]
    if descriptor["storageType"] == "i":
        return frozenset(rows_of(from_z85(text)[: descriptor["sizeInBytes"]]))
    prefix, name = text[:-UUID_CHARACTERS], text[-UUID_CHARACTERS:]
    file = table / prefix / f"deletion_vector_{UUID(bytes=from_z85(name))}.bin"
    start = descriptor.get("offset", 1) + 4
    return frozenset(rows_of(file.read_bytes()[start : start + descriptor["sizeInBytes"]]))


def from_z85(text: str) -> bytes:
    """Return the bytes of z85 text."""
    return base64.b85decode(text.encode().translate(bytes.maketrans(Z85, B85)))


class _Reader:
    """Reads little-endian numbers from the start of data."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found

    def number(self, form: str) -> int:
        return self.numbers(form)[0]


def rows_of(data: bytes) -> Iterator[int]:
    """Yield the rows of a serialized bitmap in their order; raises ValueError for another format."""
    reader = _Reader(data)
    magic, bitmaps = reader.number("I"), reader.number("q")
    if magic != MAGIC:
        raise ValueError(f"expected a deletion vector with the magic number {MAGIC}, got {magic}")
    for _ in range(bitmaps):
        high = reader.number("I") << 32
        yield from (high + row for row in _bitmap(reader))
    if reader.at != len(data):
        raise ValueError(f"expected a deletion vector of {reader.at} bytes, got {len(data)}")


def _bitmap(reader: _Reader) -> Iterator[int]:
    cookie = reader.number("I")
    has_runs = cookie & 0xFFFF == WITH_RUNS
    if not has_runs and cookie != WITHOUT_RUNS:
        raise ValueError(f"expected a Roaring bitmap, got the cookie {cookie}")
    count = (cookie >> 16) + 1 if has_runs else reader.number("I")
    flags = reader.numbers(f"{(count + 7) // 8}B") if has_runs else ()
    keys = [reader.numbers("HH") for _ in range(count)]
    if not has_runs or count >= 4:
        reader.numbers(f"{count}I")
    for number, (key, size) in enumerate(keys):
        is_run = has_runs and flags[number // 8] >> number % 8 & 1
        yield from ((key << 16) + row for row in _container(reader, size + 1, bool(is_run)))


def _container(reader: _Reader, size: int, is_run: bool) -> Iterator[int]:
    if is_run:
        for _ in range(reader.number("H")):
            first, more = reader.numbers("HH")
            yield from range(first, first + more + 1)
    elif size <= MOST_IN_ARRAY:
        yield from reader.numbers(f"{size}H")
    else:
        bits = int.from_bytes(bytes(reader.numbers(f"{BITMAP_BYTES}B")), "little")
        yield from (row for row in range(8 * BITMAP_BYTES) if bits >> row & 1)
